"""``mtmetrics score``: scores translations and prints the result."""

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mtmetrics.cli.options import add_metric_options, metric_options, model_pool, progress
from mtmetrics.errors import InputError
from mtmetrics.textio import iter_parallel, iter_table

if TYPE_CHECKING:
    from mtmetrics.scorers.base import MetricResult


def add_parser(subparsers: Any) -> None:
    """Adds the command to the parser."""
    parser = subparsers.add_parser(
        "score",
        help="score translations",
        description="Scores translations: parallel files (-s, -t), or one FILE of rows "
        "(TSV: source, prediction; JSONL: source, translation).",
    )
    parser.add_argument("file", nargs="?", metavar="FILE", help="TSV without a header, or .jsonl; - reads TSV from standard input")
    parser.add_argument("-s", "--sources", metavar="FILE", help="one source segment per line")
    parser.add_argument(
        "-t", "--predictions", metavar="FILE", nargs="+", help="one translation per line; several files are several systems"
    )
    parser.add_argument("--lp", required=True, metavar="XX-YY", help="language pair, such as de-en")
    parser.add_argument("--format", choices=("json", "jsonl", "tsv"), default="json", help="output format (default: %(default)s)")
    parser.add_argument("--parts", action="store_true", help="also print the parts of the scores")
    add_metric_options(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Scores and prints."""
    names, rows = _input(args)
    rows = _not_empty(rows, args.file or args.sources)
    from mtmetrics.inputs import InputReport
    from mtmetrics.scorers.base import chunked
    from mtmetrics.scorers.load import load_scorer

    options = metric_options(args)
    scorer = load_scorer(options.pop("metric"), pool=model_pool(args), lang_pair=args.lp, **options)
    results = scorer.score_stream(chunked(progress(rows, unit=" lines", desc="scoring")))
    total = InputReport()
    for result in results:
        total.add(result.report)
    total.warn()
    {"json": _print_json, "jsonl": _print_jsonl, "tsv": _print_tsv}[args.format](names, results, args.parts)
    return 0


def _input(args: argparse.Namespace) -> tuple[list[str], Iterator[list[str]]]:
    """The names of the systems, and rows of a source and one prediction per system."""
    if args.file is not None:
        if args.sources or args.predictions:
            raise InputError("pass either one FILE or -s and -t, not both")
        return [args.file], iter_table(args.file, ("source", "translation"))
    if not args.sources or not args.predictions:
        raise InputError("nothing to score: pass -s SOURCES -t PREDICTIONS, or one FILE, or - for standard input")
    paths = [Path(path) for path in args.predictions]
    stems = [path.stem for path in paths]
    return [stem if stems.count(stem) == 1 else str(path) for stem, path in zip(stems, paths, strict=True)], iter_parallel(
        [args.sources, *args.predictions]
    )


def _not_empty(rows: Iterator[list[str]], name: str) -> Iterator[list[str]]:
    """Reads the first row at once, so that a missing or empty file is reported before any model is loaded."""
    import itertools

    first = next(rows, None)
    if first is None:
        raise InputError(f"{name}: empty; there is nothing to score")
    return itertools.chain([first], rows)


def _print_json(names: list[str], results: list["MetricResult"], parts: bool) -> None:
    if len(results) == 1:
        document: dict[str, Any] = results[0].as_dict(parts=parts)
    else:
        document = {"systems": [{"name": name} | result.as_dict(parts=parts) for name, result in zip(names, results, strict=True)]}
    json.dump(document, sys.stdout, ensure_ascii=False, indent=1)
    print()


def _print_jsonl(names: list[str], results: list["MetricResult"], parts: bool) -> None:
    for name, result in zip(names, results, strict=True):
        for number, score in enumerate(result.segments.tolist(), 1):
            row = {"system": name, "segment": number, "score": score}
            if parts:
                row |= {part: values[number - 1].item() for part, values in result.parts.items()}
            print(json.dumps(row, ensure_ascii=False))
        print(json.dumps({"system": name} | result.as_dict(scores=False), ensure_ascii=False))


def _print_tsv(names: list[str], results: list["MetricResult"], parts: bool) -> None:
    columns = ["score", *(results[0].parts if parts else ())]
    print("\t".join(["system", "segment", *columns]))
    for name, result in zip(names, results, strict=True):
        values = [result.segments, *(result.parts.values() if parts else ())]
        for number, row in enumerate(zip(*(column.tolist() for column in values), strict=True), 1):
            print("\t".join([name, str(number), *map(repr, row)]))
        print(f"{name}: mean {result.system!r} {result.signature}", file=sys.stderr)
