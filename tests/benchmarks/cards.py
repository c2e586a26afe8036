"""Keeps the tables in the cards at what was measured: ``cards.py [METRIC ...] --data-root DIR``.

A table stands in a card between ``<!-- table: METRIC/NAME -->`` and ``<!-- end of table -->``.
``tables.toml`` in the folder of the metric says what each of its cells is, ``results.json`` beside
it holds what was measured. The script measures what is missing, or was measured with another
signature or on other data, and writes the tables into all cards that show them. What is stored
after each file is kept by the next call."""

import argparse
import dataclasses
import json
import re
import sys
import tomllib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mtmetrics.artifacts.catalog import catalog, update_catalog
from mtmetrics.cli.messages import progress
from mtmetrics.cli.options import add_model_options, model_pool
from mtmetrics.errors import ArtifactError, InputError, MTMetricsError
from mtmetrics.io.atomic import write_atomic
from mtmetrics.io.checksums import sha256_file
from mtmetrics.judgements.judged import read_judged_segments
from mtmetrics.layout import bundled_artifacts, metric_scripts
from mtmetrics.models.pool import ModelPool
from mtmetrics.reports.metric_runs import SCORE, score_together
from mtmetrics.reports.styles import Marked, correlation_text, markdown
from mtmetrics.scorers.spec import MetricSpec
from mtmetrics.statistics.correlation import Correlation, pearson

TABLES, RESULTS = "tables.toml", "results.json"
# Files that tables name together; paths start at the root of the data.
_SETS = Path(__file__).with_suffix(".toml")
_DECIMALS = 6
_CONTENT = {"metric", "options", "part", "turned", "data"}
_KEYS = {
    "table": _CONTENT | {"head", "columns", "rows"},
    "column": _CONTENT | {"title"},
    "row": _CONTENT | {"title", "bold", "only", "values"},
}
_TABLE = re.compile(
    r"(?P<begin><!-- table: (?P<name>\S+/\S+) -->\n)(?P<text>.*?)\n?(?P<end><!-- end of table -->)",
    flags=re.DOTALL,
)

# A metric and a file, from the root of the data.
Key = tuple[str, str]


@dataclasses.dataclass(frozen=True)
class Measurement:
    """How a metric agrees with the judgements of a file: score and parts -> Pearson's r, None where
    it is not defined, with the first 16 digits of the file's checksum and the signature, which say
    whether the number still holds."""

    metric: str
    file: str
    sha256: str
    segments: int
    pearson: dict[str, float | None]
    signature: str


@dataclasses.dataclass(frozen=True)
class MeasuredCell:
    """The mean correlation of a metric's score or part over some files; the sign is turned for a
    distance."""

    metric: MetricSpec
    part: str
    files: tuple[str, ...]
    turned: bool

    def text(self, stored: Mapping[Key, Measurement]) -> str:
        """The mean; ``nan`` where it is undefined for a file."""
        found = [stored[str(self.metric), file].pearson for file in self.files]
        lacking = next((parts for parts in found if self.part not in parts), None)
        if lacking is not None:
            raise ArtifactError(
                f"{self.metric}: no part {self.part!r}; there are: {', '.join(lacking)}"
            )
        values = [np.nan if parts[self.part] is None else parts[self.part] for parts in found]
        value = float(np.mean(values)) * (-1 if self.turned else 1)
        return correlation_text(
            Correlation(value, "undefined for a file" if np.isnan(value) else None)
        )


@dataclasses.dataclass(frozen=True)
class CardTable:
    """The titles of the columns, and rows of a title, whether it is bold, and cells; a number is
    quoted, None blank."""

    head: list[str]
    rows: list[tuple[str, bool, list[MeasuredCell | float | None]]]

    def needs(self) -> set[Key]:
        """The measurements that it needs."""
        cells = [cell for _, _, row in self.rows for cell in row if isinstance(cell, MeasuredCell)]
        return {(str(cell.metric), file) for cell in cells for file in cell.files}

    def render(self, stored: Mapping[Key, Measurement]) -> str:
        """The table in Markdown."""

        def text(cell: MeasuredCell | float | None) -> str:
            if isinstance(cell, MeasuredCell):
                return cell.text(stored)
            return "" if cell is None else correlation_text(Correlation(cell))

        rows = [(bold, [title, *map(text, cells)]) for title, bold, cells in self.rows]
        marked = [[Marked(shown, bold=bold and shown != "") for shown in row] for bold, row in rows]
        return markdown([self.head, *marked], range(1, len(self.head)))


