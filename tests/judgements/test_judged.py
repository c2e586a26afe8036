"""Judged data in every layout that is read: JSON Lines, tables, archives, files of shared tasks, whole systems."""

import io
import json
import tarfile
from pathlib import Path

import helpers
import numpy as np
import pytest

from mtmetrics.errors import InputError
from mtmetrics.judgements.judged import Judged, read_judged, read_judged_segments, read_judged_systems
from mtmetrics.reports.agreement import PEARSON, Measure
from mtmetrics.statistics.correlation import ranked_kendall

ROW = {"lp": "de-en", "source": "Hallo", "translation": "hello", "translation_tok": "hel lo", "reference": "hi"}
ROW |= {"system": "A", "human": 0.5}


def write(path, *rows):
    lines = (row if isinstance(row, str) else json.dumps(row, ensure_ascii=False) for row in rows)
    return helpers.write(path, "".join(line + "\n" for line in lines))


def lay(folder: Path, files: dict[str, str], archive: str | None = None) -> Path:
    """Writes files into a folder, or an archive in it."""
    if archive is None:
        for name, text in files.items():
            helpers.write(folder / name, text)
        return folder
    with tarfile.open(folder / archive, "w:gz") as tar:
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(text.encode())
            tar.addfile(member, io.BytesIO(text.encode()))
    return folder / archive


def columns(segments, *names: str) -> list[list]:
    return segments.rows[list(names)].to_numpy().tolist()


def test_reads_the_columns_in_order(tmp_path, monkeypatch):
    second = {"lp": "de-en", "source": "Grüß Gott\u2028!", "translation": "", "human": -2, "reference": None, "sid": 7}
    segments = read_judged_segments(write(tmp_path / "a.jsonl", ROW, second))
    assert (segments.file, segments.lang_pair, len(segments)) == (str(tmp_path / "a.jsonl"), "de-en", 2)
    assert (segments.sources, segments.predictions) == (["Hallo", "Grüß Gott\u2028!"], ["hello", ""])
    assert (segments.references, segments.human.tolist()) == (["hi", None], [0.5, -2.0])
    assert segments.rows["system"].tolist() == ["A", None]
    assert (segments.level, list(segments.outputs())) == ("segment", [""])
    path = write(tmp_path / "a.jsonl.gz", ROW)
    assert read_judged_segments(path, prediction_field="translation_tok").predictions == ["hel lo"]
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(json.dumps(ROW).encode())))
    assert read_judged("-")[0].sources == ["Hallo"]


# The blank line is no row but counts as a line, so that an editor finds the place.
@pytest.mark.parametrize(
    ("rows", "message"),
    [
        *(
            ([ROW, "", ROW | change], f"line 3, field '{next(iter(change))}': {message}")
            for change, message in (
                ({"human": float("nan")}, "a finite number is needed, got nan"),
                ({"human": float("-inf")}, "a finite number is needed, got -inf"),
                ({"human": 10**400}, "a finite number is needed, got 1000"),
                ({"human": "0.5"}, "a finite number is needed, got '0.5'"),
                ({"human": True}, "a finite number is needed, got True"),
                ({"source": None}, "a string is needed, got null"),
                ({"translation": ["a", "b"]}, r"a string is needed, got \['a', 'b'\]"),
                ({"reference": 3}, "a string is needed, got 3"),
                ({"lp": "fi-en"}, "'fi-en', but the lines before have 'de-en'"),
            )
        ),
        *(
            ([{name: ROW[name] for name in ROW if name != field}], rf"line 1: no field '{field}'.*has: '.*'system'")
            for field in ("lp", "source", "translation", "human")
        ),
        ([ROW | {"lp": "German"}], r"line 1, field 'lp': language pair 'German'"),
        (["", " "], "holds no row"),
        ([ROW, "{"], "line 2: not valid JSON"),
        (None, "no such file"),
    ],
)
def test_files_that_cannot_be_used(tmp_path, rows, message):
    if rows is not None:
        write(tmp_path / "bad.jsonl", *rows)
    with pytest.raises(InputError, match=rf"bad\.jsonl.*{message}"):
        read_judged_segments(tmp_path / "bad.jsonl")


