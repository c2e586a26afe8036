"""``mtmetrics install``: makes ``evaluate.load("xmoverscore")`` work in any folder."""

import argparse

from mtmetrics.integrations.registration import install


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        'Registers the metrics in the module cache of evaluate, so that evaluate.load("xmoverscore", '
        '"mini") works in any folder and without a network. To be repeated after an update of mtmetrics; doing it '
        "twice does no harm."
    )
    parser.add_argument(
        "names", metavar="NAME", nargs="*", default=[], help="metrics (default: all)"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    registrations = install(args.names)
    changed = sum(registration.changed for registration in registrations)
    unchanged = len(registrations) - changed
    already = f", {unchanged} were registered already" if unchanged else ""
    name = registrations[0].name
    print(f'{changed} metrics registered{already}; now in Python: evaluate.load("{name}", "mini")')
