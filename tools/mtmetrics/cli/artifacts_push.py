"""``mtmetrics artifacts push``: artifacts as repositories on the Hub."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mtmetrics.cli.publish import add_push_options, pushed
from mtmetrics.errors import InputError

if TYPE_CHECKING:
    from mtmetrics.artifacts.catalog import CatalogEntry


def add_action(actions: Any) -> None:
    """Adds the action to ``mtmetrics artifacts``."""
    parser = actions.add_parser(
        "push",
        help="publish artifacts on the Hub",
        description="Publishes artifacts on the Hub, one repository each: creates it, sends the files that differ, and tags it, from "
        "v1.0.0 up. The card's metadata must be complete. Without --execute it prints what would be done.",
    )
    parser.add_argument(
        "names", nargs="*", metavar="NAME|DIR", help="bundled artifacts, or folders; a folder 'work' in one is left out"
    )
    parser.add_argument("--all", action="store_true", help="all bundled artifacts")
    parser.add_argument(
        "--catalog",
        metavar="FILE",
        help="catalog to record what was published in (default: that of the checkout, for bundled artifacts; else the entry is printed)",
    )
    parser.add_argument("--private", action="store_true", help="create private repositories")
    add_push_options(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Plans or pushes, and records what was pushed."""
    from mtmetrics.artifacts.catalog import catalog
    from mtmetrics.artifacts.publishing import artifact_folder, artifact_publication, published_entry

    if args.all == bool(args.names):
        raise InputError("pass the NAMEs or folders of artifacts, or --all")
    names = args.names or [name for name, entry in catalog().items() if entry.bundled]
    folders = [artifact_folder(name) for name in names]
    publications = [artifact_publication(folder, args.namespace) for folder in folders]
    for done, folder in zip(pushed(publications, args, private=args.private), folders, strict=True):
        if args.execute:
            _record(published_entry(folder, done), args.catalog)
    return 0


def _record(entry: "CatalogEntry", path: str | None) -> None:
    from mtmetrics.artifacts.catalog import entry_toml, update_catalog
    from mtmetrics.layout import bundled_artifacts, source_tree

    own = bundled_artifacts() / "catalog.toml" if entry.bundled and source_tree() else None
    target = Path(path) if path else own
    if target is None:
        print(f"mtmetrics: for the catalog:\n{entry_toml(entry)}", file=sys.stderr)
    elif update_catalog(target, entry):
        print(f"mtmetrics: {entry.name} recorded in {target}", file=sys.stderr)
