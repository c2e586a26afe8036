"""The folder layout of mt-metrics-eval: texts, scores, judgements, and what is written back."""

import math
import shutil

import numpy as np
import pytest

from mtmetrics.errors import InputError
from mtmetrics.judgements.eval_set import EvalSet, is_test_set, lang_pairs
from mtmetrics.judgements.judged import read_judged, read_judged_systems

SCORES = {"A": [0.1, 0.2], "B.0": [1, -1]}


def test_texts(wmt99, tmp_path):
    assert is_test_set(wmt99)
    assert not is_test_set(tmp_path)
    assert lang_pairs(wmt99) == ["de-en", "en-fi"]
    pair = EvalSet.read(wmt99, "de-en")
    assert pair.sources == ["das Haus", "der Hund"]
    assert list(pair.outputs) == ["A", "B.0", "refA"]
    assert pair.reference() == "refA"
    assert pair.reference("refB") == "refB"
    with pytest.raises(InputError, match="no reference 'refC' for de-en; there are: refA, refB"):
        pair.reference("refC")
    assert EvalSet.read(wmt99, "en-fi").reference() is None
    with pytest.raises(
        InputError, match=r"no sources/XX-YY\.txt; a test set of mt-metrics-eval is needed"
    ):
        lang_pairs(tmp_path)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "references/de-en.refB.txt",
            "one\n",
            r"refB\.txt: 1 lines, but .*sources/de-en\.txt has 2",
        ),
        (
            "system-outputs/de-en/A.txt",
            "one\ntwo\nthree\n",
            r"A\.txt: 3 lines, but .*sources/de-en\.txt has 2",
        ),
        ("sources/de-en.txt", "", r"de-en\.txt: empty; there is nothing to score"),
        *(
            ("human-scores/de-en.mqm.seg.score", text, rf"mqm\.seg\.score{message}")
            for text, message in (
                ("A\t1\n", ": 1 scores of the system 'A', 2 are needed"),
                ("A\t1\nC\t1\n", ", line 2: no system 'C' in system-outputs/de-en"),
                ("A\n", ", line 1: a system and its score are needed, got 'A'"),
                ("A\tgood\n", ", line 1: a number or None is needed, got 'good'"),
                ("A\tnan\n", ", line 1: a finite number or None is needed, got 'nan'"),
            )
        ),
    ],
)
def test_files_that_cannot_be_used(wmt99, name, text, message):
    (wmt99 / name).write_text(text)
    with pytest.raises(InputError, match=message):
        read_judged(wmt99)


def test_written_scores_are_read_back(wmt99):
    pair = EvalSet.read(wmt99, "de-en")
    files = pair.write_metric_scores("my.metric-2", "refA", SCORES)
    folder = wmt99 / "metric-scores" / "de-en"
    assert files == {level: folder / f"my.metric-2-refA.{level}.score" for level in ("seg", "sys")}
    assert files["seg"].read_text() == "A\t0.1\nA\t0.2\nB.0\t1.0\nB.0\t-1.0\n"
    assert files["sys"].read_text() == "A\t0.15000000000000002\nB.0\t0.0\n"
    assert pair.metric_scores()["my.metric-2-refA"] == SCORES
    exists = (
        r"my\.metric-2-refA\.seg\.score exists already; choose another name or pass --overwrite"
    )
    with pytest.raises(InputError, match=exists):
        pair.write_metric_scores("my.metric-2", "refA", SCORES)
    pair.write_metric_scores("my.metric-2", "refA", SCORES | {"A": [0.0, 0.0]}, overwrite=True)
    assert pair.metric_scores()["my.metric-2-refA"]["A"] == [0.0, 0.0]


def test_which_outputs_a_metric_scores(wmt99):
    pair = EvalSet.read(wmt99, "de-en")
    assert list(pair.scored_systems("src")) == ["A", "B.0", "refA"]
    assert list(pair.scored_systems("refB")) == ["A", "B.0", "refA"]
    assert (
        list(pair.scored_systems("refA.refB")) == list(pair.scored_systems("all")) == ["A", "B.0"]
    )


