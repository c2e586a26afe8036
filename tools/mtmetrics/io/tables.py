"""Reads rows from TSV, CSV, JSON Lines or Parquet.

Every row is a `Row`. A *column* is a name in a file, such as ``mt``. A *field* is the meaning of a
column, such as ``translation``. Two dictionaries of `mtmetrics.io.columns` list the columns that may
hold a field:

- `COLUMN_NAMES` for source, translation and reference; upper and lower case do not matter.
- `FIELDS` for all fields of rows with human judgements; names must match exactly.

Messages about a row call a column a field, too, since the row may be a JSON object with fields.
"""

import contextlib
import dataclasses
import itertools
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from mtmetrics.checks import is_finite_number, is_number, language_pair, warn
from mtmetrics.errors import InputError
from mtmetrics.io.cells import Dialect, NumberedCells, iter_cells, open_cells
from mtmetrics.io.columns import (
    COLUMN_NAMES,
    FIELDS,
    are_different_words,
    column_names,
    is_header,
    look_like_names,
)
from mtmetrics.io.file_kinds import LineContent, lowercase_unpacked_name
from mtmetrics.io.lines import (
    READ_ERRORS,
    iter_lines,
    open_bytes,
    parse_json_array,
    parse_json_object,
    shown_json,
)

if TYPE_CHECKING:
    import pyarrow.parquet


class Row(NamedTuple):
    """A row of a file.

    Attributes:
        where: file and number of the row, for messages.
        values: column -> value, for all columns of the file. Methods that take a `field` look for
            its columns in `FIELDS`.
    """

    where: str
    values: Mapping[str, Any]

    def column_of(self, field: str) -> str | None:
        """Returns the column that holds a field; None if the row lacks the field."""
        for column in FIELDS[field]:
            if column in self.values:
                return column
        return None

    def is_null(self, field: str) -> bool:
        """Whether the row has a field, and its value is null."""
        column = self.column_of(field)
        return column is not None and self.values[column] is None

    def required_column(self, field: str) -> str:
        """Returns the column that holds a field.

        Raises:
            InputError: the row lacks the field.
        """
        column = self.column_of(field)
        if column is None:
            raise self.missing_error(FIELDS[field])
        return column

    def missing_error(self, columns: tuple[str, ...]) -> InputError:
        """Makes the error for a row that has none of these columns."""
        needed = " or ".join(map(repr, columns))
        present = ", ".join(map(repr, self.values)) or "no field at all"
        return InputError(f"{self.where}: no field {needed}; the row has: {present}")

    def text(self, column: str) -> str:
        """Returns the string in a column.

        Raises:
            InputError: the value is not a string.
        """
        value = self.values[column]
        if not isinstance(value, str):
            raise self._type_error(column, "a string")
        return value

    def text_or_integer(self, column: str) -> str:
        """Returns the string or whole number in a column, as a string.

        Raises:
            InputError: the value is neither.
        """
        value = self.values[column]
        if isinstance(value, int) and is_number(value):  # a bool is no number
            return str(value)
        return self.text(column)

    def number(self, column: str) -> float:
        """Returns the finite number in a column.

        Raises:
            InputError: the value is not a finite number.
        """
        value = self.values[column]
        if not is_finite_number(value):
            raise self._type_error(column, "a finite number")
        return float(value)

    def outputs(self, systems: Collection[str] = ()) -> "Row":
        """Returns the object in the column ``outputs`` as a row of its own, whose columns are the
        names of systems, and whose values are their translations.

        Args:
            systems: the systems that the object must have; () for any.

        Raises:
            InputError: the column is missing, it holds no object, or the object has other systems
                than these.
        """
        outputs = self.values.get("outputs")
        where = f"{self.where}, field 'outputs'"
        if not isinstance(outputs, dict) or (systems and outputs.keys() != set(systems)):
            of_systems = f" of {', '.join(systems)}, as in the first row" if systems else ""
            raise InputError(
                f"{where}: an object, system name -> translation{of_systems}, is needed"
            )
        return Row(where, outputs)

    def checked_pair(self, pair: str) -> str:
        """Checks the language pair of the row, its own or one that the user passes for rows without
        one, and returns it unchanged.

        Raises:
            InputError: `pair` is not a language pair; the message names the row and its field ``lp``.
        """
        try:
            language_pair(pair)
        except InputError as error:
            raise InputError(f"{self.where}, field 'lp': {error}") from None
        return pair

    def _type_error(self, column: str, needed: str) -> InputError:
        """Makes the error for a value of the wrong type."""
        value = shown_json(self.values[column])
        return InputError(f"{self.where}, field {column!r}: {needed} is needed, got {value}")


