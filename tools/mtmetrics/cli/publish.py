"""What the commands that publish share: their options, and how they show what they would do or have done."""

import argparse
import dataclasses
import json
import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mtmetrics.artifacts.push import Plan, Publication

_SIGNS = {"add": "+", "update": "~", "delete": "-"}


def add_push_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of a push."""
    parser.add_argument("--namespace", required=True, metavar="ORG", help="user or organisation on the Hub")
    parser.add_argument("--execute", action="store_true", help="do it; otherwise what would be done is printed")
    parser.add_argument(
        "--format", choices=("table", "json"), default="table", help="output format (default: %(default)s)"
    )


def pushed(
    publications: "Iterable[Publication]", args: argparse.Namespace, *, private: bool = False
) -> "Iterator[Plan]":
    """Plans or pushes one publication after the other, and shows each, as ``--execute`` and ``--format`` say."""
    from mtmetrics.artifacts.push import plan, push

    for publication in publications:
        done = push(publication, private=private) if args.execute else plan(publication)
        _show(done, args)
        yield done
    if not args.execute:
        print(
            "mtmetrics: nothing was sent; --execute does it, with the token of 'hf auth login' or HF_TOKEN",
            file=sys.stderr,
        )


def _show(plan: "Plan", args: argparse.Namespace) -> None:
    if args.format == "json":
        print(json.dumps(_row(plan, args.execute)), flush=True)
        return
    kind, files = plan.publication.kind, len(plan.publication.files)
    what = (
        "create" if plan.created else "nothing to do" if plan.done or (args.execute and not plan.changes) else "update"
    )
    print(
        f"{plan.publication.repository} ({kind}, {files} files, {plan.tag}): {what}, {plan.size / 1e6:.1f} MB to send"
    )
    for change in plan.changes:
        print(f"  {_SIGNS[change.action]} {change.path}  {change.size}", flush=True)


def _row(plan: "Plan", executed: bool) -> dict[str, Any]:
    changes = [dataclasses.asdict(change) for change in plan.changes]
    about = {
        "repository": plan.publication.repository,
        "kind": plan.publication.kind,
        "tag": plan.tag,
        "changes": changes,
    }
    return about | {"bytes": plan.size, "executed": executed}
