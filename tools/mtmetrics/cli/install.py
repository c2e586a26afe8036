"""``mtmetrics install``: makes ``evaluate.load("xmoverscore")`` work in any folder."""

import argparse
from typing import Any


def add_parser(subparsers: Any) -> None:
    """Adds the command to the parser."""
    parser = subparsers.add_parser(
        "install",
        help="register the metrics with evaluate",
        description='Registers the metrics in the module cache of evaluate, so that evaluate.load("xmoverscore", '
        '"mini") works in any folder and without a network. To be repeated after an update of mtmetrics; doing it '
        "twice does no harm.",
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="metrics (default: all)")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Registers, and prints one line with the next step."""
    from mtmetrics.integrations.install import install

    done = install(args.names)
    new = sum(registration.changed for registration in done)
    already = f", {len(done) - new} were registered already" if new < len(done) else ""
    print(f'{new} metrics registered{already}; now in Python: evaluate.load("{done[0].name}", "mini")')
    return 0
