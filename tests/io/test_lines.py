"""Reading lines, tables and parallel files, and the errors that name file and line."""

import gzip
from pathlib import Path

import pyarrow
import pytest
from helpers import write
from pyarrow import parquet

from mtmetrics.errors import InputError
from mtmetrics.io.lines import first_difference, iter_lines, iter_parallel
from mtmetrics.io.tables import iter_table, jsonl_rows, table_keys


def test_only_newlines_end_a_line(tmp_path: Path) -> None:
    path = write(tmp_path / "a.txt", "\ufeffeins\u2028zwei\x0bdrei\r\n\nvier".encode())
    assert list(iter_lines(path)) == ["eins\u2028zwei\x0bdrei", "", "vier"]


def test_gzip(tmp_path: Path) -> None:
    path = write(tmp_path / "a.txt.gz", "ä\nb\n")
    assert list(iter_lines(path)) == ["ä", "b"]


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("bad.txt", b"ok\n\xff\n", r"bad.txt, line 2: byte 1 \(0xff\) is not valid UTF-8"),
        ("cut.txt.gz", gzip.compress(b"x" * 9999)[:30], "cut.txt.gz, after line 0: cannot be read"),
        ("plain.txt.gz", b"no gzip", "plain.txt.gz, after line 0: cannot be read"),
    ],
)
def test_damaged_files(tmp_path: Path, name: str, data: bytes, message: str) -> None:
    with pytest.raises(InputError, match=message):
        list(iter_lines(write(tmp_path / name, data)))


def test_missing_file_and_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="none.txt: no such file"):
        list(iter_lines(tmp_path / "none.txt"))
    with pytest.raises(InputError, match="is a folder"):
        list(iter_lines(tmp_path))


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


def test_parallel_files_of_unequal_length(tmp_path: Path) -> None:
    left, right = write(tmp_path / "left", b"a\nb\n"), write(tmp_path / "right", b"c\n")
    assert list(iter_parallel([left, left])) == [["a", "a"], ["b", "b"]]
    with pytest.raises(InputError, match=r"right ends after 1 lines, but .*left goes on"):
        list(iter_parallel([left, right]))


def test_the_first_difference_of_two_plans_is_named() -> None:
    plan = {"rows": 3, "settings": {"dtype": "float32", "layers": [1, 2]}}
    assert first_difference(plan, plan) is None
    assert first_difference(plan, plan | {"rows": 4}) == "rows 3, not 4"
    assert first_difference(plan, plan | {"settings": {"dtype": "float32"}}) == "layers [1, 2], not null"
    assert first_difference(plan, plan | {"seed": "x"}) == "seed null, not 'x'"
