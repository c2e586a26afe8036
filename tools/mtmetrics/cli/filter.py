"""``mtmetrics filter``: keeps the good sentence pairs of parallel text.

`_filter_here` reads the input three times: for its columns, for checks and scores, and to write the
kept pairs. `_filter_on_cluster` has Ray check and score blocks of pairs, and then selects from the
scored blocks."""

import argparse
import contextlib
import dataclasses
import functools
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mtmetrics.checks import language_pair
from mtmetrics.choosing.parallel_text import Filtering, Scan, Selection, add_example, scan
from mtmetrics.cli import messages, options
from mtmetrics.cli.output import Document, check_target, open_output, write_report
from mtmetrics.cli.pairs_input import Pairs, open_pairs, refuse_columns
from mtmetrics.cli.ray import (
    absolute_paths,
    absolute_preset,
    add_engine_options,
    chosen_engine,
    run_blocks,
    text_columns,
)
from mtmetrics.cluster.block_folder import BlockFolder
from mtmetrics.cluster.engine import column_names
from mtmetrics.cluster.filtering import FilterWorker, choose, merged
from mtmetrics.errors import InputError, MTMetricsError
from mtmetrics.io.row_writer import RowWriter
from mtmetrics.scorers.spec import MetricSpec

_FORMATS = ("tsv", "jsonl", "parquet")


class _FilterResult(NamedTuple):
    """Counts of a filtered text, and the scores of its kept pairs.

    Attributes:
        report: how many pairs were read and removed, with examples; a dictionary for JSON.
        scores: (n,) scores of the kept pairs.
        tokens: number of target tokens in the kept pairs; 0 if tokens were not counted.
    """

    report: dict[str, Any]
    scores: np.ndarray
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
    parser.add_argument(
        "-t", "--predictions", metavar="FILE", help="translations of the lines of -s, one per line"
    )
    options.add_lang_pair(parser)
    parser.add_argument(
        "--out",
        metavar="FILE",
        help=(
            "output file (.tsv, .jsonl or .parquet), which appears only once all pairs are processed "
            "(default: TSV on standard output)"
        ),
    )
    parser.add_argument(
        "--report",
        metavar="FILE",
        help="write a JSON report of what was dropped and kept, with examples, to this file",
    )
    parser.add_argument(
        "--column",
        metavar="COLUMN",
        default="score",
        help="name of the column of scores (default: %(default)s)",
    )
    selection = parser.add_argument_group(
        "selection among the pairs that pass the checks (pass one)"
    )
    selection.add_argument(
        "--threshold", metavar="SCORE", type=float, help="keep pairs with at least this score"
    )
    selection.add_argument(
        "--top", metavar="SHARE", type=float, help="keep the best share of the pairs, such as 0.5"
    )
    selection.add_argument(
        "--tokens",
        metavar="NUMBER",
        type=int,
        help="keep the best pairs, up to this many target tokens",
    )
    checks = parser.add_argument_group("checks")
    checks.add_argument(
        "--skip",
        metavar="CHECK+CHECK",
        type=lambda text: text.split("+"),
        action="extend",
        default=[],
        help=("checks to skip, joined by +: blank, length, copy, language, numbers, repeated"),
    )
    checks.add_argument(
        "--length-ratio",
        metavar="RATIO",
        type=float,
        default=3.0,
        help="largest allowed ratio of the lengths of the two sides (default: %(default)s)",
    )
    options.add_metric_options(parser, is_repeatable=True)
    options.add_mix_option(parser)
    add_engine_options(parser)
    # The engine reads these two, which are options of score.
    parser.set_defaults(run=run, references=None, format=None)


def run(args: argparse.Namespace) -> None:
    filtering = Filtering(
        Selection(args.threshold, args.top, args.tokens),
        args.lp,
        skip=args.skip,
        length_ratio=args.length_ratio,
        specs=options.metric_specs(args),
        weights=options.mix_weights(args),
        column=args.column,
    )
    checks = filtering.checks()
    check_target(args.report, "--report")
    run_filter = _filter_here if args.engine is None else _filter_on_cluster
    result = run_filter(args, filtering)
    if not result.report["pairs"]:
        raise InputError(f"{args.file or args.sources}: empty; there is nothing to filter")
    settings = {
        **options.passed_values(args, ("threshold", "top", "tokens")),
        "lang_pair": args.lp,
        "checks": checks.names,
        "length_ratio": args.length_ratio,
    }
    kept = _describe_kept(result, has_tokens=args.tokens is not None)
    write_report(args.report, {**result.report, "kept": kept, "settings": settings})
    print(f"mtmetrics: {_summary(result)}", file=sys.stderr)


def _describe_kept(result: _FilterResult, *, has_tokens: bool) -> Document:
    """Returns number, tokens and scores of the kept pairs, for JSON."""
    document: Document = {"pairs": len(result.scores)}
    if has_tokens:
        document["tokens"] = result.tokens
    if len(result.scores):
        document["lowest_score"] = float(result.scores.min())
        document["mean_score"] = float(result.scores.mean())
    return document


def _summary(result: _FilterResult) -> str:
    """Returns how many pairs were read, removed, scored and kept, in one line."""
    report, scores = result.report, result.scores
    removed = ""
    for check, entry in report["removed"].items():
        if entry["pairs"]:
            removed += f", {entry['pairs']} {check}"
    lowest = f" (lowest score {scores.min():.6g})" if len(scores) else ""
    return (
        f"{report['pairs']} pairs{removed}, {report['scored']} scored, {len(scores)} kept{lowest}"
    )