def jsonl_rows(path: str | Path) -> Iterator[Row]:
    """Yields the rows of a JSON Lines file: one object per line; blank lines are skipped.

    A file whose name ends in ``.json`` may hold an array of objects instead.

    Raises:
        InputError: a line or item is not an object, or `iter_lines` cannot read the file.
    """
    lines: Iterable[str] = iter_lines(path)
    if _may_be_array(path):
        lines = list(lines)
        text = "\n".join(lines)
        if text.lstrip().startswith("["):
            for item_number, item in enumerate(parse_json_array(text, str(path)), 1):
                yield Row(f"{path}, item {item_number}", item)
            return
    for line_number, line in enumerate(lines, 1):
        if line.strip():
            where = f"{path}, line {line_number}"
            yield Row(where, parse_json_object(line, where))


def _may_be_array(path: str | Path) -> bool:
    """Whether a file of JSON may hold an array instead of JSON Lines."""
    return lowercase_unpacked_name(path).endswith(".json")


@dataclasses.dataclass(frozen=True)
class Table:
    """An opened file of rows. Call `rows` or `texts` once: a second call may leave out rows.

    Attributes:
        path: the file.
        names: names of the columns, in their order. For JSON Lines, the keys of the first object
            that have a value other than null.
        has_names: whether `names` come from the file. Otherwise the file has no header, and
            `open_table` chose them.
        _rows: the rows with all their columns.
        schema: the types of the columns of Parquet; None for other files.
    """

    path: str | Path
    names: list[str]
    has_names: bool
    _rows: Iterator[Row]
    schema: "pyarrow.Schema | None" = None

    def rows(self, text_columns: Sequence[str] = ()) -> Iterator[Row]:
        """Yields the rows with all their columns.

        Args:
            text_columns: columns that must hold a string.

        Raises:
            InputError: a row is damaged, or lacks one of `text_columns`, or has no string there.
                The message names file and line.
        """
        for row in self._rows:
            for column in text_columns:
                if column not in row.values:
                    raise row.missing_error((column,))
                text = row.values[column]
                if not isinstance(text, str):
                    raise InputError(
                        f"{row.where}: {column!r} must be a string, got {shown_json(text)}"
                    )
                if "\0" in text:
                    raise InputError(
                        f"{row.where}: {column!r} holds a NUL character, which a text cannot have"
                    )
            yield row

    def texts(self, columns: Sequence[str]) -> Iterator[list[str]]:
        """Yields for each row the strings in some columns. Raises the same errors as `rows`."""
        table = self
        if self.schema is not None and {*columns} <= {*self.names}:
            # Parquet stores columns by themselves, so the others need not be read.
            table = dataclasses.replace(self, _rows=_parquet_rows(self.path, columns))
        for row in table.rows(columns):
            yield [row.values[name] for name in columns]


def open_table(
    path: str | Path, default_names: Sequence[str] = ("source", "translation")
) -> Table | None:
    """Opens a file of rows.

    Args:
        path: Parquet, JSON Lines, CSV with a header, or TSV with or without one. All but Parquet
            may be compressed (gzip, bzip2 or xz, known by their content). ``-`` reads TSV from
            standard input.
        default_names: names for the columns of a table without a header, from the first on. If
            there are more columns, the others are named by their position, such as ``column3``.

    Returns:
        The table. None if a TSV, CSV or JSON Lines file is empty; an empty Parquet file still has
        columns, so it gives a table without rows.

    Raises:
        InputError: in one of these cases:

            - The file is missing, damaged or no table.
            - Two columns have the same name.
            - Only one cell of the first line is a usual name of a column, so the line may be a
              header or a row.
            - The file has no header and fewer than two columns.
    """
    if _is_parquet(path):
        return _table_of_parquet(path)
    if is_json(path):
        return _table_of_objects(path)
    return _table_of_cells(path, default_names)


