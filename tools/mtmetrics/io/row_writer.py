"""Rows out, as tab- or comma-separated cells, JSON Lines or Parquet."""

import csv
import itertools
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import IO, Any

from mtmetrics.errors import InputError, MTMetricsError
from mtmetrics.io.atomic import atomic_text
from mtmetrics.io.lines import json_line

_ROWS_AT_ONCE = 10_000


class RowWriter:
    """Writes rows to an open stream, as they arrive.

    Args:
        stream: of bytes for Parquet, else of text.
        form: ``tsv``, ``csv``, ``jsonl`` or ``parquet``.
        header: whether cells stand below the names of the first row.
    """

    def __init__(self, stream: IO[Any], form: str, *, header: bool = True) -> None:
        self._stream, self._form, self._header = stream, form, header
        self._parquet: Any = None

    def write(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Writes rows; in cells, None is an empty one.

        Raises:
            InputError: a cell holds what TSV cannot.
            MTMetricsError: the rows do not fit into one Parquet table.
        """
        if self._form == "parquet":
            self._write_parquet(iter(rows))
        elif self._form == "jsonl":
            self._stream.writelines(map(json_line, rows))
        else:
            write_cells = csv.writer(self._stream, lineterminator="\n").writerow if self._form == "csv" else self._tabs
            for row in rows:
                if self._header:
                    write_cells(list(row))
                    self._header = False
                write_cells(["" if value is None else str(value) for value in row.values()])

    def describe(self, key: str, text: str) -> None:
        """Adds to the metadata of a Parquet file that has a row."""
        self._parquet.add_key_value_metadata({key: text})

    def close(self) -> None:
        """Ends a Parquet file; the stream stays open."""
        if self._parquet is not None:
            self._parquet.close()

    def _tabs(self, cells: list[str]) -> None:
        for cell in cells:
            if "\t" in cell or "\n" in cell:
                what = "holds a tab or a line break, which TSV cannot; write .jsonl or .parquet"
                raise InputError(f"{cell[:60]!r} {what}")
        self._stream.write("\t".join(cells) + "\n")

    def _write_parquet(self, rows: Iterable[Mapping[str, Any]]) -> None:
        import pyarrow
        from pyarrow import parquet

        while (block := list(itertools.islice(rows, _ROWS_AT_ONCE))) or self._parquet is None:
            try:
                table = pyarrow.Table.from_pylist(block, schema=self._parquet and self._parquet.schema)
            except pyarrow.ArrowException as error:
                problem = f"the columns do not fit into one Parquet table ({error})"
                raise MTMetricsError(f"{problem}; write .jsonl") from error
            if self._parquet is None:
                self._parquet = parquet.ParquetWriter(self._stream, table.schema)
            self._parquet.write_table(table)


def write_rows(path: str | Path, rows: Iterable[Mapping[str, Any]], form: str = "jsonl") -> None:
    """Writes rows to a file of text, compressed where its name ends in .gz, that appears when all are written."""
    with atomic_text(path) as stream:
        RowWriter(stream, form).write(rows)
