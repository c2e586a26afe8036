"""``mtmetrics filter``: keeps the good sentence pairs of parallel text."""

import argparse
import contextlib
import dataclasses
import functools
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mtmetrics.checks import language_pair
from mtmetrics.cli import options
from mtmetrics.cli.output import check_target, opened, write_report
from mtmetrics.cli.ray import absolute_paths, add_engine_options, chosen_engine, run_blocks
from mtmetrics.cluster.engine import column_names
from mtmetrics.errors import InputError, MTMetricsError
from mtmetrics.io.lines import iter_parallel, refuse_twice
from mtmetrics.io.row_writer import RowWriter
from mtmetrics.io.tables import iter_rows, table_keys

if TYPE_CHECKING:
    import numpy as np

    from mtmetrics.choosing.parallel_text import Filtering, Scan
    from mtmetrics.reports.metric_runs import MetricSpec

_FORMATS = ("tsv", "jsonl", "parquet")
_FILES: options.Options = {
    **options.SOURCES,
    "-t --predictions FILE": "its translation, one per line",
    **options.LANG_PAIR,
    "--out FILE": "write there: .tsv, .jsonl or .parquet, appears when all is done (default: TSV on standard output)",
    "--report FILE": "write what was dropped and kept, with examples, there as JSON",
    "--column COLUMN": ("name of the column of scores", "score"),
}
_KEPT: options.Options = {
    "--threshold SCORE": ("pairs with at least this score", float),
    "--top SHARE": ("the best share of them, such as 0.5", float),
    "--tokens NUMBER": ("the best ones, of so many tokens on the target side", int),
}
_CHECKS: options.Options = {
    "--skip CHECK+CHECK": (
        "leave out checks: some of blank, length, copy, language, numbers and repeated, joined by +",
        {"type": lambda text: text.split("+"), "default": [], "action": "extend"},
    ),
    "--length-ratio RATIO": ("how many times as long one side may be as the other", 3.0),
}
_Rows = Iterable[Mapping[str, Any]]
_Reader = tuple[Callable[[], _Rows], list[str]]


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Drops sentence pairs that are blank, copied, of very unequal length, in a wrong language, with "
        "different numbers, or near duplicates of an earlier pair (see mtmetrics.choosing.parallel_text.Checks); "
        " scores the rest with one or several metrics that need no reference; and keeps the best, in their "
        "order, with all columns and their score. The input is read twice; memory holds a few numbers per pair."
    )
    text = "source TAB target, further columns are kept; or .jsonl or .parquet with source, and target or translation; "
    parser.add_argument("file", nargs="?", metavar="FILE", help=text + "- reads TSV from standard input")
    options.add_options(parser, _FILES)
    kept = parser.add_argument_group("what is kept of the pairs that pass the checks (one of these)")
    options.add_options(kept, _KEPT)
    options.add_options(parser.add_argument_group("checks"), _CHECKS)
    options.add_metric_options(parser, several=True)
    options.add_mix_option(parser)
    add_engine_options(parser)
    parser.set_defaults(run=run, references=None, format=None)


def run(args: argparse.Namespace) -> None:
    from mtmetrics.choosing.parallel_text import Filtering, Selection

    selection = Selection(args.threshold, args.top, args.tokens)
    metrics = options.metric_specs(args), options.mix_weights(args)
    asked = Filtering(selection, args.lp, args.skip, args.length_ratio, *metrics, args.column)
    checks = asked.checks()
    if args.engine is None:
        if _form(args.out) not in _FORMATS:
            raise InputError(f"--out {args.out}: must end in one of {', '.join('.' + known for known in _FORMATS)}")
        check_target(args.out, "--out")
    check_target(args.report, "--report")
    report, scores = (_here if args.engine is None else _on_engine)(args, asked)
    if not report["pairs"]:
        raise InputError(f"{args.file or args.sources}: empty; there is nothing to filter")
    kept = {"pairs": len(scores), "tokens": report.pop("tokens")}
    if len(scores):
        kept |= {"lowest_score": float(scores.min()), "mean_score": float(scores.mean())}
    if args.tokens is None:
        del kept["tokens"]
    chosen = {name: value for name, value in vars(selection).items() if value is not None}
    settings = {**chosen, "lang_pair": args.lp, "checks": checks.names, "length_ratio": args.length_ratio}
    write_report(args.report, report | {"kept": kept, "settings": settings})
    removed = "".join(f", {entry['pairs']} {name}" for name, entry in report["removed"].items() if entry["pairs"])
    lowest = f" (lowest score {scores.min():.6g})" if len(scores) else ""
    text = f"{report['pairs']} pairs{removed}, {report['scored']} scored, {len(scores)} kept{lowest}"
    print(f"mtmetrics: {text}", file=sys.stderr)