def test_missing_judgements_and_other_columns(tmp_path):
    rows = [
        ROW | {"human": None, "sid": 7, "da_mean": 60, "sentbleu": 0.5, "hter": None, "kept": True},
        ROW | {"sid": "b", "sentbleu": float("nan"), "domain": "news", "mixed": 1},
        ROW | {"sid": 7, "da_mean": None, "late": 2, "mixed": "two"},
    ]
    segments = read_judged_segments(write(tmp_path / "a.jsonl", *rows))
    np.testing.assert_equal(segments.human, [np.nan, 0.5, 0.5])
    assert segments.judgements["human"].tolist() == [0.5, 0.5]
    assert segments.take([10, 20, 30]) == [20, 30]
    assert segments.rows["item"].tolist() == ["7", "b", "7"]
    np.testing.assert_equal(segments.rows["raw"].to_numpy(), [60.0, np.nan, np.nan])
    np.testing.assert_equal(segments.column("sentbleu"), [0.5, np.nan, None])
    assert segments.column("late") == [None, None, 2]
    for name in ("domain", "kept", "hter", "mixed", "human"):
        with pytest.raises(InputError, match=rf"a\.jsonl: no column of numbers '{name}'; there are: sentbleu, late$"):
            segments.column(name)
    # Where a row has no item, all are numbers of sources.
    segments = read_judged_segments(write(tmp_path / "b.jsonl", ROW | {"sid": 7}, ROW | {"source": "Tag"}, ROW))
    assert segments.rows["item"].tolist() == ["1", "2", "1"]
    with pytest.raises(InputError, match="there are: none"):
        segments.column("raw")


def test_names_of_common_training_files(tmp_path):
    path = write(tmp_path / "a.jsonl", {"lp": "de-en", "src": "x", "mt": "y", "ref": "z", "sys": "A", "score": 0.5})
    segments = read_judged_segments(path)
    assert columns(segments, "source", "translation", "reference", "system", "human") == [["x", "y", "z", "A", 0.5]]
    with pytest.raises(InputError, match="line 1: no field 'translation_tok'; the row has"):
        read_judged_segments(path, prediction_field="translation_tok")


def test_several_pairs_in_a_file_and_a_folder(tmp_path):
    finnish = ROW | {"lp": "fi-en"}
    mixed = write(tmp_path / "b.jsonl", ROW, finnish, ROW)
    assert [(pair.lang_pair, len(pair)) for pair in read_judged(mixed)] == [("de-en", 2), ("fi-en", 1)]
    write(tmp_path / "a.jsonl", finnish)
    (tmp_path / "README.md").write_text("no data\n")
    found = [(Path(pair.file).name, pair.lang_pair) for pair in read_judged(tmp_path)]
    assert found == [("a.jsonl", "fi-en"), ("b.jsonl", "de-en"), ("b.jsonl", "fi-en")]
    assert [pair.file for pair in read_judged(tmp_path, lang_pair="de-en")] == [str(mixed)]
    with pytest.raises(InputError, match="holds no row of the language pair ru-en"):
        read_judged(tmp_path, lang_pair="ru-en")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"empty: holds no judged data; files \*\.tar, .* are read"):
        read_judged(tmp_path / "empty")


# Tables with a header: tabs or commas, quotes, names of columns, missing values.


def test_wmt17_test_set(tmp_path):
    # As pandas wrote the published files: a field with quotes is quoted, all others are not.
    header = "LP\tsource\ttranslation\treference\tHUMAN_score\tsentBLEU"
    quoted = 'de-en\t"""Nur so"", sagt sie."\t&quot; only so &quot;\tonly so\t-0.5\t0.25'
    [segments] = read_judged(write(tmp_path / "t.tsv", header, quoted, 'de-en\t"Ja"\t"yes" he said, "\tyes\t1\t0.5'))
    assert segments.sources == ['"Nur so", sagt sie.', '"Ja"']
    assert segments.predictions == ["&quot; only so &quot;", '"yes" he said, "']
    assert (segments.references, segments.human.tolist()) == (["only so", "yes"], [-0.5, 1.0])
    assert segments.column("sentBLEU") == [0.25, 0.5]


def test_collection_of_wmt_judgements(tmp_path):
    path = write(
        tmp_path / "train.csv",
        "lp,src,mt,ref,score,raw,system,annotators,domain,year",
        "de-en,Haus,house,house,0.5,75,A,2,news,2020",
        'fi-en,"Talo, iso","a ""big""',
        'house",,-1.0,,A,1,news,2021',
        "de-en,Haus,horse,house,,,B,2,news,2020",
    )
    german, finnish = read_judged(path)
    assert (german.lang_pair, finnish.lang_pair) == ("de-en", "fi-en")
    assert columns(german, "system", "item") == [["A", "1"], ["B", "1"]]
    np.testing.assert_equal(german.rows[["human", "raw"]].to_numpy(), [[0.5, 75.0], [np.nan, np.nan]])
    assert (german.column("annotators"), german.column("year")) == ([2.0, 2.0], [2020.0, 2020.0])
    assert (finnish.sources, finnish.predictions, finnish.references) == (["Talo, iso"], ['a "big"\nhouse'], [None])
    assert "raw" not in finnish.rows


