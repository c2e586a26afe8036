"""``mtmetrics artifacts``: lists, verifies, pulls, imports, converts and pushes models and maps."""

import argparse
import dataclasses
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mtmetrics.artifacts.catalog import CatalogEntry, catalog, entry_toml, hub_source, pull, update_catalog, verify
from mtmetrics.artifacts.files import make_folder
from mtmetrics.cli.io import print_table
from mtmetrics.cli.options import progress
from mtmetrics.cli.space import add_push_options, pushed
from mtmetrics.errors import ArtifactError, InputError
from mtmetrics.inputs import language_pair
from mtmetrics.layout import bundled_artifacts, source_tree

if TYPE_CHECKING:
    from mtmetrics.maps.files import PublishedMap
    from mtmetrics.maps.remapping import Remapping


def add_parser(subparsers: Any) -> None:
    """Adds the command to the parser."""
    parser = subparsers.add_parser(
        "artifacts",
        help="list, verify, pull, push, import or convert models and maps",
        description="Models and maps: what there is, whether its files are whole, getting and publishing them.",
    )
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    shown = actions.add_parser("list", help="list the catalog", description="Lists the artifacts of the catalog.")
    shown.set_defaults(run=run_list)
    verified = actions.add_parser(
        "verify",
        help="compare files with the catalog",
        description="Compares files with the checksums of the catalog, and prints a line per problem; the exit code is "
        "1 if there is one.",
    )
    text = "artifacts, or a folder of artifacts that were pulled (default: all that are bundled)"
    verified.add_argument("names", nargs="*", metavar="NAME|DIR", help=text)
    verified.add_argument("--folder", metavar="DIR", help="where the files of the one NAME lie, if not in the package")
    verified.set_defaults(run=run_verify)
    for action in (shown, verified):
        text = "output format (default: %(default)s)"
        action.add_argument("--format", choices=("table", "json"), default="table", help=text)
    _add_pull(actions)
    _add_import(actions)
    _add_convert(actions)
    _add_push(actions)


def _add_pull(actions: Any) -> None:
    parser = actions.add_parser(
        "pull",
        help="fetch artifacts",
        description="Fetches artifacts from the Hub at the revision that the catalog pins, and compares them with its "
        "checksums; or gets the maps that the authors of XMoverScore published (xmoverscore-published), and converts "
        "them. Prints as JSON what was fetched and what was there already. Scoring fetches what it needs by itself, "
        "and takes what is bundled first.",
    )
    add = parser.add_argument
    add("names", nargs="*", metavar="NAME", help="artifacts")
    add("--all", action="store_true", help="all artifacts that are on the Hub")
    text = "user or organisation on the Hub (default: MTMETRICS_NAMESPACE, then the catalog)"
    add("--namespace", metavar="ORG", help=text)
    add("--lp", nargs="+", metavar="XX-YY", help="published maps: only these language pairs (default: all)")
    text = "write to DIR/NAME/ instead of the cache, for MTMETRICS_ARTIFACTS=DIR (published maps: to DIR/layer-N/)"
    add("--out", metavar="DIR", help=text)
    parser.set_defaults(run=run_pull)


def _add_import(actions: Any) -> None:
    parser = actions.add_parser(
        "import",
        help="convert the authors' matrices to maps",
        description="Converts matrices that the authors of XMoverScore published (.BAM, .GBDD) to maps. What a file "
        "is, is known by its content or its name (CORPUS.XX-YY.2k.LAYER.BAM); the options override that.",
    )
    add = parser.add_argument
    add("files", nargs="+", metavar="FILE", help="*.BAM, *.GBDD, or a map made of one, to bind it with --encoder")
    add("--encoder", metavar="MODEL", help="folder or Hub repository of the model that the maps are for")
    add("--layer", type=int, metavar="N", help="layer of the encoder")
    add("--lp", metavar="XX-YY", help="language pair")
    add("--out", required=True, metavar="DIR", help="folder for the maps; other maps in it stay")
    add("--overwrite", action="store_true", help="replace maps of the same name")
    parser.set_defaults(run=run_import)


def _add_convert(actions: Any) -> None:
    parser = actions.add_parser(
        "convert",
        help="convert a model's pytorch_model.bin to safetensors",
        description="Converts the weights of a model that exist only as pytorch_model.bin to safetensors, which run no "
        "code when they are loaded, and copies its other files. Reads tensors alone, in a process of its own, and "
        "compares each with what was written. Pass DIR in place of the model then, or make it NAME in the folder of "
        "MTMETRICS_ARTIFACTS, and presets that name the model find it.",
    )
    add = parser.add_argument
    add("model", metavar="REPO|FOLDER", help="Hub repository, or a folder that holds the model")
    add("--out", required=True, metavar="DIR", help="the folder to make")
    add("--overwrite", action="store_true", help="replace an existing one")
    add("--revision", metavar="NAME", help="branch, tag or commit of the repository (default: main)")
    add("--local-files-only", action="store_true", help="never ask the Hub")
    parser.set_defaults(run=run_convert)


