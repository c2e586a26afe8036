"""Bare names in the module cache of `evaluate`."""

import socket
from pathlib import Path

import evaluate
import pytest
from helpers import write

from mtmetrics.integrations import registration as registration_module
from mtmetrics.integrations.registration import install, registered
from mtmetrics.layout import metric_path


@pytest.fixture(params=[True, False], ids=["told offline", "no network"])
def offline(request, monkeypatch):
    """Both ways to be offline: `evaluate` knows it, or finds out."""

    def unreachable(*_):
        raise socket.gaierror("tests have no name server")

    monkeypatch.setattr(socket, "getaddrinfo", unreachable)
    monkeypatch.setattr(evaluate.config, "HF_EVALUATE_OFFLINE", request.param)


def test_the_bare_name_loads_in_any_folder(
    evaluate_cache, offline, tiny_preset, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileNotFoundError):
        evaluate.load("xmoverscore", preset=str(tiny_preset))
    install()
    metric = evaluate.load("xmoverscore", preset=str(tiny_preset))
    assert (
        metric.compute(sources=["Das Haus"], predictions=["the house"], lang_pair="de-en")[
            "report"
        ]["segments"]
        == 1
    )


def test_another_version_is_replaced_even_if_it_is_younger_or_differs_only_in_a_comment(
    evaluate_cache, tmp_path, monkeypatch
):
    script = Path(metric_path("xmoverscore"), "xmoverscore.py")
    ours = script.read_text(encoding="utf-8")
    other = write(tmp_path / "xmoverscore" / "xmoverscore.py", "")
    commented = ours.replace(
        "import mtmetrics\n", "import mtmetrics  # a comment leaves the hash as it is\n"
    )
    for text in ("import evaluate\n", commented, "import evaluate\n"):
        other.write_text(text, encoding="utf-8")
        with monkeypatch.context() as patch:
            patch.setattr(registration_module, "metric_scripts", lambda: tmp_path)
            install(["xmoverscore"])
        assert registered("xmoverscore") is None
        [registration] = install(["xmoverscore"])
        assert registration.changed
        assert registration.path.read_text(encoding="utf-8") == ours
        assert registered("xmoverscore") == registration.path


def test_an_interrupted_copy_is_no_registration(evaluate_cache):
    (evaluate_cache / "evaluate_modules" / "metrics" / "evaluate-metric--xmoverscore").mkdir(
        parents=True
    )
    assert registered("xmoverscore") is None
    [registration] = install(["xmoverscore"])
    registration.path.write_text("")
    assert registered("xmoverscore") is None
    assert install(["xmoverscore"])[0].changed
