"""Rows that are written are read back equal, in every format; what a format would lose is refused
before."""

import contextlib
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mtmetrics.errors import InputError
from mtmetrics.io.row_writer import Columns, RowWriter
from mtmetrics.io.tables import Row, open_table

FORMS = ("tsv", "csv", "jsonl", "parquet")
# All of Unicode but half characters, and the NUL that no text holds.
CHARACTERS = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
TEXTS = st.text(CHARACTERS, max_size=8) | st.text('a "\t\r\n,\u2028', max_size=6)
WHOLE = st.integers(-(2**63), 2**63 - 1)
FRACTIONS = st.floats(allow_nan=False)


def written(folder: str | Path, form: str, rows: list[dict], names: list[str] = ()) -> list[dict]:
    """Writes rows as commands do, and reads them back."""
    path = Path(folder) / f"rows.{form}"
    columns = Columns(form, names)
    for number, row in enumerate(rows, 1):
        columns.add_row(Row(f"row {number}", row))
    mode = (
        {"mode": "wb"} if form == "parquet" else {"mode": "w", "encoding": "utf-8", "newline": "\n"}
    )
    with open(path, **mode) as stream, contextlib.closing(RowWriter(stream, columns)) as writer:
        writer.write(rows)
    table = open_table(path)
    return [] if table is None else [dict(row.values) for row in table.rows()]


def values(texts: st.SearchStrategy[str]) -> st.SearchStrategy[list[Any]]:
    """Two values of one type, of those that JSON has."""
    plain = st.sampled_from([texts, WHOLE, FRACTIONS, st.booleans(), st.none()])
    kinds = plain.flatmap(
        lambda kind: st.sampled_from(
            [kind, st.lists(kind, max_size=3), st.fixed_dictionaries({"a": kind, "b": texts})]
        )
    )
    return kinds.flatmap(lambda kind: st.lists(kind | st.none(), min_size=2, max_size=2))


@settings(deadline=None, max_examples=150)
@given(
    st.lists(
        st.fixed_dictionaries(dict.fromkeys(("source", "target", "note"), TEXTS)),
        min_size=1,
        max_size=5,
    )
)
def test_rows_of_texts_are_read_back(rows: list[dict]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for form in FORMS:
            if form == "tsv" and any(
                set("\t\n") & set(text) for row in rows for text in row.values()
            ):
                with pytest.raises(InputError, match="holds a tab or a line break"):
                    written(folder, form, rows)
                continue
            # Lines end in \n for all readers of text, also within a cell of CSV.
            end = "\n" if form == "csv" else "\r\n"
            expected = [
                {name: text.replace("\r\n", end) for name, text in row.items()} for row in rows
            ]
            assert written(folder, form, rows) == expected


@settings(deadline=None, max_examples=150)
@given(values(TEXTS), values(TEXTS))
def test_rows_of_any_values_are_read_back(one: list[Any], other: list[Any]) -> None:
    rows = [
        {"source": "x", "target": "y", "one": a, "other": b}
        for a, b in zip(one, other, strict=True)
    ]
    with tempfile.TemporaryDirectory() as folder:
        for form in ("jsonl", "parquet"):
            assert written(folder, form, rows) == rows


@pytest.mark.parametrize("form", FORMS)
def test_columns_that_only_some_rows_have(tmp_path: Path, form: str) -> None:
    rows = [{"source": "a", "target": "b"}, {"note": "n", "target": "c", "source": "d"}]
    empty = {"tsv": "", "csv": "", "parquet": None}
    first = {} if form == "jsonl" else {"note": empty[form]}
    assert written(tmp_path, form, rows, ["source", "target"]) == [rows[0] | first, rows[1]]


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        ([1] * 11_000 + [0.5], [1.0] * 11_000 + [0.5]),
        ([None] * 11_000 + ["x"], None),
        ([None, None], None),
        ([2**63], None),
        ([-1, 2**53], None),
        ([[], [1], [0.5]], [[], [1.0], [0.5]]),
        ([{"a": 1}, {"b": None}], [{"a": 1, "b": None}, {"a": None, "b": None}]),
    ],
)
def test_parquet_loses_nothing(tmp_path: Path, seen: list, expected: list | None) -> None:
    rows = written(tmp_path, "parquet", [{"source": "a", "w": value} for value in seen])
    assert [row["w"] for row in rows] == (seen if expected is None else expected)


@pytest.mark.parametrize(
    ("form", "seen", "message"),
    [
        ("parquet", [2**64], "row 1: column 'w': 18446744073709551616 has more than 64 bits"),
        ("parquet", [-1, 2**63], "row 2: column 'w': 9223372036854775808 has more than 64 bits"),
        (
            "parquet",
            [[-(2**63) - 1]],
            "row 1: column 'w': -9223372036854775809 has more than 64 bits",
        ),
        (
            "parquet",
            [2**53 + 1, 0.5],
            "row 2: .*numbers with a fraction .0.5. and 9007199254740993 in row 1",
        ),
        ("parquet", [0.5, 2**53 + 1], "row 2: .*and 9007199254740993 in row 2"),
        ("parquet", [1, "x"], "row 2: column 'w' holds a text .'x'., but a number in row 1"),
        ("parquet", [True, 1], "row 2: column 'w' holds a number .1., but true or false in row 1"),
        ("parquet", [{"a": 1}, {"a": "x"}], "row 2: column 'w.a' holds a text"),
        ("parquet", [{}], "row 1: column 'w' holds empty objects alone"),
        ("tsv", ["x", "a\tb"], "row 2, column 'w': 'a.tb' holds a tab or a line break"),
        ("tsv", ["a\nb"], "row 1, column 'w'"),
        ("tsv", ["a\0b"], "row 1, column 'w': .* holds a NUL character"),
        ("csv", ["a\0b"], "row 1, column 'w': .* holds a NUL character"),
        ("jsonl", [b"x"], "row 1, column 'w': JSON has no bytes"),
    ],
)
def test_what_would_be_lost_is_refused_when_it_is_seen(form: str, seen: list, message: str) -> None:
    columns = Columns(form)
    with pytest.raises(InputError, match=message):  # noqa: PT012
        for number, value in enumerate(seen, 1):
            columns.add_row(Row(f"row {number}", {"source": "x", "w": value}))
        columns.check_types()


def test_names_that_cells_cannot_have() -> None:
    for name in ("a\tb", " "):
        with pytest.raises(InputError, match="line 3: .*column"):
            Columns("tsv").add_row(Row("line 3", {name: "x"}))
