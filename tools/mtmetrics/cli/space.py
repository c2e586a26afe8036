"""``mtmetrics space``: publishes metrics as Spaces on the Hub.

``mtmetrics artifacts push`` uses `add_push_options`, `push_or_plan` and `print_note_on_execute`
too."""

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from mtmetrics.checks import warn
from mtmetrics.cli import options

if TYPE_CHECKING:
    from mtmetrics.artifacts.publish import Plan, Publication

_SIGNS = {"add": "+", "update": "~", "delete": "-"}


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description = "Metrics as Spaces on the Hub."
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    push_description = (
        "Publishes metrics as Spaces with a demo, so that evaluate.load('ORG/NAME') finds them, "
        "and the page of mtmetrics demo as compare. A Space holds a copy of this package, taken "
        "from a wheel. Without --execute it prints what would be done."
    )
    push = actions.add_parser("push", help="publish Spaces", description=push_description)
    push.add_argument("names", metavar="NAME", nargs="+", help="metrics, or compare")
    push.add_argument(
        "--wheel", metavar="FILE", help="wheel of mtmetrics (default: built from the checkout)"
    )
    push.add_argument(
        "--package-url",
        metavar="URL",
        help=(
            "where pip finds this package, such as git+https://HOST/ORG/mtmetrics@TAG: "
            "evaluate.load says so without it"
        ),
    )
    add_push_options(push)
    push.set_defaults(run=run_push)


def add_push_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options that every push has."""
    parser.add_argument(
        "--namespace", metavar="ORG", required=True, help="user or organisation on the Hub"
    )
    parser.add_argument(
        "--execute", action="store_true", help="do it; otherwise what would be done is printed"
    )
    options.add_format(parser)


def run_push(args: argparse.Namespace) -> None:
    """Plans or pushes the Spaces."""
    from mtmetrics.artifacts.publish import build_wheel, space_publication

    with tempfile.TemporaryDirectory(prefix="mtmetrics-space-") as folder:
        scratch = Path(folder)
        wheel = Path(args.wheel) if args.wheel else build_wheel(scratch)
        publications = [
            space_publication(name, args.namespace, wheel, scratch, args.package_url)
            for name in args.names
        ]
        for publication in publications:
            push_or_plan(publication, args)
    print_note_on_execute(args)
    if args.package_url is None:
        warn(
            "--package-url is missing: evaluate.load of the Space would have people install any "
            "package of this name"
        )


def push_or_plan(
    publication: "Publication", args: argparse.Namespace, *, private: bool = False
) -> "Plan":
    """Pushes a publication if the user passed ``--execute``; otherwise only plans the push. Prints
    the plan in either case, in the format of ``--format``, and returns it.

    Args:
        publication: the files to send, and their repository.
        args: parsed arguments, see `add_push_options`.
        private: whether a new repository is private.
    """
    from mtmetrics.artifacts.publish import plan, push

    executed = push(publication, private=private) if args.execute else plan(publication)
    text = _as_json(executed, args.execute) if args.format == "json" else as_text(executed)
    print(text, flush=True)
    return executed


def print_note_on_execute(args: argparse.Namespace) -> None:
    """Prints that nothing was sent, and how to send it, if the user did not pass ``--execute``."""
    if not args.execute:
        advice = "--execute does it, with the token of 'hf auth login' or HF_TOKEN"
        print(f"mtmetrics: nothing was sent; {advice}", file=sys.stderr)


def as_text(plan: "Plan") -> str:
    """Describes a push, planned or done, for the terminal."""
    repository, kind, files = plan.publication
    if plan.created:
        action = "create"
    elif plan.changes or not plan.tagged:
        action = "update"
    else:
        action = "nothing to do"
    about = f"{kind}, {len(files)} files, {plan.tag}"
    lines = [f"{repository} ({about}): {action}, {plan.size / 1e6:.1f} MB to send"]
    for change, path, size in plan.changes:
        lines.append(f"  {_SIGNS[change]} {path}  {size}")
    return "\n".join(lines)


def _as_json(plan: "Plan", executed: bool) -> str:
    repository, kind, _ = plan.publication
    document = {
        "repository": repository,
        "kind": kind,
        "tag": plan.tag,
        "changes": [change._asdict() for change in plan.changes],
        "bytes": plan.size,
        "executed": executed,
    }
    return json.dumps(document)
