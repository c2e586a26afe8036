"""Rows of cells, JSON Lines and Parquet through one reader, and the errors that name file and
line."""

import io
import warnings
from pathlib import Path

import pyarrow
import pytest
from helpers import write
from pyarrow import parquet

from mtmetrics.errors import InputError
from mtmetrics.io.cells import Dialect, open_cells
from mtmetrics.io.tables import jsonl_rows, open_table, read_word_pairs


def rows(path: Path) -> list[dict]:
    table = open_table(path)
    return [] if table is None else [dict(row.values) for row in table.rows()]


def texts(path: Path, *columns: str) -> list[list[str]]:
    table = open_table(path)
    return [] if table is None else list(table.texts(columns))


def test_jsonl_errors(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a.jsonl, line 3: not valid JSON"):
        list(jsonl_rows(write(tmp_path / "a.jsonl", b'{}\n\n{"a":\n')))
    with pytest.raises(InputError, match="b.jsonl, line 1: a JSON object is needed, got list"):
        list(jsonl_rows(write(tmp_path / "b.jsonl", b"[1]\n")))
    pair, half = rb'{"a": "\ud83d\ude00 \\ud83d"}', rb'{"a": {"b": ["\uD83D"]}}'
    path = write(tmp_path / "c.jsonl", pair + b"\n" + half + b"\n")
    lines = jsonl_rows(path)
    assert next(lines).values == {"a": "\U0001f600 \\ud83d"}
    with pytest.raises(InputError, match="c.jsonl, line 2: holds a lone surrogate"):
        next(lines)
    lines = (
        b'{"source": "x", "translation": "y", "human": 1}\n{"source": "x", "translation": null}\n'
    )
    with pytest.raises(
        InputError, match="d.jsonl, line 2: 'translation' must be a string, got null"
    ):
        texts(write(tmp_path / "d.jsonl", lines), "source", "translation")


def test_cells_without_a_header(tmp_path: Path) -> None:
    table = write(tmp_path / "a.tsv", "x\ty\tz\n\tz\t\n")
    assert rows(table) == [
        {"source": "x", "translation": "y", "column3": "z"},
        {"source": "", "translation": "z", "column3": ""},
    ]
    assert (
        rows(write(tmp_path / "empty.tsv", ""))
        == rows(write(tmp_path / "blank.tsv", "\n \n"))
        == []
    )
    for text, message in (
        ("x\ty\nx\n", "line 2: 1 column"),
        ("x\ty\nx\ty\tz\n", r"line 2: 3 column\(s\), but line 1 has 2"),
        ("x\ty\n\nx\ty\n", "line 2: 1 column"),
        ("\nx\ty\n", "line 1: 1 column"),
        ("x\n", r"line 1: 1 column\(s\), but source TAB translation are needed"),
    ):
        with pytest.raises(InputError, match=f"b.tsv, {message}"):
            rows(write(tmp_path / "b.tsv", text))


def test_blank_lines_at_the_end_are_no_rows(tmp_path: Path) -> None:
    for name, text in (
        ("a.tsv", "a b\tc d\n\n\n"),
        ("b.tsv", "source\tmt\na b\tc d\n \n"),
        ("c.csv", "source,mt\na b,c d\n\n"),
        ("d.jsonl", '{"source": "a b", "mt": "c d"}\n\n'),
    ):
        assert [[*row.values()] for row in rows(write(tmp_path / name, text))] == [["a b", "c d"]]


def test_rows_of_empty_cells_are_rows(tmp_path: Path) -> None:
    for name, text in (
        ("a.tsv", "source\tmt\na\tb\n\t\n"),
        ("b.tsv", "a b\tb\n\t\n"),
        ("c.csv", "source,mt\na,b\n,\n"),
    ):
        assert [[*row.values()] for row in rows(write(tmp_path / name, text))][-1] == ["", ""]
    one_column = write(tmp_path / "d.csv", 'mt\n""\na\n""\n')
    assert texts(one_column, "mt") == [[""], ["a"], [""]]


def test_a_header_row_is_known(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", "id\tSource\ttranslation\t\n1\tx\ty\t\n")
    assert rows(path) == [{"id": "1", "Source": "x", "translation": "y", "column4": ""}]
    commas = write(tmp_path / "commas.tsv", 'source,mt,id\n"x, y",z,1\n')
    assert rows(commas) == [{"source": "x, y", "mt": "z", "id": "1"}]
    for text, message in (
        ("source\tDas Haus\n", "line 1: 'source TAB Das Haus' looks like half a header"),
        ("source\tmt\tmt\nx\ty\tz\n", "line 1: the column 'mt' stands there twice"),
        ("id\tid\tsource\tmt\n", "line 1: the column 'id' stands there twice"),
        ("source\tmt\nx\ty\tz\n", r"line 2: 3 field\(s\), but the header has 2: source, mt"),
    ):
        with pytest.raises(InputError, match=f"b.tsv.*{message}"):
            rows(write(tmp_path / "b.tsv", text))


@pytest.mark.parametrize(
    ("text", "is_noted"),
    [
        ("de\ten\nHaus\thouse\n", True),
        ("de\ten\n", True),
        ("de-DE\ten_GB\nHaus\thouse\n", True),
        ("german\tenglish\nDas Haus ist klein.\tThe house is small.\n", True),
        ("Text_1\tText_2\nDas Haus ist klein.\tThe house is small.\n", True),
        ("Haus\thouse\nHund\tdog\n", False),
        ("Ja.\tYes.\nDas Haus ist klein.\tThe house is small.\n", False),
        ("Das Haus\tthe house\nein Hund\ta dog\n", False),
        ("source\tmt\nein Hund\ta dog\n", False),
    ],
)
def test_a_first_line_that_looks_like_names_is_noted(
    tmp_path: Path, text: str, is_noted: bool
) -> None:
    path = write(tmp_path / "a.tsv", text)
    with warnings.catch_warnings(record=True) as notes:
        warnings.simplefilter("always")
        assert len(rows(path)) == len(text.splitlines()) - ("source" in text)
    assert ["line 1" in str(note.message) for note in notes] == [True] * is_noted


@pytest.mark.parametrize("text", ["a\rb, c", "x" * 200_000 + ", y"])
def test_a_line_that_is_no_csv_is_text(text: str) -> None:
    dialect, cells = open_cells("a.tsv", [text])
    assert (dialect, list(cells)) == (Dialect.TABS, [(1, [text])])


def test_quoted_cells_between_tabs(tmp_path: Path) -> None:
    """Files that pandas writes for a tab, a quote or a line break in a cell; other quotes belong to the
    text."""
    texts_of_rows = [
        ['"Ja", sagte er.', "He said yes."],
        ['"Ja."', '"Yes."'],
        ["Ein\tTabulator", "a tab"],
        ["zwei\nZeilen", "two lines"],
        ["two lines", "zwei\n\nZeilen"],
        ['"', '""'],
        ['"offen', 'open"'],
        ["am Ende", '"offen'],
    ]
    lines = [
        '"""Ja"", sagte er."\tHe said yes.',
        '"Ja."\t"Yes."',
        '"Ein\tTabulator"\ta tab',
        '"zwei\nZeilen"\ttwo lines',
        'two lines\t"zwei\n\nZeilen"',
        '"\t""',
        '"offen\topen"',
        'am Ende\t"offen',
    ]
    plain = write(tmp_path / "a.tsv", "source\tmt\n" + "\n".join(lines) + "\n")
    assert texts(plain, "source", "mt") == texts_of_rows
    assert rows(write(tmp_path / "b.tsv", 'source\tmt\t"the ""id"""\na\tb\tc\n')) == [
        {"source": "a", "mt": "b", 'the "id"': "c"}
    ]
    first_row = write(tmp_path / "first.tsv", 'two lines\t"zwei\nZeilen"\n')
    assert texts(first_row, "source", "translation") == [["two lines", "zwei\nZeilen"]]
    quoted = write(
        tmp_path / "c.tsv", '"source"\t"mt"\t"n"\n"Ja."\t"a ""b"""\t1\n"x\n\ty"\t""\t2\n'
    )
    assert texts(quoted, "source", "mt", "n") == [["Ja.", 'a "b"', "1"], ["x\n\ty", "", "2"]]
    with pytest.raises(InputError, match="d.tsv, line 2: not valid CSV"):
        rows(write(tmp_path / "d.tsv", '"source"\t"mt"\n"a \\"b\\""\t"c"\n'))


def test_a_quote_that_stays_open_hides_no_rows(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", "a b\tc\n" + '"a\n' + "".join(f"{n}\td\n" for n in range(400)))
    with pytest.raises(InputError, match=r"a.tsv, line 2: 1 column"):
        rows(path)
    path = write(tmp_path / "b.tsv", "".join(f'{n} x\t"d\n' for n in range(400)))
    assert texts(path, "translation") == [['"d']] * 400


def test_csv_has_a_header_and_quotes(tmp_path: Path) -> None:
    table = write(tmp_path / "a.csv.gz", '"a ""b""",translation,source\n1,"y, z",x\n\n2,,"u\nv"\n')
    opened = open_table(table)
    assert opened is not None
    assert opened.names == ['a "b"', "translation", "source"]
    assert list(opened.texts(("source", "translation"))) == [["x", "y, z"], ["u\nv", ""]]
    with pytest.raises(InputError, match="a.csv.gz, line 2: no field 'reference'; the row has: 'a"):
        texts(table, "reference")
    with pytest.raises(
        InputError, match=r"b.csv, line 2: 1 field\(s\), but the header has 2: source, target"
    ):
        texts(write(tmp_path / "b.csv", "source,target\nx\n"), "source")
    assert texts(write(tmp_path / "tabs.csv", "x\ty, z\n"), "source", "translation") == [
        ["x", "y, z"]
    ]
    assert rows(write(tmp_path / "empty.csv", "")) == []


def test_parquet(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    parquet.write_table(pyarrow.table({"translation": ["y", "z"], "source": ["x", "w"]}), path)
    assert texts(path, "source", "translation") == [["x", "y"], ["w", "z"]]
    with pytest.raises(
        InputError,
        match="a.parquet, row 1: no field 'reference'; the row has: 'translation', 'source'",
    ):
        texts(path, "reference")
    parquet.write_table(pyarrow.table({"source": ["x", None]}), path)
    with pytest.raises(InputError, match="a.parquet, row 2: 'source' must be a string, got null"):
        texts(path, "source")
    twice = pyarrow.Table.from_arrays(
        [pyarrow.array(["x"]), pyarrow.array(["y"])], names=["source", "source"]
    )
    parquet.write_table(twice, tmp_path / "twice.parquet")
    with pytest.raises(InputError, match="twice.parquet: the column 'source' stands there twice"):
        rows(tmp_path / "twice.parquet")
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(InputError, match="a.parquet: cannot be read as Parquet"):
        texts(path, "source")
    with pytest.raises(InputError, match="none.parquet: no such file"):
        texts(tmp_path / "none.parquet", "source")


def test_standard_input_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"id\tmt\tsrc\n1\tp\ts\n")))
    opened = open_table("-")
    assert opened is not None
    assert list(opened.texts(["src", "mt"])) == [["s", "p"]]


def test_lists_of_words(tmp_path: Path) -> None:
    path = write(tmp_path / "de-en.tsv.gz", "Hund\tdog\twiktionary\nja \tyes\n\n")
    assert read_word_pairs(path) == [("Hund", "dog"), ("ja", "yes")]
    headed = write(tmp_path / "headed.tsv", "target\tsource\ndog\tHund\n")
    assert read_word_pairs(headed) == [("Hund", "dog")]
    assert read_word_pairs(write(tmp_path / "en-de.tsv", "source\tQuelle\n")) == [
        ("source", "Quelle")
    ]
    for text, message in (
        ("", "empty"),
        ("a\tb\nHund\n", "line 2: 1 column.*word TAB translation"),
        ("a\t \n", "line 1: a word and its translation"),
    ):
        with pytest.raises(InputError, match=f"pairs.tsv.*{message}"):
            read_word_pairs(write(tmp_path / "pairs.tsv", text))
    short_row = write(tmp_path / "short.tsv", "target\torigin\tsource\ndog\twiktionary\n")
    with pytest.raises(InputError, match=r"short.tsv, line 2: a word and its translation"):
        read_word_pairs(short_row)
