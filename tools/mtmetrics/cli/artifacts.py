"""``mtmetrics artifacts``: lists, verifies, pulls, imports, converts and pushes models and maps.

Each action has a function that adds its options, and one that runs it."""

import argparse
import dataclasses
import functools
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from mtmetrics.artifacts.catalog import (
    CatalogEntry,
    catalog,
    entry_toml,
    update_catalog,
    verify,
)
from mtmetrics.artifacts.hub import pull
from mtmetrics.artifacts.places import hub_source
from mtmetrics.checks import language_pair, names_of_pair
from mtmetrics.cli import messages, options
from mtmetrics.cli.output import Document, check_new, print_json, print_report
from mtmetrics.cli.space import add_push_options, pushed
from mtmetrics.errors import InputError
from mtmetrics.io.atomic import make_folder
from mtmetrics.layout import bundled_artifacts, source_tree

if TYPE_CHECKING:
    from mtmetrics.matching.remapping import Remapping
    from mtmetrics.matching.remapping_files import PublishedMap


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Models and maps: what there is, whether its files are whole, getting and publishing them."
    )
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    _add_list(actions)
    _add_verify(actions)
    _add_pull(actions)
    _add_import_published(actions)
    _add_import(actions)
    _add_convert(actions)
    _add_push(actions)


def _add_list(actions: options.Subparsers) -> None:
    parser = actions.add_parser(
        "list", help="list the catalog", description="Lists the artifacts of the catalog."
    )
    options.add_table_or_json(parser)
    parser.set_defaults(run=run_list)


def _add_verify(actions: options.Subparsers) -> None:
    parser = actions.add_parser(
        "verify",
        help="compare files with the catalog",
        description=(
            "Compares files with the checksums of the catalog, and prints a line per problem; "
            "the exit code is 1 if there is one."
        ),
    )
    parser.add_argument(
        "names",
        metavar="NAME|DIR",
        nargs="*",
        default=[],
        help="artifacts, or a folder of artifacts that were pulled (default: all that are bundled)",
    )
    parser.add_argument(
        "--folder", metavar="DIR", help="where the files of the one NAME lie, if not in the package"
    )
    options.add_table_or_json(parser)
    parser.set_defaults(run=run_verify)


def _add_pull(actions: options.Subparsers) -> None:
    parser = actions.add_parser(
        "pull",
        help="fetch artifacts",
        description=(
            "Fetches artifacts from the Hub at the revision that the catalog pins, and "
            "compares them with its checksums; or gets the maps that the authors of "
            "XMoverScore published (xmoverscore-published), and converts them. Prints as JSON "
            "what was fetched and what was there already. Scoring fetches what it needs by "
            "itself, and takes what is bundled first."
        ),
    )
    parser.add_argument("names", metavar="NAME", nargs="*", default=[], help="artifacts")
    parser.add_argument("--all", action="store_true", help="all artifacts that are on the Hub")
    parser.add_argument(
        "--namespace",
        metavar="ORG",
        help="user or organisation on the Hub (default: MTMETRICS_NAMESPACE, then the catalog)",
    )
    parser.add_argument(
        "--lp",
        metavar="XX-YY",
        **options.REPEATABLE_LIST,
        help="published maps: only these language pairs (default: all)",
    )
    parser.add_argument(
        "--out",
        metavar="DIR",
        help=(
            "write to DIR/NAME/ instead of the cache, for MTMETRICS_ARTIFACTS=DIR (published "
            "maps: to DIR/layer-N/)"
        ),
    )
    parser.set_defaults(run=run_pull)


def _add_import_published(actions: options.Subparsers) -> None:
    parser = actions.add_parser(
        "import-published",
        help="make a folder of the published maps, to publish",
        description=(
            "Fetches the matrices that the authors of XMoverScore published, each with a "
            "known hash, converts them to maps, and adds an index and a card: a folder for "
            "artifacts push. The preset paper takes one map at a time from the repository "
            "xmoverscore-maps of MTMETRICS_NAMESPACE, and from the authors where that fails."
        ),
    )
    parser.add_argument(
        "--out",
        metavar="DIR",
        required=True,
        help="the folder to make; what it holds already is not fetched again",
    )
    parser.add_argument(
        "--lp",
        metavar="XX-YY",
        **options.REPEATABLE_LIST,
        help="only these language pairs (default: all)",
    )
    parser.set_defaults(run=run_import_published)