def test_a_pair_that_is_given(tmp_path):
    path = write(tmp_path / "mine.tsv", "human\tsource\ttranslation\titem", "1\tHaus\thouse\tx", "", "0\tHaus\tNone\tx")
    with pytest.raises(InputError, match=r"mine\.tsv, line 2: no field 'lp' or 'LP'; the row has: 'human', 'source'"):
        read_judged(path)
    with pytest.raises(InputError, match=r"mine\.tsv, line 2, field 'lp': language pair 'german'"):
        read_judged(path, lang_pair="german")
    [segments] = read_judged(path, lang_pair="de-en")
    assert (segments.lang_pair, segments.predictions) == ("de-en", ["house", "None"])
    assert segments.rows["item"].tolist() == ["x", "x"]
    two = write(tmp_path / "two.tsv", HEAD, "de-en\tHaus\thouse\t1", "fi-en\tTalo\thouse\t0")
    assert [pair.lang_pair for pair in read_judged(two, lang_pair="fi-en")] == ["fi-en"]


HEAD = "lp\tsource\ttranslation\thuman"
MLQE = (
    "index\toriginal\ttranslation\tscores\tmean\tz_scores\tz_mean\tmodel_scores\n"
    '0\tSee "it\tSieh "es\t[71, 62, 80]\t71.0\t[0.2, -0.1, 0.5]\t0.2\t-0.4\n'
    "1\tGo\tGeh\t[10, 20, 30]\t20.0\t[-1, -1, -1]\t-1\t-0.5\n"
)


@pytest.mark.parametrize(
    ("name", "lines", "message"),
    [
        *((name, ["", " "], "holds no row") for name in ("a.jsonl", "a.tsv", "a.csv", "dev.deen.df.short.tsv")),
        ("a.tsv", [HEAD], "holds no row"),
        ("a.tsv", [HEAD, "de-en\ta\tb"], r"line 2: 3 field\(s\), but the header has 4: lp, source, trans"),
        ("a.tsv", [HEAD, "de-en\ta\tb\tgood"], "line 2, field 'human': a finite number is needed, got 'good'"),
        ("a.tsv", ["lp\tsource\ttranslation", "de-en\ta\tb"], "line 2: no field 'human' or 'score'"),
        ("a.tsv", ["lp\tsource\tsource\thuman"], "line 1: the column 'source' stands there twice"),
        ("a.csv", ["lp,src,mt,score", 'de-en,a,"b'], "line 2: not valid CSV"),
        ("a.csv", ["LP DATA SID HUMAN", "de-en wmt A 1"], "line 1: a header with .* known by their names"),
        ("a.csv", [",,"], "line 1: a header with"),
        ("dev.df.short.tsv", [MLQE], r"a name such as dev\.ende\.df\.short\.tsv is needed"),
    ],
)
def test_tables_that_cannot_be_used(tmp_path, name, lines, message):
    with pytest.raises(InputError, match=rf"{name.replace('.', '[.]')}.*{message}"):
        read_judged(write(tmp_path / name, *lines))


# Files whose language pair is that of their name, in folders and archives.

DA = {
    "DAseg.newstest2016.source.cs-en": "jeden\ndva\n",
    "DAseg.newstest2016.mt-system.cs-en": "one\n\n",
    "DAseg.newstest2016.reference.cs-en": "1\n2\n",
    "DAseg.newstest2016.human.cs-en": "-0.25\n1.5\n",
}
QE = {"de-zh-test21/test21.src": "eins\n", "de-zh-test21/test21.mt": "一\n", "de-zh-test21/test21.da": "78.5\n"}


