"""Rows of scores are read back as they were written; segments are found under other names."""

import contextlib
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mtmetrics.errors import InputError
from mtmetrics.io.row_writer import RowWriter
from mtmetrics.io.score_rows import (
    score_columns,
    score_row,
    segment_column,
    system_and_segment,
)
from mtmetrics.io.tables import open_table

NAMES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\t\n\r"), max_size=6)
NUMBERS = st.none() | st.floats(allow_nan=False)


@st.composite
def score_rows(draw: st.DrawFn) -> list[tuple[str, int, dict[str, float | None], str | None]]:
    """Rows of one file: one metric with a part, or two metrics; with what is unusual, or
    without."""
    columns = draw(
        st.sampled_from(
            [["score"], ["score", "lm"], ["chrf", "bertr:mini", "bertr:mini precision"]]
        )
    )
    unusual = draw(st.booleans())
    row = st.tuples(
        NAMES,
        st.integers(1, 10**9),
        st.fixed_dictionaries(dict.fromkeys(columns, NUMBERS)),
        st.sampled_from(["", "blank", "looping+length"]) if unusual else st.none(),
    )
    return draw(st.lists(row, min_size=1, max_size=4))


@settings(deadline=None, max_examples=100)
@given(score_rows())
def test_rows_of_scores_are_read_back(
    rows: list[tuple[str, int, dict[str, float | None], str | None]],
) -> None:
    _, _, first_scores, first_unusual = rows[0]
    with tempfile.TemporaryDirectory() as folder:
        for form in ("tsv", "csv", "jsonl", "parquet"):
            path = Path(folder) / f"scores.{form}"
            systems = [system for system, *_ in rows]
            columns = score_columns(
                form, systems, first_scores, with_unusual=first_unusual is not None
            )
            mode = (
                {"mode": "wb"}
                if form == "parquet"
                else {"mode": "w", "encoding": "utf-8", "newline": "\n"}
            )
            with (
                open(path, **mode) as stream,
                contextlib.closing(RowWriter(stream, columns)) as writer,
            ):
                writer.write(score_row(form, *row) for row in rows)
            table = open_table(path)
            assert table is not None
            found = []
            for row in table.rows():
                cells = {name: row.values[name] for name in first_scores}
                scores = {
                    name: None if cell in (None, "") else float(cell)
                    for name, cell in cells.items()
                }
                unusual = row.values.get("unusual")
                found.append((*system_and_segment(row, "segment"), scores, unusual))
            assert found == rows


def test_order_of_the_columns() -> None:
    row = ("a", 1, {"score": 0.5, "lm": None}, "blank")
    assert [*score_row("tsv", *row)] == ["system", "segment", "score", "lm", "unusual"]
    assert [*score_row("jsonl", *row)] == ["kind", "system", "segment", "score", "lm", "unusual"]
    with pytest.raises(InputError, match="a system, column 'system': 'a.tb' holds a tab"):
        score_columns("tsv", ["a\tb"], ["score"], with_unusual=False)


@pytest.mark.parametrize(
    ("fields", "column"),
    [
        ({"seg_id": 1, "score": 2}, "seg_id"),
        ({"segment": "x", "id": 1, "score": 2}, "segment"),
        ({"id": "doc-1", "Index": "3", "score": 2}, "Index"),
        ({"column1": "0", "score": 2}, "column1"),
        ({"score": 2, "__index_level_0__": 0}, "__index_level_0__"),
        ({"Segment-ID": 4.0, "score": 2}, "Segment-ID"),
        ({"source": "1", "score": 2}, None),
        ({"id": "doc-1", "score": 2}, None),
        ({"index": 1}, None),
    ],
)
def test_what_numbers_the_segments(fields: dict, column: str | None) -> None:
    assert segment_column(fields, "index" if len(fields) == 1 else "score") == column
