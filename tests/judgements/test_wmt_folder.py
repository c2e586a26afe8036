"""The folder layouts of mt-metrics-eval and of metrics tasks: texts, scores, judgements, and what is written back."""

import math
import shutil
from pathlib import Path

import numpy as np
import pytest
from helpers import columns, lay, write

from mtmetrics.errors import InputError
from mtmetrics.judgements.judged import read_judged, read_judged_systems
from mtmetrics.judgements.wmt_folder import EvalSet, is_test_set, lang_pairs
from mtmetrics.reports.agreement import PEARSON, Measure
from mtmetrics.statistics.correlation import ranked_kendall

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
    with pytest.raises(InputError, match=r"no sources/XX-YY\.txt; a test set of mt-metrics-eval is needed"):
        lang_pairs(tmp_path)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("references/de-en.refB.txt", "one\n", r"refB\.txt: 1 lines, but .*sources/de-en\.txt has 2"),
        ("system-outputs/de-en/A.txt", "one\ntwo\nthree\n", r"A\.txt: 3 lines, but .*sources/de-en\.txt has 2"),
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
    exists = r"my\.metric-2-refA\.seg\.score exists already; choose another name or pass --overwrite"
    with pytest.raises(InputError, match=exists):
        pair.write_metric_scores("my.metric-2", "refA", SCORES)
    pair.write_metric_scores("my.metric-2", "refA", SCORES | {"A": [0.0, 0.0]}, overwrite=True)
    assert pair.metric_scores()["my.metric-2-refA"]["A"] == [0.0, 0.0]


def test_which_outputs_a_metric_scores(wmt99):
    pair = EvalSet.read(wmt99, "de-en")
    assert list(pair.scored_systems("src")) == ["A", "B.0", "refA"]
    assert list(pair.scored_systems("refB")) == ["A", "B.0", "refA"]
    assert list(pair.scored_systems("refA.refB")) == list(pair.scored_systems("all")) == ["A", "B.0"]


