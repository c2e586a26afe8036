"""Tables of WMT's metrics and news tasks, with their texts."""

from pathlib import Path

import numpy as np
import pytest
from helpers import columns, lay, write

from mtmetrics.errors import InputError
from mtmetrics.judgements.judged import read_judged, read_judged_systems
from mtmetrics.judgements.readers import Condition
from mtmetrics.reports.agreement import PEARSON, Measure
from mtmetrics.statistics.correlation import ranked_kendall
from mtmetrics.training.judged_pairs import read_judged_pairs

# Two pairs, of which one has no texts; lines are counted from 1.
TASK = {
    "source/newstest2018-csen-src.cs": "jeden\ndva\ntři\n",
    "references/newstest2018-csen-ref.en": "one\ntwo\nthree\n",
    "system-outputs/cs-en/newstest2018.A.1.cs-en": "a1\na2\na3\n",
    "system-outputs/cs-en/newstest2018.B_b.2.cs-en": "b1\nb2\nb3\n",
    "DA-seglevel.csv": "LP DATA SYSTEM SID HUMAN\ncs-en newstest2018 gone.9+A.1 2 0.5\ncs-en "
    "newstest2018 B-b.2 1 -1\n"
    "en-fi newstest2018 A.1 1 0\n",
    # As published: the header lacks a name.
    "RR-seglevel.csv": "LP DATA SID BETTER\ncs-en newstest2018 3 A.1 B-b.2.cs-en\ncs-en "
    "newstest2018 1 B-b.2 A.1\n"
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
        assert systems.judgements[["system", "human"]].to_numpy().tolist() == [
            ["B_b.2", 0.25],
            ["A.1", -0.5],
        ]
        outputs = {name: rows["translation"].tolist() for name, rows in systems.outputs().items()}
        assert outputs == {"B_b.2": ["b1", "b2", "b3"], "A.1": ["a1", "a2", "a3"]}
    with pytest.raises(
        InputError, match=r"DA-syslevel\.csv: judges systems, not segments; pass --level system"
    ):
        read_judged(task / "DA-syslevel.csv")
    with pytest.raises(InputError, match=r"RR-seglevel\.csv: judges segments, not systems"):
        read_judged_systems(task / "RR-seglevel.csv")


def test_a_folder_is_searched_for_all_of_them(task: Path) -> None:
    (task / "manual-evaluation").mkdir()
    names = ["DA-seglevel.csv", "RR-seglevel.csv"]
    for name in names:
        (task / name).rename(task / "manual-evaluation" / name)
    found = read_judged(task, lang_pair="cs-en")
    assert [(Path(part.file).name, part.pairs is None) for part in found] == [
        *zip(names, (True, False), strict=True)
    ]
    [alone] = read_judged(task / "manual-evaluation" / "RR-seglevel.csv")
    assert alone.sources == found[1].sources
    with pytest.raises(InputError, match="holds no row of the language pair de-en"):
        read_judged(task, lang_pair="de-en")
    for name in names:
        (task / "manual-evaluation" / name).unlink()
    with pytest.raises(InputError, match="holds no judged segments; pass --level system"):
        read_judged(task)


SINGLE = (
    "HITId\tWorkerId\tInput.src\tInput.trg\tInput.item\thit\tsys_id\trid\ttype\tsid\tscore\ttime"
)


def single(system: str, kind: str, line: int, score: str) -> str:
    return f'H1\tW1\tcs\ten\tad\t7\t"{system}"\tNA\t{kind}\t{line}\t{score}\t12'


def test_single_judgements_of_a_news_task(task: Path) -> None:
    lines = [
        single("newstest2018.A.1.cs-en", "SYSTEM", 1, "0.5"),
        single("A.1", "REPEAT", 1, "1.5"),
        single("A.1", "BAD_REF", 1, "-9"),
        single("gone.9+B-b.2", "SYSTEM", 3, "-1"),
        single("A.1", "REF", 2, "9"),
    ]
    file = write(task / "analysis" / "ad-csen-good-stnd.csv", "\n".join([SINGLE, *lines]) + "\n")
    names = ["source", "translation", "human", "judgements"]
    for path in (file, file.parent):
        [segments] = read_judged(path)
        assert columns(segments, *names) == [["jeden", "a1", 1.0, 2], ["tři", "b3", -1.0, 1]]
    kept = segments.having(Condition.parse("judgements>=2"))
    assert columns(kept, "translation") == [["a1"]]
    pairs = read_judged_pairs([file], "reference", where=Condition.parse("judgements>=2"))
    assert [(pair.other, pair.translation, pair.human) for pair in pairs] == [("one", "a1", 1.0)]
    # Where the same judgements stand there for each system by itself, a folder gives them once.
    for name in ("DA-seglevel.csv", "RR-seglevel.csv", "DA-syslevel.csv"):
        (task / name).unlink()
    write(
        task / "analysis" / "ad-csen-good-stnd-redup.csv",
        f"{SINGLE}\n{single('A.1', 'SYSTEM', 2, '3')}\n",
    )
    [found] = read_judged(task)
    assert columns(found, *names) == [["dva", "a2", 3.0, 1]]
    write(file, f"{SINGLE}\n{single('A.1', 'SYSTEM', 'document-1.4', '1')}\n")
    with pytest.raises(
        InputError, match=r"ad-csen-good-stnd\.csv, line 2: HITId .* are needed, got"
    ):
        read_judged(file)


def test_means_of_a_news_task(task: Path) -> None:
    file = write(
        task / "ad-seg-scores-cs-en.csv",
        "SYS SID RAW.SCR Z.SCR N \nA.1 2 71 0.25 3 \nB_b.2 1 9 -1 1 \n",
    )
    [segments] = read_judged(file)
    expected = [["a2", "A.1", 0.25, 3], ["b1", "B_b.2", -1.0, 1]]
    assert columns(segments, "translation", "system", "human", "judgements") == expected


def test_multidimensional_quality_metrics_of_2020(tmp_path: Path) -> None:
    table = "mqm_newstest2020_zhen.avg_seg_scores.tsv"
    files = {
        "txt/sources/newstest2020-zhen-src.zh.txt": "一\n二\n",
        "txt/system-outputs/zh-en/newstest2020.zh-en.Human-A.0.txt": "one\ntwo\n",
        table: "system mqm_avg_score seg_id\nHuman-A.0 -5.67 2\nHuman-A.0 None 1\n",
    }
    [segments] = read_judged(lay(tmp_path, files) / table)
    assert (segments.lang_pair, segments.sources, segments.predictions) == (
        "zh-en",
        ["二", "一"],
        ["two", "one"],
    )
    assert (segments.references, segments.judgements["human"].tolist()) == ([None, None], [-5.67])
    write(tmp_path / "again/newstest2020-zhen-src.zh", "x\n")
    with pytest.raises(
        InputError, match=r"holds newstest2020-zhen-src\.zh, .*\.txt; a folder with one test set"
    ):
        read_judged(tmp_path / table)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("cs-en newstest2018 A.1 4 0.5", "line 2: line 4, but the source has 3 lines"),
        ("cs-en newstest2018 A.1 0 0.5", "line 2: line 0, but the source has 3 lines"),
        ("cs-en newstest2018 C 1 0.5", "line 2: no output of 'C'; there are: A.1, B-b.2"),
        (
            "cs-en newstest2018 A.1 1 good",
            r"line 2: LP DATA SYSTEM SID HUMAN are needed, got 'cs-en .*'good'",
        ),
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