@pytest.mark.parametrize(
    ("metric", "references", "scores", "message"),
    [
        (
            "m",
            "src",
            SCORES,
            "scores of A, B.0, but mt-metrics-eval needs 2 finite scores of each of A, B.0, refA",
        ),
        ("m", "refA", SCORES | {"A": [0]}, "2 finite scores of each of A, B.0"),
        ("m", "refA", SCORES | {"A": [0, float("nan")]}, "2 finite scores of each of A, B.0"),
        ("m", "refC", SCORES, "no reference 'refC' for de-en"),
        ("../m", "refA", SCORES, r"metric name '\.\./m': it becomes the name of a file"),
        ("my metric", "refA", SCORES, "metric name 'my metric'"),
        ("", "refA", SCORES, "metric name ''"),
    ],
)
def test_scores_that_are_not_written(wmt99, metric, references, scores, message):
    before = sorted(wmt99.rglob("*"))
    with pytest.raises(InputError, match=message):
        EvalSet.read(wmt99, "de-en").write_metric_scores(metric, references, scores)
    assert sorted(wmt99.rglob("*")) == before


def test_judged_segments(wmt99):
    # en-fi has no human scores, and is no judged data.
    [segments] = read_judged(wmt99)
    assert (segments.file, segments.lang_pair) == (str(wmt99), "de-en")
    assert segments.rows["system"].tolist() == ["B.0", "B.0", "A", "A"]
    assert segments.sources == ["das Haus", "der Hund"] * 2
    assert segments.predictions == ["horse", "", "house", "dog"]
    assert segments.references == ["the house", "the dog"] * 2
    assert segments.rows["item"].tolist() == ["1", "2", "1", "2"]
    np.testing.assert_equal(segments.human, [-5.0, np.nan, 0.0, -1.0])
    np.testing.assert_equal(segments.rows["raw"].to_numpy(), [np.nan, np.nan, 90.0, np.nan])
    column = segments.column("chrF-refA")
    assert column[::2] == [0.125, 0.5]
    assert math.isnan(column[1])
    assert column[3] == 0.25


def test_judged_systems(wmt99):
    [systems] = read_judged_systems(wmt99)
    assert systems.judgements[["system", "human"]].to_numpy().tolist() == [
        ["A", -0.5],
        ["B.0", -5.0],
    ]
    assert [rows["translation"].tolist() for rows in systems.outputs().values()] == [
        ["house", "dog"],
        ["horse", ""],
    ]
    assert systems.references == ["the house", "the dog"] * 2


def test_which_judgements_count(wmt99):
    human = wmt99 / "human-scores"
    (human / "de-en.mqm.seg.score").rename(human / "de-en.wmt-z.seg.score")
    # Raw judgements are the standard for segments in the metrics tasks of WMT19 to WMT21.
    np.testing.assert_equal(read_judged(wmt99)[0].human, [90.0, np.nan])
    (human / "de-en.wmt-raw.seg.score").rename(human / "de-en.mine.seg.score")
    assert len(read_judged(wmt99)[0]) == 4
    (human / "de-en.wmt-z.seg.score").rename(human / "de-en.yours.seg.score")
    with pytest.raises(
        InputError, match="de-en has the scores mine, yours; one of them must be called mqm, "
    ):
        read_judged(wmt99)
    (human / "de-en.yours.seg.score").unlink()
    assert read_judged(wmt99)[0].rows["system"].tolist() == ["A", "A"]


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
    assert read_judged_systems(wmt99)[0].references == [None] * 4


def test_a_pair_under_another_code(wmt99):
    assert [judged.lang_pair for judged in read_judged(wmt99, lang_pair="deu_Latn-eng")] == [
        "de-en"
    ]