def _add_import(actions: options.Subparsers) -> None:
    parser = actions.add_parser(
        "import",
        help="convert the authors' matrices to maps",
        description=(
            "Converts matrices that the authors of XMoverScore published (.BAM, .GBDD) to "
            "maps. What a file is, is known by its content or its name "
            "(CORPUS.XX-YY.2k.LAYER.BAM); the options override that."
        ),
    )
    parser.add_argument(
        "files",
        metavar="FILE",
        nargs="+",
        help="*.BAM, *.GBDD, or a map made of one, to bind it with --encoder",
    )
    parser.add_argument(
        "--encoder",
        metavar="MODEL",
        help="folder or Hub repository of the model that the maps are for",
    )
    parser.add_argument("--layer", metavar="N", type=int, help="layer of the encoder")
    parser.add_argument("--lp", metavar="XX-YY", help="language pair")
    parser.add_argument(
        "--out", metavar="DIR", required=True, help="folder for the maps; other maps in it stay"
    )
    parser.add_argument("--overwrite", action="store_true", help="replace maps of the same name")
    parser.set_defaults(run=run_import)


def _add_convert(actions: options.Subparsers) -> None:
    parser = actions.add_parser(
        "convert",
        help="convert a model's pytorch_model.bin to safetensors, or merge adapters",
        description=(
            "Converts the weights of a model that exist only as pytorch_model.bin to "
            "safetensors, which run no code when they are loaded, and copies its other files. "
            "Reads tensors alone, in a process of its own, and compares their shapes and "
            "types with what was written. A checkpoint of COMET (hparams.yaml, "
            "checkpoints/model.ckpt) becomes a preset: --metric comet:DIR. Adapters of an encoder "
            "become the encoder with them merged, which sentence-transformers loads. Pass DIR in place "
            "of the model then, or make it NAME in the folder of MTMETRICS_ARTIFACTS, and "
            "presets that name the model find it."
        ),
    )
    parser.add_argument(
        "model", metavar="REPO|FOLDER", help="Hub repository, or a folder that holds the model"
    )
    parser.add_argument("--out", metavar="DIR", required=True, help="the folder to make")
    parser.add_argument("--overwrite", action="store_true", help="replace an existing one")
    parser.add_argument(
        "--revision", metavar="NAME", help="branch, tag or commit of the repository (default: main)"
    )
    parser.add_argument(
        "--encoder",
        metavar="MODEL",
        help=(
            "of a checkpoint of COMET, where configuration and tokenizer of its encoder lie "
            "(default: as it says)"
        ),
    )
    parser.add_argument("--local-files-only", action="store_true", help="never ask the Hub")
    parser.set_defaults(run=run_convert)


def _add_push(actions: options.Subparsers) -> None:
    parser = actions.add_parser(
        "push",
        help="publish artifacts on the Hub",
        description=(
            "Publishes artifacts on the Hub, one repository each: creates it, sends the files "
            "that differ, and tags it, from v1.0.0 up. The card's metadata must be complete. "
            "Without --execute it prints what would be done."
        ),
    )
    parser.add_argument(
        "names",
        metavar="NAME|DIR",
        nargs="*",
        default=[],
        help="bundled artifacts, or folders; a folder 'work' in one is left out",
    )
    parser.add_argument("--all", action="store_true", help="all bundled artifacts")
    parser.add_argument(
        "--catalog",
        metavar="FILE",
        help=(
            "catalog to record what was published in (default: that of the checkout, for bundled "
            "artifacts; else the entry is printed)"
        ),
    )
    parser.add_argument("--private", action="store_true", help="create private repositories")
    add_push_options(parser)
    parser.set_defaults(run=run_push)


def run_list(args: argparse.Namespace) -> None:
    from mtmetrics.reports.styles import Grid, Report

    documents = []
    table = [("NAME", "KIND", "WHERE", "FILES", "MB")]
    for entry in catalog().values():
        size = _bundled_bytes(entry) if entry.bundled else None
        document = dataclasses.asdict(entry) | {"files": len(entry.files), "bytes": size}
        documents.append(document)
        megabytes = "-" if size is None else f"{size / 1e6:.1f}"
        table.append((entry.name, entry.kind, _place(entry), str(len(entry.files)), megabytes))
    print_report(Report({"artifacts": documents}, [Grid(table, (3, 4))]), args)


def _bundled_bytes(entry: CatalogEntry) -> int:
    """Returns the size of those files of an artifact that are bundled."""
    paths = [bundled_artifacts() / entry.name / file for file in entry.files]
    return sum(path.stat().st_size for path in paths if path.is_file())


def _place(entry: CatalogEntry) -> str:
    """Returns where an artifact comes from."""
    if entry.bundled:
        return "bundled"
    if entry.origin:
        return f"{entry.origin.url}@{entry.origin.commit[:8]}"
    return f"{entry.repository}@{entry.revision}"


