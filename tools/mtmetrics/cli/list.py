"""``mtmetrics list``: which metrics and presets there are, for which languages, and what works here now."""

import argparse
import json
from collections.abc import Sequence
from typing import Any

from mtmetrics.cli.options import add_output_options
from mtmetrics.cli.results import pick_format


def add_parser(subparsers: Any) -> None:
    """Adds the command to the parser."""
    parser = subparsers.add_parser(
        "list",
        help="list metrics, presets, languages, and what works offline",
        description="Lists every metric with its presets: what it compares translations with, the languages or the "
        "directions that it knows, and whether all that it loads is on this machine. Loads nothing; mtmetrics doctor "
        "scores a pair with each.",
    )
    parser.add_argument("names", nargs="*", metavar="METRIC", help="only these (default: all)")
    add_output_options(parser, ("table", "json", "markdown", "csv", "tsv"))
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Prints a row per metric and preset."""
    from mtmetrics.evaluation.table_styles import STYLES
    from mtmetrics.scorers.available import listed
    from mtmetrics.scorers.registry import METRICS, find_metric

    rows = [row for name in args.names or METRICS for row in listed(find_metric(name))]
    form = pick_format(args.format)
    if form == "json":
        print(json.dumps({"metrics": [row._asdict() for row in rows]}, ensure_ascii=False, indent=1))
        return 0
    table = [["metric", "preset", "compares with", "languages", "offline"]]
    for row in rows:
        compared = " or ".join(row.compares_with)
        table.append([row.metric, row.preset, compared, _in_words(row.languages), row.offline])
    print(STYLES[form](table, ()))
    return 0


def _in_words(languages: Sequence[str]) -> str:
    """Languages as they are; directions with the sources of each target together."""
    if not any("-" in language for language in languages):
        return " ".join(languages) or "those of its models"
    sources: dict[str, list[str]] = {}
    for source, _, target in (pair.partition("-") for pair in languages):
        sources.setdefault(target, []).append(source)
    return "; ".join(f"{' '.join(found)} \N{RIGHTWARDS ARROW} {target}" for target, found in sources.items())
