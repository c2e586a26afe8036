"""``mtmetrics list``: which metrics and presets there are, for which languages, and what works here
now."""

import argparse
from collections.abc import Sequence

from mtmetrics.cli.options import add_output_options, add_plugin
from mtmetrics.cli.output import print_report
from mtmetrics.scorers.metric import METRICS
from mtmetrics.scorers.registry import find_metric, installed_plugins


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Lists every metric with its presets: what it compares translations with, the languages "
        "or the directions that it knows, whether all that it loads is on this machine, and "
        "what that is, with its size and licences. Loads nothing; mtmetrics doctor scores a "
        "pair with each."
    )
    parser.add_argument(
        "names", metavar="METRIC", nargs="*", default=[], help="only these (default: all)"
    )
    add_plugin(parser)
    add_output_options(parser, ("table", "json", "markdown", "csv", "tsv"))
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    from mtmetrics.reports.styles import Grid, Report
    from mtmetrics.scorers.available import list_presets

    installed_plugins()
    rows = [row for name in args.names or METRICS for row in list_presets(find_metric(name))]
    table = [
        ["metric", "preset", "compares with", "languages", "offline", "needs", "MB", "licence"]
    ]
    for row in rows:
        cells = [
            row.metric,
            row.preset,
            " or ".join(row.compares_with),
            _languages_text(row.languages),
            row.offline,
            " ".join(row.needs),
            "" if row.megabytes is None else f"{row.megabytes:.1f}",
            ", ".join(row.licences),
        ]
        table.append(cells)
    print_report(Report({"metrics": [row._asdict() for row in rows]}, [Grid(table)]), args)


def _languages_text(languages: Sequence[str]) -> str:
    """Returns languages for a table; of directions the sources of each target together."""
    if not languages:
        return "those of its models"
    if not any("-" in language for language in languages):
        return " ".join(languages)
    sources_of_target: dict[str, list[str]] = {}
    for direction in languages:
        source, _, target = direction.partition("-")
        sources_of_target.setdefault(target, []).append(source)
    return "; ".join(
        f"{' '.join(sources)} \N{RIGHTWARDS ARROW} {target}"
        for target, sources in sources_of_target.items()
    )
