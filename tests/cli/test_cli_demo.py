"""``mtmetrics demo`` without a server."""

import importlib.util
import types

import pytest

from mtmetrics.cli.main import main


def test_the_app_is_served_until_it_ends(monkeypatch, capsys):
    pytest.importorskip("gradio", reason="needs the extra 'app'")
    calls = []

    def serve(app, port):
        calls.append((app.title, port))
        return types.SimpleNamespace(local_url="http://127.0.0.1:7000/", block_thread=lambda: calls.append("blocked"))

    monkeypatch.setattr("mtmetrics.integrations.demo.serve", serve)
    assert main(["demo", "xmoverscore", "--port", "7000"]) == 0
    assert calls == [("XMoverScore", 7000), "blocked"]
    assert capsys.readouterr().out == "http://127.0.0.1:7000/\n"


def test_what_cannot_be_served(monkeypatch, capsys):
    assert main(["demo", "bleu"]) == 2
    assert "unknown metric 'bleu'; there are: bertr" in capsys.readouterr().err
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "gradio" else real(name))
    assert main(["demo", "xmoverscore"]) == 1
    assert "pip install 'mtmetrics[app]'" in capsys.readouterr().err
