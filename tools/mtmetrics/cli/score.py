"""``mtmetrics score``: scores translations and prints the result."""

import argparse
import collections
import itertools
import operator
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from mtmetrics.cli import options
from mtmetrics.cli.engine import add_engine_options
from mtmetrics.cli.engine import score as score_on_engine
from mtmetrics.cli.io import metric_rows
from mtmetrics.cli.results import FORMATS, SUMMARIES, Lowest, open_writer, pick_format, summary
from mtmetrics.errors import InputError

if TYPE_CHECKING:
    from mtmetrics.scorers.base import MetricResult, Scorer

_LOWEST = 10


def add_parser(subparsers: Any) -> None:
    """Adds the command to the parser."""
    parser = subparsers.add_parser(
        "score",
        help="score translations",
        description="Scores translations with one or several metrics: parallel files (-s or -r, and -t), or one FILE "
        "of rows. On a terminal it prints a table, else JSON. Memory does not grow with the input, but for JSON.",
    )
    options.add_row_options(parser)
    options.add_metric_options(parser, several=True)
    text = "output format (default: as --out ends, else table on a terminal and json elsewhere)"
    output = options.add_output_options(parser, FORMATS, text=text)
    text = "write there instead of to standard output; appears when all is scored"
    output.add_argument("--out", metavar="FILE", help=text)
    output.add_argument(
        "--parts", action="store_true", help="also print the parts of the scores; in tables, their means"
    )
    text = "95 %% bootstrap interval of the system score (1,000 resamples of the segments)"
    output.add_argument("--ci", action="store_true", help=text)
    text = f"below the table, the {_LOWEST} lowest-scored segments of each system with their texts"
    output.add_argument("--segments", action="store_true", help=text)
    add_engine_options(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Scores and prints."""
    if args.engine is not None:
        return score_on_engine(args)
    form = pick_format(args.format, args.out)
    if args.segments and form not in SUMMARIES:
        raise InputError(f"--segments stands below a table; pass --format table, not {form}")
    specs = options.metric_specs(args)
    loaders = [
        {"metric": spec.metric, "preset": spec.preset or args.preset, **dict(spec.options)} for spec in specs.values()
    ]
    names, columns, rows, chosen = metric_rows(args, loaders)
    from mtmetrics.scorers.base import joined, total_report
    from mtmetrics.scorers.registry import load_scorer

    with_parts = args.parts and form in SUMMARIES  # of which they hold the means
    lowest = Lowest(_LOWEST if args.segments else 0)
    settings = {"parts": args.parts, "full": args.full_precision}
    with open_writer(form, args.out, names, list(specs), **settings) as writer:
        pool = options.model_pool(args)
        scorers = [
            load_scorer(lang_pair=args.lp, pool=pool, **loader | own)
            for loader, (_, own) in zip(loaders, chosen, strict=True)
        ]
        places = [columns.index(column) for column, _ in chosen]
        kept: dict[str, list[list[MetricResult]]] = {metric: [[] for _ in names] for metric in specs}
        with options.scoring(operator.length_hint(rows) * len(names) * len(specs)):
            for chunk, results in _scored(scorers, places, len(columns), rows):
                lowest.add(specs, names, [chunk[place] for place in places], chunk[len(columns) :], results)
                writer.add(results)
                for metric, systems in zip(specs, results, strict=True):
                    for system, result in zip(kept[metric], systems, strict=True):
                        system.append(result if with_parts else result.without_parts())
        totals = {metric: [joined(system) for system in systems] for metric, systems in kept.items()}
        summaries = {
            metric: [_summary(total, interval=args.ci, parts=with_parts) for total in systems]
            for metric, systems in totals.items()
        }
        writer.finish(summaries)
    if args.out is not None and not options.quiet:
        print(summary("table", names, summaries, full=args.full_precision))
    if args.segments:
        print("\n" + lowest.tables(form, full=args.full_precision))
    if form != "table":
        for systems in totals.values():
            total_report(systems).warn()
    return 0


def _scored(
    scorers: "list[Scorer]", places: list[int], others: int, rows: Iterator[list[Any]]
) -> "Iterator[tuple[list[list[Any]], list[list[MetricResult]]]]":
    """Chunks, as columns, and for each metric a result per system; all metrics score a chunk before the next is read.

    A metric that needs its whole input first makes one chunk of everything.

    Args:
        scorers: the metrics.
        places: of the column that each compares with.
        others: number of columns before those of the systems.
        rows: the input.
    """
    from mtmetrics.scorers.base import chunked, joined

    chunks = chunked(rows)
    # One queue for each metric, one for what is yielded; itertools.tee would keep dozens of chunks.
    queues: list[collections.deque[list[list[Any]]]] = [collections.deque() for _ in range(len(scorers) + 1)]

    def columns(number: int, place: int) -> Iterator[list[list[Any]]]:
        while True:
            if not queues[number]:
                chunk = next(chunks, None)
                if chunk is None:
                    return
                for queue in queues:
                    queue.append(chunk)
            chunk = queues[number].popleft()
            yield [chunk[place], *chunk[others:]]

    streams = [
        scorer.score_chunks(columns(number, place))
        for number, (scorer, place) in enumerate(zip(scorers, places, strict=True))
    ]
    held = queues[-1]
    if all(scorer.independent for scorer in scorers):
        for results in zip(*streams, strict=True):
            yield held.popleft(), list(results)
        return
    turns = list(itertools.zip_longest(*streams))
    chunk = [list(itertools.chain(*parts)) for parts in zip(*held, strict=True)]
    of_each = ([results for results in stream if results is not None] for stream in zip(*turns, strict=True))
    yield chunk, [[joined(system) for system in zip(*results, strict=True)] for results in of_each]


def _summary(result: "MetricResult", *, interval: bool, parts: bool) -> dict[str, Any]:
    from mtmetrics.evaluation.significance import bootstrap_interval

    found = result.as_dict(scores=False)
    if interval:
        found["ci"] = bootstrap_interval(result.segments)._asdict()
    return found | ({"parts": {name: float(part.mean()) for name, part in result.parts.items()}} if parts else {})