@pytest.mark.parametrize("archive", [None, "packed.tar.gz"])
def test_layouts_in_folders_and_archives(tmp_path: Path, archive: str | None) -> None:
    names = ("en-de-dev/word-probas/mt.dev.ende", "en-de-dev/dev.ende.df.short.tsv")
    twice = {names[1]: MLQE, "test.ende.df.short.tsv": MLQE}
    found = []
    for number, files in enumerate((dict.fromkeys(names, MLQE), twice, DA, QE)):
        (tmp_path / str(number)).mkdir()
        found.append(read_judged(lay(tmp_path / str(number), files, archive)))
    mlqe, two, da, qe = found
    [segments] = mlqe
    assert segments.lang_pair == "en-de"
    assert (segments.sources, segments.predictions) == (['See "it', "Go"], ['Sieh "es', "Geh"])
    assert (segments.references, segments.human.tolist()) == ([None, None], [0.2, -1.0])
    assert (segments.rows["raw"].tolist(), segments.column("model_scores")) == ([71.0, 20.0], [-0.4, -0.5])
    with pytest.raises(InputError, match="no column of numbers 'scores'; there are: index, model_scores"):
        segments.column("scores")
    assert [len(found) for found in two] == ([2, 2] if archive is None else [4])
    [segments] = da
    assert (segments.lang_pair, segments.human.tolist()) == ("cs-en", [-0.25, 1.5])
    assert (segments.sources, segments.predictions, segments.references) == (["jeden", "dva"], ["one", ""], ["1", "2"])
    [segments] = qe
    assert (segments.lang_pair, segments.human.tolist(), segments.references) == ("de-zh", [78.5], [None])


def test_a_folder_of_archives(tmp_path):
    for name in ("et-en-dev", "et-en-test", "en-de-dev"):
        pair = name[:5].replace("-", "")
        lay(tmp_path, {f"{name}/dev.{pair}.df.short.tsv": MLQE}, f"{name}.tar.gz")
    (tmp_path / "SHA256SUMS").write_text("not judged data\n")
    found = [(Path(pair.file).name, pair.lang_pair) for pair in read_judged(tmp_path)]
    assert found == [(f"{name}.tar.gz", name[:5]) for name in ("en-de-dev", "et-en-dev", "et-en-test")]
    assert [Path(pair.file).name for pair in read_judged(tmp_path, lang_pair="en-de")] == ["en-de-dev.tar.gz"]
    cut = tmp_path / "cut.tar.gz"
    cut.write_bytes((tmp_path / "en-de-dev.tar.gz").read_bytes()[:50])
    for file, message in {
        lay(tmp_path, {"README": "x"}, "none.tar.gz"): r"none\.tar\.gz: holds no judged data; .* tables of MLQE-PE",
        cut: r"cut\.tar\.gz: cannot be read as a tar archive",
        tmp_path / "gone.tar": r"gone\.tar: cannot be read as a tar archive",
    }.items():
        with pytest.raises(InputError, match=message):
            read_judged(file)


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
    lay(tmp_path, {name: text for name, text in (DA | files).items() if text is not None})
    with pytest.raises(InputError, match=message):
        read_judged(tmp_path)


def test_captions(tmp_path: Path) -> None:
    judged = {"1.jpg": [["ein Hund", 0.5], ["ein Haus", -1]], "2.jpg": []}
    write(tmp_path / "MMTtranslationdict_de.json", judged)
    write(tmp_path / "MMTsourcedict.json", {"1.jpg": "a dog"})
    with pytest.raises(InputError, match=r"MMTtranslationdict_de\.json: not the published layout .*MMTgolddict_de"):
        read_judged(tmp_path)
    write(tmp_path / "MMTgolddict_de.json", {"1.jpg": "Hund"})
    [segments] = read_judged(tmp_path)
    assert segments.lang_pair == "en-de"
    expected = [["1.jpg", "a dog", "Hund", "ein Hund", 0.5], ["1.jpg", "a dog", "Hund", "ein Haus", -1.0]]
    assert columns(segments, "item", "source", "reference", "translation", "human") == expected


# Metrics tasks of WMT: two pairs, of which one has no texts; lines are counted from 1.

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
    helpers.write(tmp_path / "again/newstest2020-zhen-src.zh", "x\n")
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
    helpers.write(task / "DA-seglevel.csv", f"LP DATA SYSTEM SID HUMAN\n{line}\n")
    with pytest.raises(InputError, match=rf"DA-seglevel\.csv.*{message}"):
        read_judged(task / "DA-seglevel.csv")


# Judged systems in our own layout.

HUMAN = [{"lp": "de-en", "system": "A.1", "human": 0.5}, {"lp": "de-en", "system": "B", "human": -1}]
OUTPUTS = [
    {"lp": "de-en", "sid": 1, "source": "Haus", "reference": "House", "reference_tok": "house"}
    | {"outputs": {"B": "b", "A.1": "a", "C": "c"}},
    {"lp": "de-en", "sid": 2, "source": "Hund", "outputs": {"B": "d", "A.1": ""}},
]


def write_systems(folder, human=HUMAN, outputs=OUTPUTS, name="de-en"):
    write(folder / f"{name}.outputs.jsonl.gz", *outputs)
    return write(folder / f"{name}.jsonl", *human)


