"""The tables of a preset from which a metric takes its models."""

from pathlib import Path

import pytest
from helpers import write_preset

from mtmetrics.errors import InputError
from mtmetrics.scorers.registry import load_scorer


def test_bertr_chooses_its_encoder_by_language(tmp_path: Path, tiny_encoder: Path) -> None:
    text = (
        f'[encoders.en]\nmodel = "{tiny_encoder}"\nlayer = 2\n[encoder]\nmodel = '
        f'"{tiny_encoder}"\nlayer = 1\n'
    )
    preset = write_preset(tmp_path, text)
    assert "|layer:2|" in load_scorer("bertr", preset=preset, lang_pair="de-en").signature
    assert "|layer:1|" in load_scorer("bertr", preset=preset, lang_pair="en-de").signature
    assert (
        "|layer:1|"
        in load_scorer("bertr", preset=preset, lang_pair="de-en", against="source").signature
    )
    assert "|layer:3|" in load_scorer("bertr", preset=preset, lang_pair="de-en", layer=3).signature
    with pytest.raises(
        InputError,
        match="lang_pair is missing; preset .* chooses its encoder by the target language",
    ):
        load_scorer("bertr", preset=preset)


def test_presets_that_know_references_only(tmp_path: Path, tiny_encoder: Path) -> None:
    preset = write_preset(
        tmp_path, f'[encoder]\nmodel = "{tiny_encoder}"\n[score]\nagainst = "reference"\n'
    )
    assert load_scorer("distilscore", preset=preset).side == "reference"
    with pytest.raises(InputError, match="compares with the reference only"):
        load_scorer("distilscore", preset=preset, against="source")
