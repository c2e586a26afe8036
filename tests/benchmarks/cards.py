"""Writes what the cards show of the code and of measurements: ``cards.py``.

A table of results stands in a card between ``<!-- table: METRIC/NAME -->`` and
``<!-- end of table -->``. ``tables.toml`` in the folder of the metric says what each of its cells
is, ``results.json`` beside it holds what was measured.

The inputs and the results of a metric stand in its card between ``<!-- inputs -->`` and
``<!-- end of inputs -->``, and between ``<!-- outputs -->`` and ``<!-- end of outputs -->``. They
are written from the settings of the metric and from its presets.

``cards.py`` writes all of these. ``cards.py --check`` writes nothing, and fails where a card is not
up to date. ``cards.py [METRIC ...] --data-root DIR`` first measures what is missing, or was measured
with another signature or on other data. What is stored after each file is kept by the next call."""

import argparse
import dataclasses
import json
import re
import sys
import tomllib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mtmetrics.artifacts.catalog import catalog, update_catalog
from mtmetrics.artifacts.presets import load_preset, preset_names
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
from mtmetrics.scorers.metric import METRICS, MetricEntry
from mtmetrics.scorers.spec import MetricSpec
from mtmetrics.statistics.correlation import Correlation, pearson

if TYPE_CHECKING:
    from mtmetrics.integrations.metric_module import Entry

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

_SECTION = re.compile(
    r"(?P<begin><!-- (?P<name>inputs|outputs) -->\n)(?P<text>.*?)\n?"
    r"(?P<end><!-- end of (?P=name) -->)",
    flags=re.DOTALL,
)
# Option -> the key under which a preset holds its value, where that is neither the name of the
# option nor a key of the table [score].
_PRESET_KEYS = {"map": "kind", "lm_weight": "weight"}
# Tables of presets that hold no values of options.
_OTHER_TABLES = ("agreement", "bounds", "start")
_GUIDE = "../../tools/guide/python.md"

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


def sections_of(metric: MetricEntry) -> dict[str, str]:
    """Writes the sections of a metric's card that follow from its code: ``inputs``, its texts and
    options, and ``outputs``, the entries of its result."""
    # `evaluate` takes seconds to import.
    from mtmetrics.integrations.metric_module import option_entries, result_entries, text_entries

    texts = [[f"`{entry.name}`", entry.types, entry.text] for entry in text_entries(metric)]
    options = [_option_row(metric, entry) for entry in option_entries(metric)]
    results = []
    for entry in result_entries(metric):
        request = f"with `{entry.request}=True`: " if entry.request else ""
        results.append([f"`{entry.name}`", entry.types, request + entry.text])
    inputs = [
        markdown([["texts", "type", "what they are"], *texts], ()),
        "If you leave an option out, the value of the preset counts. An empty *default* means that the "
        "preset or the metric decides.\n"
        f"The guide lists the [options that every metric has]({_GUIDE}#options-of-every-metric).",
        markdown([["option", "values", "default", "what it does"], *options], ()),
    ]
    outputs = [
        markdown([["entry", "type", "what it holds"], *results], ()),
        f"The guide says more about [`ci`, `signature` and `report`]({_GUIDE}#results), and about how to "
        "compare scores.",
    ]
    return {"inputs": "\n\n".join(inputs), "outputs": "\n\n".join(outputs)}


def with_sections(card: str, sections: Mapping[str, str]) -> str:
    """The card with other texts for its sections `inputs` and `outputs`."""
    return _SECTION.sub(
        lambda match: f"{match['begin']}{sections[match['name']]}\n{match['end']}", card
    )


def measure(
    names: Collection[str],
    root: Path,
    pool: ModelPool,
    *,
    wrap: Callable[..., Iterable[Any]] = lambda files, **_: files,
) -> None:
    """Measures what the tables of some metrics (of all where none is named) need from the data
    below `root`, and stores it.

    Raises:
        InputError: a metric has no tables, or a file of the data cannot be read.
    """
    needed = {folder: _needs(load_tables(folder)) for folder in table_folders()}
    known = [folder.name for folder in needed]
    for name in names:
        if name not in known:
            raise InputError(f"{name}: has no {TABLES}; those with one are: {', '.join(known)}")
    stored = {key: row for folder in needed for key, row in load_measurements(folder).items()}
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


def outdated_cards() -> dict[Path, str]:
    """Finds the cards that differ from the code or from what was measured: card -> its text as it
    should be. A table of which a measurement is missing stays as it is.

    Raises:
        ArtifactError: definitions of tables, measurements or presets cannot be read, or a folder
            with sections is of no metric.
    """
    tables, stored = dict[str, CardTable](), dict[Key, Measurement]()
    for folder in table_folders():
        tables |= load_tables(folder)
        stored |= load_measurements(folder)
    texts = {
        name: table.render(stored)
        for name, table in tables.items()
        if table.needs() <= stored.keys()
    }
    outdated = {}
    for card in cards():
        before = card.read_text(encoding="utf-8")
        after = with_tables(before, texts)
        if _SECTION.search(after):
            after = with_sections(after, sections_of(_metric_of(card)))
        if after != before:
            outdated[card] = after
    return outdated