def _table_of_parquet(path: str | Path) -> Table:
    schema = _parquet_schema(path)
    return Table(
        path,
        names=schema.names,
        has_names=True,
        _rows=_parquet_rows(path),
        schema=schema,
    )


def _table_of_objects(path: str | Path) -> Table | None:
    rows = jsonl_rows(path)
    first = next(rows, None)
    if first is None:
        return None
    return Table(
        path,
        names=[name for name, value in first.values.items() if value is not None],
        has_names=True,
        _rows=itertools.chain([first], rows),
    )


def _table_of_cells(path: str | Path, default_names: Sequence[str]) -> Table | None:
    """Opens TSV or CSV."""
    has_table_suffix = lowercase_unpacked_name(path).endswith((".csv", ".tsv"))
    # With other suffixes, content of another format is refused.
    content: LineContent = "any" if has_table_suffix else "cells"
    dialect, numbered_cells = open_cells(path, iter_lines(path, content))
    first_row = next((row for row in numbered_cells if row[1]), None)
    if first_row is None:
        return None
    _, first_cells = first_row
    if dialect is Dialect.TABS and not is_header(path, first_cells):
        return _table_without_header(path, first_row, numbered_cells, default_names)
    header = header_names(path, first_cells)
    return Table(
        path,
        names=header,
        has_names=True,
        _rows=named_rows(path, header, numbered_cells),
    )


def _table_without_header(
    path: str | Path,
    first_row: NumberedCells,
    numbered_cells: Iterator[NumberedCells],
    default_names: Sequence[str],
) -> Table:
    """Opens TSV without a header. Warns if the first row looks like names of columns.

    Args:
        path: the file.
        first_row: the first row that is not blank.
        numbered_cells: the rows after it.
        default_names: names for the columns, see `open_table`.

    Raises:
        InputError: the first line has fewer than two cells.
    """
    last_line_number, first_cells = first_row
    first_line_number = last_line_number - sum(cell.count("\n") for cell in first_cells)
    # A blank line at the beginning counts as line 1, with one empty column.
    if first_line_number > 1 or len(first_cells) < 2:
        raise InputError(
            f"{path}, line 1: 1 column(s), but {' TAB '.join(default_names)} are needed"
        )
    names = [*default_names[: len(first_cells)]]
    names += [f"column{number}" for number in range(len(names) + 1, len(first_cells) + 1)]
    first_rows = [first_row]
    if are_different_words(first_cells):
        first_rows += itertools.islice(numbered_cells, 1)
        _, next_cells = first_rows[-1]  # the first cells once more if there is no second row
        if look_like_names(first_cells, next_cells):
            advice = "if it names the columns, call them source and translation (or reference)"
            warn(f"{path}, line 1: {' TAB '.join(first_cells)!r} is read as texts; {advice}")
    return Table(
        path,
        names=names,
        has_names=False,
        _rows=_unnamed_rows(path, names, itertools.chain(first_rows, numbered_cells)),
    )


def header_names(path: str | Path, cells: Sequence[str]) -> list[str]:
    """Returns the names of the columns in a header. An empty cell gets a name by its position, such
    as ``column3``.

    Raises:
        InputError: two columns have the same name.
    """
    names = [cell.strip() or f"column{number}" for number, cell in enumerate(cells, 1)]
    _refuse_repeated_names(f"{path}, line 1", names)
    return names


def _refuse_repeated_names(where: str, names: Sequence[str]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"{where}: the column {name!r} stands there twice")


