"""Layouts of judged data: tables with a header, files whose names say their pair, archives,
captions."""

from pathlib import Path

import numpy as np
import pytest
from helpers import columns, lay, write_rows

from mtmetrics.errors import InputError
from mtmetrics.judgements.judged import read_judged
from mtmetrics.judgements.readers import Condition


def test_wmt17_test_set(tmp_path):
    # As pandas wrote the published files: a field with quotes is quoted, all others are not.
    header = "LP\tsource\ttranslation\treference\tHUMAN_score\tsentBLEU"
    quoted = 'de-en\t"""Nur so"", sagt sie."\t&quot; only so &quot;\tonly so\t-0.5\t0.25'
    [segments] = read_judged(
        write_rows(tmp_path / "t.tsv", header, quoted, 'de-en\t"Ja"\t"yes" he said, "\tyes\t1\t0.5')
    )
    assert segments.sources == ['"Nur so", sagt sie.', '"Ja"']
    assert segments.predictions == ["&quot; only so &quot;", '"yes" he said, "']
    assert (segments.references, segments.human.tolist()) == (["only so", "yes"], [-0.5, 1.0])
    assert segments.column("sentBLEU") == [0.25, 0.5]


def test_collection_of_wmt_judgements(tmp_path):
    path = write_rows(
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
    np.testing.assert_equal(
        german.rows[["human", "raw"]].to_numpy(), [[0.5, 75.0], [np.nan, np.nan]]
    )
    assert (german.column("annotators"), german.column("year")) == ([2.0, 2.0], [2020.0, 2020.0])
    assert (finnish.sources, finnish.predictions, finnish.references) == (
        ["Talo, iso"],
        ['a "big"\nhouse'],
        [None],
    )
    assert "raw" not in finnish.rows


def test_a_pair_that_is_given(tmp_path):
    path = write_rows(
        tmp_path / "mine.tsv",
        "human\tsource\ttranslation\titem",
        "1\tHaus\thouse\tx",
        "",
        "0\tHaus\tNone\tx",
    )
    with pytest.raises(
        InputError,
        match=r"mine\.tsv, line 2: no field 'lp' or 'LP'; the row has: 'human', 'source'",
    ):
        read_judged(path)
    with pytest.raises(InputError, match=r"mine\.tsv, line 2, field 'lp': language pair 'german'"):
        read_judged(path, lang_pair="german")
    [segments] = read_judged(path, lang_pair="de-en")
    assert (segments.lang_pair, segments.predictions) == ("de-en", ["house", "None"])
    assert segments.rows["item"].tolist() == ["x", "x"]
    two = write_rows(tmp_path / "two.tsv", HEAD, "de-en\tHaus\thouse\t1", "fi-en\tTalo\thouse\t0")
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
        *(
            (name, ["", " "], "holds no row")
            for name in ("a.jsonl", "a.tsv", "a.csv", "dev.deen.df.short.tsv")
        ),
        ("a.tsv", [HEAD], "holds no row"),
        (
            "a.tsv",
            [HEAD, "de-en\ta\tb"],
            r"line 2: 3 field\(s\), but the header has 4: lp, source, trans",
        ),
        (
            "a.tsv",
            [HEAD, "de-en\ta\tb\tgood"],
            "line 2, field 'human': a finite number is needed, got 'good'",
        ),
        (
            "a.tsv",
            ["lp\tsource\ttranslation", "de-en\ta\tb"],
            "line 2: no field 'human' or 'score'",
        ),
        ("a.tsv", ["lp\tsource\tsource\thuman"], "line 1: the column 'source' stands there twice"),
        ("a.csv", ["lp,src,mt,score", 'de-en,a,"b'], "line 2: not valid CSV"),
        (
            "a.csv",
            ["LP DATA SID HUMAN", "de-en wmt A 1"],
            "line 1: a header with .* known by their names",
        ),
        ("a.csv", [",,"], "line 1: a header with"),
        ("dev.df.short.tsv", [MLQE], r"a name such as dev\.ende\.df\.short\.tsv is needed"),
    ],
)
def test_tables_that_cannot_be_used(tmp_path, name, lines, message):
    with pytest.raises(InputError, match=rf"{name.replace('.', '[.]')}.*{message}"):
        read_judged(write_rows(tmp_path / name, *lines))


DA = {
    "DAseg.newstest2016.source.cs-en": "jeden\ndva\n",
    "DAseg.newstest2016.mt-system.cs-en": "one\n\n",
    "DAseg.newstest2016.reference.cs-en": "1\n2\n",
    "DAseg.newstest2016.human.cs-en": "-0.25\n1.5\n",
}