def _add_push(actions: Any) -> None:
    parser = actions.add_parser(
        "push",
        help="publish artifacts on the Hub",
        description="Publishes artifacts on the Hub, one repository each: creates it, sends the files that differ, and "
        "tags it, from v1.0.0 up. The card's metadata must be complete. Without --execute it prints what would be "
        "done.",
    )
    add = parser.add_argument
    text = "bundled artifacts, or folders; a folder 'work' in one is left out"
    add("names", nargs="*", metavar="NAME|DIR", help=text)
    add("--all", action="store_true", help="all bundled artifacts")
    add(
        "--catalog",
        metavar="FILE",
        help="catalog to record what was published in (default: that of the checkout, for bundled artifacts; else the "
        "entry is printed)",
    )
    add("--private", action="store_true", help="create private repositories")
    add_push_options(parser)
    parser.set_defaults(run=run_push)


def run_list(args: argparse.Namespace) -> int:
    """Prints the catalog."""
    rows = [_row(entry) for entry in catalog().values()]
    if args.format == "json":
        print(json.dumps({"artifacts": rows}, indent=1))
        return 0
    lines = [("NAME", "KIND", "WHERE", "FILES", "MB")]
    for row in rows:
        size = "-" if row["bytes"] is None else f"{row['bytes'] / 1e6:.1f}"
        origin = row["origin"]
        place = f"{origin['url']}@{origin['commit'][:8]}" if origin else f"{row['repository']}@{row['revision']}"
        lines.append((row["name"], row["kind"], "bundled" if row["bundled"] else place, str(row["files"]), size))
    print_table(lines)
    return 0


def _row(entry: CatalogEntry) -> dict[str, Any]:
    present = [path for file in entry.files if (path := bundled_artifacts() / entry.name / file).is_file()]
    size = sum(path.stat().st_size for path in present) if entry.bundled else None
    return dataclasses.asdict(entry) | {"files": len(entry.files), "bytes": size}


def run_verify(args: argparse.Namespace) -> int:
    """Prints what is missing or damaged."""
    entries = catalog()
    if args.folder is None:
        names = args.names or [name for name, entry in entries.items() if entry.bundled]
        folders = {name: folder for given in names for name, folder in _folders(given, entries).items()}
    elif len(args.names) != 1:
        raise InputError(f"--folder holds one artifact; pass its NAME with it, got {len(args.names)} names")
    elif not Path(args.folder).is_dir():
        raise InputError(f"--folder {args.folder}: no such folder")
    else:
        folders = {args.names[0]: Path(args.folder)}
    found = {name: list(verify(name, folder)) for name, folder in folders.items()}
    whole = not any(found.values())
    if args.format == "json":
        print(json.dumps({"whole": whole, "problems": found}, indent=1))
    else:
        for name, problems in found.items():
            as_listed = f"{name}: {len(entries[name].files)} files as in the catalog ({folders[name]})"
            print("\n".join(problems or [as_listed]))
    return 0 if whole else 1


def _folders(given: str, entries: dict[str, CatalogEntry]) -> dict[str, Path]:
    """Where the artifacts lie that an argument of ``verify`` names, a bundled one or a folder of them."""
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


def run_pull(args: argparse.Namespace) -> int:
    """Fetches, and prints what was done."""
    entries = catalog()
    if args.all == bool(args.names):
        raise InputError("pass the NAMEs of artifacts, or --all")
    for name in args.names:
        if name not in entries:
            raise InputError(f"unknown artifact {name!r}; there are: {', '.join(entries)}")
    names = args.names or [name for name, entry in entries.items() if entry.repository]
    maps = {name: _wanted_maps(entries[name], args.lp) for name in names if entries[name].origin}
    others = [name for name in names if name not in maps]
    if args.lp and others:
        raise InputError(f"--lp: only for published maps, which {', '.join(others)} does not hold")
    out = Path(args.out) if args.out else None
    done = {}
    for name in names:
        done[name] = _pull_maps(entries[name], maps[name], out) if name in maps else _pull(name, args.namespace, out)
    print(json.dumps(done, indent=1))
    return 0


def _pull(name: str, namespace: str | None, out: Path | None) -> dict[str, Any]:
    source = hub_source(name, namespace=namespace)
    folder, fetched = pull(name, source, out)
    place = {"folder": str(folder), "repository": source.repository, "revision": source.revision}
    return place | {"fetched": fetched, "present": sorted(source.files.keys() - fetched)}