def cards() -> list[Path]:
    """The cards of metrics and artifacts, and the README of the project."""
    found = [
        *sorted(metric_scripts().glob("*/README.md")),
        *sorted(bundled_artifacts().glob("*/README.md")),
    ]
    return [*found, metric_scripts().parent / "README.md"]


def table_folders() -> list[Path]:
    """The folders of metrics that define tables of cards."""
    return sorted(path.parent for path in metric_scripts().glob(f"*/{TABLES}"))


def tables_in(card: str) -> dict[str, str]:
    """The tables that stand in a card: name -> text."""
    return {match["name"]: match["text"] for match in _TABLE.finditer(card)}


def with_tables(card: str, tables: Mapping[str, str]) -> str:
    """The card with other texts for its tables; those that are not named stay as they are."""

    def replaced(match: re.Match[str]) -> str:
        return (
            f"{match['begin']}{tables[match['name']]}\n{match['end']}"
            if match["name"] in tables
            else match[0]
        )

    return _TABLE.sub(replaced, card)


def load_tables(folder: Path) -> dict[str, CardTable]:
    """The tables that a metric's folder defines, under names such as ``xmoverscore/mini``."""
    path = folder / TABLES
    try:
        sets = tomllib.loads(_SETS.read_text(encoding="utf-8"))
        definitions = tomllib.loads(path.read_text(encoding="utf-8"))
        tables = {
            name: _table(definition, sets, f"{path}: [{name}]")
            for name, definition in definitions.items()
        }
        return {f"{folder.name}/{name}": table for name, table in tables.items()}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, KeyError) as error:
        raise ArtifactError(f"{path}: cannot be read as tables of a card ({error!r})") from error


def load_measurements(folder: Path) -> dict[Key, Measurement]:
    """The measurements that are stored in a folder; none where there is no file."""
    path = folder / RESULTS
    if not path.is_file():
        return {}
    try:
        found = [Measurement(**row) for row in json.loads(path.read_text(encoding="utf-8"))]
    except (OSError, ValueError, TypeError) as error:
        raise ArtifactError(f"{path}: cannot be read as measurements ({error})") from error
    return {(row.metric, row.file): row for row in found}


def save_measurements(folder: Path, stored: Mapping[Key, Measurement]) -> None:
    """Writes one measurement per line, sorted."""
    rows = [
        json.dumps(dataclasses.asdict(row), ensure_ascii=False) for _, row in sorted(stored.items())
    ]
    write_atomic(folder / RESULTS, "[\n" + ",\n".join(rows) + "\n]\n")


def write_cards(
    names: Collection[str],
    root: Path,
    pool: ModelPool,
    *,
    wrap: Callable[..., Iterable[Any]] = lambda files, **_: files,
) -> list[Path]:
    """Measures what the tables of some metrics (of all where none is named) need from the data
    below `root`, stores it, writes the tables into every card that shows them, and returns the
    cards that changed."""
    tables = {folder: load_tables(folder) for folder in table_folders()}
    needed = {
        folder: set[Key]().union(*(table.needs() for table in own.values()))
        for folder, own in tables.items()
    }
    known = [folder.name for folder in tables]
    for name in names:
        if name not in known:
            raise InputError(f"{name}: has no {TABLES}; those with one are: {', '.join(known)}")
    stored = {key: row for folder in tables for key, row in load_measurements(folder).items()}
    wanted: dict[str, list[MetricSpec]] = {}
    asked = [keys for folder, keys in needed.items() if not names or folder.name in names]
    for metric, file in sorted(set[Key]().union(*asked)):
        wanted.setdefault(file, []).append(MetricSpec.parse(metric))
    for file in wrap(sorted(wanted), desc="measure", unit="file"):
        new = _measured(wanted[file], root, file, stored, pool)
        stored |= new
        # Several metrics' tables may need the same measurement; each folder holds all that its own
        # tables need.
        for folder, keys in needed.items():
            if not keys.isdisjoint(new):
                save_measurements(folder, {key: stored[key] for key in keys & stored.keys()})
    all_tables = (item for own in tables.values() for item in own.items())
    texts = {
        name: table.render(stored) for name, table in all_tables if table.needs() <= stored.keys()
    }
    return [card for card in cards() if _write(card, texts)]


