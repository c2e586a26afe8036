"""``mtmetrics artifacts``: what the catalog lists, and whether the files are whole."""

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mtmetrics.errors import InputError

if TYPE_CHECKING:
    from mtmetrics.artifacts.catalog import CatalogEntry


def add_parser(subparsers: Any) -> None:
    """Adds the command to the parser."""
    parser = subparsers.add_parser(
        "artifacts", help="list or verify models and maps", description="Models and maps: what there is, and whether its files are whole."
    )
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    shown = actions.add_parser("list", help="list the catalog", description="Lists the artifacts of the catalog.")
    shown.set_defaults(run=run_list)
    verified = actions.add_parser(
        "verify",
        help="compare files with the catalog",
        description="Compares files with the checksums of the catalog, and prints a line per problem; the exit code is 1 if there is one.",
    )
    verified.add_argument("names", nargs="*", metavar="NAME", help="artifacts (default: all that are bundled)")
    verified.add_argument("--folder", metavar="DIR", help="where the files of the one NAME lie, if not in the package")
    verified.set_defaults(run=run_verify)
    for action in (shown, verified):
        action.add_argument("--format", choices=("table", "json"), default="table", help="output format (default: %(default)s)")


def run_list(args: argparse.Namespace) -> int:
    """Prints the catalog."""
    from mtmetrics.artifacts.catalog import catalog
    from mtmetrics.layout import bundled_artifacts

    rows = [_row(entry, bundled_artifacts()) for entry in catalog().values()]
    if args.format == "json":
        print(json.dumps({"artifacts": rows}, indent=1))
        return 0
    lines = [("NAME", "KIND", "WHERE", "FILES", "MB")]
    for row in rows:
        size = "-" if row["bytes"] is None else f"{row['bytes'] / 1e6:.1f}"
        where = "bundled" if row["bundled"] else f"{row['repository']}@{row['revision']}"
        lines.append((row["name"], row["kind"], where, str(row["files"]), size))
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())
    return 0


def run_verify(args: argparse.Namespace) -> int:
    """Prints what is missing or damaged."""
    from mtmetrics.artifacts.catalog import catalog, verify
    from mtmetrics.layout import bundled_artifacts

    if args.folder is not None and len(args.names) != 1:
        raise InputError(f"--folder holds one artifact; pass its NAME with it, got {len(args.names)} names")
    if args.folder is not None and not Path(args.folder).is_dir():
        raise InputError(f"--folder {args.folder}: no such folder")
    entries = catalog()
    for name in args.names:
        if args.folder is None and name in entries and not entries[name].bundled:
            raise InputError(f"artifact {name!r} is not bundled; pass --folder DIR with its files")
    names = args.names or [name for name, entry in entries.items() if entry.bundled]
    found = {name: list(verify(name, Path(args.folder) if args.folder else None)) for name in names}
    whole = not any(found.values())
    if args.format == "json":
        print(json.dumps({"whole": whole, "problems": found}, indent=1))
    else:
        for name, problems in found.items():
            place = args.folder or bundled_artifacts() / name
            print("\n".join(problems) if problems else f"{name}: {len(entries[name].files)} files as in the catalog ({place})")
    return 0 if whole else 1


def _row(entry: "CatalogEntry", bundled: Path) -> dict[str, Any]:
    present = [bundled / entry.name / file for file in entry.files]
    size = sum(path.stat().st_size for path in present if path.is_file()) if entry.bundled else None
    return {
        "name": entry.name,
        "kind": entry.kind,
        "bundled": entry.bundled,
        "repository": entry.repository,
        "revision": entry.revision,
        "files": len(entry.files),
        "bytes": size,
    }
