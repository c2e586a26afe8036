"""The demo apps answer over HTTP, on loopback."""

import importlib.util
import json
import urllib.request

import pytest

import mtmetrics.scorers.load
from mtmetrics.layout import metric_scripts

gradio = pytest.importorskip("gradio", reason="needs the extra 'app'")


@pytest.fixture
def ask(monkeypatch, tiny_preset):
    monkeypatch.setenv("GRADIO_ANALYTICS_ENABLED", "False")
    real = mtmetrics.scorers.load.load_preset
    monkeypatch.setattr(
        mtmetrics.scorers.load, "load_preset", lambda metric, preset: real(metric, tiny_preset if preset == "mini" else preset)
    )
    spec = importlib.util.spec_from_file_location("app", metric_scripts() / "xmoverscore" / "app.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    app = module.build()
    _, url, _ = app.launch(prevent_thread_lock=True, server_name="127.0.0.1", quiet=True, share=False, show_error=True)

    def asked(*data):
        body = json.dumps({"data": data}).encode()
        call = urllib.request.Request(f"{url}gradio_api/call/score", body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(call, timeout=60) as answer:
            number = json.load(answer)["event_id"]
        with urllib.request.urlopen(f"{url}gradio_api/call/score/{number}", timeout=60) as answer:
            lines = answer.read().decode().strip().splitlines()
        return lines[-2].removeprefix("event: "), json.loads(lines[-1].removeprefix("data: "))

    yield asked
    app.close()


def test_scores_and_errors(ask, tiny_preset):
    expected = mtmetrics.scorers.load.load_scorer("xmoverscore", preset=str(tiny_preset), lang_pair="de-en").score(
        ["Das Haus"], ["the house"]
    )
    event, (score, parts, signature) = ask("Das Haus", "the house", "de-en", "mini")
    assert event == "complete"
    assert score == expected.system
    assert parts == {name: values[0] for name, values in expected.parts.items()}
    assert signature == expected.signature
    event, error = ask("Das Haus", "the house", "deen", "mini")
    assert event == "error"
    assert "language pair 'deen'" in error["error"]
