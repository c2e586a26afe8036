"""``mtmetrics score``: scores translations. Prints a row per segment while it scores, or at the end
a table or one JSON document.

`run` reads and scores the input chunk by chunk; `mtmetrics.cli.score_output` writes the results."""

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
    """Adds description and options of the command to its parser."""
    parser.description = (
        "Scores translations with one or several metrics: parallel files (-s or -r, and -t), or "
        "one FILE of rows. On a terminal it prints a table, else JSON. Texts are read in chunks "
        "and dropped once they are scored, unless a metric needs its whole input at once; only "
        "numbers per segment stay in memory."
    )
    options.add_row_options(parser)
    options.add_metric_options(parser, is_repeatable=True)
    format_help = (
        "output format (default: by the ending of --out, else table on a terminal, else json)"
    )
    output = options.add_output_options(parser, FORMATS, format_help=format_help)
    output.add_argument(
        "--out",
        metavar="FILE",
        help="write there instead of to standard output; the file is created only once everything "
        "is scored",
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
            "how to treat output that is no translation (copies of the source, loops, another "
            "language, odd lengths): keep its score, give it the floor score, or leave it out of "
            "the mean (null); rows of segments then say what is unusual"
        ),
    )
    output.add_argument(
        "--segments",
        action="store_true",
        help=(
            f"show below the table the {LOWEST} lowest-scored segments of each system with their "
            "texts"
        ),
    )
    add_engine_options(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """Scores the input with each metric, and writes what the arguments ask for.

    Raises:
        InputError: arguments contradict each other, or input, metrics or output cannot be opened.
    """
    if args.engine is not None:
        score_on_engine(args)
        return
    output_format = pick_format(args.format, args.out)
    is_summary = output_format in SUMMARY_FORMATS
    if args.segments and not is_summary:
        raise InputError(
            f"--segments stands below a table; pass --format table, not {output_format}"
        )
    # The metric as the user wrote it -> what it names.
    spec_of_metric = options.metric_specs(args)
    metrics = list(spec_of_metric)
    load_options = [options.loader_options(spec, args) for spec in spec_of_metric.values()]
    inputs = open_rows(args, load_options)
    check_target(args.out, "--out")
    from mtmetrics.scorers.results import join_systems, total_report

    lowest_segments = LowestSegments()
    with opened_writer(
        args.out,
        output_format,
        inputs.systems,
        metrics,
        with_parts=args.parts,
        with_unusual=args.degenerate is not None,
        full=args.full_precision,
    ) as writer:
        scorers = _load(args, load_options, inputs.sides)
        results_per_chunk: list[Results] = []
        with messages.scoring(inputs.count * len(inputs.systems) * len(metrics)):
            for chunk, chunk_results in _scored_chunks(scorers, inputs):
                if args.segments:
                    side_of_metric = dict(zip(metrics, inputs.sides, strict=True))
                    lowest_segments.add(chunk, side_of_metric, chunk_results)
                if args.degenerate == "null":
                    chunk_results = _changed(
                        chunk_results, lambda result: result.with_degenerate_as_nan()
                    )
                writer.add(chunk_results)
                # Parts of scores take memory. Only the table of their means needs those of all chunks.
                if not (args.parts and is_summary):
                    chunk_results = _changed(chunk_results, lambda result: result.without_parts())
                results_per_chunk.append(chunk_results)
        chunks_per_metric = zip(*results_per_chunk, strict=True)
        results_per_metric = [join_systems(chunks) for chunks in chunks_per_metric]
        summaries = [
            Summary(metric, system, result, with_interval=args.ci)
            for metric, system_results in zip(metrics, results_per_metric, strict=True)
            for system, result in zip(inputs.systems, system_results, strict=True)
        ]
        writer.finish(summaries)
    # The scores went to a file, so the terminal would show no result otherwise.
    if args.out is not None and not messages.quiet:
        print(summary_table("table", summaries, full=args.full_precision))
    if args.segments:
        print("\n" + lowest_segments.tables(output_format, full=args.full_precision))
    # A table for the terminal counts unusual segments in its columns. Other formats are made for
    # files and programs, so a warning tells the user of these segments.
    if output_format != "table":
        for system_results in results_per_metric:
            total_report(system_results).warn()


def _load(
    args: argparse.Namespace,
    load_options: Sequence[options.LoaderOptions],
    sides: Sequence[Side],
) -> "list[Scorer]":
    """Loads each metric with its options, to compare with its side.

    Raises:
        InputError: a metric has no floor score, and the user asks for ``--degenerate floor``.
    """
    from mtmetrics.scorers.registry import load_scorer

    pool = options.model_pool(args)
    scorers = []
    for keywords, side in zip(load_options, sides, strict=True):
        scorer = load_scorer(pool=pool, **keywords | {"against": side})
        scorer.floor_degenerate = args.degenerate == "floor"
        # Refuses only if `floor_degenerate` is set.
        scorer.require_floor()
        scorers.append(scorer)
    return scorers


def _scored_chunks(
    scorers: "Sequence[Scorer]", inputs: InputRows
) -> "Iterator[tuple[Batch, Results]]":
    """Scores the input chunk by chunk.

    A chunk holds the segments that are read together. All metrics score a chunk before the next is
    read. Where a metric needs its whole input first, the whole input is the only chunk.

    Yields:
        The texts of a chunk, and for each metric the result of each system.
    """
    from mtmetrics.scorers.batch import Batch
    from mtmetrics.scorers.results import column_batches, join_turns, segments_per_batch

    columns, systems = inputs.columns, inputs.systems
    batch_sizes = [scorer.batch_segments for scorer in scorers]
    chunk_size = segments_per_batch(batch_sizes, len(columns) + len(systems))
    can_split_input = all(scorer.has_independent_segments for scorer in scorers)
    for texts in column_batches(inputs.rows, chunk_size if can_split_input else None):
        compared_texts, translations = texts[: len(columns)], texts[len(columns) :]
        # A system that is named twice is scored once, since a batch holds it by its name.
        chunk = Batch(
            dict(zip(systems, translations, strict=True)),
            **dict(zip(columns, compared_texts, strict=True)),
        )
        streams = [scorer.score_batches(chunk.slices(chunk_size)) for scorer in scorers]
        chunk_results = []
        for distinct_results in join_turns(streams):
            result_of = dict(zip(chunk.systems, distinct_results, strict=True))
            chunk_results.append([result_of[system] for system in systems])
        yield chunk, chunk_results


def _changed(results: "Results", change: "Callable[[MetricResult], MetricResult]") -> "Results":
    """Returns results in which each result of a system by a metric is replaced by `change` of
    it."""
    return [[change(result) for result in system_results] for system_results in results]
