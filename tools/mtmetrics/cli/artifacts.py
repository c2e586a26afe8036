"""``mtmetrics artifacts``: lists, verifies, fetches, converts and publishes models and maps.

An artifact is a folder with a model, or with maps: matrices that remap the word vectors of one
language. The catalog lists the artifacts, with a checksum for each file.

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
    find_problems,
    update_catalog,
)
from mtmetrics.artifacts.hub import pull
from mtmetrics.artifacts.places import hub_source
from mtmetrics.checks import language_pair, names_of_pair
from mtmetrics.cli import messages, options
from mtmetrics.cli.output import Document, check_new, print_json, print_report
from mtmetrics.cli.space import add_push_options, print_note_on_execute, push_or_plan
from mtmetrics.errors import InputError
from mtmetrics.io.atomic import make_folder
from mtmetrics.layout import bundled_artifacts, source_tree

if TYPE_CHECKING:
    from mtmetrics.matching.remapping import Remapping
    from mtmetrics.matching.remapping_files import PublishedMap


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Lists, verifies, fetches, converts and publishes models and remapping matrices (maps)."
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
    options.add_format(parser)
    parser.set_defaults(run=run_list)


def _add_verify(actions: options.Subparsers) -> None:
    parser = actions.add_parser(
        "verify",
        help="compare files with the catalog",
        description=(
            "Compares files with the checksums of the catalog. Prints one line per problem, "
            "and exits with code 1 if there are any."
        ),
    )
    parser.add_argument(
        "names",
        metavar="NAME|DIR",
        nargs="*",
        default=[],
        help="artifacts, or a folder of artifacts that were pulled (default: all bundled artifacts)",
    )
    parser.add_argument(
        "--folder", metavar="DIR", help="folder with the files of NAME; takes exactly one NAME"
    )
    options.add_format(parser)
    parser.set_defaults(run=run_verify)


def _add_pull(actions: options.Subparsers) -> None:
    parser = actions.add_parser(
        "pull",
        help="fetch artifacts",
        description=(
            "Fetches artifacts from the Hub at the revision that the catalog pins, and "
            "compares them with its checksums; or gets the maps that the authors of "
            "XMoverScore published (xmoverscore-published), and converts them. Prints what was "
            "fetched and what was already there, as JSON. Scoring fetches artifacts by itself, and "
            "prefers bundled ones."
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
        help="convert all maps that the authors published into a folder to push",
        description=(
            "Fetches the matrices that the authors of XMoverScore published, each with a "
            "known hash, converts them to maps, and adds an index and a card. 'artifacts push' "
            "publishes this folder. The preset 'paper' takes single maps from the repository "
            "xmoverscore-maps of MTMETRICS_NAMESPACE, or else from the authors."
        ),
    )
    parser.add_argument(
        "--out",
        metavar="DIR",
        required=True,
        help="the folder to make; files that are already in it are not fetched again",
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
            "maps. The suffix gives the kind. Language pair and layer are read from the file or "
            "its name (CORPUS.XX-YY.2k.LAYER.BAM); --lp and --layer override them."
        ),
    )
    parser.add_argument(
        "files",
        metavar="FILE",
        nargs="+",
        help="*.BAM, *.GBDD, or a converted map, which --encoder binds to a model",
    )
    parser.add_argument(
        "--encoder",
        metavar="MODEL",
        help="folder or Hub repository of the model that the maps are for; its fingerprint is "
        "written into them",
    )
    parser.add_argument("--layer", metavar="N", type=int, help="layer of the encoder")
    parser.add_argument("--lp", metavar="XX-YY", help="language pair")
    parser.add_argument(
        "--out", metavar="DIR", required=True, help="folder for the maps; other maps in it are kept"
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
            "Loads only tensors, in a separate process, and compares their shapes and types "
            "with the written ones. A checkpoint of COMET (hparams.yaml, "
            "checkpoints/model.ckpt) becomes a preset: --metric comet:DIR. Adapters are "
            "merged into their encoder, which sentence-transformers then loads. Pass DIR wherever "
            "a model is expected. Presets that name the model find DIR if it is the folder of "
            "that name in MTMETRICS_ARTIFACTS."
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
            "for a COMET checkpoint: model with the configuration and tokenizer of its encoder "
            "(default: the one that the checkpoint names)"
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
            "that differ, and tags it with the next version, beginning with v1.0.0. The card's "
            "metadata must be complete. Without --execute it only prints the plan."
        ),
    )
    parser.add_argument(
        "names",
        metavar="NAME|DIR",
        nargs="*",
        default=[],
        help="bundled artifacts, or folders; a sub-folder 'work' is skipped",
    )
    parser.add_argument("--all", action="store_true", help="all bundled artifacts")
    parser.add_argument(
        "--catalog",
        metavar="FILE",
        help=(
            "catalog that records the published artifacts (default: the one of the source tree "
            "for bundled artifacts; else the entry is printed)"
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
        table.append(
            (entry.name, entry.kind, _origin_text(entry), str(len(entry.files)), megabytes)
        )
    print_report(Report({"artifacts": documents}, [Grid(table, (3, 4))]), args)


def _bundled_bytes(entry: CatalogEntry) -> int:
    """Returns the total size of the bundled files of an artifact."""
    paths = [bundled_artifacts() / entry.name / file for file in entry.files]
    return sum(path.stat().st_size for path in paths if path.is_file())


def _origin_text(entry: CatalogEntry) -> str:
    """Returns "bundled", or the address and version that an artifact comes from."""
    if entry.bundled:
        return "bundled"
    if entry.origin:
        return f"{entry.origin.url}@{entry.origin.commit[:8]}"
    return f"{entry.repository}@{entry.revision}"


def run_verify(args: argparse.Namespace) -> int:
    """Prints the problems of artifacts; returns 1 if there are any, else 0."""
    entries = catalog()
    folders = _folders_to_verify(args, entries)
    problems_by_name = {name: list(find_problems(name, folder)) for name, folder in folders.items()}
    all_match = not any(problems_by_name.values())
    if args.format == "json":
        print_json({"whole": all_match, "problems": problems_by_name})
    else:
        for name, problems in problems_by_name.items():
            files = len(entries[name].files)
            success_line = f"{name}: all {files} files match the catalog ({folders[name]})"
            print("\n".join(problems or [success_line]))
    return 0 if all_match else 1


def _folders_to_verify(
    args: argparse.Namespace, entries: dict[str, CatalogEntry]
) -> dict[str, Path]:
    """Returns the folders to verify: name of an artifact -> the folder with its files.

    Raises:
        InputError: a name or folder is unknown, an artifact is in two of the folders, or --folder
            has not exactly one name.
    """
    if args.folder is not None:
        if len(args.names) != 1:
            raise InputError(
                f"--folder holds one artifact; pass its NAME with it, got {len(args.names)} names"
            )
        if not Path(args.folder).is_dir():
            raise InputError(f"--folder {args.folder}: no such folder")
        return {args.names[0]: Path(args.folder)}
    bundled_names = [name for name, entry in entries.items() if entry.bundled]
    folders: dict[str, Path] = {}
    for name_or_folder in args.names or bundled_names:
        for name, folder in _folders(name_or_folder, entries).items():
            if folders.setdefault(name, folder) != folder:
                raise InputError(
                    f"{name}: in two folders, {folders[name]} and {folder}; verify them one by one"
                )
    return folders


def _folders(name_or_folder: str, entries: dict[str, CatalogEntry]) -> dict[str, Path]:
    """Returns the folders of a bundled artifact, or of all artifacts in a folder, by name.

    Raises:
        InputError: `name_or_folder` is neither.
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
    if args.namespace and maps:
        raise InputError(
            f"--namespace has no effect on published maps ({', '.join(maps)}); pull them without it"
        )
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
    """Fetches an artifact; returns which files were fetched and which were already present."""
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
    """Returns the published maps of the language pairs; all maps if `pairs` is empty.

    Raises:
        InputError: there is no map for a pair.
    """
    from mtmetrics.matching.remapping_files import published_maps

    maps = list(published_maps(entry).values())
    mapped_pairs = sorted({published.lang_pair for published in maps})
    wanted_pairs: set[str] = set()
    for pair in pairs:
        # Languages may be written in several ways, such as de-en and deu_Latn-eng_Latn.
        matching_pairs = names_of_pair(pair, mapped_pairs)
        if not matching_pairs:
            raise InputError(
                f"--lp {pair}: {entry.name} has no map for it; it has: {', '.join(mapped_pairs)}"
            )
        wanted_pairs.update(matching_pairs)
    return [published for published in maps if not pairs or published.lang_pair in wanted_pairs]


