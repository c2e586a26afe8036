"""Serving a demo app."""

import socket

import pytest

from mtmetrics.errors import MTMetricsError
from mtmetrics.integrations.demo import serve

gradio = pytest.importorskip("gradio", reason="needs the extra 'app'")


def test_a_port_that_is_taken():
    with gradio.Blocks(analytics_enabled=False) as app:
        gradio.Markdown("page")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(MTMetricsError, match=f"port {port}: cannot be used .*choose another"):
            serve(app, port)
