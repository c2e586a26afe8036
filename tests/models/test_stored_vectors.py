"""Vectors of texts that somebody computed."""

from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

from mtmetrics.errors import ArtifactError, InputError
from mtmetrics.models.stored_vectors import StoredVectors
from mtmetrics.scorers.registry import load_scorer

TEXTS = {"ein Haus": [1.0, 0.0], "a house": [1.0, 1.0], "zwei": [0.0, 2.0], "two": [0.0, 1.0]}


@pytest.fixture
def stored(tmp_path: Path):
    def made(**columns: list) -> Path:
        path = tmp_path / "vectors.parquet"
        pyarrow.parquet.write_table(pyarrow.table(columns), path)
        return path

    return made


def test_metrics_of_sentence_vectors_read_them(stored) -> None:
    path = str(stored(text=[*TEXTS, "two"], vector=[*TEXTS.values(), [9.0, 9.0]]))
    sources, texts = ["ein Haus", "zwei", " "], ["a house", "two", "two"]
    expected = [np.sqrt(0.5), 1.0]
    distil = load_scorer("distilscore", "mini", encoder=path, lang_pair="de-en", against="source")
    assert distil.score(texts, sources=sources).segments[:2] == pytest.approx(expected)
    assert "|enc:vectors.parquet#" in distil.signature
    options = {"similarity": "cosine", "encoder": path, "map": "none", "lm": "none"}
    mover = load_scorer("xmoverscore", "paper", lang_pair="de-en", **options)
    result = mover.score(texts, sources=sources)
    assert result.segments[:2] == pytest.approx(expected)
    assert result.report.blank == 1


def test_one_file_holds_the_vectors_of_both_languages(stored) -> None:
    path = stored(text=[*TEXTS], vector=[*TEXTS.values()])
    path.rename(path.with_name("v.de.parquet"))
    encoder = str(path.with_name("v.{lang}.parquet"))
    options = {"similarity": "cosine", "encoder": encoder, "map": "none", "lm": "none"}
    with pytest.raises(InputError, match=r"v.\{lang\}.parquet: one file has to hold .* leave out"):
        load_scorer("xmoverscore", "paper", lang_pair="de-en", **options)


def test_what_is_missing_is_named(stored) -> None:
    path = str(stored(text=[*TEXTS], vector=[*TEXTS.values()]))
    scorer = load_scorer("distilscore", "mini", encoder=path, lang_pair="de-en", against="source")
    with pytest.raises(InputError, match="holds no vector of 1 texts, such as 'drei'"):
        scorer.score(["two"], sources=["drei"])
    with pytest.raises(
        InputError, match="layer 2: .* holds a vector per text, which has no layers"
    ):
        load_scorer(
            "distilscore", "mini", encoder=path, layer=2, lang_pair="de-en", against="source"
        )
    with pytest.raises(InputError, match="holds a vector per text; use similarity='cosine'"):
        load_scorer("xmoverscore", "paper", encoder=path, map="none", lang_pair="de-en")


@pytest.mark.parametrize(
    "columns",
    [
        {"text": ["a"], "vectors": [[1.0]]},
        {"text": ["a", "b"], "vector": [[1.0], [1.0, 2.0]]},
        {"text": ["a"], "vector": [[float("nan")]]},
        {"text": ["a"], "vector": ["x"]},
        {"text": ["a"], "vector": [1.0]},
    ],
)
def test_tables_of_another_form_are_refused(stored, columns: dict) -> None:
    with pytest.raises(ArtifactError, match=r"vectors\.parquet: "):
        StoredVectors(stored(**columns))


def test_files_that_are_no_table_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        StoredVectors(tmp_path / "none.parquet")
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 nothing")
    with pytest.raises(ArtifactError, match="no table of texts and vectors"):
        StoredVectors(tmp_path / "bad.parquet")