def _pull_maps(entry: CatalogEntry, maps: "list[PublishedMap]", out: Path | None) -> Document:
    """Fetches published maps; returns which files were fetched and which were already present."""
    from mtmetrics.matching.remapping_files import cache_folder, pull_maps

    show_progress = functools.partial(messages.progress, desc=entry.name, unit=" files")
    fetched_bytes = pull_maps(entry, maps, out, wrap=show_progress)
    folder = out or cache_folder(entry)
    fetched, present = [], []
    for path, size in fetched_bytes.items():
        file = path.relative_to(folder).as_posix()
        if size:
            fetched.append(file)
        else:  # the file was there, and no bytes were fetched
            present.append(file)
    return {"folder": str(folder), "fetched": fetched, "present": present}


def run_import_published(args: argparse.Namespace) -> None:
    from mtmetrics.matching.map_publication import write_publication

    entry = next(entry for entry in catalog().values() if entry.kind == "maps" and entry.origin)
    maps = _wanted_maps(entry, args.lp)
    document = _pull_maps(entry, maps, Path(args.out))
    write_publication(Path(args.out), maps)
    print_json(document)


def run_import(args: argparse.Namespace) -> None:
    from mtmetrics.artifacts.models import model_fingerprint, model_folder, model_label, model_size
    from mtmetrics.matching.remapping_files import import_map, map_file_name

    if args.lp is not None:
        language_pair(args.lp)  # raises InputError
    if args.layer is not None and args.layer < 0:
        raise InputError(f"--layer {args.layer}: must be a whole number of at least 0")
    # Values that replace what each file says.
    meta = {
        name: str(value) for name, value in options.passed_values(args, ("lp", "layer")).items()
    }
    model_dimensions = None
    if args.encoder:
        folder = model_folder(args.encoder)
        meta["encoder"] = model_label(args.encoder)
        meta["encoder_fingerprint"] = model_fingerprint(folder)
        model_dimensions = model_size(folder)
    maps: dict[Path, tuple[str, Remapping]] = {}
    for file in args.files:
        remapping = import_map(Path(file), meta)
        if model_dimensions is not None:
            _check_dimensions(file, remapping, args.encoder, *model_dimensions)
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
        document = {
            "file": str(target),
            "from": file,
            "kind": remapping.kind,
            "fingerprint": remapping.fingerprint,
            **remapping.meta,
        }
        documents.append(document)
    print_json(documents)


