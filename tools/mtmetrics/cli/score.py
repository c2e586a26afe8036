"""``mtmetrics score``: scores translations, and prints results while they arrive, or a table for
people.

`run` reads the input chunk by chunk; `mtmetrics.cli.score_output` writes what comes out."""

import argparse
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from mtmetrics.cli import messages, options
from mtmetrics.cli.output import FORMATS, check_target, pick_format
from mtmetrics.cli.ray import add_engine_options
from mtmetrics.cli.ray import score as score_on_engine
from mtmetrics.cli.rows import InputRows, open_rows
from mtmetrics.cli.score_output import (
    LOWEST,
    SUMMARY_FORMATS,
    LowestSegments,
    Summary,
    opened_writer,
    summary_table,
)
from mtmetrics.errors import InputError
from mtmetrics.scorers.side import Side

if TYPE_CHECKING:
    from mtmetrics.cli.score_output import Results
    from mtmetrics.scorers.base import Scorer
    from mtmetrics.scorers.batch import Batch
    from mtmetrics.scorers.results import MetricResult


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Scores translations with one or several metrics: parallel files (-s or -r, and -t), or "
        "one FILE of rows. On a terminal it prints a table, else JSON. Memory does not grow "
        "with the input, but for JSON."
    )
    options.add_row_options(parser)
    options.add_metric_options(parser, is_repeatable=True)
    text = "output format (default: as --out ends, else table on a terminal and json elsewhere)"
    output = options.add_output_options(parser, FORMATS, format_help=text)
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
            f"below the table, the {LOWEST} lowest-scored segments of each system with their texts"
        ),
    )
    add_engine_options(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    if args.engine is not None:
        score_on_engine(args)
        return
    form = pick_format(args.format, args.out)
    is_summary = form in SUMMARY_FORMATS
    if args.segments and not is_summary:
        raise InputError(f"--segments stands below a table; pass --format table, not {form}")
    metrics = options.metric_specs(args)
    loaders = [options.loader_options(spec, args) for spec in metrics.values()]
    inputs = open_rows(args, loaders)
    check_target(args.out, "--out")
    from mtmetrics.scorers.results import joined_systems, total_report

    lowest = LowestSegments()
    with opened_writer(
        args.out,
        form,
        inputs.systems,
        list(metrics),
        with_parts=args.parts,
        with_unusual=args.degenerate is not None,
        full=args.full_precision,
    ) as writer:
        scorers = _load(args, loaders, inputs.sides)
        results_per_chunk: list[Results] = []
        with messages.scoring(inputs.count * len(inputs.systems) * len(metrics)):
            for batch, results in _scored_chunks(scorers, inputs):
                if args.segments:
                    lowest.add(batch, dict(zip(metrics, inputs.sides, strict=True)), results)
                if args.degenerate == "null":
                    results = _each_result(results, lambda result: result.without_degenerate())
                writer.add(results)
                # Parts of scores take memory. Only the table of their means needs those of all chunks.
                if not (args.parts and is_summary):
                    results = _each_result(results, lambda result: result.without_parts())
                results_per_chunk.append(results)
        chunks_per_metric = zip(*results_per_chunk, strict=True)
        results_per_metric = [joined_systems(chunks) for chunks in chunks_per_metric]
        summaries = [
            Summary(metric, system, result, with_interval=args.ci)
            for metric, results in zip(metrics, results_per_metric, strict=True)
            for system, result in zip(inputs.systems, results, strict=True)
        ]
        writer.finish(summaries)
    if args.out is not None and not messages.quiet:
        print(summary_table("table", summaries, full=args.full_precision))
    if args.segments:
        print("\n" + lowest.tables(form, full=args.full_precision))
    if form != "table":
        for results in results_per_metric:
            total_report(results).warn()


def _load(
    args: argparse.Namespace, loaders: Sequence[options.LoaderOptions], sides: Sequence[Side]
) -> "list[Scorer]":
    """Loads the metrics, each to compare with its side."""
    from mtmetrics.scorers.registry import load_scorer

    pool = options.model_pool(args)
    scorers = []
    for loader, side in zip(loaders, sides, strict=True):
        scorer = load_scorer(pool=pool, **loader | {"against": side})
        scorer.floor_degenerate = args.degenerate == "floor"
        scorer.require_floor()
        scorers.append(scorer)
    return scorers


def _scored_chunks(
    scorers: "Sequence[Scorer]", inputs: InputRows
) -> "Iterator[tuple[Batch, Results]]":
    """Scores rows chunk by chunk.

    All metrics score a chunk before the next is read. Where one of them needs its whole input
    first, the whole input is the only chunk.

    Yields:
        The texts of a chunk, and for each metric the result of each system.
    """
    from mtmetrics.scorers.batch import Batch
    from mtmetrics.scorers.results import chunk_lines, chunked, scored_together

    columns, systems = inputs.columns, inputs.systems
    batch_size = chunk_lines([scorer.lines for scorer in scorers], len(columns) + len(systems))
    are_independent = all(scorer.independent for scorer in scorers)
    for texts in chunked(inputs.rows, batch_size if are_independent else None):
        compared_texts, translations = texts[: len(columns)], texts[len(columns) :]
        # A system that is named twice is scored once, since a batch holds it by its name.
        batch = Batch(
            dict(zip(systems, translations, strict=True)),
            **dict(zip(columns, compared_texts, strict=True)),
        )
        streams = [scorer.score_batches(batch.slices(batch_size)) for scorer in scorers]
        results = []
        for distinct_results in scored_together(streams):
            result_of = dict(zip(batch.systems, distinct_results, strict=True))
            results.append([result_of[system] for system in systems])
        yield batch, results


def _each_result(results: "Results", change: "Callable[[MetricResult], MetricResult]") -> "Results":
    return [[change(result) for result in system_results] for system_results in results]
