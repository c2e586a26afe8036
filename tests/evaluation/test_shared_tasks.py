"""Judgements as shared tasks published them: in one file, beside the texts in others."""

import io
import json
import tarfile
from pathlib import Path

import numpy as np
import pytest
from helpers import write

from mtmetrics.errors import InputError
from mtmetrics.evaluation.correlation import ranked_kendall
from mtmetrics.evaluation.data import read_judged, read_judged_systems
from mtmetrics.evaluation.table import PEARSON, Measure

# A metrics task: two pairs, of which one has no texts; lines are counted from 1.
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
    for name, text in TASK.items():
        write(tmp_path / name, text)
    return tmp_path


def columns(segments, *names: str) -> list[list]:
    return segments.rows[list(names)].to_numpy().tolist()


def test_assessments_of_a_metrics_task(task: Path) -> None:
    with pytest.warns(UserWarning, match=r"DA-seglevel\.csv: left out en-fi: no texts in"):
        [segments] = read_judged(task / "DA-seglevel.csv")
    assert (segments.lang_pair, segments.pairs) == ("cs-en", None)
    expected = [["dva", "two", "a2", "gone.9+A.1", 0.5], ["jeden", "one", "b1", "B-b.2", -1.0]]
    assert columns(segments, "source", "reference", "translation", "system", "human") == expected


def test_pairs_are_rows_compared(task: Path) -> None:
    [ranked] = read_judged(task / "RR-seglevel.csv")
    # A translation that stands in several pairs is scored once.
    assert columns(ranked, "source", "translation", "item") == [
        ["tři", "a3", "3"],
        ["tři", "b3", "3"],
        ["jeden", "b1", "1"],
        ["jeden", "a1", "1"],
    ]
    assert ranked.pairs.tolist() == [[0, 1], [2, 3], [1, 0]]
    assert len(ranked.judgements) == 4
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
        assert {name: rows["translation"].tolist() for name, rows in systems.outputs().items()} == {
            "B_b.2": ["b1", "b2", "b3"],
            "A.1": ["a1", "a2", "a3"],
        }
    with pytest.raises(InputError, match=r"DA-syslevel\.csv: judges systems, not segments; pass --level system"):
        read_judged(task / "DA-syslevel.csv")
    with pytest.raises(InputError, match=r"RR-seglevel\.csv: judges segments, not systems"):
        read_judged_systems(task / "RR-seglevel.csv")
    for name in ("DA-seglevel.csv", "RR-seglevel.csv"):
        (task / name).unlink()
    with pytest.raises(InputError, match="holds no judged segments; pass --level system"):
        read_judged(task)


def test_a_folder_is_searched_for_all_of_them(task: Path) -> None:
    (task / "manual-evaluation").mkdir()
    for name in ("DA-seglevel.csv", "RR-seglevel.csv"):
        (task / name).rename(task / "manual-evaluation" / name)
    found = read_judged(task, lang_pair="cs-en")
    assert [(Path(part.file).name, part.pairs is None) for part in found] == [
        ("DA-seglevel.csv", True),
        ("RR-seglevel.csv", False),
    ]
    [alone] = read_judged(task / "manual-evaluation" / "RR-seglevel.csv")
    assert alone.sources == found[1].sources
    with pytest.raises(InputError, match="holds no row of the language pair de-en"):
        read_judged(task, lang_pair="de-en")


def test_multidimensional_quality_metrics_of_2020(tmp_path: Path) -> None:
    write(tmp_path / "txt/sources/newstest2020-zhen-src.zh.txt", "一\n二\n")
    write(tmp_path / "txt/system-outputs/zh-en/newstest2020.zh-en.Human-A.0.txt", "one\ntwo\n")
    text = "system mqm_avg_score seg_id\nHuman-A.0 -5.67 2\nHuman-A.0 None 1\n"
    [segments] = read_judged(write(tmp_path / "mqm_newstest2020_zhen.avg_seg_scores.tsv", text))
    assert (segments.lang_pair, segments.sources, segments.predictions) == ("zh-en", ["二", "一"], ["two", "one"])
    assert segments.references == [None, None]
    assert segments.judgements["human"].tolist() == [-5.67]


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


