"""``mtmetrics artifacts``: what the catalog lists, whether files are whole, and getting what is not bundled."""

import argparse
import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mtmetrics.cli.options import progress
from mtmetrics.cli.output import print_table
from mtmetrics.errors import ArtifactError, InputError

if TYPE_CHECKING:
    from mtmetrics.artifacts.catalog import CatalogEntry
    from mtmetrics.remap import Remapping
    from mtmetrics.scorers.published_maps import PublishedMap


def add_parser(subparsers: Any) -> None:
    """Adds the command to the parser."""
    parser = subparsers.add_parser(
        "artifacts",
        help="list, verify, pull or import models and maps",
        description="Models and maps: what there is, whether its files are whole, and getting what is not bundled.",
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
    pulled = actions.add_parser(
        "pull",
        help="fetch what is not bundled",
        description="Fetches the maps that the authors of XMoverScore published (xmoverscore-published), converts them, and prints as JSON "
        "what was fetched and what was there already. Scoring fetches the one map that it needs by itself.",
    )
    pulled.add_argument("names", nargs="+", metavar="NAME", help="artifacts")
    pulled.add_argument("--lp", nargs="+", metavar="XX-YY", help="only these language pairs (default: all)")
    pulled.add_argument("--out", metavar="DIR", help="write to DIR/layer-N/ instead of the cache")
    pulled.set_defaults(run=run_pull)
    imported = actions.add_parser(
        "import",
        help="convert the authors' matrices to maps",
        description="Converts matrices that the authors of XMoverScore published (.BAM, .GBDD) to maps. What a file is, is known by its "
        "content or its name (CORPUS.XX-YY.2k.LAYER.BAM); the options override that.",
    )
    imported.add_argument("files", nargs="+", metavar="FILE", help="*.BAM, *.GBDD, or a map made of one, to bind it with --encoder")
    imported.add_argument("--encoder", metavar="MODEL", help="folder or Hub repository of the model that the maps are for")
    imported.add_argument("--layer", type=int, metavar="N", help="layer of the encoder")
    imported.add_argument("--lp", metavar="XX-YY", help="language pair")
    imported.add_argument("--out", required=True, metavar="DIR", help="folder for the maps; other maps in it stay")
    imported.add_argument("--overwrite", action="store_true", help="replace maps of the same name")
    imported.set_defaults(run=run_import)
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
        origin = row["origin"]
        place = f"{origin['url']}@{origin['commit'][:8]}" if origin else f"{row['repository']}@{row['revision']}"
        where = "bundled" if row["bundled"] else place
        lines.append((row["name"], row["kind"], where, str(row["files"]), size))
    print_table(lines)
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


def run_pull(args: argparse.Namespace) -> int:
    """Fetches published maps and prints what was done."""
    from mtmetrics.artifacts.catalog import catalog
    from mtmetrics.scorers.maps import cache_folder

    entries = catalog()
    wanted = {name: _wanted(name, entries, args.lp) for name in args.names}
    done = {}
    for name, maps in wanted.items():
        folder = Path(args.out) if args.out else cache_folder(entries[name])
        done[name] = _pull(name, maps, folder, replace=args.out is None)
    print(json.dumps(done, indent=1))
    return 0


def _wanted(name: str, entries: "dict[str, CatalogEntry]", pairs: list[str] | None) -> "list[PublishedMap]":
    from mtmetrics.scorers.published_maps import published_maps

    if name not in entries:
        raise InputError(f"unknown artifact {name!r}; there are: {', '.join(entries)}")
    if entries[name].bundled:
        raise InputError(f"artifact {name!r} is bundled with the package and needs no pull")
    maps = list(published_maps(entries[name]).values())
    if not maps:
        raise InputError(f"artifact {name!r} cannot be pulled; get it from the Hub: hf download {entries[name].repository}")
    known = sorted({item.lang_pair for item in maps})
    for pair in pairs or ():
        if pair not in known:
            raise InputError(f"--lp {pair}: {name} has no map for it; it has: {', '.join(known)}")
    return [item for item in maps if pairs is None or item.lang_pair in pairs]


def _pull(name: str, maps: "list[PublishedMap]", folder: Path, replace: bool) -> dict[str, Any]:
    from mtmetrics.artifacts.download import http_client, is_offline
    from mtmetrics.scorers.maps import layered_file

    targets = {layered_file(folder, item): item for item in maps}
    present = [path for path, item in targets.items() if item.is_at(path)]
    missing = {path: item for path, item in targets.items() if path not in present}
    for path in missing:
        if path.exists() and not replace:
            raise InputError(f"{path} exists already and is not the published map, or damaged; remove it or choose another --out")
    if missing and is_offline():
        raise ArtifactError(f"{name}: {len(missing)} of {len(maps)} maps are not in {folder}, and HF_HUB_OFFLINE forbids to fetch them")
    if missing:
        with http_client() as client:
            for path, item in progress(missing.items(), desc=name, unit=" files"):
                item.fetch(client, path)
    shown = [[path.relative_to(folder).as_posix() for path in paths] for paths in (missing, present)]
    return {"folder": str(folder), "fetched": shown[0], "present": shown[1]}


def run_import(args: argparse.Namespace) -> int:
    """Converts matrices and prints what was written."""
    from mtmetrics.artifacts.files import make_folder
    from mtmetrics.inputs import language_pair
    from mtmetrics.scorers.maps import map_file_name
    from mtmetrics.scorers.published_maps import import_map

    given: dict[str, str] = {}
    if args.lp is not None:
        language_pair(args.lp)
        given["lp"] = args.lp
    if args.layer is not None:
        if args.layer < 0:
            raise InputError(f"--layer {args.layer}: must be a whole number of at least 0")
        given["layer"] = str(args.layer)
    size = _bind(args.encoder, given) if args.encoder else None
    targets: dict[Path, tuple[str, Remapping]] = {}
    for file in args.files:
        remapping = import_map(Path(file), given)
        target = Path(args.out) / map_file_name(remapping.meta["lp"], remapping.kind, remapping.level)
        if size:
            _check_size(file, remapping, args.encoder, *size)
        if target in targets:
            raise InputError(f"{file} and {targets[target][0]} would both become {target}; import them into separate folders")
        if target.exists() and not args.overwrite:
            raise InputError(f"{target} exists already; pass --overwrite or another --out")
        targets[target] = (file, remapping)
    make_folder(args.out)
    for target, (_, remapping) in targets.items():
        remapping.save(target)
    rows = [
        {"file": str(target), "from": file, "kind": remapping.kind, "fingerprint": remapping.fingerprint, **remapping.meta}
        for target, (file, remapping) in targets.items()
    ]
    print(json.dumps(rows, indent=1))
    return 0


def _bind(encoder: str, given: dict[str, str]) -> tuple[int, int]:
    """Adds the encoder to the metadata; returns its width and number of layers."""
    from mtmetrics.artifacts.models import fingerprint, fingerprint_files, model_folder, model_label, model_size

    folder = model_folder(encoder)
    given |= {"encoder": model_label(encoder), "encoder_fingerprint": fingerprint(fingerprint_files(folder))}
    return model_size(folder)


def _check_size(file: str, remapping: "Remapping", encoder: str, width: int, layers: int) -> None:
    own = remapping.source[0].shape[0]
    if own != width:
        raise InputError(f"{file}: for vectors of {own} numbers, but --encoder {encoder} gives {width}")
    layer = remapping.meta["layer"]
    if layer.isdigit() and int(layer) > layers:
        raise InputError(f"{file}: for layer {layer}, but --encoder {encoder} has the layers 0 to {layers}")


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
