"""``mtmetrics score``: scores translations. Prints a row per segment while it scores, or at the end
a table or one JSON document.

`run` reads and scores the input chunk by chunk; `mtmetrics.cli.score_output` writes the results."""

import argparse
import itertools
from collections.abc import Iterator, Mapping, Sequence

from mtmetrics.cli import messages, options
from mtmetrics.cli.output import FORMATS, check_target, pick_format
from mtmetrics.cli.ray import add_engine_options
from mtmetrics.cli.ray import score as score_on_engine
from mtmetrics.cli.rows import InputRows, open_rows
from mtmetrics.cli.score_output import (
    LOWEST_SEGMENT_COUNT,
    SUMMARY_FORMATS,
    LowestSegments,
    Results,
    Summary,
    open_writer,
    summary_table,
)
from mtmetrics.errors import InputError
from mtmetrics.scorers.base import Scorer
from mtmetrics.scorers.batch import Batch
from mtmetrics.scorers.results import (
    column_batches,
    join_results,
    join_turns,
    segments_per_batch,
    total_report,
)
from mtmetrics.scorers.side import Side
from mtmetrics.scorers.spec import MetricSpec


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds description and options of the command to its parser."""
    parser.description = (
        "Scores translations with one or several metrics: parallel files (-s or -r, and -t), or "
        "one FILE of rows. On a terminal it prints a table, else JSON. Texts are read in chunks "
        "and dropped once they are scored, unless a metric needs its whole input at once; only "
        "the scores stay in memory."
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
        help="write to FILE instead of standard output; the file appears only once everything is "
        "scored",
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
            "how to treat output that is not a translation (copies of the source, loops, another "
            "language, odd lengths): keep its score, give it the floor score, or leave it out of "
            "the mean (null); each row then has a field that says what is unusual about it"
        ),
    )
    output.add_argument(
        "--segments",
        action="store_true",
        help=(
            f"also show, below the table on standard output, the {LOWEST_SEGMENT_COUNT} lowest-scored "
            "segments of each system with their texts"
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
        # Reads `args` itself, so a new option must be handled there, too. It refuses --segments and
        # several metrics, and always writes the parts.
        score_on_engine(args)
        return
    output_format = pick_format(args.format, args.out)
    is_summary = output_format in SUMMARY_FORMATS
    if args.segments and not is_summary:
        raise InputError(
            f"--segments stands below a table; pass --format markdown, not {output_format}; or "
            "--format table, without --out"
        )
    # Metric as the user wrote it -> its specification.
    spec_of_metric = options.metric_specs(args)
    metrics = list(spec_of_metric)
    specs = list(spec_of_metric.values())
    inputs = open_rows(args, specs)
    check_target(args.out, "--out")
    lowest_segments = LowestSegments(dict(zip(metrics, inputs.sides, strict=True)))
    # Opened before the models are loaded: a name that the format cannot hold is refused at once.
    with open_writer(
        args.out,
        output_format,
        inputs.systems,
        metrics,
        with_parts=args.parts,
        with_unusual=args.degenerate is not None,  # "keep" has no other effect
        full_precision=args.full_precision,
    ) as writer:
        scorers = dict(zip(metrics, _load(args, specs, inputs.sides), strict=True))
        results_per_chunk: list[Results] = []
        # `count` is an upper bound; 0 if unknown.
        with messages.scoring(inputs.count * len(inputs.systems) * len(metrics)):
            for chunk, results in _scored_chunks(scorers, inputs):
                if args.segments:
                    # Before "null" removes scores: degenerate segments are listed too.
                    lowest_segments.add(chunk, results)
                if args.degenerate == "null":
                    results = {
                        name: result.with_degenerate_as_nan() for name, result in results.items()
                    }
                writer.add(results)
                if not args.parts:  # they take memory
                    results = {name: result.without_parts() for name, result in results.items()}
                results_per_chunk.append(results)
        summaries = []
        for metric, system in itertools.product(metrics, inputs.systems):
            # There is at least one chunk, because `open_rows` refuses an empty input.
            result = join_results([results[metric, system] for results in results_per_chunk])
            summaries.append(Summary(metric, system, result, with_interval=args.ci))
        writer.finish(summaries)
    # The scores went to a file, so the terminal would show no result otherwise.
    if args.out is not None and not messages.quiet:
        print(summary_table("table", summaries, full_precision=args.full_precision))
    if args.segments:
        style = output_format if args.out is None else "table"
        print("\n" + lowest_segments.tables(style, full_precision=args.full_precision))
    # A table on the terminal, as the only output, counts unusual segments in its columns. All other
    # formats, Markdown too, are made for files and programs, so a warning names these segments.
    if output_format != "table":
        for metric in metrics:
            of_metric = [summary.result for summary in summaries if summary.metric == metric]
            total_report(of_metric).warn()


def _load(
    args: argparse.Namespace, specs: Sequence[MetricSpec], sides: Sequence[Side]
) -> list[Scorer]:
    """Loads each metric with its options and the side that it compares with: source, reference or
    both.

    Raises:
        InputError: the user passes ``--degenerate floor``, and a metric has no floor score.
    """
    pool = options.model_pool(args)
    scorers = []
    for spec, side in zip(specs, sides, strict=True):
        scorer = spec.having(against=side).load(pool, args.lp)
        scorer.floor_degenerate = args.degenerate == "floor"
        # Raises InputError only if `floor_degenerate` is set.
        scorer.require_floor()
        scorers.append(scorer)
    return scorers


def _scored_chunks(
    scorers: Mapping[str, Scorer], inputs: InputRows
) -> Iterator[tuple[Batch, Results]]:
    """Scores the input chunk by chunk.

    A chunk holds the segments that are read together. All metrics score a chunk before the next is
    read, slice by slice. A chunk is one slice; but if a metric needs its whole input first, the input
    is one chunk.

    Yields:
        The texts of a chunk, and the results of each metric and system.
    """
    columns, systems = inputs.columns, inputs.systems
    batch_sizes = [scorer.batch_segments for scorer in scorers.values()]
    texts_per_segment = len(columns) + len(systems)
    slice_size = segments_per_batch(batch_sizes, texts_per_segment)
    can_split_input = all(scorer.has_independent_segments for scorer in scorers.values())
    for texts in column_batches(inputs.rows, slice_size if can_split_input else None):
        compared_texts, translations = texts[: len(columns)], texts[len(columns) :]
        # A batch stores systems by name, so a system that is named twice is scored once.
        chunk = Batch(
            dict(zip(systems, translations, strict=True)),
            **dict(zip(columns, compared_texts, strict=True)),
        )
        # The scorers take turns slice by slice, so that an encoder still has the vectors of a slice
        # when the next scorer needs them.
        result_streams = [
            scorer.score_batches(chunk.slices(slice_size)) for scorer in scorers.values()
        ]
        results = {}
        for metric, metric_results in zip(scorers, join_turns(result_streams), strict=True):
            for system, result in zip(chunk.systems, metric_results, strict=True):
                results[metric, system] = result
        yield chunk, results