def run_verify(args: argparse.Namespace) -> int:
    """Prints the problems of artifacts, and returns 1 if there is one."""
    entries = catalog()
    folders = _folders_to_verify(args, entries)
    problems_of = {name: list(verify(name, folder)) for name, folder in folders.items()}
    is_whole = not any(problems_of.values())
    if args.format == "json":
        print_json({"whole": is_whole, "problems": problems_of})
    else:
        for name, problems in problems_of.items():
            files = len(entries[name].files)
            as_listed = f"{name}: {files} files as in the catalog ({folders[name]})"
            print("\n".join(problems or [as_listed]))
    return 0 if is_whole else 1


def _folders_to_verify(
    args: argparse.Namespace, entries: dict[str, CatalogEntry]
) -> dict[str, Path]:
    """Returns name of an artifact -> the folder with its files."""
    if args.folder is None:
        bundled_names = [name for name, entry in entries.items() if entry.bundled]
        folders = {}
        for name_or_folder in args.names or bundled_names:
            folders |= _folders(name_or_folder, entries)
        return folders
    if len(args.names) != 1:
        raise InputError(
            f"--folder holds one artifact; pass its NAME with it, got {len(args.names)} names"
        )
    if not Path(args.folder).is_dir():
        raise InputError(f"--folder {args.folder}: no such folder")
    return {args.names[0]: Path(args.folder)}


def _folders(name_or_folder: str, entries: dict[str, CatalogEntry]) -> dict[str, Path]:
    """Returns the folders of a bundled artifact, or of all artifacts in a folder, by name.

    Raises:
        InputError: it is neither.
    """
    if name_or_folder in entries:
        if not entries[name_or_folder].bundled:
            raise InputError(
                f"artifact {name_or_folder!r} is not bundled; pass --folder DIR with its files"
            )
        return {name_or_folder: bundled_artifacts() / name_or_folder}
    parent = Path(name_or_folder)
    if not parent.is_dir():
        raise InputError(
            f"unknown artifact {name_or_folder!r}; there are: {', '.join(entries)}; or pass a "
            "folder of artifacts"
        )
    folders = {name: parent / name for name in entries if (parent / name).is_dir()}
    if not folders:
        raise InputError(
            f"{name_or_folder}: holds no folder that is named like an artifact; there are: "
            f"{', '.join(entries)}"
        )
    return folders


def run_pull(args: argparse.Namespace) -> None:
    entries = catalog()
    if args.all == bool(args.names):
        raise InputError("pass the NAMEs of artifacts, or --all")
    for name in args.names:
        if name not in entries:
            raise InputError(f"unknown artifact {name!r}; there are: {', '.join(entries)}")
    names = args.names or [name for name, entry in entries.items() if entry.repository]
    maps = {name: _wanted_maps(entries[name], args.lp) for name in names if entries[name].origin}
    names_without_maps = [name for name in names if name not in maps]
    if args.lp and names_without_maps:
        raise InputError(
            f"--lp: only for published maps, which {', '.join(names_without_maps)} does not hold"
        )
    out = Path(args.out) if args.out else None
    documents = {}
    for name in names:
        if name in maps:
            documents[name] = _pull_maps(entries[name], maps[name], out)
        else:
            documents[name] = _pull(name, args.namespace, out)
    print_json(documents)


def _pull(name: str, namespace: str | None, out: Path | None) -> Document:
    """Fetches an artifact, and describes what was fetched and what was present."""
    source = hub_source(name, namespace=namespace)
    folder, fetched_files = pull(name, source, out)
    return {
        "folder": str(folder),
        "repository": source.repository,
        "revision": source.revision,
        "fetched": fetched_files,
        "present": sorted(source.files.keys() - fetched_files),
    }


def _wanted_maps(entry: CatalogEntry, pairs: list[str]) -> "list[PublishedMap]":
    """Returns the published maps of some language pairs; all maps where there are none.

    Raises:
        InputError: there is no map for a pair.
    """
    from mtmetrics.matching.remapping_files import published_maps

    maps = list(published_maps(entry).values())
    mapped_pairs = sorted({item.lang_pair for item in maps})
    wanted_pairs: set[str] = set()
    for pair in pairs:
        names = names_of_pair(pair, mapped_pairs)
        if not names:
            raise InputError(
                f"--lp {pair}: {entry.name} has no map for it; it has: {', '.join(mapped_pairs)}"
            )
        wanted_pairs.update(names)
    return [item for item in maps if not pairs or item.lang_pair in wanted_pairs]