QE = {
    "de-zh-test21/test21.src": "eins\n",
    "de-zh-test21/test21.mt": "一\n",
    "de-zh-test21/test21.da": "78.5\n",
}


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
    assert (segments.rows["raw"].tolist(), segments.column("model_scores")) == (
        [71.0, 20.0],
        [-0.4, -0.5],
    )
    with pytest.raises(
        InputError, match="no column of numbers 'scores'; there are: index, model_scores"
    ):
        segments.column("scores")
    assert [len(found) for found in two] == ([2, 2] if archive is None else [4])
    [segments] = da
    assert (segments.lang_pair, segments.human.tolist()) == ("cs-en", [-0.25, 1.5])
    assert (segments.sources, segments.predictions, segments.references) == (
        ["jeden", "dva"],
        ["one", ""],
        ["1", "2"],
    )
    [segments] = qe
    assert (segments.lang_pair, segments.human.tolist(), segments.references) == (
        "de-zh",
        [78.5],
        [None],
    )


def test_a_folder_of_archives(tmp_path):
    for name in ("et-en-dev", "et-en-test", "en-de-dev"):
        pair = name[:5].replace("-", "")
        lay(tmp_path, {f"{name}/dev.{pair}.df.short.tsv": MLQE}, f"{name}.tar.gz")
    (tmp_path / "SHA256SUMS").write_text("not judged data\n")
    found = [(Path(pair.file).name, pair.lang_pair) for pair in read_judged(tmp_path)]
    assert found == [
        (f"{name}.tar.gz", name[:5]) for name in ("en-de-dev", "et-en-dev", "et-en-test")
    ]
    assert [Path(pair.file).name for pair in read_judged(tmp_path, lang_pair="en-de")] == [
        "en-de-dev.tar.gz"
    ]
    cut = tmp_path / "cut.tar.gz"
    cut.write_bytes((tmp_path / "en-de-dev.tar.gz").read_bytes()[:50])
    for file, message in {
        lay(
            tmp_path, {"README": "x"}, "none.tar.gz"
        ): r"none\.tar\.gz: holds no judged data; .* tables of MLQE-PE",
        cut: r"cut\.tar\.gz: cannot be read as a tar archive",
        tmp_path / "gone.tar": r"gone\.tar: cannot be read as a tar archive",
    }.items():
        with pytest.raises(InputError, match=message):
            read_judged(file)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (
            {"DAseg.newstest2016.mt-system.cs-en": "one\n"},
            "differ in their number of lines: human 2, source 2, trans",
        ),
        (
            {"DAseg.newstest2016.human.cs-en": "1\ngood\n"},
            "line 2, field 'human': a finite number is needed",
        ),
        (
            {"DAseg.newstest2016.source.cs-en": None},
            r"no .*DAseg\.newstest2016\.source\.cs-en beside it",
        ),
        ({"test21/test21.da": "1\n"}, "the folder must be called XX-YY-"),
    ],
)
def test_files_that_do_not_fit(tmp_path: Path, files: dict[str, str | None], message: str) -> None:
    lay(tmp_path, {name: text for name, text in (DA | files).items() if text is not None})
    with pytest.raises(InputError, match=message):
        read_judged(tmp_path)


@pytest.mark.parametrize("text", ["sid", "=2", "sid=", "sid>2", "sid>=many", "sid>=", ""])
def test_conditions_that_say_nothing(text: str) -> None:
    with pytest.raises(
        InputError,
        match=f"--where {text}: FIELD=VALUE or FIELD>=NUMBER is needed, such as year=2020",
    ):
        Condition.parse(text)


def test_conditions() -> None:
    for text, holds, fails in (
        ("year=2020", ["2020", 2020, 2020.0], [2021, None, "x"]),
        ("system=A=b", ["A=b"], ["A", 1.0]),
        ("n>=2", [2, 3.5], [1, None, "3", True]),
    ):
        condition = Condition.parse(text)
        assert str(condition) == text
        assert all(map(condition.holds, holds))
        assert not any(map(condition.holds, fails))


def test_captions(tmp_path: Path) -> None:
    judged = {"1.jpg": [["ein Hund", 0.5], ["ein Haus", -1]], "2.jpg": []}
    write_rows(tmp_path / "MMTtranslationdict_de.json", judged)
    write_rows(tmp_path / "MMTsourcedict.json", {"1.jpg": "a dog"})
    with pytest.raises(
        InputError, match=r"MMTtranslationdict_de\.json: not the published layout .*MMTgolddict_de"
    ):
        read_judged(tmp_path)
    write_rows(tmp_path / "MMTgolddict_de.json", {"1.jpg": "Hund"})
    [segments] = read_judged(tmp_path)
    assert segments.lang_pair == "en-de"
    expected = [
        ["1.jpg", "a dog", "Hund", "ein Hund", 0.5],
        ["1.jpg", "a dog", "Hund", "ein Haus", -1.0],
    ]
    assert columns(segments, "item", "source", "reference", "translation", "human") == expected
