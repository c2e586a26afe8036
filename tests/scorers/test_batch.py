"""Batches: what is taken from them, and how several references become rows."""

import numpy as np

from mtmetrics.scorers.batch import Batch, Languages

SYSTEMS = {"a": ["one", "two", "three"], "b": ["1", "2", "3"]}
SOURCES = ["eins", "zwei", "drei"]


def test_slices_keep_all_columns_in_order() -> None:
    batch = Batch(SYSTEMS, sources=SOURCES, languages=Languages("de", "en"))
    first, second = batch.slices(2)
    assert (len(first), len(second)) == (2, 1)
    assert first.texts_and_languages == [
        (SOURCES[:2], "de"),
        (["one", "two"], "en"),
        (["1", "2"], "en"),
    ]
    assert second.systems == {"a": ["three"], "b": ["3"]}
    assert second.references is None


def test_compared_are_sources_where_there_are_any() -> None:
    references = ["eine", "zwo", "drey"]
    languages = Languages("de", "en")
    both = Batch(SYSTEMS, SOURCES, references, languages)
    assert both.sources_or_references == SOURCES
    alone = Batch(SYSTEMS, references=references, languages=languages)
    assert alone.sources_or_references == references


def test_a_row_for_each_reference() -> None:
    batch = Batch(SYSTEMS, SOURCES, [["x"], ["y", "z"], ["u"]])
    rows, owners = batch.with_single_references()
    assert owners is not None
    assert owners.tolist() == [0, 1, 1, 2]
    assert rows.references == ["x", "y", "z", "u"]
    assert rows.sources == ["eins", "zwei", "zwei", "drei"]
    assert rows.systems["b"] == ["1", "2", "2", "3"]
    assert Batch(SYSTEMS, references=SOURCES).with_single_references()[1] is None


def test_a_row_is_blank_where_any_text_is() -> None:
    batch = Batch({"": ["a", " ", "c"]}, ["x", "y", "\u200b"]).without_invisible()
    blank = batch.blank_mask(batch.systems[""])
    assert np.array_equal(blank, [False, True, True])
