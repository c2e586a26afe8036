"""``mtmetrics artifacts pull``: artifacts from the Hub, and the maps that the authors of XMoverScore published."""

import argparse
import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mtmetrics.cli.options import progress
from mtmetrics.errors import ArtifactError, InputError

if TYPE_CHECKING:
    from mtmetrics.artifacts.catalog import CatalogEntry
    from mtmetrics.maps.published import PublishedMap


def add_action(actions: Any) -> None:
    """Adds the action to ``mtmetrics artifacts``."""
    parser = actions.add_parser(
        "pull",
        help="fetch artifacts",
        description="Fetches artifacts from the Hub at the revision that the catalog pins, and compares them with its checksums; or gets "
        "the maps that the authors of XMoverScore published (xmoverscore-published), and converts them. Prints as JSON what was "
        "fetched and what was there already. Scoring fetches what it needs by itself, and takes what is bundled first.",
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="artifacts")
    parser.add_argument("--all", action="store_true", help="all artifacts that are on the Hub")
    parser.add_argument(
        "--namespace",
        metavar="ORG",
        help="user or organisation on the Hub (default: MTMETRICS_NAMESPACE, then the catalog)",
    )
    parser.add_argument(
        "--lp", nargs="+", metavar="XX-YY", help="published maps: only these language pairs (default: all)"
    )
    parser.add_argument(
        "--out",
        metavar="DIR",
        help="write to DIR/NAME/ instead of the cache, for MTMETRICS_ARTIFACTS=DIR (published maps: to DIR/layer-N/)",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Fetches, and prints what was done."""
    from mtmetrics.artifacts.catalog import catalog

    entries = catalog()
    if args.all == bool(args.names):
        raise InputError("pass the NAMEs of artifacts, or --all")
    for name in args.names:
        if name not in entries:
            raise InputError(f"unknown artifact {name!r}; there are: {', '.join(entries)}")
    names = args.names or [name for name, entry in entries.items() if entry.repository]
    maps = {name: _wanted_maps(entries[name], args.lp) for name in names if entries[name].origin}
    if args.lp and len(maps) < len(names):
        raise InputError(
            f"--lp: only for published maps, which {', '.join(name for name in names if name not in maps)} does not hold"
        )
    out = Path(args.out) if args.out else None
    done = {
        name: _pull_maps(entries[name], maps[name], out) if name in maps else _pull(name, args.namespace, out)
        for name in names
    }
    print(json.dumps(done, indent=1))
    return 0


def _pull(name: str, namespace: str | None, out: Path | None) -> dict[str, Any]:
    from mtmetrics.artifacts.pull import pull
    from mtmetrics.artifacts.resolve import hub_source

    return dataclasses.asdict(pull(name, hub_source(name, namespace=namespace), out))


def _wanted_maps(entry: "CatalogEntry", pairs: list[str] | None) -> "list[PublishedMap]":
    from mtmetrics.maps.published import published_maps

    maps = list(published_maps(entry).values())
    known = sorted({item.lang_pair for item in maps})
    for pair in pairs or ():
        if pair not in known:
            raise InputError(f"--lp {pair}: {entry.name} has no map for it; it has: {', '.join(known)}")
    return [item for item in maps if pairs is None or item.lang_pair in pairs]


def _pull_maps(entry: "CatalogEntry", maps: "list[PublishedMap]", out: Path | None) -> dict[str, Any]:
    from mtmetrics.artifacts.download import http_client, is_offline
    from mtmetrics.maps.files import cache_folder, layered_file

    folder = out or cache_folder(entry)
    targets = {layered_file(folder, item): item for item in maps}
    present = [path for path, item in targets.items() if item.is_at(path)]
    missing = {path: item for path, item in targets.items() if path not in present}
    for path in missing:
        if path.exists() and out:
            raise InputError(
                f"{path} exists already and is not the published map, or damaged; remove it or choose another --out"
            )
    if missing and is_offline():
        raise ArtifactError(
            f"{entry.name}: {len(missing)} of {len(maps)} maps are not in {folder}, and HF_HUB_OFFLINE forbids to fetch them"
        )
    if missing:
        with http_client() as client:
            for path, item in progress(missing.items(), desc=entry.name, unit=" files"):
                item.fetch(client, path)
    shown = [[path.relative_to(folder).as_posix() for path in paths] for paths in (missing, present)]
    return {"folder": str(folder), "fetched": shown[0], "present": shown[1]}
