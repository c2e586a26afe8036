"""Scorers by the names of metrics and presets."""

from pathlib import Path

import pytest

from mtmetrics.errors import ArtifactError, InputError
from mtmetrics.scorers.registry import load_scorer
from mtmetrics.scorers.xmoverscore import XMoverScore


def test_unknown_presets_and_metrics(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match="unknown preset 'large' for metric xmoverscore; there are: mini, paper"
    ):
        XMoverScore.load("large", lang_pair="de-en")
    with pytest.raises(InputError, match="metric 'bleu': must be one of xmoverscore"):
        load_scorer("bleu")
    for text, message in (
        ("metric = [", "not a readable TOML file"),
        ('metric = "comet"', "a preset for metric 'comet', not 'xmoverscore'"),
        ("[encoders]\n", "unknown table or key 'encoders'"),
        (
            '[encoder]\nmodle = "x"\n',
            r"unknown key 'modle' in \[encoder\]; known are: layer, model, revision",
        ),
        ("[score]\nngram = 2\n", r"names no model in its \[encoder\] table"),
    ):
        (tmp_path / "preset.toml").write_text(text)
        with pytest.raises(ArtifactError, match=message):
            XMoverScore.load(str(tmp_path), lang_pair="de-en")
