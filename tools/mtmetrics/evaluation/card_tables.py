"""The tables of measured numbers in the cards: what stands in each cell, and how they are printed from stored
measurements."""

import dataclasses
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from mtmetrics.errors import ArtifactError
from mtmetrics.evaluation.correlation import Correlation
from mtmetrics.evaluation.measurements import Key, Measurement
from mtmetrics.evaluation.run import SCORE, MetricSpec
from mtmetrics.evaluation.table_styles import Cell, Marked, markdown, rounded

TABLES = "tables.toml"
_SETS = Path(__file__).parent / "card_sets.toml"
_CONTENT = {"metric", "options", "part", "turned", "data"}
_KEYS = {
    "table": _CONTENT | {"head", "columns", "rows"},
    "column": _CONTENT | {"title"},
    "row": _CONTENT | {"title", "bold", "only", "values"},
}


@dataclasses.dataclass(frozen=True)
class MeasuredCell:
    """The mean correlation of a metric over some files.

    Attributes:
        metric: the metric.
        part: its score, or a part of it.
        files: names of the files, from the root of the data.
        turned: whether the sign is turned, as for a distance.
    """

    metric: MetricSpec
    part: str
    files: tuple[str, ...]
    turned: bool

    def needs(self) -> list[Key]:
        """The measurements that it needs."""
        return [(str(self.metric), file) for file in self.files]

    def value(self, measurements: Mapping[Key, Measurement]) -> Correlation:
        """The mean; undefined where it is so for a file.

        Raises:
            KeyError: a measurement is missing.
            ArtifactError: the metric has no such part.
        """
        found = [measurements[key].pearson for key in self.needs()]
        lacking = next((parts for parts in found if self.part not in parts), None)
        if lacking is not None:
            raise ArtifactError(f"{self.metric}: no part {self.part!r}; there are: {', '.join(lacking)}")
        values = [parts[self.part] for parts in found]
        known = [value for value in values if value is not None]
        if len(known) < len(values):
            return Correlation(np.nan, "undefined for a file")
        return Correlation(float(np.mean(known)) * (-1 if self.turned else 1))


@dataclasses.dataclass(frozen=True)
class CardRow:
    """A row: its title, whether it stands out, and its cells; a number is quoted, None is blank."""

    title: str
    bold: bool
    cells: list[MeasuredCell | float | None]


@dataclasses.dataclass(frozen=True)
class CardTable:
    """A table of a card.

    Attributes:
        head: titles of the columns, the first is that of the rows' titles.
        rows: the rows.
    """

    head: list[str]
    rows: list[CardRow]

    def needs(self) -> set[Key]:
        """The measurements that it needs."""
        return {
            key for row in self.rows for cell in row.cells if isinstance(cell, MeasuredCell) for key in cell.needs()
        }

    def render(self, measurements: Mapping[Key, Measurement]) -> str:
        """The table in Markdown, without a final line end.

        Raises:
            KeyError: a measurement is missing.
            ArtifactError: a metric has no such part.
        """
        table: list[list[Cell]] = [[*self.head]]
        for row in self.rows:
            texts = [row.title, *(_text(cell, measurements) for cell in row.cells)]
            table.append([Marked(text, bold=row.bold and text != "") for text in texts])
        return markdown(table, range(1, len(self.head)))


def load_tables(folder: Path) -> dict[str, CardTable]:
    """The tables that ``tables.toml`` in a metric's folder defines, under names such as ``xmoverscore/mini``; none
    where there is no file.

    Raises:
        ArtifactError: the file cannot be read, or a key is unknown or missing.
    """
    path = folder / TABLES
    if not path.is_file():
        return {}
    try:
        definitions = tomllib.loads(path.read_text(encoding="utf-8"))
        sets = tomllib.loads(_SETS.read_text(encoding="utf-8"))
        return {
            f"{folder.name}/{name}": _table(definition, sets, f"{path}: [{name}]")
            for name, definition in definitions.items()
        }
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, KeyError) as error:
        raise ArtifactError(f"{path}: cannot be read as tables of a card ({error!r})") from error


def _table(definition: dict[str, Any], sets: Mapping[str, list[str]], where: str) -> CardTable:
    _refuse_unknown(definition, "table", where)
    columns, rows = definition["columns"], definition["rows"]
    for kind, lines in (("column", columns), ("row", rows)):
        for line in lines:
            _refuse_unknown(line, kind, where)
    own = {name: value for name, value in definition.items() if name in _CONTENT}
    found = [CardRow(row["title"], row.get("bold", False), list(_cells(own, row, columns, sets))) for row in rows]
    head = [definition["head"], *(column["title"] for column in columns)]
    uneven = next((row.title for row in found if len(row.cells) != len(columns)), None)
    if uneven is not None:
        raise ArtifactError(f"{where}: the row {uneven!r} needs {len(columns)} values")
    return CardTable(head, found)


def _cells(
    own: dict[str, Any], row: dict[str, Any], columns: list[dict[str, Any]], sets: Mapping[str, list[str]]
) -> Iterator[MeasuredCell | float | None]:
    if "values" in row:
        yield from row["values"]
        return
    for column in columns:
        if column["title"] not in row.get("only", [column["title"]]):
            yield None
            continue
        says = own | row | column
        options = own.get("options", {}) | row.get("options", {}) | column.get("options", {})
        files = tuple(
            file
            for name in ([says["data"]] if isinstance(says["data"], str) else says["data"])
            for file in sets.get(name, [name])
        )
        yield MeasuredCell(
            MetricSpec.parse(says["metric"]).having(**options),
            says.get("part", SCORE),
            files,
            says.get("turned", False),
        )


def _refuse_unknown(line: dict[str, Any], kind: str, where: str) -> None:
    unknown = sorted(set(line) - _KEYS[kind])
    if unknown:
        raise ArtifactError(
            f"{where}: unknown key {unknown[0]!r} of a {kind}; known are: {', '.join(sorted(_KEYS[kind]))}"
        )


def _text(cell: MeasuredCell | float | None, measurements: Mapping[Key, Measurement]) -> str:
    if cell is None:
        return ""
    return rounded(cell.value(measurements) if isinstance(cell, MeasuredCell) else Correlation(cell))
