"""``mtmetrics space``: metrics as Spaces on the Hub."""

import argparse
import tempfile
from pathlib import Path
from typing import Any

from mtmetrics.cli.publish import add_push_options, pushed


def add_parser(subparsers: Any) -> None:
    """Adds the command to the parser."""
    parser = subparsers.add_parser(
        "space", help="publish metrics as Spaces", description="Metrics as Spaces on the Hub."
    )
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    push = actions.add_parser(
        "push",
        help="publish Spaces",
        description="Publishes metrics as Spaces with a demo, so that evaluate.load('ORG/NAME') finds them. The Space installs this "
        "package from a wheel that is uploaded with it. Without --execute it prints what would be done.",
    )
    push.add_argument("names", nargs="+", metavar="NAME", help="metrics")
    push.add_argument("--wheel", metavar="FILE", help="wheel of mtmetrics (default: built from the checkout)")
    add_push_options(push)
    push.set_defaults(run=run_push)


def run_push(args: argparse.Namespace) -> int:
    """Plans or pushes the Spaces."""
    from mtmetrics.artifacts.space import build_wheel, space_publication

    with tempfile.TemporaryDirectory(prefix="mtmetrics-space-") as folder:
        scratch = Path(folder)
        wheel = Path(args.wheel) if args.wheel else build_wheel(scratch)
        for _ in pushed([space_publication(name, args.namespace, wheel, scratch) for name in args.names], args):
            pass
    return 0
