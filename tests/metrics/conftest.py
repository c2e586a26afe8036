"""Metrics of `evaluate` hold each other, with their models, until Python looks for such circles."""

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def collected() -> Iterator[None]:
    yield
    gc.collect()
