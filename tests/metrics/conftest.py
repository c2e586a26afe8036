"""Metrics of `evaluate` hold each other, with their models, until Python looks for such circles."""

import gc
from collections.abc import Iterator

import pytest

from mtmetrics.artifacts.presets import preset_names
from mtmetrics.page.offers import offers


@pytest.fixture
def preset(
    name: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[str | None]:
    """A preset of the metric that works offline, None where it needs none: of COMET, which nothing is
    bundled of, one with random weights."""
    if name != "comet":
        yield "mini" if "mini" in preset_names(name) else None
        return
    monkeypatch.setenv("MTMETRICS_ARTIFACTS", str(request.getfixturevalue("comet_checkpoints")))
    offers.cache_clear()
    yield "wmt22-comet-da"
    offers.cache_clear()


@pytest.fixture(autouse=True)
def collected() -> Iterator[None]:
    yield
    gc.collect()
