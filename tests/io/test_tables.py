"""Tables as tab-separated values, CSV, JSON Lines and Parquet, and the errors that name file and line."""

from pathlib import Path

import pyarrow
import pytest
from helpers import write
from pyarrow import parquet

from mtmetrics.errors import InputError
from mtmetrics.io.tables import iter_table, jsonl_rows, read_word_pairs, table_keys


def test_jsonl_errors(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a.jsonl, line 3: not valid JSON"):
        list(jsonl_rows(write(tmp_path / "a.jsonl", b'{}\n\n{"a":\n')))
    with pytest.raises(InputError, match="b.jsonl, line 1: a JSON object is needed, got list"):
        list(jsonl_rows(write(tmp_path / "b.jsonl", b"[1]\n")))
    pair, half = rb'{"a": "\ud83d\ude00 \\ud83d"}', rb'{"a": {"b": ["\uD83D"]}}'
    path = write(tmp_path / "c.jsonl", pair + b"\n" + half + b"\n")
    rows = jsonl_rows(path)
    assert next(rows).fields == {"a": "\U0001f600 \\ud83d"}
    with pytest.raises(InputError, match="c.jsonl, line 2: holds a lone surrogate"):
        next(rows)


def test_tables(tmp_path: Path) -> None:
    table = write(tmp_path / "a.tsv", b"x\ty\textra\n\tz\n")
    assert list(iter_table(table, ("source", "translation"))) == [["x", "y"], ["", "z"]]
    with pytest.raises(InputError, match="b.tsv, line 2: 1 column"):
        list(iter_table(write(tmp_path / "b.tsv", b"x\ty\nx\n"), ("source", "translation")))
    lines = b'{"source": "x", "translation": "y", "human": 1}\n{"source": "x", "translation": null}\n'
    rows = write(tmp_path / "a.jsonl", lines)
    with pytest.raises(InputError, match="a.jsonl, line 2: 'translation' must be a string, got null"):
        list(iter_table(rows, ("source", "translation")))


def test_csv_has_a_header_and_quotes(tmp_path: Path) -> None:
    table = write(tmp_path / "a.csv.gz", '"a ""b""",translation,source\n1,"y, z",x\n\n2,,"u\nv"\n')
    assert table_keys(table) == ['a "b"', "translation", "source"]
    assert list(iter_table(table, ("source", "translation"))) == [["x", "y, z"], ["u\nv", ""]]
    with pytest.raises(InputError, match="a.csv.gz, line 2: no field 'reference'; the row has: 'a"):
        list(iter_table(table, ("reference",)))
    with pytest.raises(InputError, match=r"b.csv, line 2: 1 field\(s\), but the header has 2: source, target"):
        list(iter_table(write(tmp_path / "b.csv", "source,target\nx\n"), ("source",)))
    assert list(iter_table(write(tmp_path / "tabs.csv", "x\ty, z\n"), ("source", "target"))) == [["x", "y, z"]]
    assert list(iter_table(write(tmp_path / "empty.csv", ""), ("source", "target"))) == []


def test_parquet(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    parquet.write_table(pyarrow.table({"translation": ["y", "z"], "source": ["x", "w"]}), path)
    assert list(iter_table(path, ("source", "translation"))) == [["x", "y"], ["w", "z"]]
    with pytest.raises(InputError, match="a.parquet: no column 'reference'; the file has: translation, source"):
        list(iter_table(path, ("reference",)))
    parquet.write_table(pyarrow.table({"source": ["x", None]}), path)
    with pytest.raises(InputError, match="a.parquet, row 2: 'source' must be a string, got null"):
        list(iter_table(path, ("source",)))
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(InputError, match="a.parquet, after row 0: cannot be read as Parquet"):
        list(iter_table(path, ("source",)))
    with pytest.raises(InputError, match="none.parquet: no such file"):
        list(iter_table(tmp_path / "none.parquet", ("source",)))


def test_reading(tmp_path: Path) -> None:
    path = write(tmp_path / "de-en.tsv.gz", "Hund\tdog\twiktionary\nja \tyes\n")
    assert read_word_pairs(path) == [("Hund", "dog"), ("ja", "yes")]
    for text, message in (
        ("", "empty"),
        ("a\tb\nHund\n", "line 2: 1 column.*word TAB translation"),
        ("a\t \n", "line 1: a word and its translation"),
    ):
        with pytest.raises(InputError, match=f"pairs.tsv.*{message}"):
            read_word_pairs(write(tmp_path / "pairs.tsv", text))
