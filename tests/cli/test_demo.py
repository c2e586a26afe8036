"""``mtmetrics demo`` without a server."""

import importlib.util

import pytest

from mtmetrics.errors import install_command


def test_the_app_is_served_until_it_ends(mtmetrics, monkeypatch):
    pytest.importorskip("gradio", reason="needs the extra 'app'")
    calls = []

    def serve(app, port):
        calls.append((app.title, port))
        app.local_url, app.block_thread = "http://127.0.0.1:7000/", lambda: calls.append("blocked")

    monkeypatch.setattr("mtmetrics.page.theme.serve", serve)
    assert mtmetrics("demo", "xmoverscore", "--port", "7000") == (0, "http://127.0.0.1:7000/\n", "")
    assert mtmetrics("demo") == (0, "http://127.0.0.1:7000/\n", "")
    assert calls == [("XMoverScore", 7000), "blocked", ("mtmetrics: compare", None), "blocked"]


def test_what_cannot_be_served(mtmetrics, monkeypatch):
    code, _, err = mtmetrics("demo", "bleu")
    assert (code, "unknown metric 'bleu'; there are: bertr" in err) == (2, True)
    real = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "gradio" else real(name)
    )
    for name in ([], ["xmoverscore"]):
        code, _, err = mtmetrics("demo", *name)
        assert (code, install_command("app") in err) == (1, True)