def main(argv: Sequence[str] | None = None) -> int:
    """Measures and writes; prints the cards that changed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "metrics", nargs="*", metavar="METRIC", help="whose tables to measure (default: all)"
    )
    text = "the folder that the file names in the tables start at"
    parser.add_argument("--data-root", required=True, metavar="DIR", help=text)
    add_model_options(parser)
    args = parser.parse_args(argv)
    try:
        changed = write_cards(args.metrics, Path(args.data_root), model_pool(args), wrap=progress)
    except MTMetricsError as error:
        print(f"cards.py: {error}", file=sys.stderr)
        return 2 if isinstance(error, InputError) else 1
    for card in changed:
        print(card)
    return 0


def _table(definition: dict[str, Any], sets: Mapping[str, list[str]], where: str) -> CardTable:
    columns, rows = definition["columns"], definition["rows"]
    for kind, lines in (("table", [definition]), ("column", columns), ("row", rows)):
        for key in sorted({key for line in lines for key in line} - _KEYS[kind]):
            known = ", ".join(sorted(_KEYS[kind]))
            raise ArtifactError(f"{where}: unknown key {key!r} of a {kind}; known are: {known}")
    own = {name: value for name, value in definition.items() if name in _CONTENT}
    found = []
    for row in rows:
        cells = row["values"] if "values" in row else list(_cells(own, row, columns, sets))
        if len(cells) != len(columns):
            raise ArtifactError(f"{where}: the row {row['title']!r} needs {len(columns)} values")
        found.append((row["title"], row.get("bold", False), cells))
    return CardTable([definition["head"], *(column["title"] for column in columns)], found)


def _cells(
    own: dict[str, Any],
    row: dict[str, Any],
    columns: list[dict[str, Any]],
    sets: Mapping[str, list[str]],
) -> Iterator[MeasuredCell | None]:
    for column in columns:
        if column["title"] not in row.get("only", [column["title"]]):
            yield None
            continue
        says = own | row | column
        options = own.get("options", {}) | row.get("options", {}) | column.get("options", {})
        names = [says["data"]] if isinstance(says["data"], str) else says["data"]
        files = tuple(file for name in names for file in sets.get(name, [name]))
        metric = MetricSpec.parse(says["metric"]).having(**options)
        yield MeasuredCell(metric, says.get("part", SCORE), files, says.get("turned", False))


def _measured(
    specs: Iterable[MetricSpec],
    root: Path,
    file: str,
    stored: Mapping[Key, Measurement],
    pool: ModelPool,
) -> dict[Key, Measurement]:
    """What is not stored, or stored with another signature or for another content of the file."""
    segments = read_judged_segments(root / file)
    checksum = sha256_file(root / file)[:16]
    missing = {}
    for name, scorer in ((str(spec), spec.load(pool, segments.lang_pair)) for spec in specs):
        old = stored.get((name, file))
        if old is None or (old.signature, old.sha256) != (scorer.signature, checksum):
            missing[name] = scorer
    human = segments.judgements["human"]
    found = {}
    for name, [result] in zip(
        missing, score_together(list(missing.values()), segments), strict=True
    ):
        parts = {SCORE: result.segments} | result.parts
        known = {
            part: pearson(segments.take(scores), human).known for part, scores in parts.items()
        }
        values = {
            part: None if value is None else round(value, _DECIMALS)
            for part, value in known.items()
        }
        found[name, file] = Measurement(name, file, checksum, len(human), values, result.signature)
    return found


def _write(card: Path, texts: Mapping[str, str]) -> bool:
    before = card.read_text(encoding="utf-8")
    after = with_tables(before, texts)
    if after == before:
        return False
    write_atomic(card, after)
    if card.is_relative_to(bundled_artifacts()):
        _record_checksum(card)
    return True


def _record_checksum(card: Path) -> None:
    """Puts the checksum of a card into ``catalog.toml``, which must list it."""
    name, _, file = card.relative_to(bundled_artifacts()).as_posix().partition("/")
    entry = catalog()[name]
    if file not in entry.files:
        raise ArtifactError(f"{bundled_artifacts() / 'catalog.toml'}: does not list {name}/{file}")
    files = entry.files | {file: sha256_file(card)}
    update_catalog(bundled_artifacts() / "catalog.toml", dataclasses.replace(entry, files=files))


if __name__ == "__main__":
    sys.exit(main())
