"""Judged segments and systems of a test set of mt-metrics-eval."""

import math
import shutil

import numpy as np
import pytest

from mtmetrics.errors import InputError
from mtmetrics.evaluation.data import read_judged, read_judged_systems


def test_segments(wmt99):
    # en-fi has no human scores, and is no judged data.
    [segments] = read_judged(wmt99)
    assert (segments.file, segments.lang_pair) == (str(wmt99), "de-en")
    assert segments.systems == ["B.0", "B.0", "A", "A"]
    assert segments.sources == ["das Haus", "der Hund"] * 2
    assert segments.predictions == ["horse", "", "house", "dog"]
    assert segments.references == ["the house", "the dog"] * 2
    assert segments.items == ["1", "2", "1", "2"]
    np.testing.assert_equal(segments.human, [-5.0, np.nan, 0.0, -1.0])
    np.testing.assert_equal(segments.raw_human, [np.nan, np.nan, 90.0, np.nan])
    column = segments.column("chrF-refA")
    assert column[::2] == [0.125, 0.5]
    assert math.isnan(column[1])
    assert column[3] == 0.25


def test_systems(wmt99):
    [systems] = read_judged_systems(wmt99)
    assert systems.human == {"A": -0.5, "B.0": -5.0}
    assert systems.outputs == {"A": ["house", "dog"], "B.0": ["horse", ""]}
    assert systems.references == ["the house", "the dog"]


def test_which_judgements_count(wmt99):
    human = wmt99 / "human-scores"
    (human / "de-en.mqm.seg.score").rename(human / "de-en.wmt-z.seg.score")
    # Raw judgements are the standard for segments in the metrics tasks of WMT19 to WMT21.
    np.testing.assert_equal(read_judged(wmt99)[0].human, [90.0, np.nan])
    (human / "de-en.wmt-raw.seg.score").rename(human / "de-en.mine.seg.score")
    assert len(read_judged(wmt99)[0]) == 4
    (human / "de-en.wmt-z.seg.score").rename(human / "de-en.yours.seg.score")
    with pytest.raises(InputError, match="de-en has the scores mine, yours; one of them must be called mqm, "):
        read_judged(wmt99)
    (human / "de-en.yours.seg.score").unlink()
    assert read_judged(wmt99)[0].systems == ["A", "A"]


def test_nothing_to_judge(wmt99):
    with pytest.raises(InputError, match=r"wmt99: no human-scores/en-fi\.NAME\.seg\.score"):
        read_judged(wmt99, lang_pair="en-fi")
    with pytest.raises(InputError, match=r"wmt99: no language pair ru-en; there are: de-en, en-fi"):
        read_judged_systems(wmt99, lang_pair="ru-en")
    shutil.rmtree(wmt99 / "human-scores")
    with pytest.raises(InputError, match=r"wmt99: no human-scores/XX-YY\.NAME\.sys\.score"):
        read_judged_systems(wmt99)


def test_no_references(wmt99):
    shutil.rmtree(wmt99 / "references")
    [segments] = read_judged(wmt99)
    assert segments.references == [None] * 6
    assert read_judged_systems(wmt99)[0].references == [None, None]