def _filter_here(args: argparse.Namespace, filtering: Filtering) -> _FilterResult:
    """Filters in this process."""
    output_format = Path(args.out).suffix.removeprefix(".") if args.out else "tsv"
    if output_format not in _FORMATS:
        endings = ", ".join("." + ending for ending in _FORMATS)
        raise InputError(f"--out {args.out}: must end in one of {endings}")
    check_target(args.out, "--out")
    with open_pairs(_input_paths(args)) as pairs:
        output_columns = pairs.columns(output_format, filtering.added_columns)
        pool = options.model_pool(args, dtype="auto")
        mixture = filtering.mixture(pool)
        texts = messages.progress(pairs.texts(), unit=" pairs", desc="scoring")
        scanned = scan(texts, filtering.checks(), mixture, count_tokens=args.tokens is not None)
        is_kept = filtering.selection.mask(scanned.scores, scanned.tokens)
        # `_kept_rows` adds the examples, while the kept rows are written.
        not_selected: dict[str, Any] = {"pairs": int((~is_kept).sum()), "examples": []}
        if scanned.report["pairs"]:  # `run` reports empty input, for which no file is written
            with (
                open_output(args.out, binary=output_format == "parquet") as stream,
                contextlib.closing(
                    RowWriter(stream, output_columns, with_header=pairs.is_named)
                ) as writer,
            ):
                writer.write(
                    _kept_rows(pairs, scanned, is_kept, filtering.added_columns, not_selected)
                )
    report = {**scanned.report, "below": not_selected, "metrics": mixture.about(), **pool.about()}
    return _FilterResult(report, scanned.scores[is_kept], int(scanned.tokens[is_kept].sum()))


def _input_paths(args: argparse.Namespace) -> list[str]:
    """Returns the path of the file of pairs, or those of sources and translations."""
    if args.file is not None and (args.sources or args.predictions):
        raise InputError("pass either one FILE or -s and -t, not both")
    paths = [args.file] if args.file is not None else [args.sources, args.predictions]
    if None in paths:
        raise InputError(
            "nothing to filter: pass one FILE of pairs, or - for standard input, or -s and -t"
        )
    return paths


def _kept_rows(
    pairs: Pairs,
    scanned: Scan,
    is_kept: np.ndarray,
    score_columns: list[str],
    not_selected: dict[str, Any],
) -> Iterator[Document]:
    """Yields the kept rows with their scores, and collects examples of the others.

    Args:
        pairs: the input, read once more.
        scanned: the scores of the pairs that passed the checks.
        is_kept: (n,) bool, which of these pairs are kept.
        score_columns: names of the columns of scores.
        not_selected: gets examples of the pairs that are not kept.
    """
    # Both iterators ascend, so each search continues where the last one ended.
    numbered_rows = enumerate(pairs.rows())
    for index, scored_row in enumerate(scanned.rows.tolist()):
        matching_rows = (row for row_number, row in numbered_rows if row_number == scored_row)
        row = next(matching_rows, None)
        if row is None:
            raise MTMetricsError(
                "the input became shorter while it was read; run again when it is complete"
            )
        score = float(scanned.scores[index])
        if is_kept[index]:
            scores = [score]
            # With a single metric, the weighted sum is the only column.
            if len(score_columns) > 1:
                scores += scanned.values[:, index].tolist()
            yield dict(row.values) | dict(zip(score_columns, scores, strict=True))
        else:
            source, target = row.values[pairs.source], row.values[pairs.target]
            add_example(not_selected, scored_row + 1, source, target, score=score)


def _filter_on_cluster(args: argparse.Namespace, filtering: Filtering) -> _FilterResult:
    """Filters on the cluster. Scored blocks are kept in OUT/_scored, so that a run with another
    selection can reuse them."""
    engine = chosen_engine(args)
    input_columns = column_names(args.file)
    text_pair = text_columns(args.file, input_columns, ["source", "translation"])
    refuse_columns(filtering.added_columns, input_columns)
    specs = {name: _with_absolute_paths(spec, args.lp) for name, spec in filtering.specs.items()}
    filtering = dataclasses.replace(filtering, specs=specs)
    pool_options = absolute_paths(options.pool_options(args, dtype="auto"))
    # Blocks that were scored with the same settings are not scored again.
    settings = {
        "metrics": list(map(str, specs.values())),
        "weights": filtering.weights,
        "names": filtering.added_columns,
        "pool": pool_options,
        "checks": [
            args.lp and language_pair(args.lp),
            args.skip,
            args.length_ratio,
            args.tokens is not None,
        ],
    }
    make_worker = functools.partial(FilterWorker, filtering, text_pair, pool_options)
    # The selected pairs are written beside the folder of scored blocks, under the same names.
    BlockFolder(args.out).refuse_claimed()
    scored_folder = f"{args.out}/_scored"
    blocks = run_blocks(
        args, engine, make_worker, out=scored_folder, texts=text_pair, settings=settings
    )
    report = merged(blocks)
    # Writes the selected pairs. Near duplicates are removed here, since they may be in two blocks.
    scores, repeated, not_selected, tokens = choose(scored_folder, args.out, filtering, text_pair)
    if "repeated" not in args.skip:
        report["removed"]["repeated"] = repeated
    report |= {"below": not_selected, "scored": len(scores) + not_selected["pairs"]}
    return _FilterResult(report, scores, tokens)


def _with_absolute_paths(spec: MetricSpec, lang_pair: str | None) -> MetricSpec:
    """Returns the metric with absolute paths, for workers with another working folder."""
    preset = absolute_preset(spec, lang_pair)
    return dataclasses.replace(spec, preset=preset).having(**absolute_paths(dict(spec.options)))
