"""``mtmetrics filter``: keeps the good sentence pairs of parallel text.

`_filter_here` reads the input three times: for its columns, for checks and scores, and to write the
pairs that are kept. `_filter_on_cluster` leaves the first two to Ray."""

import argparse
import contextlib
import dataclasses
import functools
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from mtmetrics.checks import language_pair
from mtmetrics.cli import messages, options
from mtmetrics.cli.output import Document, check_target, open_output, write_report
from mtmetrics.cli.pairs_input import Pairs, open_pairs, refuse_columns
from mtmetrics.cli.ray import (
    absolute_paths,
    add_engine_options,
    chosen_engine,
    run_blocks,
    text_columns,
)
from mtmetrics.cluster.engine import column_names
from mtmetrics.errors import InputError, MTMetricsError
from mtmetrics.io.row_writer import RowWriter

if TYPE_CHECKING:
    import numpy as np

    from mtmetrics.choosing.parallel_text import Filtering, Scan
    from mtmetrics.scorers.spec import MetricSpec

_FORMATS = ("tsv", "jsonl", "parquet")


class _Filtered(NamedTuple):
    """Parallel text after it was filtered.

    Attributes:
        report: how many pairs were read and removed, with examples; a dictionary for JSON.
        scores: (n,) scores of the pairs that were kept.
        tokens: number of tokens of their target sides; 0 where these were not counted.
    """

    report: dict[str, Any]
    scores: "np.ndarray"
    tokens: int


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Drops sentence pairs that are blank, copied, of very unequal length, in a wrong "
        "language, with different numbers, or near duplicates of an earlier pair (see "
        "mtmetrics.choosing.parallel_text.Checks); scores the rest with one or several metrics "
        "that need no reference; and keeps the best, in their order, with all columns and their "
        "score. The input is read three times; memory holds a few numbers per pair."
    )
    file_help = (
        "source TAB target, further columns are kept; or a table with a header, .jsonl or "
        ".parquet with source, and target or translation; - reads a table from standard input"
    )
    parser.add_argument("file", nargs="?", metavar="FILE", help=file_help)
    options.add_sources(parser)
    parser.add_argument("-t", "--predictions", metavar="FILE", help="its translation, one per line")
    options.add_lang_pair(parser)
    parser.add_argument(
        "--out",
        metavar="FILE",
        help=(
            "write there: .tsv, .jsonl or .parquet, appears when all is done (default: TSV on "
            "standard output)"
        ),
    )
    parser.add_argument(
        "--report",
        metavar="FILE",
        help="write what was dropped and kept, with examples, there as JSON",
    )
    parser.add_argument(
        "--column",
        metavar="COLUMN",
        default="score",
        help="name of the column of scores (default: %(default)s)",
    )
    selection = parser.add_argument_group(
        "what is kept of the pairs that pass the checks (one of these)"
    )
    selection.add_argument(
        "--threshold", metavar="SCORE", type=float, help="pairs with at least this score"
    )
    selection.add_argument(
        "--top", metavar="SHARE", type=float, help="the best share of them, such as 0.5"
    )
    selection.add_argument(
        "--tokens",
        metavar="NUMBER",
        type=int,
        help="the best ones, of so many tokens on the target side",
    )
    checks = parser.add_argument_group("checks")
    checks.add_argument(
        "--skip",
        metavar="CHECK+CHECK",
        type=lambda text: text.split("+"),
        action="extend",
        default=[],
        help=(
            "leave out checks: some of blank, length, copy, language, numbers and repeated, "
            "joined by +"
        ),
    )
    checks.add_argument(
        "--length-ratio",
        metavar="RATIO",
        type=float,
        default=3.0,
        help="how many times as long one side may be as the other (default: %(default)s)",
    )
    options.add_metric_options(parser, is_repeatable=True)
    options.add_mix_option(parser)
    add_engine_options(parser)
    parser.set_defaults(run=run, references=None, format=None)


def run(args: argparse.Namespace) -> None:
    from mtmetrics.choosing.parallel_text import Filtering, Selection

    selection = Selection(args.threshold, args.top, args.tokens)
    filtering = Filtering(
        selection,
        args.lp,
        args.skip,
        args.length_ratio,
        options.metric_specs(args),
        options.mix_weights(args),
        args.column,
    )
    checks = filtering.checks()
    if args.engine is None:
        if _output_format(args.out) not in _FORMATS:
            endings = ", ".join("." + form for form in _FORMATS)
            raise InputError(f"--out {args.out}: must end in one of {endings}")
        check_target(args.out, "--out")
    check_target(args.report, "--report")
    run_filter = _filter_here if args.engine is None else _filter_on_cluster
    filtered = run_filter(args, filtering)
    if not filtered.report["pairs"]:
        raise InputError(f"{args.file or args.sources}: empty; there is nothing to filter")
    rule = {name: value for name, value in vars(selection).items() if value is not None}
    settings = {
        **rule,
        "lang_pair": args.lp,
        "checks": checks.names,
        "length_ratio": args.length_ratio,
    }
    kept_pairs = _describe_kept(filtered, has_tokens=args.tokens is not None)
    write_report(args.report, {**filtered.report, "kept": kept_pairs, "settings": settings})
    print(f"mtmetrics: {_summary(filtered)}", file=sys.stderr)


def _describe_kept(filtered: _Filtered, *, has_tokens: bool) -> Document:
    """Returns counts and scores of the pairs that were kept."""
    counts: Document = {"pairs": len(filtered.scores)}
    if has_tokens:
        counts["tokens"] = filtered.tokens
    if len(filtered.scores):
        counts["lowest_score"] = float(filtered.scores.min())
        counts["mean_score"] = float(filtered.scores.mean())
    return counts


