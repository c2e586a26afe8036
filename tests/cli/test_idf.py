"""``mtmetrics train idf``: the table that it writes weighs the words of XMoverScore."""

import json
from pathlib import Path

import numpy as np
import pytest
from helpers import refused, write

from mtmetrics.models.token_encoder import TokenEncoder
from mtmetrics.models.token_weights import TokenWeights
from mtmetrics.scorers.registry import load_scorer


def test_a_table_for_the_weights_of_xmoverscore(
    mtmetrics, tiny_encoder: Path, tiny_preset: Path, tmp_path: Path
):
    write(tmp_path / "de.txt", "das haus\n\ndas haus ist klein\n")
    write(tmp_path / "en.txt.gz", "the house is small\n")
    out = tmp_path / "idf.safetensors"
    texts = ("--text", tmp_path / "de.txt", tmp_path / "en.txt.gz")
    call = ("train", "idf", "--encoder", tiny_encoder, *texts, "--out", out)
    code, printed, _ = mtmetrics(*call)
    weights, encoder = TokenWeights.load(out), TokenEncoder(tiny_encoder)
    assert (code, json.loads(printed)["fingerprint"]) == (0, weights.fingerprint)
    numbers = encoder.tokenizer.convert_tokens_to_ids(["[CLS]", "haus", "small", "dog"])
    # ln((3 + 1) / (df + 1)) + 1
    assert weights.table[numbers] == pytest.approx(np.log(4 / (np.array([3, 2, 1, 0]) + 1)) + 1)
    scorer = load_scorer(
        "xmoverscore", preset=str(tiny_preset), lang_pair="de-en", weights=str(out)
    )
    assert f"|weights:idf#{weights.fingerprint}|" in scorer.signature
    refused(mtmetrics(*call), "exists already; pass --overwrite")
    assert mtmetrics(*call, "--languages", "de", "en", "--overwrite")[0] == 0
    refused(
        mtmetrics(*call, "--languages", "de", "--overwrite"),
        "--languages: 1 for 2 file(s) of --text",
    )
    blank = (
        "train",
        "idf",
        "--encoder",
        tiny_encoder,
        "--text",
        write(tmp_path / "blank.txt", " \n"),
        "--out",
    )
    refused(mtmetrics(*blank, tmp_path / "none" / "idf"), "there is no folder")
    languages = ("train", "idf", "--encoder", "mini-encoder", *texts, "--out", tmp_path / "mini")
    refused(mtmetrics(*languages), "pass --languages, one for each file of --text")
    refused(mtmetrics(*blank, tmp_path / "idf"), "no texts, so there is")
    assert not (tmp_path / "idf").exists()