def _check_dimensions(
    file: str, remapping: "Remapping", encoder: str, width: int, layers: int
) -> None:
    """Checks that a map fits an encoder.

    Raises:
        InputError: the encoder has vectors of another width, or no layer of this number.
    """
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

    conversion = convert_model(
        args.model,
        args.out,
        revision=args.revision,
        encoder=args.encoder,
        local_files_only=args.local_files_only,
        overwrite=args.overwrite,
    )
    print_json({"folder": args.out, **conversion})


def run_push(args: argparse.Namespace) -> None:
    from mtmetrics.artifacts.publish import artifact_folder, artifact_publication, published_entry

    if args.all == bool(args.names):
        raise InputError("pass the NAMEs or folders of artifacts, or --all")
    names = args.names or [name for name, entry in catalog().items() if entry.bundled]
    folders = [artifact_folder(name) for name in names]
    publications = [artifact_publication(folder, args.namespace) for folder in folders]
    for publication, folder in zip(publications, folders, strict=True):
        plan = push_or_plan(publication, args, private=args.private)
        # Each artifact is recorded as soon as it is pushed: a later one may fail.
        if args.execute:
            _record(published_entry(folder, plan), args.catalog)
    print_note_on_execute(args)


def _record(entry: CatalogEntry, catalog_path: str | None) -> None:
    """Records a published artifact in a catalog, by default the one of the source tree.

    Prints the entry if there is no catalog to write to."""
    target = Path(catalog_path) if catalog_path else None
    if target is None and entry.bundled and source_tree():
        target = bundled_artifacts() / "catalog.toml"
    if target is None:
        print(f"mtmetrics: add this entry to the catalog:\n{entry_toml(entry)}", file=sys.stderr)
    elif update_catalog(target, entry):
        print(f"mtmetrics: {entry.name} recorded in {target}", file=sys.stderr)