def _pull_maps(entry: CatalogEntry, maps: "list[PublishedMap]", out: Path | None) -> Document:
    """Fetches published maps, and describes what was fetched and what was present."""
    from mtmetrics.matching.remapping_files import cache_folder, pull_maps

    wrap = functools.partial(messages.progress, desc=entry.name, unit=" files")
    fetched_bytes = pull_maps(entry, maps, out, wrap=wrap)
    folder = out or cache_folder(entry)
    fetched, present = [], []
    for path, size in fetched_bytes.items():
        files = fetched if size else present
        files.append(path.relative_to(folder).as_posix())
    return {"folder": str(folder), "fetched": fetched, "present": present}


def run_import_published(args: argparse.Namespace) -> None:
    from mtmetrics.matching.map_publication import write_publication

    entry = next(entry for entry in catalog().values() if entry.kind == "maps" and entry.origin)
    maps = _wanted_maps(entry, args.lp)
    document = _pull_maps(entry, maps, Path(args.out))
    write_publication(Path(args.out), entry, maps)
    print_json(document)


def run_import(args: argparse.Namespace) -> None:
    from mtmetrics.artifacts.models import model_fingerprint, model_folder, model_label, model_size
    from mtmetrics.matching.remapping_files import import_map, map_file_name

    if args.lp is not None:
        language_pair(args.lp)
    if args.layer is not None and args.layer < 0:
        raise InputError(f"--layer {args.layer}: must be a whole number of at least 0")
    # Options by which the user replaces the maps of a preset.
    values = {"lp": args.lp, "layer": args.layer}
    meta = {name: str(value) for name, value in values.items() if value is not None}
    size = None
    if args.encoder:
        folder = model_folder(args.encoder)
        meta["encoder"] = model_label(args.encoder)
        meta["encoder_fingerprint"] = model_fingerprint(folder)
        size = model_size(folder)
    maps: dict[Path, tuple[str, Remapping]] = {}
    for file in args.files:
        remapping = import_map(Path(file), meta)
        if size is not None:
            _check_size(file, remapping, args.encoder, *size)
        name = map_file_name(remapping.meta["lp"], remapping.kind, remapping.level)
        target = Path(args.out) / name
        if target in maps:
            raise InputError(
                f"{file} and {maps[target][0]} would both become {target}; import them into "
                "separate folders"
            )
        maps[target] = (file, remapping)
    check_new(maps, "--out", overwrite=args.overwrite)
    make_folder(args.out)
    documents = []
    for target, (file, remapping) in maps.items():
        remapping.save(target)
        about = {"kind": remapping.kind, "fingerprint": remapping.fingerprint, **remapping.meta}
        documents.append({"file": str(target), "from": file, **about})
    print_json(documents)


def _check_size(file: str, remapping: "Remapping", encoder: str, width: int, layers: int) -> None:
    """Refuses a map that is for wider or narrower vectors, or for a higher layer, than the encoder
    has."""
    map_width, layer = remapping.source[0].shape[0], remapping.meta["layer"]
    if map_width != width:
        raise InputError(
            f"{file}: for vectors of {map_width} numbers, but --encoder {encoder} gives {width}"
        )
    if layer.isdigit() and int(layer) > layers:
        raise InputError(
            f"{file}: for layer {layer}, but --encoder {encoder} has the layers 0 to {layers}"
        )


def run_convert(args: argparse.Namespace) -> None:
    from mtmetrics.artifacts.convert import convert_model

    about = convert_model(
        args.model,
        args.out,
        revision=args.revision,
        encoder=args.encoder,
        local_files_only=args.local_files_only,
        overwrite=args.overwrite,
    )
    print_json({"folder": args.out, **about})


def run_push(args: argparse.Namespace) -> None:
    from mtmetrics.artifacts.publish import artifact_folder, artifact_publication, published_entry

    if args.all == bool(args.names):
        raise InputError("pass the NAMEs or folders of artifacts, or --all")
    names = args.names or [name for name, entry in catalog().items() if entry.bundled]
    folders = [artifact_folder(name) for name in names]
    publications = [artifact_publication(folder, args.namespace) for folder in folders]
    plans = pushed(publications, args, private=args.private)
    for plan, folder in zip(plans, folders, strict=True):
        if args.execute:
            _record(published_entry(folder, plan), args.catalog)


def _record(entry: CatalogEntry, catalog_path: str | None) -> None:
    """Writes what was published into a catalog, by default that of the checkout; prints it where
    there is none."""
    target = Path(catalog_path) if catalog_path else None
    if target is None and entry.bundled and source_tree():
        target = bundled_artifacts() / "catalog.toml"
    if target is None:
        print(f"mtmetrics: for the catalog:\n{entry_toml(entry)}", file=sys.stderr)
    elif update_catalog(target, entry):
        print(f"mtmetrics: {entry.name} recorded in {target}", file=sys.stderr)
