"""Input of ``mtmetrics filter``: sentence pairs of parallel files or of one file of rows, which can be
read again and again."""

import contextlib
import dataclasses
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mtmetrics.errors import InputError
from mtmetrics.io.lines import iter_parallel, refuse_repeated_stdin
from mtmetrics.io.row_writer import Columns
from mtmetrics.io.tables import Row, needed_text_columns, open_table

if TYPE_CHECKING:
    import pyarrow


@dataclasses.dataclass(frozen=True)
class Pairs:
    """Parallel text that can be read again and again.

    Attributes:
        rows: reads it from the beginning.
        source: name of the column of sources.
        target: name of the column of their translations.
        is_named: whether the input names its columns.
        schema: the types of the columns of a Parquet file; None for other input.
    """

    rows: Callable[[], Iterator[Row]]
    source: str = "source"
    target: str = "target"
    is_named: bool = False
    schema: "pyarrow.Schema | None" = None

    def texts(self) -> Iterator[tuple[str, str]]:
        """Yields source and target of each row."""
        for row in self.rows():
            yield row.values[self.source], row.values[self.target]

    def columns(self, form: str, score_columns: Sequence[str]) -> Columns:
        """Reads the input once, and returns the columns of the output: source, target, the other
        columns of the input, and the columns of scores.

        Raises:
            InputError: the format cannot hold a value, or the input has a column of scores.
        """
        schema = self.schema if form == "parquet" else None
        columns = Columns(form, [self.source, self.target], schema)
        for row in self.rows():
            columns.add_row(row)
        refuse_columns(score_columns, columns.names)
        columns.add_floats(score_columns)
        columns.check_types()
        return columns


def refuse_columns(score_columns: Sequence[str], input_columns: Sequence[str]) -> None:
    """Raises InputError for a column of scores that the input has already. The first of
    `score_columns` holds the weighted sums; --column sets its name."""
    for place, name in enumerate(score_columns):
        if name in input_columns:
            mend = "name that of the scores with --column" if place == 0 else "rename it"
            raise InputError(f"the input has a column {name!r} already; {mend}")


@contextlib.contextmanager
def open_pairs(paths: Sequence[str]) -> Iterator[Pairs]:
    """Opens a file of rows, or a file of sources and one of their translations.

    What cannot be read twice, such as standard input, is copied to a temporary file.

    Args:
        paths: one or two files; - is standard input.

    Raises:
        InputError: a file is missing or damaged, or two files have different numbers of lines.
    """
    refuse_repeated_stdin(paths)
    with contextlib.ExitStack() as stack:
        readable_paths = [stack.enter_context(_rereadable(path)) for path in paths]
        try:
            yield _pairs(readable_paths)
        except InputError as error:
            # The user knows a copy by the name of what was copied.
            message = str(error)
            for copy, path in zip(readable_paths, paths, strict=True):
                message = message.replace(copy, "standard input" if path == "-" else path)
            if message == str(error):
                raise
            raise InputError(message) from error


def _pairs(paths: Sequence[str]) -> Pairs:
    if len(paths) == 2:
        return Pairs(lambda: _parallel_rows(*paths))
    [path] = paths
    names = [Pairs.source, Pairs.target]
    table = open_table(path, names)
    if table is None:
        return Pairs(lambda: iter(()))
    if table.has_names:
        names = needed_text_columns(table, [("source",), ("translation",)])

    def rows() -> Iterator[Row]:
        reopened_table = open_table(path, names)
        return iter(()) if reopened_table is None else reopened_table.rows(names)

    return Pairs(rows, *names, is_named=table.has_names, schema=table.schema)


def _parallel_rows(source_path: str, target_path: str) -> Iterator[Row]:
    for number, (source, target) in enumerate(iter_parallel([source_path, target_path]), 1):
        where = f"{source_path} and {target_path}, line {number}"
        yield Row(where, {"source": source, "target": target})


@contextlib.contextmanager
def _rereadable(path: str) -> Iterator[str]:
    """Copies what is no file, such as standard input or a pipe, to a file while the block runs."""
    if Path(path).is_file() or (path != "-" and not Path(path).exists()):
        yield path
        return
    with (
        tempfile.NamedTemporaryFile(suffix="".join(Path(path).suffixes)) as copy,
        contextlib.nullcontext(sys.stdin.buffer) if path == "-" else open(path, "rb") as source,
    ):
        shutil.copyfileobj(source, copy)
        copy.flush()
        yield copy.name
