"""``mtmetrics score``: scores translations, and prints results while they arrive, or a table for
people."""

import argparse
import contextlib
import dataclasses
import functools
import heapq
import itertools
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mtmetrics.cli import options
from mtmetrics.cli.output import FORMATS, check_target, opened, pick_format, rounded
from mtmetrics.cli.ray import add_engine_options
from mtmetrics.cli.ray import score as score_on_engine
from mtmetrics.cli.rows import metric_rows
from mtmetrics.errors import InputError
from mtmetrics.io.row_writer import RowWriter
from mtmetrics.io.score_rows import ScoreRow
from mtmetrics.scorers.side import Column, Side

if TYPE_CHECKING:
    from mtmetrics.scorers.base import Scorer
    from mtmetrics.scorers.batch import Batch
    from mtmetrics.scorers.results import MetricResult

    Results = list[list[MetricResult]]  # for each metric one per system
    Summaries = Mapping[
        str, list[dict[str, Any]]
    ]  # metric -> for each system its mean score, signature and so on

_SUMMARIES = ("table", "markdown")
_LOWEST = 10

_UNUSUAL = {
    "blank": "blank",
    "truncated": "cut",
    "identical": "untranslated",
    "looping": "looping",
    "script": "other script",
    "language": "other language",
    "length": "odd length",
}


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Scores translations with one or several metrics: parallel files (-s or -r, and -t), or "
        "one FILE of rows. On a terminal it prints a table, else JSON. Memory does not grow "
        "with the input, but for JSON."
    )
    options.add_row_options(parser)
    options.add_metric_options(parser, several=True)
    text = "output format (default: as --out ends, else table on a terminal and json elsewhere)"
    output = options.add_output_options(parser, FORMATS, text=text)
    output.add_argument(
        "--out",
        metavar="FILE",
        help="write there instead of to standard output; appears when all is scored",
    )
    output.add_argument(
        "--parts",
        action="store_true",
        help="also print the parts of the scores; in tables, their means",
    )
    output.add_argument(
        "--ci",
        action="store_true",
        help="95 %% bootstrap interval of the system score (1,000 resamples of the segments)",
    )
    output.add_argument(
        "--degenerate",
        choices=("keep", "floor", "null"),
        help=(
            "of output that is no translation (copies of the source, loops, another language, odd "
            "lengths): keep the score, give the floor score, or leave it out of the mean (null); "
            "rows of segments then say what is unusual"
        ),
    )
    output.add_argument(
        "--segments",
        action="store_true",
        help=(
            f"below the table, the {_LOWEST} lowest-scored segments of each system with their texts"
        ),
    )
    add_engine_options(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    if args.engine is not None:
        score_on_engine(args)
        return
    form = pick_format(args.format, args.out)
    if args.segments and form not in _SUMMARIES:
        raise InputError(f"--segments stands below a table; pass --format table, not {form}")
    specs = options.metric_specs(args)
    loaders = [options.loader_options(spec, args) for spec in specs.values()]
    names, columns, rows, count, sides = metric_rows(args, loaders)
    check_target(args.out, "--out")
    from mtmetrics.scorers.registry import load_scorer
    from mtmetrics.scorers.results import joined_systems, total_report

    with_parts = args.parts and form in _SUMMARIES  # of which they hold the means
    lowest = _Lowest()
    shown = {
        "parts": args.parts,
        "full": args.full_precision,
        "unusual": args.degenerate is not None,
    }
    make = functools.partial(_WRITERS.get(form, _Writer), form, names, list(specs), **shown)
    with (
        opened(args.out, binary=form == "parquet", table=form == "table") as stream,
        contextlib.closing(make(target=stream)) as writer,
    ):
        pool = options.model_pool(args)
        scorers = [
            load_scorer(pool=pool, **loader | {"against": side})
            for loader, side in zip(loaders, sides, strict=True)
        ]
        for scorer in scorers:
            scorer.floor_degenerate = args.degenerate == "floor"
            scorer.require_floor()
        kept: list[Results] = []
        with options.scoring(count * len(names) * len(specs)):
            for batch, results in _scored(scorers, columns, names, rows):
                if args.segments:
                    lowest.add(specs, names, sides, batch, results)
                if args.degenerate == "null":
                    results = [
                        [result.without_degenerate() for result in systems] for systems in results
                    ]
                writer.add(results)
                kept.append(
                    [
                        [one if with_parts else one.without_parts() for one in systems]
                        for systems in results
                    ]
                )
        of_metrics = zip(specs, zip(*kept, strict=True), strict=True)
        totals = {metric: joined_systems(found) for metric, found in of_metrics}
        summaries = {
            metric: [_summary(total, interval=args.ci, parts=with_parts) for total in systems]
            for metric, systems in totals.items()
        }
        writer.finish(summaries)
    if args.out is not None and not options.quiet:
        print(_table("table", names, summaries, full=args.full_precision))
    if args.segments:
        print("\n" + lowest.tables(form, full=args.full_precision))
    if form != "table":
        for systems in totals.values():
            total_report(systems).warn()


def _scored(
    scorers: "list[Scorer]",
    columns: Sequence[Column],
    names: Sequence[str],
    rows: Iterator[list[Any]],
) -> "Iterator[tuple[Batch, Results]]":
    """Scores rows chunk by chunk.

    All metrics score a chunk before the next is read, which is all where one of them needs its
    whole input first.

    Args:
        scorers: of the metrics.
        columns: what the first texts of each row are.
        names: of the systems, whose translations stand behind them.
        rows: the texts.

    Yields:
        The texts of a chunk, and for each metric the result of each system.
    """
    from mtmetrics.scorers.batch import Batch
    from mtmetrics.scorers.results import chunk_lines, chunked, scored_together

    independent = all(scorer.independent for scorer in scorers)
    lines = chunk_lines([scorer.lines for scorer in scorers], len(columns) + len(names))
    for chunk in chunked(rows, lines if independent else None):
        compared, systems = chunk[: len(columns)], chunk[len(columns) :]
        # A file may be given twice; then it is scored once.
        batch = Batch(
            dict(zip(names, systems, strict=True)), **dict(zip(columns, compared, strict=True))
        )
        streams = [scorer.score_batches(batch.slices(lines)) for scorer in scorers]
        places = {name: place for place, name in enumerate(batch.systems)}
        results = [
            [of_metric[places[name]] for name in names] for of_metric in scored_together(streams)
        ]
        yield batch, results


def _summary(result: "MetricResult", *, interval: bool, parts: bool) -> dict[str, Any]:
    import numpy as np

    from mtmetrics.statistics.significance import bootstrap_interval

    found = result.as_dict(scores=False)
    known = result.segments[~np.isnan(result.segments)]
    if interval and known.size:
        between = bootstrap_interval(known)
        found["ci"] = between and between._asdict()
    return found | (
        {"parts": {name: float(np.nanmean(part)) for name, part in result.parts.items()}}
        if parts
        else {}
    )


def _table(style: str, names: Sequence[str], summaries: "Summaries", *, full: bool) -> str:
    """A row per system and metric, with the signatures below."""
    from mtmetrics.reports.styles import STYLES, one_line
    from mtmetrics.statistics.significance import NO_INTERVAL

    every = [found for systems in summaries.values() for found in systems]
    unusual = [name for name in _UNUSUAL if any(found["report"][name] for found in every)]
    parts = list(dict.fromkeys(part for found in every for part in found.get("parts", ())))
    rows = []
    for metric, systems in summaries.items():
        for name, found in zip(names, systems, strict=True):
            row = {"metric": metric} if len(summaries) > 1 else {}
            row |= {"system": name, "mean": _number(found["mean_score"], full)}
            if "ci" in found:
                row["95 % interval"] = _interval(found["ci"], full)
            known = found.get("parts", {})
            row |= {part: _number(known[part], full) if part in known else "" for part in parts}
            report = found["report"]
            rows.append(
                row | {_UNUSUAL.get(key, key): f"{report[key]:,}" for key in ("segments", *unusual)}
            )
    numbers = range(1 + (len(summaries) > 1), len(rows[0]))
    text = STYLES[style]([[*rows[0]], *([*row.values()] for row in rows)], numbers)
    blocks = [text, "\n".join(map(one_line, dict.fromkeys(found["signature"] for found in every)))]
    if any("ci" in found and found["ci"] is None for found in every):
        blocks.append(f"none: {NO_INTERVAL}")
    return "\n\n".join(blocks)


def _number(value: float, full: bool) -> str:
    from mtmetrics.reports.styles import decimals

    return repr(value) if full else decimals(value, 4)


def _interval(ends: dict[str, Any] | None, full: bool) -> str:
    return (
        "none" if ends is None else f"[{_number(ends['low'], full)}, {_number(ends['high'], full)}]"
    )


def _in_one_line(texts: Any) -> str:
    """A source, a reference or several references."""
    return texts if isinstance(texts, str) else " / ".join(texts)


class _Lowest:
    """The segments with the lowest scores of each metric and system, with their texts."""

    def __init__(self) -> None:
        self._before = 0
        self._kept: dict[tuple[str, str], list[tuple[float, int, str, str]]] = {}

    def add(
        self,
        metrics: Iterable[str],
        names: Sequence[str],
        sides: Sequence[Side],
        batch: "Batch",
        results: "Results",
    ) -> None:
        """Takes the texts of a chunk, the side that each metric compares with, and the results."""
        numbers = range(self._before + 1, self._before + len(batch) + 1)
        columns = {"sources": batch.sources, "references": batch.references}
        for metric, side, of_metric in zip(metrics, sides, results, strict=True):
            compared = zip(*(columns[name] or () for name in side.columns), strict=True)
            shown = [" / ".join(map(_in_one_line, texts)) for texts in compared]
            for name, result in zip(names, of_metric, strict=True):
                texts = batch.systems[name]
                rows = zip(result.segments.tolist(), numbers, shown, texts, strict=True)
                kept = self._kept.get((metric, name), [])
                self._kept[metric, name] = heapq.nsmallest(_LOWEST, itertools.chain(kept, rows))
        self._before += len(numbers)

    def tables(self, style: str, *, full: bool) -> str:
        """A table for each metric and system."""
        from mtmetrics.reports.styles import STYLES

        blocks = []
        for (metric, name), rows in self._kept.items():
            table = [["segment", "score", "compared with", "translation"]]
            table += [
                [str(number), _number(score, full), other, text]
                for score, number, other, text in rows
            ]
            blocks.append(
                f"Lowest scores of {name} by {metric}:\n\n{STYLES[style](table, range(2))}"
            )
        return "\n\n".join(blocks)


@dataclasses.dataclass
class _Writer:
    """Takes the results of chunk after chunk, then what sums up each system; by itself writes the
    latter as a table.

    The target is an open stream, of bytes for Parquet; numbers have all digits where `full` says
    so, and rows say what is `unusual`."""

    form: str
    names: Sequence[str]
    metrics: Sequence[str]
    parts: bool
    full: bool
    unusual: bool
    target: Any

    def add(self, results: "Results") -> None:
        """Writes a chunk."""

    def finish(self, summaries: "Summaries") -> None:
        """Writes the summaries."""
        self.target.write(_table(self.form, self.names, summaries, full=self.full) + "\n")

    def close(self) -> None:
        """Ends the file."""

    def _rounded(self, value: Any) -> Any:
        return rounded(value, full=self.full)

    def _each(self, summaries: "Summaries", key: str = "system") -> Iterator[dict[str, Any]]:
        """The summaries one by one, with the name of the system and, where there are several, of
        the metric."""
        for metric, systems in summaries.items():
            for name, found in zip(self.names, systems, strict=True):
                yield {key: name} | ({"metric": metric} if len(self.metrics) > 1 else {}) | found


def _together(results: "Sequence[MetricResult]") -> list[str]:
    """Of each segment of a system what is unusual, for any of the metrics."""
    named = zip(*(result.unusual_names() for result in results), strict=True)
    return ["+".join(dict.fromkeys(filter(None, "+".join(names).split("+")))) for names in named]


@dataclasses.dataclass
class _JsonWriter(_Writer):
    """One JSON document, which has to wait for the last chunk."""

    chunks: "list[Results]" = dataclasses.field(default_factory=list)

    def add(self, results: "Results") -> None:
        self.chunks.append(results)

    def finish(self, summaries: "Summaries") -> None:
        documents = {
            metric: self._document(place, summaries[metric])
            for place, metric in enumerate(self.metrics)
        }
        [whole, *more] = documents.values()
        if more:
            whole = {
                "metrics": [{"metric": metric} | document for metric, document in documents.items()]
            }
        json.dump(self._rounded(whole), self.target, ensure_ascii=False, indent=1)
        self.target.write("\n")

    def _document(self, metric: int, summaries: list[dict[str, Any]]) -> dict[str, Any]:
        from mtmetrics.scorers.results import joined

        systems = zip(*(chunk[metric] for chunk in self.chunks), strict=True)
        whole = []
        for kept, found in zip(map(joined, systems), summaries, strict=True):
            unusual = {"unusual": kept.unusual_names()} if self.unusual else {}
            whole.append(kept.as_dict(parts=self.parts) | unusual | found)
        if len(whole) == 1:
            return whole[0]
        return {
            "systems": [
                {"name": name} | document for name, document in zip(self.names, whole, strict=True)
            ]
        }


@dataclasses.dataclass
class _RowsWriter(_Writer):
    """A row per segment and system. Those of JSON Lines have a ``kind``, and one per system and
    metric follows; Parquet has all digits, and the summaries are its metadata under the key
    ``mtmetrics``; beside cells on a screen they are printed."""

    rows: RowWriter | None = None
    segments: int = 0

    def __post_init__(self) -> None:
        # Said before the scoring: what the format cannot hold, such as a tab in the name of a
        # system.
        ScoreRow.columns(self.form, self.names, self.metrics, unusual=self.unusual)

    def add(self, results: "Results") -> None:
        values, unusual = self._values(results), self._unusual(results)
        if self.rows is None:
            self.rows = RowWriter(
                self.target, ScoreRow.columns(self.form, self.names, values, unusual=self.unusual)
            )
        count = len(results[0][0].segments)
        places = itertools.product(range(self.segments + 1, self.segments + count + 1), self.names)
        numbers = (
            dict(zip(values, row, strict=True)) for row in zip(*values.values(), strict=True)
        )
        rows = (
            ScoreRow(system, segment, row, names).fields(self.form)
            for (segment, system), row, names in zip(places, numbers, unusual, strict=True)
        )
        self.rows.write(rows if self.form == "parquet" else map(self._rounded, rows))
        self.segments += count

    def _values(self, results: "Results") -> dict[str, list[float | None]]:
        """The columns of numbers of a chunk: the systems of the first segment, of the second, and
        so on; of one metric its score and parts, of several those of each."""
        import numpy as np

        several = len(self.metrics) > 1
        values = {}
        for metric, of_metric in zip(self.metrics, results, strict=True):
            values[metric if several else "score"] = [result.segments for result in of_metric]
            for part in of_metric[0].parts if self.parts else ():
                values[f"{metric} {part}" if several else part] = [
                    result.parts[part] for result in of_metric
                ]
        floats = {name: np.stack(columns, axis=1).ravel() for name, columns in values.items()}
        return {
            name: np.where(np.isnan(column), None, column).tolist()
            for name, column in floats.items()
        }

    def _unusual(self, results: "Results") -> Iterable[str | None]:
        """What is unusual in the rows of a chunk, in the same order; None where nobody wants to
        know."""
        if not self.unusual:
            return itertools.repeat(None, len(results[0][0].segments) * len(self.names))
        of_systems = (_together(system) for system in zip(*results, strict=True))
        return [names for segment in zip(*of_systems, strict=True) for names in segment]

    def finish(self, summaries: "Summaries") -> None:
        if self.form == "parquet" and self.rows is not None:
            systems = json.dumps([*self._each(summaries, "name")], ensure_ascii=False)
            self.rows.describe("mtmetrics", systems)
        elif self.form == "jsonl" and self.rows is not None:
            self.rows.write(
                self._rounded({"kind": "system"} | found) for found in self._each(summaries)
            )
        elif self.target is sys.stdout and not options.quiet:
            from mtmetrics.statistics.significance import NO_INTERVAL

            for found in self._each(self._rounded(summaries)):
                by = f" {found['metric']}:" if "metric" in found else ""
                between = f" {_interval(found['ci'], full=True)}" if found.get("ci") else ""
                between += f" ({NO_INTERVAL})" if "ci" in found and not between else ""
                mean = f"{by} mean {found['mean_score']!r}{between}"
                print(f"{found['system']}:{mean} {found['signature']}", file=sys.stderr)

    def close(self) -> None:
        if self.rows is not None:
            self.rows.close()


_ROWS = dict.fromkeys(("jsonl", "tsv", "csv", "parquet"), _RowsWriter)
_WRITERS: dict[str, type[_Writer]] = {"json": _JsonWriter, **_ROWS}