def _summary(filtered: _Filtered) -> str:
    """Returns what was read, removed, scored and kept, in one line."""
    report, scores = filtered.report, filtered.scores
    removed = ""
    for check, entry in report["removed"].items():
        if entry["pairs"]:
            removed += f", {entry['pairs']} {check}"
    lowest = f" (lowest score {scores.min():.6g})" if len(scores) else ""
    return (
        f"{report['pairs']} pairs{removed}, {report['scored']} scored, {len(scores)} kept{lowest}"
    )


def _filter_here(args: argparse.Namespace, filtering: "Filtering") -> _Filtered:
    """Filters in this process."""
    from mtmetrics.choosing.parallel_text import scan

    with open_pairs(_input_paths(args)) as pairs:
        form = _output_format(args.out)
        columns = pairs.columns(form, filtering.names)
        pool = options.model_pool(args, dtype="auto")
        mixture = filtering.mixture(pool)
        texts = messages.progress(pairs.texts(), unit=" pairs", desc="scoring")
        scanned = scan(texts, filtering.checks(), mixture, count_tokens=args.tokens is not None)
        is_kept = filtering.selection.mask(scanned.scores, scanned.tokens)
        below: dict[str, Any] = {"pairs": int((~is_kept).sum()), "examples": []}
        if scanned.report["pairs"]:
            with (
                open_output(args.out, binary=form == "parquet") as stream,
                contextlib.closing(RowWriter(stream, columns, header=pairs.is_named)) as writer,
            ):
                writer.write(_kept_rows(pairs, scanned, is_kept, filtering.names, below))
    report = {**scanned.report, "below": below, "metrics": mixture.about(), **pool.about()}
    return _Filtered(report, scanned.scores[is_kept], int(scanned.tokens[is_kept].sum()))


def _input_paths(args: argparse.Namespace) -> list[str]:
    paths = [args.file] if args.file is not None else [args.sources, args.predictions]
    if None in paths or (args.file is not None and (args.sources or args.predictions)):
        raise InputError(
            "nothing to filter: pass one FILE of pairs, or - for standard input, or -s and -t"
        )
    return paths


def _kept_rows(
    pairs: Pairs,
    scanned: "Scan",
    is_kept: "np.ndarray",
    score_columns: list[str],
    below: dict[str, Any],
) -> Iterator[Document]:
    """Yields the rows that are kept, with their scores.

    Args:
        pairs: the input, read once more.
        scanned: the scores of the pairs that passed the checks.
        is_kept: (n,) bool, of these pairs.
        score_columns: names of the columns of scores.
        below: gets examples of the pairs that are not kept.
    """
    from mtmetrics.choosing.parallel_text import add_example

    numbered_rows = enumerate(pairs.rows())
    for place, number in enumerate(scanned.rows.tolist()):
        matching_rows = (row for row_number, row in numbered_rows if row_number == number)
        row = next(matching_rows, None)
        if row is None:
            raise MTMetricsError(
                "the input became shorter while it was read; run again when it is complete"
            )
        score = float(scanned.scores[place])
        if is_kept[place]:
            # Of a single metric there is no column besides that of the sums.
            scores = [score, *scanned.values[:, place].tolist()][: len(score_columns)]
            yield dict(row.fields) | dict(zip(score_columns, scores, strict=True))
        else:
            source, target = row.fields[pairs.source], row.fields[pairs.target]
            add_example(below, number + 1, source, target, score=score)


def _output_format(out: str | None) -> str:
    return Path(out).suffix.removeprefix(".") if out else "tsv"


def _filter_on_cluster(args: argparse.Namespace, filtering: "Filtering") -> _Filtered:
    """Filters on the cluster. Scored blocks are kept in OUT/_scored, so that another choice costs
    no scoring."""
    from mtmetrics.cluster.filtering import FilterWorker, choose, merged

    engine = chosen_engine(args)
    names = column_names(args.file)
    columns = text_columns(args.file, names, ["source", "translation"])
    refuse_columns(filtering.names, names)
    specs = {name: _absolute(spec, args.lp) for name, spec in filtering.specs.items()}
    filtering = dataclasses.replace(filtering, specs=specs)
    pool = absolute_paths(options.pool_options(args, dtype="auto"))
    settings = {
        "metrics": list(map(str, specs.values())),
        "weights": filtering.weights,
        "names": filtering.names,
        "pool": pool,
        "checks": [
            args.lp and language_pair(args.lp),
            args.skip,
            args.length_ratio,
            args.tokens is not None,
        ],
    }
    make_worker = functools.partial(FilterWorker, filtering, columns, pool)
    scored_folder = f"{args.out}/_scored"
    blocks = run_blocks(
        args, engine, make_worker, out=scored_folder, texts=columns, settings=settings
    )
    report = merged(blocks)
    scores, repeated, below, tokens = choose(scored_folder, args.out, filtering, columns)
    if "repeated" not in args.skip:
        report["removed"]["repeated"] = repeated
    report |= {"below": below, "scored": len(scores) + below["pairs"]}
    return _Filtered(report, scores, tokens)


def _absolute(spec: "MetricSpec", lang_pair: str | None) -> "MetricSpec":
    """Returns the metric with paths that hold in the working folder of another process."""
    preset = absolute_paths({"preset": spec.preset_of(lang_pair)})
    return dataclasses.replace(spec, **preset).having(**absolute_paths(dict(spec.options)))