def write_cards() -> list[Path]:
    """Writes the cards that are not up to date, see `outdated_cards`, and returns them."""
    outdated = outdated_cards()
    for card, text in outdated.items():
        write_atomic(card, text)
        if card.is_relative_to(bundled_artifacts()):
            _record_checksum(card)
    return list(outdated)


def main(argv: Sequence[str] | None = None) -> int:
    """Measures where it is told to, and writes or checks the cards; prints those that changed, or
    that are not up to date."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "metrics", nargs="*", metavar="METRIC", help="whose tables to measure (default: all)"
    )
    text = "measure first, on data in this folder, where the file names in the tables start"
    parser.add_argument("--data-root", metavar="DIR", help=text)
    parser.add_argument(
        "--check", action="store_true", help="write nothing; fail where a card is not up to date"
    )
    add_model_options(parser)
    args = parser.parse_args(argv)
    if args.metrics and args.data_root is None:
        parser.error("METRIC says what to measure; pass --data-root DIR, too")
    if args.check and args.data_root is not None:
        parser.error("--check writes nothing; leave out --data-root")
    try:
        if args.data_root is not None:
            measure(args.metrics, Path(args.data_root), model_pool(args), wrap=progress)
        changed = list(outdated_cards()) if args.check else write_cards()
    except MTMetricsError as error:
        print(f"cards.py: {error}", file=sys.stderr)
        return 2 if isinstance(error, InputError) else 1
    for card in changed:
        print(card)
    if args.check and changed:
        print("cards.py: not up to date; run python tests/benchmarks/cards.py", file=sys.stderr)
        return 1
    return 0


def _needs(tables: Mapping[str, CardTable]) -> set[Key]:
    """The measurements that some tables need."""
    return set[Key]().union(*(table.needs() for table in tables.values()))


def _metric_of(card: Path) -> MetricEntry:
    """The metric that a card is about, by the name of its folder."""
    name = card.parent.name
    if name not in METRICS:
        raise ArtifactError(f"{card}: has inputs and outputs, but {name} is no metric")
    return METRICS[name]


def _option_row(metric: MetricEntry, entry: "Entry") -> list[str]:
    """The row of an option: its name, values, default, and text."""
    field = metric.settings_class().options().get(entry.name)
    if field is None:  # language pair and side, which are no settings of a metric
        is_needed = entry.name == "lang_pair" and metric.scorer_class().needs_pair
        return [f"`{entry.name}`", entry.types, "needed" if is_needed else "", entry.text]
    choices, text = field.metadata["choices"], entry.text
    if choices:  # the text names some of them
        text = re.sub(rf"\b({'|'.join(choices)})\b(?=[ ,)])", r"`\1`", text)
    values = ", ".join(map(_shown_value, choices)) or entry.types
    return [f"`{entry.name}`", values, _default(metric, field), text]


def _default(metric: MetricEntry, field: dataclasses.Field[Any]) -> str:
    """The default of an option, and the values of presets that say something else."""
    if field.metadata["usage"] == "MODEL":  # the card lists the models of presets
        return "the preset's"
    default = "" if field.default is None else _shown_value(field.default)
    key = field.metadata["preset"] or _PRESET_KEYS.get(field.name, field.name)
    presets: dict[str, list[str]] = {}
    for preset in preset_names(metric.name):
        settings = load_preset(metric.name, preset).settings
        tables = {name: table for name, table in settings.items() if name not in _OTHER_TABLES}
        values = dict.fromkeys(map(_shown_value, _values(tables, key)))
        presets.setdefault(" or ".join(values) or default, []).append(f"`{preset}`")
    others = [
        f"{', '.join(names)}: {value}" for value, names in presets.items() if value != default
    ]
    return "; ".join([*([default] if default else []), *others])


def _values(table: Mapping[str, Any], key: str) -> Iterator[Any]:
    """The values that stand under a key in a table or in the tables in it."""
    for name, value in table.items():
        if isinstance(value, dict):
            yield from _values(value, key)
        elif name == key:
            yield "+".join(value) if isinstance(value, list) else value


def _shown_value(value: Any) -> str:
    """A value as Python writes it, texts in double quotes."""
    written = json.dumps(value) if isinstance(value, str) else repr(value)
    return f"`{written}`"


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
    """Results that are not stored, or stored with another signature or for another content of the file."""
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
