"""``mtmetrics idf``: the table that it writes weighs the words of XMoverScore."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from mtmetrics.models.token_encoder import TokenEncoder
from mtmetrics.models.words import TokenWeights
from mtmetrics.scorers.registry import load_scorer


def test_a_table_for_the_weights_of_xmoverscore(mtmetrics, tiny_encoder: Path, tiny_preset: Path, tmp_path: Path):
    (tmp_path / "de.txt").write_text("das haus\n\ndas haus ist klein\n", encoding="utf-8")
    (tmp_path / "en.txt.gz").write_bytes(gzip.compress(b"the house is small\n"))
    out = tmp_path / "idf.safetensors"
    call = ["idf", "--encoder", tiny_encoder, "--text", tmp_path / "de.txt", tmp_path / "en.txt.gz", "--out", out]
    code, printed, _ = mtmetrics(*call)
    weights, encoder = TokenWeights.load(out), TokenEncoder(tiny_encoder)
    assert (code, json.loads(printed)["fingerprint"]) == (0, weights.fingerprint)
    numbers = encoder.tokenizer.convert_tokens_to_ids(["[CLS]", "haus", "small", "dog"])
    # ln((3 + 1) / (df + 1)) + 1
    assert weights.table[numbers] == pytest.approx(np.log(4 / (np.array([3, 2, 1, 0]) + 1)) + 1)
    scorer = load_scorer("xmoverscore", preset=str(tiny_preset), lang_pair="de-en", weights=str(out))
    assert f"|weights:idf#{weights.fingerprint}|" in scorer.signature

    code, _, message = mtmetrics(*call)
    assert (code, "exists already; pass --overwrite" in message) == (2, True)
    assert mtmetrics(*call, "--overwrite")[0] == 0


@pytest.mark.parametrize(("name", "message"), [("none/idf", "there is no folder"), ("idf", "no texts, so there is")])
def test_what_is_refused(mtmetrics, tiny_encoder: Path, tmp_path: Path, name: str, message: str):
    (tmp_path / "blank.txt").write_text(" \n")
    call = ["idf", "--encoder", tiny_encoder, "--text", tmp_path / "blank.txt", "--out", tmp_path / name]
    code, _, said = mtmetrics(*call)
    assert (code, message in said, (tmp_path / "idf").exists()) == (2, True, False)