def named_rows(
    path: str | Path, header: Sequence[str], numbered_cells: Iterable[NumberedCells]
) -> Iterator[Row]:
    """Yields the rows below a header.

    In a table of several columns blank lines are skipped. In a table of one column a blank line may
    be an empty value, so it is refused.

    Args:
        path: the file, for messages.
        header: names of the columns.
        numbered_cells: the rows below the header, each with the number of the line where it ends.

    Raises:
        InputError: a row has more or fewer cells than the header, or a line in a table of one
            column is blank.
    """
    for last_line_number, cells in numbered_cells:
        if not cells and len(header) > 1:
            continue
        where = f"{path}, line {last_line_number}"
        if len(cells) != len(header):
            raise InputError(
                f"{where}: {len(cells)} field(s), but the header has {len(header)}: "
                f"{', '.join(header)}"
            )
        yield Row(where, dict(zip(header, cells, strict=True)))


def _unnamed_rows(
    path: str | Path, names: Sequence[str], numbered_cells: Iterable[NumberedCells]
) -> Iterator[Row]:
    """Yields the rows of a table without a header.

    Args:
        path: the file, for messages.
        names: names of the columns.
        numbered_cells: all rows, each with the number of the line where it ends.

    Raises:
        InputError: a row has more or fewer cells than the first one.
    """
    for last_line_number, cells in numbered_cells:
        where = f"{path}, line {last_line_number}"
        if len(cells) != len(names):
            # A blank line has no cells, but looks like one empty cell.
            cell_count = max(1, len(cells))
            raise InputError(f"{where}: {cell_count} column(s), but line 1 has {len(names)}")
        yield Row(where, dict(zip(names, cells, strict=True)))


def _is_parquet(path: str | Path) -> bool:
    return str(path).lower().endswith(".parquet")


def is_json(path: str | Path) -> bool:
    """Whether the name of a file, without the suffix of a compressed file, ends in ``.jsonl`` or
    ``.json``."""
    return lowercase_unpacked_name(path).endswith((".jsonl", ".json"))


@contextlib.contextmanager
def _opened_parquet(path: str | Path) -> "Iterator[pyarrow.parquet.ParquetFile]":
    import pyarrow
    import pyarrow.parquet

    if not Path(path).is_file():
        raise InputError(f"{path}: no such file")
    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            yield file
    except (OSError, UnicodeDecodeError, pyarrow.ArrowException) as error:
        raise InputError(
            f"{path}: cannot be read as Parquet ({str(error).splitlines()[0]})"
        ) from error


def _parquet_schema(path: str | Path) -> "pyarrow.Schema":
    with _opened_parquet(path) as file:
        schema = file.schema_arrow.remove_metadata()
    _refuse_repeated_names(str(path), schema.names)
    return schema


def _parquet_rows(path: str | Path, columns: Sequence[str] | None = None) -> Iterator[Row]:
    """Yields rows with these columns, or with all. Reads a thousand at a time."""
    read_columns = None if columns is None else list(columns)
    row_number = 0
    with _opened_parquet(path) as file:
        for batch in file.iter_batches(batch_size=1000, columns=read_columns):
            for row in batch.to_pylist():
                row_number += 1
                yield Row(f"{path}, row {row_number}", row)


def column_of_text_field(table: Table) -> dict[str, str]:
    """Finds which columns of a table hold the translation, and the source, the reference or both.

    `COLUMN_NAMES` has the names that these columns may have. Without a header, the order of the
    columns is source, translation, reference.

    Args:
        table: the table, opened with the keys of `COLUMN_NAMES` as default names.

    Returns:
        Field -> column, for source, translation and reference. In a table of two columns without a
        header, the first column may hold the source or the reference: both fields have it.

    Raises:
        InputError: a column is missing, or two columns hold the same field.
    """
    if table.has_names:
        # Only for its error: a translation is needed, and a source or a reference.
        needed_text_columns(table, [("translation",), ("source", "reference")])
        return column_names(table.path, table.names)
    if len(table.names) == 2:
        return {"source": "source", "translation": "translation", "reference": "source"}
    if len(table.names) == 3:
        return {name: name for name in table.names}
    raise InputError(
        f"{table.path}, line 1: {len(table.names)} column(s), but source TAB translation TAB "
        "reference, or source (or reference) TAB translation are needed, or a header row that "
        "names the columns"
    )


