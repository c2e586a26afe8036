"""``mtmetrics filter``: keeps the good sentence pairs of parallel text."""

import argparse
import contextlib
import dataclasses
import functools
import itertools
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from mtmetrics.checks import language_pair
from mtmetrics.cli import options
from mtmetrics.cli.output import check_target, opened, write_report
from mtmetrics.cli.ray import add_engine_options
from mtmetrics.errors import InputError, MTMetricsError
from mtmetrics.io.lines import iter_parallel, iter_rows, table_keys

if TYPE_CHECKING:
    import numpy as np

    from mtmetrics.choosing.parallel_text import Checks, Scan, Selection
    from mtmetrics.reports.metric_runs import MetricSpec

_FORMATS = ("tsv", "jsonl", "parquet")
_ROWS_AT_ONCE = 10_000
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
        {"type": lambda text: text.split("+"), "default": []},
    ),
    "--length-ratio RATIO": ("how many times as long one side may be as the other", 3.0),
}
_Rows = Iterable[dict[str, Any]]
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
    from mtmetrics.choosing.parallel_text import Checks, Selection

    selection = Selection(args.threshold, args.top, args.tokens)
    checks = Checks(args.lp and language_pair(args.lp), skip=args.skip, length_ratio=args.length_ratio)
    specs, weights = options.metric_specs(args), options.mix_weights(args)
    if args.engine is None:
        if _form(args.out) not in _FORMATS:
            raise InputError(f"--out {args.out}: must end in one of {', '.join('.' + known for known in _FORMATS)}")
        check_target(args.out, "--out")
    check_target(args.report, "--report")
    names = [args.column, *(specs if len(specs) > 1 else ())]
    work = _here if args.engine is None else _on_engine
    report, scores = work(args, selection, checks, specs, weights, names)
    if not report["pairs"]:
        raise InputError(f"{args.file or args.sources}: empty; there is nothing to filter")
    kept = {"pairs": len(scores), "tokens": report.pop("tokens")}
    if len(scores):
        kept |= {"lowest_score": float(scores.min()), "mean_score": float(scores.mean())}
    if args.tokens is None:
        del kept["tokens"]
    asked = {name: value for name, value in vars(selection).items() if value is not None}
    settings = {**asked, "lang_pair": args.lp, "checks": checks.names, "length_ratio": args.length_ratio}
    write_report(args.report, report | {"kept": kept, "settings": settings})
    removed = "".join(f", {entry['pairs']} {name}" for name, entry in report["removed"].items() if entry["pairs"])
    lowest = f" (lowest score {scores.min():.6g})" if len(scores) else ""
    text = f"{report['pairs']} pairs{removed}, {report['scored']} scored, {len(scores)} kept{lowest}"
    print(f"mtmetrics: {text}", file=sys.stderr)


def _here(
    args: argparse.Namespace,
    selection: "Selection",
    checks: "Checks",
    specs: "dict[str, MetricSpec]",
    weights: dict[str, float],
    names: list[str],
) -> "tuple[dict[str, Any], np.ndarray]":
    """Filters in this process: the report, and the scores of what is kept."""
    from mtmetrics.choosing.mixture import Mixture, load_scorers
    from mtmetrics.choosing.parallel_text import scan

    with _rereadable(args) as (read, columns):
        _refuse_column(args.column, columns)
        mixture = Mixture(load_scorers(specs, ["sources"], options.model_pool(args, dtype="auto"), args.lp), weights)
        rows = options.progress(read(), unit=" pairs", desc="scoring")
        pairs = ((row["source"], row[columns[1]]) for row in rows)
        found = scan(pairs, checks, mixture, count_tokens=args.tokens is not None)
        mask = selection.mask(found.scores, found.tokens)
        below: dict[str, Any] = {"pairs": int((~mask).sum()), "examples": []}
        if found.report["pairs"]:
            _write(args.out, _kept(read(), found, mask, names, columns[1], below))
    report = found.report | {"below": below, "metrics": mixture.about(), "tokens": int(found.tokens[mask].sum())}
    return report, found.scores[mask]


