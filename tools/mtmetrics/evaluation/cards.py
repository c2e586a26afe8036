"""Keeps the tables in the cards at what was measured: finds them, measures what they need, and writes them."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

from mtmetrics.artifacts.catalog import record_checksum
from mtmetrics.artifacts.files import write_atomic
from mtmetrics.errors import InputError
from mtmetrics.evaluation.card_tables import TABLES, CardTable, load_tables
from mtmetrics.evaluation.measurements import Key, Measurement, load_measurements, measure, save_measurements
from mtmetrics.evaluation.run import MetricSpec
from mtmetrics.layout import bundled_artifacts, metric_scripts
from mtmetrics.scorers.pool import ModelPool

_TABLE = re.compile(
    r"(?P<begin><!-- table: (?P<name>\S+) -->\n)(?P<text>.*?)\n?(?P<end><!-- end of table -->)", flags=re.DOTALL
)


def cards() -> list[Path]:
    """The cards of metrics and artifacts and, in a source tree, the README of the project."""
    found = [*sorted(metric_scripts().glob("*/README.md")), *sorted(bundled_artifacts().glob("*/README.md"))]
    top = metric_scripts().parent / "README.md"
    return [*found, top] if top.is_file() else found


def table_folders() -> list[Path]:
    """The folders of metrics that define tables of cards."""
    return sorted(path.parent for path in metric_scripts().glob(f"*/{TABLES}"))


def tables_in(card: str) -> dict[str, str]:
    """The tables that stand in a card: name -> text."""
    return {match["name"]: match["text"] for match in _TABLE.finditer(card)}


def with_tables(card: str, tables: Mapping[str, str]) -> str:
    """The card with other texts for its tables; those that are not named stay as they are."""

    def replaced(match: re.Match[str]) -> str:
        return f"{match['begin']}{tables[match['name']]}\n{match['end']}" if match["name"] in tables else match[0]

    return _TABLE.sub(replaced, card)


def known_tables() -> tuple[dict[str, CardTable], dict[Key, Measurement]]:
    """All tables by name, and all stored measurements."""
    tables: dict[str, CardTable] = {}
    measurements: dict[Key, Measurement] = {}
    for folder in table_folders():
        tables |= load_tables(folder)
        measurements |= load_measurements(folder)
    return tables, measurements


def write_cards(
    names: Collection[str],
    root: Path,
    pool: ModelPool,
    *,
    wrap: Callable[..., Iterable[Any]] = lambda files, **_: files,
) -> list[Path]:
    """Measures what the tables of some metrics need, stores it, and writes the tables into every card that shows them.

    What is stored after each file is kept by the next call, as long as signature and data are the same.

    Args:
        names: metrics whose tables to measure; none means all.
        root: folder of the data.
        pool: loaded models to share.
        wrap: shows the progress over the files.

    Returns:
        The cards that changed.

    Raises:
        InputError: a metric has no tables, or a file or metric cannot be used.
        ArtifactError: a model cannot be loaded.
    """
    needed = {
        folder: set[Key]().union(*(table.needs() for table in load_tables(folder).values()))
        for folder in table_folders()
    }
    unknown = sorted(set(names) - {folder.name for folder in needed})
    if unknown:
        raise InputError(
            f"--cards {unknown[0]}: has no {TABLES}; those with one are: {', '.join(folder.name for folder in needed)}"
        )
    wanted: dict[str, list[MetricSpec]] = {}
    for metric, file in sorted(
        set[Key]().union(*(keys for folder, keys in needed.items() if not names or folder.name in names))
    ):
        wanted.setdefault(file, []).append(MetricSpec.parse(metric))
    tables, measurements = known_tables()
    for new in measure(wanted, measurements, root, pool, wrap=wrap):
        measurements |= {measurement.key: measurement for measurement in new}
        # Several metrics' tables may need the same measurement; each folder holds all that its own tables need.
        for folder, keys in needed.items():
            if not keys.isdisjoint(measurement.key for measurement in new):
                save_measurements(folder, [measurements[key] for key in keys & measurements.keys()])
    texts = {name: table.render(measurements) for name, table in tables.items() if table.needs() <= measurements.keys()}
    return [card for card in cards() if _write(card, texts)]


def _write(card: Path, texts: Mapping[str, str]) -> bool:
    before = card.read_text(encoding="utf-8")
    after = with_tables(before, texts)
    if after == before:
        return False
    write_atomic(card, after)
    if card.is_relative_to(bundled_artifacts()):
        record_checksum(card)
    return True