def test_judgements_and_outputs_are_joined_by_name(tmp_path):
    path = write_systems(tmp_path)
    [systems] = read_judged_systems(path)
    assert (systems.file, systems.lang_pair, systems.level) == (str(path), "de-en", "system")
    assert systems.judgements[["system", "human"]].to_numpy().tolist() == [["A.1", 0.5], ["B", -1.0]]
    outputs = {name: rows["translation"].tolist() for name, rows in systems.outputs().items()}
    assert outputs == {"A.1": ["a", ""], "B": ["b", "d"]}
    assert (systems.sources, systems.references) == (["Haus", "Hund"] * 2, ["House", None] * 2)
    assert systems.take([10.0, 20.0]) == [10.0, 20.0]
    with pytest.raises(InputError, match="column 'x': judgements of whole systems have no columns"):
        systems.column("x")


def test_a_folder_of_systems(tmp_path):
    write_systems(tmp_path)
    write_systems(tmp_path, *([row | {"lp": "fi-en"} for row in rows] for rows in (HUMAN, OUTPUTS)), name="fi-en")
    write(tmp_path / "ru-en.jsonl", HUMAN[0])
    assert [pair.lang_pair for pair in read_judged_systems(tmp_path)] == ["de-en", "fi-en"]
    assert [pair.lang_pair for pair in read_judged_systems(tmp_path, lang_pair="fi-en")] == ["fi-en"]
    with pytest.raises(InputError, match="no language pair tr-en; there are: de-en, fi-en"):
        read_judged_systems(tmp_path, lang_pair="tr-en")
    (tmp_path / "empty").mkdir()
    for name, message in {
        "ru-en.jsonl": r"ru-en\.jsonl: no ru-en\.outputs\.jsonl or \.gz beside it",
        "none.jsonl": r"none\.jsonl: no such file",
        "empty": r"empty: holds no XX-YY\.jsonl with XX-YY\.outputs\.jsonl",
    }.items():
        with pytest.raises(InputError, match=message):
            read_judged_systems(tmp_path / name)


@pytest.mark.parametrize(
    ("human", "outputs", "message"),
    [
        ([], OUTPUTS, r"de-en\.jsonl: holds no row"),
        (HUMAN, [], r"de-en\.outputs\.jsonl\.gz: holds no row"),
        ([*HUMAN, HUMAN[0]], OUTPUTS, r"de-en\.jsonl, line 3, field 'system': 'A\.1' has a judgement already"),
        ([HUMAN[0] | {"human": None}], OUTPUTS, r"line 1, field 'human': a finite number is needed, got null"),
        ([*HUMAN, HUMAN[0] | {"lp": "fi-en"}], OUTPUTS, r"line 3, field 'lp': 'fi-en', but the lines before"),
        (HUMAN, [OUTPUTS[0] | {"lp": "fi-en"}], r"jsonl\.gz, line 1, field 'lp': 'fi-en', but .*jsonl is of de-en"),
        (HUMAN, [OUTPUTS[0] | {"outputs": {"A.1": "a"}}], r"'outputs': no translation of the judged system 'B'"),
        (HUMAN, [OUTPUTS[0] | {"outputs": {"A.1": "a", "B": 3}}], "'outputs', field 'B': a string is needed, got 3"),
        (HUMAN, [OUTPUTS[0] | {"outputs": ["a"]}], r"'outputs': an object, system name -> translation, is needed"),
    ],
)
def test_errors_of_systems_name_the_place(tmp_path, human, outputs, message):
    with pytest.raises(InputError, match=message):
        read_judged_systems(write_systems(tmp_path, human, outputs))


def test_running_text_of_tokenised_text():
    columns = {
        "source": ["das haus , das ich sah , ist &quot; klein &quot; .", "你好 吗 ？"],
        "translation": ["don &apos;t go , he said ( twice ) .", "well @-@ known ."],
        "reference": [None, "a well-known one ."],
        "human": [1.0, 2.0],
    }
    tokenised = Judged.of("f", "de-en", columns)
    running = tokenised.detokenised()
    assert running.sources[0] == 'das haus, das ich sah, ist "klein".'
    assert running.predictions == ["don't go, he said (twice).", "well-known."]
    assert running.references == [None, "a well-known one."]
    assert (running.prepared, tokenised.prepared) == ("detok:moses", None)
    assert tokenised.predictions == columns["translation"]
    other = Judged.of("f", "xx-zh", {**columns, "reference": [None, "你好 吗 ？"]}).detokenised()
    assert other.sources == columns["source"]
