"""Fixtures of the tests of scorers."""

from pathlib import Path

import pytest

from mtmetrics.models.token_encoder import TokenEncoder


@pytest.fixture(scope="module")
def encoder(tiny_encoder: Path) -> TokenEncoder:
    return TokenEncoder(tiny_encoder)