def _here(args: argparse.Namespace, asked: "Filtering") -> "tuple[dict[str, Any], np.ndarray]":
    """Filters in this process: the report, and the scores of what is kept."""
    from mtmetrics.choosing.parallel_text import scan

    with _rereadable(args) as (read, columns):
        _refuse_column(args.column, columns)
        mixture = asked.mixture(options.model_pool(args, dtype="auto"))
        rows = options.progress(read(), unit=" pairs", desc="scoring")
        pairs = ((row["source"], row[columns[1]]) for row in rows)
        found = scan(pairs, asked.checks(), mixture, count_tokens=args.tokens is not None)
        mask = asked.selection.mask(found.scores, found.tokens)
        below: dict[str, Any] = {"pairs": int((~mask).sum()), "examples": []}
        if found.report["pairs"]:
            form = _form(args.out)
            rows = _kept(read(), found, mask, asked.names, columns[1], below)
            with (
                opened(args.out, binary=form == "parquet") as stream,
                contextlib.closing(RowWriter(stream, form, header=False)) as writer,
            ):
                writer.write(rows)
    report = found.report | {"below": below, "metrics": mixture.about(), "tokens": int(found.tokens[mask].sum())}
    return report, found.scores[mask]


def _on_engine(args: argparse.Namespace, asked: "Filtering") -> "tuple[dict[str, Any], np.ndarray]":
    """Filters on the cluster: scored blocks are kept in OUT/_scored, so that another choice costs no scoring."""
    from mtmetrics.cluster.filtering import FilterWorker, choose, merged

    engine = chosen_engine(args)
    known = column_names(args.file)
    columns = ("source", "target" if "target" in known else "translation")
    _refuse_column(args.column, known)
    asked = dataclasses.replace(asked, specs={name: _elsewhere(spec, args.lp) for name, spec in asked.specs.items()})
    pool = absolute_paths(options.pool_options(args, dtype="auto"))
    checked = [args.lp and language_pair(args.lp), args.skip, args.length_ratio, args.tokens is not None]
    settings = {"metrics": [*map(str, asked.specs.values())], "weights": asked.weights, "names": asked.names}
    settings |= {"pool": pool, "checks": checked}
    make_worker = functools.partial(FilterWorker, asked, columns, pool)
    scored = f"{args.out}/_scored"
    report = merged(run_blocks(args, engine, make_worker, out=scored, texts=columns, settings=settings))
    scores, repeated, below, tokens = choose(scored, args.out, asked, columns)
    if "repeated" not in args.skip:
        report["removed"]["repeated"] = repeated
    return report | {"below": below, "tokens": tokens, "scored": len(scores) + below["pairs"]}, scores


def _elsewhere(spec: "MetricSpec", lang_pair: str | None) -> "MetricSpec":
    """The metric with paths that hold in the working folder of another process."""
    preset = absolute_paths({"preset": spec.preset_of(lang_pair)})
    return dataclasses.replace(spec, **preset).having(**absolute_paths(dict(spec.options)))


def _refuse_column(name: str, columns: list[str]) -> None:
    if name in columns:
        raise InputError(f"the input has a column {name!r} already; name that of the scores with --column")


@contextlib.contextmanager
def _rereadable(args: argparse.Namespace) -> Iterator[_Reader]:
    """A function that reads the rows from the beginning, and the names of the columns, source and target first.

    What cannot be read twice, such as standard input, is copied to a temporary file.
    """
    given = [args.file] if args.file is not None else [args.sources, args.predictions]
    if None in given or (args.file is not None and (args.sources or args.predictions)):
        raise InputError("nothing to filter: pass one FILE of pairs, or - for standard input, or -s and -t")
    refuse_twice(given)
    with contextlib.ExitStack() as stack:
        paths = [stack.enter_context(_regular(path)) for path in given]
        try:
            yield _reader(paths)
        except InputError as error:
            # Whoever reads the message knows the copy by the name of what was copied.
            text = str(error)
            for path, name in zip(paths, given, strict=True):
                text = text.replace(path, "standard input" if name == "-" else name)
            raise InputError(text) from error


def _reader(paths: list[str]) -> _Reader:
    if len(paths) == 2:
        sides = ["source", "target"]
        return lambda: (dict(zip(sides, row, strict=True)) for row in iter_parallel(paths)), sides
    keys = table_keys(paths[0]) or []
    target = "translation" if "translation" in keys and "target" not in keys else "target"
    columns = list(dict.fromkeys(["source", target, *keys]))
    return lambda: (row.fields for row in iter_rows(paths[0], columns[:2])), columns


@contextlib.contextmanager
def _regular(path: str) -> Iterator[str]:
    if Path(path).is_file() or (path != "-" and not Path(path).exists()):
        yield path
        return
    with (
        tempfile.NamedTemporaryFile(suffix="".join(Path(path).suffixes)) as copy,
        contextlib.nullcontext(sys.stdin.buffer) if path == "-" else open(path, "rb") as source,
    ):
        shutil.copyfileobj(source, copy)
        copy.flush()
        yield copy.name


def _kept(
    rows: _Rows, found: "Scan", mask: "np.ndarray", names: list[str], target: str, below: dict[str, Any]
) -> Iterator[dict[str, Any]]:
    """The rows that are kept, with their scores; of the others, examples."""
    from mtmetrics.choosing.parallel_text import add_example

    numbered = enumerate(rows)
    for place, number in enumerate(found.rows.tolist()):
        row = next((row for other, row in numbered if other == number), None)
        if row is None:
            raise MTMetricsError("the input became shorter while it was read; run again when it is complete")
        score = float(found.scores[place])
        if mask[place]:
            yield dict(row) | dict(zip(names, [score, *found.values[:, place].tolist()], strict=False))
        else:
            add_example(below, number + 1, row["source"], row[target], score=score)


def _form(out: str | None) -> str:
    return Path(out).suffix.removeprefix(".") if out else "tsv"