@pytest.mark.parametrize(
    ("metric", "references", "scores", "message"),
    [
        ("m", "src", SCORES, "scores of A, B.0, but mt-metrics-eval needs 2 finite scores of each of A, B.0, refA"),
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
    assert systems.judgements[["system", "human"]].to_numpy().tolist() == [["A", -0.5], ["B.0", -5.0]]
    assert [rows["translation"].tolist() for rows in systems.outputs().values()] == [["house", "dog"], ["horse", ""]]
    assert systems.references == ["the house", "the dog"] * 2


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


# Two pairs, of which one has no texts; lines are counted from 1.
TASK = {
    "source/newstest2018-csen-src.cs": "jeden\ndva\ntři\n",
    "references/newstest2018-csen-ref.en": "one\ntwo\nthree\n",
    "system-outputs/cs-en/newstest2018.A.1.cs-en": "a1\na2\na3\n",
    "system-outputs/cs-en/newstest2018.B_b.2.cs-en": "b1\nb2\nb3\n",
    "DA-seglevel.csv": "LP DATA SYSTEM SID HUMAN\ncs-en newstest2018 gone.9+A.1 2 0.5\ncs-en newstest2018 B-b.2 1 -1\n"
    "en-fi newstest2018 A.1 1 0\n",
    # As published: the header lacks a name.
    "RR-seglevel.csv": "LP DATA SID BETTER\ncs-en newstest2018 3 A.1 B-b.2.cs-en\ncs-en newstest2018 1 B-b.2 A.1\n"
    "cs-en newstest2018 3 B-b.2 A.1\n",
    "DA-syslevel.csv": "LP HUMAN SYSTEM\ncs-en 0.25 B_b.2\ncs-en -0.5 A.1\n",
}


@pytest.fixture
def task(tmp_path: Path) -> Path:
    return lay(tmp_path, TASK)


def test_assessments_of_a_metrics_task(task: Path) -> None:
    with pytest.warns(UserWarning, match=r"DA-seglevel\.csv: left out en-fi: no texts in"):
        [segments] = read_judged(task / "DA-seglevel.csv")
    assert (segments.lang_pair, segments.pairs) == ("cs-en", None)
    expected = [["dva", "two", "a2", "gone.9+A.1", 0.5], ["jeden", "one", "b1", "B-b.2", -1.0]]
    assert columns(segments, "source", "reference", "translation", "system", "human") == expected


def test_pairs_are_rows_compared(task: Path) -> None:
    [ranked] = read_judged(task / "RR-seglevel.csv")
    # A translation that stands in several pairs is scored once.
    expected = [["tři", "a3", "3"], ["tři", "b3", "3"], ["jeden", "b1", "1"], ["jeden", "a1", "1"]]
    assert columns(ranked, "source", "translation", "item") == expected
    assert (ranked.pairs.tolist(), len(ranked.judgements)) == ([[0, 1], [2, 3], [1, 0]], 4)
    darr = Measure("darr")
    assert darr.of([1.0, 2.0, 5.0, 4.0], ranked).value == pytest.approx(1 / 3)
    # Ties of the metric count against it; pairs without a score are left out.
    assert darr.of([1.0, 1.0, 5.0, 4.0], ranked).value == pytest.approx(-1 / 3)
    assert darr.of([1.0, 2.0, None, 4.0], ranked)[::2] == (0.0, 1)
    assert "use darr" in PEARSON.of([1.0, 2.0, 3.0, 4.0], ranked).reason
    assert "no pair" in ranked_kendall([None, 1.0], np.array([[0, 1]])).reason


def test_whole_systems_of_a_metrics_task(task: Path) -> None:
    for path in (task, task / "DA-syslevel.csv"):
        [systems] = read_judged_systems(path)
        assert systems.level == "system"
        assert systems.judgements[["system", "human"]].to_numpy().tolist() == [["B_b.2", 0.25], ["A.1", -0.5]]
        outputs = {name: rows["translation"].tolist() for name, rows in systems.outputs().items()}
        assert outputs == {"B_b.2": ["b1", "b2", "b3"], "A.1": ["a1", "a2", "a3"]}
    with pytest.raises(InputError, match=r"DA-syslevel\.csv: judges systems, not segments; pass --level system"):
        read_judged(task / "DA-syslevel.csv")
    with pytest.raises(InputError, match=r"RR-seglevel\.csv: judges segments, not systems"):
        read_judged_systems(task / "RR-seglevel.csv")


def test_a_folder_is_searched_for_all_of_them(task: Path) -> None:
    (task / "manual-evaluation").mkdir()
    names = ["DA-seglevel.csv", "RR-seglevel.csv"]
    for name in names:
        (task / name).rename(task / "manual-evaluation" / name)
    found = read_judged(task, lang_pair="cs-en")
    assert [(Path(part.file).name, part.pairs is None) for part in found] == [*zip(names, (True, False), strict=True)]
    [alone] = read_judged(task / "manual-evaluation" / "RR-seglevel.csv")
    assert alone.sources == found[1].sources
    with pytest.raises(InputError, match="holds no row of the language pair de-en"):
        read_judged(task, lang_pair="de-en")
    for name in names:
        (task / "manual-evaluation" / name).unlink()
    with pytest.raises(InputError, match="holds no judged segments; pass --level system"):
        read_judged(task)


def test_multidimensional_quality_metrics_of_2020(tmp_path: Path) -> None:
    table = "mqm_newstest2020_zhen.avg_seg_scores.tsv"
    files = {
        "txt/sources/newstest2020-zhen-src.zh.txt": "一\n二\n",
        "txt/system-outputs/zh-en/newstest2020.zh-en.Human-A.0.txt": "one\ntwo\n",
        table: "system mqm_avg_score seg_id\nHuman-A.0 -5.67 2\nHuman-A.0 None 1\n",
    }
    [segments] = read_judged(lay(tmp_path, files) / table)
    assert (segments.lang_pair, segments.sources, segments.predictions) == ("zh-en", ["二", "一"], ["two", "one"])
    assert (segments.references, segments.judgements["human"].tolist()) == ([None, None], [-5.67])
    write(tmp_path / "again/newstest2020-zhen-src.zh", "x\n")
    with pytest.raises(InputError, match=r"holds newstest2020-zhen-src\.zh, .*\.txt; a folder with one test set"):
        read_judged(tmp_path / table)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("cs-en newstest2018 A.1 4 0.5", "line 2: line 4, but the source has 3 lines"),
        ("cs-en newstest2018 A.1 0 0.5", "line 2: line 0, but the source has 3 lines"),
        ("cs-en newstest2018 C 1 0.5", "line 2: no output of 'C'; there are: A.1, B-b.2"),
        ("cs-en newstest2018 A.1 1 good", r"line 2: LP DATA SYSTEM SID HUMAN are needed, got 'cs-en .*'good'"),
        ("cs-en newstest2018 A.1 1 inf", "line 2: a finite judgement is needed, got inf"),
        ("cs-en newstest2018 A.1", "line 2: LP DATA SYSTEM SID HUMAN are needed"),
        ("en-fi newstest2018 A.1 1 1", "no texts of en-fi in .*; put there the sources"),
        ("", "holds no row"),
    ],
)
def test_tables_of_a_metrics_task_that_cannot_be_used(task: Path, line: str, message: str) -> None:
    write(task / "DA-seglevel.csv", f"LP DATA SYSTEM SID HUMAN\n{line}\n")
    with pytest.raises(InputError, match=rf"DA-seglevel\.csv.*{message}"):
        read_judged(task / "DA-seglevel.csv")