def needed_text_columns(table: Table, needed: Sequence[Sequence[str]]) -> list[str]:
    """Finds the text columns that a command needs, in a table with a header.

    Args:
        table: the table.
        needed: for each needed text the fields of `COLUMN_NAMES` that may serve as this text, the
            preferred one first; such as ``[("translation",), ("reference", "source")]``.

    Returns:
        For each needed text the name of its column.

    Raises:
        InputError: the table has no field that may serve as one of the texts, or two columns hold
            the same field.
    """
    column_of_field = column_names(table.path, table.names)
    columns = []
    for fields in needed:
        present_fields = [field for field in fields if field in column_of_field]
        if not present_fields:
            readable = "; ".join(
                f"{field} ({', '.join(synonyms)})" for field, synonyms in COLUMN_NAMES.items()
            )
            raise InputError(
                f"{table.path}: no {' or '.join(fields)}; the first row has "
                f"{', '.join(table.names)}; what is read is {readable}"
            )
        columns.append(column_of_field[present_fields[0]])
    return columns


def max_row_count(path: str | Path) -> int | None:
    """Returns an upper bound of the number of rows: the rows of a Parquet file, the lines of another
    file.

    Returns:
        The number; None for a pipe, for ``.json``, which may hold an array, and for a file that
        cannot be read. Whoever reads the rows gets the error then.
    """
    try:
        if not stat.S_ISREG(Path(path).stat().st_mode) or _may_be_array(path):
            return None
        if _is_parquet(path):
            from pyarrow import parquet

            row_count: int = parquet.read_metadata(path).num_rows
            return row_count
        with open_bytes(path) as stream:
            return sum(1 for _ in stream)
    except (*READ_ERRORS, ValueError):  # InputError and pyarrow.ArrowInvalid are ValueErrors
        return None


def word_pair_rows(path: str | Path) -> Iterator[Row]:
    """Yields the rows of a bilingual word list, whose cells stand between tabs. Their columns are
    ``source`` and ``target`` (the translation), and ``origin`` (the collection that a pair comes
    from) if a line has a third cell.

    Without a header, cells after the third one are ignored. With a header the columns may have
    another order; the header names source and translation as in `COLUMN_NAMES`. A row lacks the
    columns for which its line has no cells.

    Raises:
        InputError: a line has fewer than two cells, as a blank line has, or `iter_lines` cannot read
            the file.
    """
    names = ["source", "target", "origin"]
    for line_number, cells in iter_cells(path, iter_lines(path), Dialect.TABS):
        where = f"{path}, line {line_number}"
        if len(cells) < 2:
            raise InputError(f"{where}: 1 column(s), but word TAB translation are needed")
        header = _word_pair_header(path, cells) if line_number == 1 else None
        if header is None:
            yield Row(where, dict(zip(names, cells, strict=False)))
        else:
            names = header


def _word_pair_header(path: str | Path, cells: Sequence[str]) -> list[str] | None:
    """Returns the columns that a header of a bilingual word list names, with ``source`` and
    ``target`` under these names; None if the cells are not a header."""
    column_of_field = column_names(path, cells)
    if not {"source", "translation"} <= column_of_field.keys():
        return None
    renamed = {column_of_field["source"]: "source", column_of_field["translation"]: "target"}
    return [renamed.get(cell, cell.strip().lower()) for cell in cells]


def read_word_pairs(path: str | Path) -> list[tuple[str, str]]:
    """Reads a bilingual word list as pairs of a word and its translation; see `word_pair_rows`.

    Raises:
        InputError: the list is empty, a word or its translation is blank, or `word_pair_rows`
            raises it.
    """
    pairs = []
    for where, values in word_pair_rows(path):
        word = values.get("source", "").strip()
        translation = values.get("target", "").strip()
        if not word or not translation:
            raise InputError(
                f"{where}: a word and its translation are needed; one of them is blank"
            )
        pairs.append((word, translation))
    if not pairs:
        raise InputError(f"{path}: empty; there are no word pairs")
    return pairs
