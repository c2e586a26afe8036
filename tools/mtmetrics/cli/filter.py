"""``mtmetrics filter``: keeps the good sentence pairs of parallel text."""

import argparse
import contextlib
import dataclasses
import functools
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mtmetrics.checks import language_pair
from mtmetrics.cli import messages, options
from mtmetrics.cli.output import check_target, opened, write_report
from mtmetrics.cli.ray import (
    absolute_paths,
    add_engine_options,
    chosen_engine,
    run_blocks,
    text_columns,
)
from mtmetrics.cluster.engine import column_names
from mtmetrics.errors import InputError, MTMetricsError
from mtmetrics.io.lines import iter_parallel, refuse_twice
from mtmetrics.io.row_writer import Columns, RowWriter
from mtmetrics.io.tables import Row, open_table, required_texts

if TYPE_CHECKING:
    import numpy as np
    import pyarrow

    from mtmetrics.choosing.parallel_text import Filtering, Scan
    from mtmetrics.reports.metric_runs import MetricSpec

_FORMATS = ("tsv", "jsonl", "parquet")


@dataclasses.dataclass(frozen=True)
class _Pairs:
    """Parallel text that can be read again and again.

    Attributes:
        rows: reads it from the beginning.
        source: the column of the sources.
        target: that of their translations.
        is_named: whether the input names its columns.
        schema: the types of the columns, of Parquet.
    """

    rows: Callable[[], Iterator[Row]]
    source: str
    target: str
    is_named: bool
    schema: "pyarrow.Schema | None" = None

    def texts(self) -> Iterator[tuple[str, str]]:
        """Yields source and target of each row."""
        return ((row.fields[self.source], row.fields[self.target]) for row in self.rows())

    def columns(self, form: str, added: Sequence[str]) -> Columns:
        """All columns of the output: source, target, others in order of first sight, and those that
        are `added`.

        Raises:
            InputError: the format cannot hold a value, or an added column is there already.
        """
        columns = Columns(
            form, [self.source, self.target], self.schema if form == "parquet" else None
        )
        for row in self.rows():
            columns.add(row)
        _refuse_columns(added, columns.names)
        columns.add_numbers(added)
        columns.check_types()
        return columns


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Drops sentence pairs that are blank, copied, of very unequal length, in a wrong "
        "language, with different numbers, or near duplicates of an earlier pair (see "
        "mtmetrics.choosing.parallel_text.Checks); scores the rest with one or several metrics "
        "that need no reference; and keeps the best, in their order, with all columns and their "
        "score. The input is read three times; memory holds a few numbers per pair."
    )
    text = (
        "source TAB target, further columns are kept; or a table with a header, .jsonl or "
        ".parquet with source, and target or translation; - reads a table from standard input"
    )
    parser.add_argument("file", nargs="?", metavar="FILE", help=text)
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
    kept = parser.add_argument_group(
        "what is kept of the pairs that pass the checks (one of these)"
    )
    kept.add_argument(
        "--threshold", metavar="SCORE", type=float, help="pairs with at least this score"
    )
    kept.add_argument(
        "--top", metavar="SHARE", type=float, help="the best share of them, such as 0.5"
    )
    kept.add_argument(
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
    metrics = options.metric_specs(args), options.mix_weights(args)
    filtering = Filtering(selection, args.lp, args.skip, args.length_ratio, *metrics, args.column)
    checks = filtering.checks()
    if args.engine is None:
        if _form(args.out) not in _FORMATS:
            raise InputError(
                f"--out {args.out}: must end in one of "
                f"{', '.join('.' + known for known in _FORMATS)}"
            )
        check_target(args.out, "--out")
    check_target(args.report, "--report")
    report, scores = (_here if args.engine is None else _on_engine)(args, filtering)
    if not report["pairs"]:
        raise InputError(f"{args.file or args.sources}: empty; there is nothing to filter")
    kept = {"pairs": len(scores), "tokens": report.pop("tokens")}
    if len(scores):
        kept |= {"lowest_score": float(scores.min()), "mean_score": float(scores.mean())}
    if args.tokens is None:
        del kept["tokens"]
    chosen = {name: value for name, value in vars(selection).items() if value is not None}
    settings = {
        **chosen,
        "lang_pair": args.lp,
        "checks": checks.names,
        "length_ratio": args.length_ratio,
    }
    write_report(args.report, report | {"kept": kept, "settings": settings})
    removed = "".join(
        f", {entry['pairs']} {name}" for name, entry in report["removed"].items() if entry["pairs"]
    )
    lowest = f" (lowest score {scores.min():.6g})" if len(scores) else ""
    text = (
        f"{report['pairs']} pairs{removed}, {report['scored']} scored, {len(scores)} kept{lowest}"
    )
    print(f"mtmetrics: {text}", file=sys.stderr)


def _here(args: argparse.Namespace, filtering: "Filtering") -> "tuple[dict[str, Any], np.ndarray]":
    """Filters in this process: the report, and the scores of what is kept."""
    from mtmetrics.choosing.parallel_text import scan

    with _rereadable(args) as pairs:
        form = _form(args.out)
        columns = pairs.columns(form, filtering.names)
        mixture = filtering.mixture(options.model_pool(args, dtype="auto"))
        texts = messages.progress(pairs.texts(), unit=" pairs", desc="scoring")
        scanned = scan(texts, filtering.checks(), mixture, count_tokens=args.tokens is not None)
        mask = filtering.selection.mask(scanned.scores, scanned.tokens)
        below: dict[str, Any] = {"pairs": int((~mask).sum()), "examples": []}
        if scanned.report["pairs"]:
            with (
                opened(args.out, binary=form == "parquet") as stream,
                contextlib.closing(RowWriter(stream, columns, header=pairs.is_named)) as writer,
            ):
                writer.write(_kept(pairs, scanned, mask, filtering.names, below))
    report = scanned.report | {
        "below": below,
        "metrics": mixture.about(),
        "tokens": int(scanned.tokens[mask].sum()),
    }
    return report, scanned.scores[mask]


def _on_engine(
    args: argparse.Namespace, filtering: "Filtering"
) -> "tuple[dict[str, Any], np.ndarray]":
    """Filters on the cluster: scored blocks are kept in OUT/_scored, so that another choice costs
    no scoring."""
    from mtmetrics.cluster.filtering import FilterWorker, choose, merged

    engine = chosen_engine(args)
    names = column_names(args.file)
    columns = text_columns(args.file, names, ["source", "translation"])
    _refuse_columns(filtering.names, names)
    filtering = dataclasses.replace(
        filtering, specs={name: _elsewhere(spec, args.lp) for name, spec in filtering.specs.items()}
    )
    pool = absolute_paths(options.pool_options(args, dtype="auto"))
    checked = [
        args.lp and language_pair(args.lp),
        args.skip,
        args.length_ratio,
        args.tokens is not None,
    ]
    settings = {
        "metrics": [*map(str, filtering.specs.values())],
        "weights": filtering.weights,
        "names": filtering.names,
    }
    settings |= {"pool": pool, "checks": checked}
    make_worker = functools.partial(FilterWorker, filtering, columns, pool)
    scored = f"{args.out}/_scored"
    report = merged(
        run_blocks(args, engine, make_worker, out=scored, texts=columns, settings=settings)
    )
    scores, repeated, below, tokens = choose(scored, args.out, filtering, columns)
    if "repeated" not in args.skip:
        report["removed"]["repeated"] = repeated
    return report | {
        "below": below,
        "tokens": tokens,
        "scored": len(scores) + below["pairs"],
    }, scores


def _elsewhere(spec: "MetricSpec", lang_pair: str | None) -> "MetricSpec":
    """The metric with paths that hold in the working folder of another process."""
    preset = absolute_paths({"preset": spec.preset_of(lang_pair)})
    return dataclasses.replace(spec, **preset).having(**absolute_paths(dict(spec.options)))


def _refuse_columns(added: Sequence[str], columns: Sequence[str]) -> None:
    """Refuses columns of scores that the input has already; the first of them is that of the
    sums."""
    for place, name in enumerate(added):
        if name in columns:
            mend = "rename it" if place else "name that of the scores with --column"
            raise InputError(f"the input has a column {name!r} already; {mend}")


@contextlib.contextmanager
def _rereadable(args: argparse.Namespace) -> Iterator[_Pairs]:
    """Opens the input, so that it can be read several times.

    What cannot be read twice, such as standard input, is copied to a temporary file.
    """
    given = [args.file] if args.file is not None else [args.sources, args.predictions]
    if None in given or (args.file is not None and (args.sources or args.predictions)):
        raise InputError(
            "nothing to filter: pass one FILE of pairs, or - for standard input, or -s and -t"
        )
    refuse_twice(given)
    with contextlib.ExitStack() as stack:
        paths = [stack.enter_context(_regular(path)) for path in given]
        try:
            yield _pairs(paths)
        except InputError as error:
            # Whoever reads the message knows the copy by the name of what was copied.
            text = str(error)
            for path, name in zip(paths, given, strict=True):
                text = text.replace(path, "standard input" if name == "-" else name)
            if text == str(error):
                raise
            raise InputError(text) from error


def _pairs(paths: list[str]) -> _Pairs:
    sides = ["source", "target"]
    if len(paths) == 2:
        return _Pairs(lambda: _parallel_rows(paths), *sides, is_named=False)
    path = paths[0]
    table = open_table(path, sides)
    if table is None:
        return _Pairs(lambda: iter(()), *sides, is_named=False)
    if table.is_named:
        sides = required_texts(table, [("source",), ("translation",)])

    def rows() -> Iterator[Row]:
        again = open_table(path, sides)
        return iter(()) if again is None else again.rows(sides)

    return _Pairs(rows, *sides, is_named=table.is_named, schema=table.schema)


def _parallel_rows(paths: list[str]) -> Iterator[Row]:
    for number, (source, target) in enumerate(iter_parallel(paths), 1):
        yield Row(f"{paths[0]} and {paths[1]}, line {number}", {"source": source, "target": target})


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
    pairs: _Pairs, scanned: "Scan", mask: "np.ndarray", names: list[str], below: dict[str, Any]
) -> Iterator[dict[str, Any]]:
    """The rows that are kept, with their scores; of the others, examples."""
    from mtmetrics.choosing.parallel_text import add_example

    numbered = enumerate(row.fields for row in pairs.rows())
    for place, number in enumerate(scanned.rows.tolist()):
        row = next((row for other, row in numbered if other == number), None)
        if row is None:
            raise MTMetricsError(
                "the input became shorter while it was read; run again when it is complete"
            )
        score = float(scanned.scores[place])
        if mask[place]:
            yield dict(row) | dict(
                zip(names, [score, *scanned.values[:, place].tolist()], strict=False)
            )
        else:
            add_example(below, number + 1, row[pairs.source], row[pairs.target], score=score)


def _form(out: str | None) -> str:
    return Path(out).suffix.removeprefix(".") if out else "tsv"