def _wanted_maps(entry: CatalogEntry, pairs: list[str] | None) -> "list[PublishedMap]":
    from mtmetrics.maps.files import published_maps

    maps = list(published_maps(entry).values())
    known = sorted({item.lang_pair for item in maps})
    for pair in pairs or ():
        if pair not in known:
            raise InputError(f"--lp {pair}: {entry.name} has no map for it; it has: {', '.join(known)}")
    return [item for item in maps if pairs is None or item.lang_pair in pairs]


def _pull_maps(entry: CatalogEntry, maps: "list[PublishedMap]", out: Path | None) -> dict[str, Any]:
    from mtmetrics.artifacts.download import http_client, is_offline
    from mtmetrics.maps.files import cache_folder, layered_file

    folder = out or cache_folder(entry)
    targets = {layered_file(folder, item): item for item in maps}
    present = [path for path, item in targets.items() if item.is_at(path)]
    missing = {path: item for path, item in targets.items() if path not in present}
    for path in missing:
        if path.exists() and out:
            found = "exists already and is not the published map, or damaged"
            raise InputError(f"{path} {found}; remove it or choose another --out")
    if missing and is_offline():
        lacking = f"{len(missing)} of {len(maps)} maps are not in {folder}"
        raise ArtifactError(f"{entry.name}: {lacking}, and HF_HUB_OFFLINE forbids to fetch them")
    if missing:
        with http_client() as client:
            for path, item in progress(missing.items(), desc=entry.name, unit=" files"):
                item.fetch(client, path)
    fetched, there = ([path.relative_to(folder).as_posix() for path in paths] for paths in (missing, present))
    return {"folder": str(folder), "fetched": fetched, "present": there}


def run_import(args: argparse.Namespace) -> int:
    """Converts matrices and prints what was written."""
    from mtmetrics.maps.files import import_map, map_file_name

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
            both = f"{file} and {targets[target][0]} would both become {target}"
            raise InputError(f"{both}; import them into separate folders")
        if target.exists() and not args.overwrite:
            raise InputError(f"{target} exists already; pass --overwrite or another --out")
        targets[target] = (file, remapping)
    make_folder(args.out)
    rows = []
    for target, (file, remapping) in targets.items():
        remapping.save(target)
        about = {"kind": remapping.kind, "fingerprint": remapping.fingerprint, **remapping.meta}
        rows.append({"file": str(target), "from": file, **about})
    print(json.dumps(rows, indent=1))
    return 0


def _bind(encoder: str, given: dict[str, str]) -> tuple[int, int]:
    """Adds the encoder to the metadata; returns its width and number of layers."""
    from mtmetrics.artifacts.models import model_fingerprint, model_folder, model_label, model_size

    folder = model_folder(encoder)
    given |= {"encoder": model_label(encoder), "encoder_fingerprint": model_fingerprint(folder)}
    return model_size(folder)


def _check_size(file: str, remapping: "Remapping", encoder: str, width: int, layers: int) -> None:
    own = remapping.source[0].shape[0]
    if own != width:
        raise InputError(f"{file}: for vectors of {own} numbers, but --encoder {encoder} gives {width}")
    layer = remapping.meta["layer"]
    if layer.isdigit() and int(layer) > layers:
        raise InputError(f"{file}: for layer {layer}, but --encoder {encoder} has the layers 0 to {layers}")


def run_convert(args: argparse.Namespace) -> int:
    """Converts, and prints what was converted."""
    from mtmetrics.artifacts.convert import convert_model

    options = {name: getattr(args, name) for name in ("revision", "local_files_only", "overwrite")}
    print(json.dumps({"folder": args.out, **convert_model(args.model, args.out, **options)}, indent=1))
    return 0


def run_push(args: argparse.Namespace) -> int:
    """Plans or pushes, and records what was pushed."""
    from mtmetrics.artifacts.publish import artifact_folder, artifact_publication, published_entry

    if args.all == bool(args.names):
        raise InputError("pass the NAMEs or folders of artifacts, or --all")
    names = args.names or [name for name, entry in catalog().items() if entry.bundled]
    folders = [artifact_folder(name) for name in names]
    publications = [artifact_publication(folder, args.namespace) for folder in folders]
    for done, folder in zip(pushed(publications, args, private=args.private), folders, strict=True):
        if args.execute:
            _record(published_entry(folder, done), args.catalog)
    return 0


def _record(entry: CatalogEntry, path: str | None) -> None:
    own = bundled_artifacts() / "catalog.toml" if entry.bundled and source_tree() else None
    target = Path(path) if path else own
    if target is None:
        print(f"mtmetrics: for the catalog:\n{entry_toml(entry)}", file=sys.stderr)
    elif update_catalog(target, entry):
        print(f"mtmetrics: {entry.name} recorded in {target}", file=sys.stderr)