# Files with a line per segment, side by side; in a folder or an archive.

DA = {
    "DAseg.newstest2016.source.cs-en": "jeden\ndva\n",
    "DAseg.newstest2016.mt-system.cs-en": "one\n\n",
    "DAseg.newstest2016.reference.cs-en": "1\n2\n",
    "DAseg.newstest2016.human.cs-en": "-0.25\n1.5\n",
}
QE = {"de-zh-test21/test21.src": "eins\n", "de-zh-test21/test21.mt": "一\n", "de-zh-test21/test21.da": "78.5\n"}


def lay(folder: Path, files: dict[str, str], archive: str | None) -> Path:
    if archive is None:
        for name, text in files.items():
            write(folder / name, text)
        return folder
    with tarfile.open(folder / archive, "w:gz") as tar:
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(text.encode())
            tar.addfile(member, io.BytesIO(text.encode()))
    return folder / archive


@pytest.mark.parametrize("archive", [None, "packed.tar.gz"])
def test_a_line_per_segment(tmp_path: Path, archive: str | None) -> None:
    [segments] = read_judged(lay(tmp_path, DA, archive))
    assert (segments.lang_pair, segments.human.tolist()) == ("cs-en", [-0.25, 1.5])
    assert (segments.sources, segments.predictions, segments.references) == (["jeden", "dva"], ["one", ""], ["1", "2"])
    folder = tmp_path / "eval4nlp"
    folder.mkdir()
    [segments] = read_judged(lay(folder, QE, archive))
    assert (segments.lang_pair, segments.human.tolist(), segments.references) == ("de-zh", [78.5], [None])


def test_captions(tmp_path: Path) -> None:
    judged = {"1.jpg": [["ein Hund", 0.5], ["ein Haus", -1]], "2.jpg": []}
    tables = {"source": {"1.jpg": "a dog"}, "gold": {"1.jpg": "Hund"}}
    for name, table in {"translationdict_de": judged, "sourcedict": tables["source"]}.items():
        write(tmp_path / f"MMT{name}.json", json.dumps(table))
    with pytest.raises(InputError, match=r"MMTtranslationdict_de\.json: not the published layout .*MMTgolddict_de"):
        read_judged(tmp_path)
    write(tmp_path / "MMTgolddict_de.json", json.dumps(tables["gold"]))
    [segments] = read_judged(tmp_path)
    assert segments.lang_pair == "en-de"
    expected = [["1.jpg", "a dog", "Hund", "ein Hund", 0.5], ["1.jpg", "a dog", "Hund", "ein Haus", -1.0]]
    assert columns(segments, "item", "source", "reference", "translation", "human") == expected


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"DAseg.newstest2016.mt-system.cs-en": "one\n"}, "differ in their number of lines: human 2, source 2, trans"),
        ({"DAseg.newstest2016.human.cs-en": "1\ngood\n"}, "line 2, field 'human': a finite number is needed"),
        ({"DAseg.newstest2016.source.cs-en": None}, r"no .*DAseg\.newstest2016\.source\.cs-en beside it"),
        ({"test21/test21.da": "1\n"}, "the folder must be called XX-YY-"),
    ],
)
def test_files_that_do_not_fit(tmp_path: Path, files: dict[str, str | None], message: str) -> None:
    lay(tmp_path, {name: text for name, text in (DA | files).items() if text is not None}, None)
    with pytest.raises(InputError, match=message):
        read_judged(tmp_path)


@pytest.mark.parametrize("name", ["a.tsv", "a.csv", "a.jsonl"])
def test_a_file_of_blank_lines_holds_no_row(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="holds no row"):
        read_judged(write(tmp_path / name, "\n \n\n"))
    with pytest.raises(InputError, match="a header with the columns"):
        read_judged(write(tmp_path / "b.csv", ",,\n"))
