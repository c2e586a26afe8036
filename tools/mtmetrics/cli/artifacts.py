"""``mtmetrics artifacts``: what the catalog lists, and whether files are whole; pull, push and import have modules of
their own."""

import argparse
import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mtmetrics.cli import artifacts_import, artifacts_pull, artifacts_push
from mtmetrics.cli.io import print_table
from mtmetrics.errors import InputError

if TYPE_CHECKING:
    from mtmetrics.artifacts.catalog import CatalogEntry


def add_parser(subparsers: Any) -> None:
    """Adds the command to the parser."""
    parser = subparsers.add_parser(
        "artifacts",
        help="list, verify, pull, push or import models and maps",
        description="Models and maps: what there is, whether its files are whole, getting and publishing them.",
    )
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    shown = actions.add_parser("list", help="list the catalog", description="Lists the artifacts of the catalog.")
    shown.set_defaults(run=run_list)
    verified = actions.add_parser(
        "verify",
        help="compare files with the catalog",
        description="Compares files with the checksums of the catalog, and prints a line per problem; the exit code is 1 if there is one.",
    )
    verified.add_argument(
        "names",
        nargs="*",
        metavar="NAME|DIR",
        help="artifacts, or a folder of artifacts that were pulled (default: all that are bundled)",
    )
    verified.add_argument("--folder", metavar="DIR", help="where the files of the one NAME lie, if not in the package")
    verified.set_defaults(run=run_verify)
    for module in (artifacts_pull, artifacts_import, artifacts_push):
        module.add_action(actions)
    for action in (shown, verified):
        action.add_argument(
            "--format", choices=("table", "json"), default="table", help="output format (default: %(default)s)"
        )


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
        origin = row["origin"]
        place = f"{origin['url']}@{origin['commit'][:8]}" if origin else f"{row['repository']}@{row['revision']}"
        where = "bundled" if row["bundled"] else place
        lines.append((row["name"], row["kind"], where, str(row["files"]), size))
    print_table(lines)
    return 0


def run_verify(args: argparse.Namespace) -> int:
    """Prints what is missing or damaged."""
    from mtmetrics.artifacts.catalog import catalog, verify

    if args.folder is not None and len(args.names) != 1:
        raise InputError(f"--folder holds one artifact; pass its NAME with it, got {len(args.names)} names")
    if args.folder is not None and not Path(args.folder).is_dir():
        raise InputError(f"--folder {args.folder}: no such folder")
    entries = catalog()
    if args.folder is not None:
        folders = {args.names[0]: Path(args.folder)}
    else:
        names = args.names or [name for name, entry in entries.items() if entry.bundled]
        folders = {name: folder for given in names for name, folder in _folders(given, entries).items()}
    found = {name: list(verify(name, folder)) for name, folder in folders.items()}
    whole = not any(found.values())
    if args.format == "json":
        print(json.dumps({"whole": whole, "problems": found}, indent=1))
    else:
        for name, problems in found.items():
            print(
                "\n".join(problems)
                if problems
                else f"{name}: {len(entries[name].files)} files as in the catalog ({folders[name]})"
            )
    return 0 if whole else 1


def _folders(given: str, entries: "dict[str, CatalogEntry]") -> dict[str, Path]:
    """The artifacts that an argument of ``verify`` names, a bundled one or a folder of them, and where they lie."""
    from mtmetrics.layout import bundled_artifacts

    if given in entries:
        if not entries[given].bundled:
            raise InputError(f"artifact {given!r} is not bundled; pass --folder DIR with its files")
        return {given: bundled_artifacts() / given}
    if not Path(given).is_dir():
        raise InputError(f"unknown artifact {given!r}; there are: {', '.join(entries)}; or pass a folder of artifacts")
    held = {name: Path(given) / name for name in entries if (Path(given) / name).is_dir()}
    if not held:
        raise InputError(f"{given}: holds no folder that is named like an artifact; there are: {', '.join(entries)}")
    return held


def _row(entry: "CatalogEntry", bundled: Path) -> dict[str, Any]:
    present = [bundled / entry.name / file for file in entry.files]
    size = sum(path.stat().st_size for path in present if path.is_file()) if entry.bundled else None
    return {
        "name": entry.name,
        "kind": entry.kind,
        "bundled": entry.bundled,
        "repository": entry.repository,
        "revision": entry.revision,
        "origin": dataclasses.asdict(entry.origin) if entry.origin else None,
        "files": len(entry.files),
        "bytes": size,
    }