def _on_engine(
    args: argparse.Namespace,
    selection: "Selection",
    checks: "Checks",
    specs: "dict[str, MetricSpec]",
    weights: dict[str, float],
    names: list[str],
) -> "tuple[dict[str, Any], np.ndarray]":
    """Filters on the cluster: scored blocks are kept in OUT/_scored, so that another choice costs no scoring."""
    from mtmetrics.cli.ray import absolute_paths, chosen_engine
    from mtmetrics.cluster.engine import column_names, map_blocks
    from mtmetrics.cluster.filtering import FilterWorker, choose, merged

    engine = chosen_engine(args)
    known = column_names(args.file)
    columns = ("source", "target" if "target" in known else "translation")
    _refuse_column(args.column, known)
    # Paths that hold in the working folder of another process too.
    pool = options.pool_options(args, dtype="auto")
    pool["embedding_cache"] = pool["embedding_cache"] and os.path.abspath(pool["embedding_cache"])
    specs = {name: dataclasses.replace(spec, **absolute_paths({"preset": spec.preset})) for name, spec in specs.items()}
    counted = (args.lp and language_pair(args.lp), args.skip, args.length_ratio, args.tokens is not None)
    settings = {"metrics": [*map(str, specs.values())], "weights": weights, "names": names, "pool": pool}
    scored = f"{args.out}/_scored"
    blocks = map_blocks(
        functools.partial(FilterWorker, columns, names, specs, weights, pool, *counted),
        args.file,
        scored,
        engine=engine,
        texts=columns,
        settings=settings | {"checks": list(counted)},
        block_rows=args.block_rows,
        keep_errors=args.on_error == "keep",
    )
    report = merged(list(options.progress(blocks, unit=" blocks", desc="scoring")))
    scores, repeated, below, tokens = choose(scored, args.out, selection, columns, names, args.skip)
    if "repeated" not in args.skip:
        report["removed"]["repeated"] = repeated
    return report | {"below": below, "tokens": tokens, "scored": len(scores) + below["pairs"]}, scores


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
    keys = table_keys(paths[0])
    target = "translation" if keys is not None and "translation" in keys and "target" not in keys else "target"
    columns = list(dict.fromkeys(["source", target, *(keys or [])]))
    return lambda: iter_rows(paths[0], columns[:2]), columns


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
    rows: _Rows,
    found: "Scan",
    mask: "np.ndarray",
    names: list[str],
    target: str,
    below: dict[str, Any],
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
            yield row | dict(zip(names, [score, *found.values[:, place].tolist()], strict=False))
        else:
            add_example(below, number + 1, row["source"], row[target], score=score)


def _form(out: str | None) -> str:
    return Path(out).suffix.removeprefix(".") if out else "tsv"


def _write(out: str | None, rows: _Rows) -> None:
    form = _form(out)
    with opened(out, binary=form == "parquet") as stream:
        if form == "parquet":
            _write_parquet(stream, rows)
        else:
            line = _tsv if form == "tsv" else lambda row: json.dumps(row, ensure_ascii=False) + "\n"
            stream.writelines(map(line, rows))


def _tsv(row: dict[str, Any]) -> str:
    cells = ["" if value is None else value if isinstance(value, str) else repr(value) for value in row.values()]
    for cell in cells:
        if "\t" in cell or "\n" in cell:
            raise InputError(f"{cell[:60]!r} holds a tab or a line break, which TSV cannot; write .jsonl or .parquet")
    return "\t".join(cells) + "\n"


def _write_parquet(stream: IO[bytes], rows: _Rows) -> None:
    import pyarrow
    import pyarrow.parquet

    rows, schema = iter(rows), None
    with contextlib.ExitStack() as stack:
        while (block := list(itertools.islice(rows, _ROWS_AT_ONCE))) or schema is None:
            try:
                table = pyarrow.Table.from_pylist(block, schema=schema)
            except pyarrow.ArrowException as error:
                problem = f"the columns do not fit into one Parquet table ({error})"
                raise MTMetricsError(f"{problem}; write .jsonl") from error
            if schema is None:
                schema = table.schema
                writer = stack.enter_context(pyarrow.parquet.ParquetWriter(stream, schema))
            writer.write_table(table)
