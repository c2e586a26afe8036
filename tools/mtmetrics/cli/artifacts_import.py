"""``mtmetrics artifacts import``: maps from the matrices that the authors of XMoverScore published."""

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mtmetrics.errors import InputError

if TYPE_CHECKING:
    from mtmetrics.maps.remapping import Remapping


def add_action(actions: Any) -> None:
    """Adds the action to ``mtmetrics artifacts``."""
    parser = actions.add_parser(
        "import",
        help="convert the authors' matrices to maps",
        description="Converts matrices that the authors of XMoverScore published (.BAM, .GBDD) to maps. What a file is, is known by its "
        "content or its name (CORPUS.XX-YY.2k.LAYER.BAM); the options override that.",
    )
    parser.add_argument(
        "files", nargs="+", metavar="FILE", help="*.BAM, *.GBDD, or a map made of one, to bind it with --encoder"
    )
    parser.add_argument(
        "--encoder", metavar="MODEL", help="folder or Hub repository of the model that the maps are for"
    )
    parser.add_argument("--layer", type=int, metavar="N", help="layer of the encoder")
    parser.add_argument("--lp", metavar="XX-YY", help="language pair")
    parser.add_argument("--out", required=True, metavar="DIR", help="folder for the maps; other maps in it stay")
    parser.add_argument("--overwrite", action="store_true", help="replace maps of the same name")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Converts matrices and prints what was written."""
    from mtmetrics.artifacts.files import make_folder
    from mtmetrics.inputs import language_pair
    from mtmetrics.maps.files import map_file_name
    from mtmetrics.maps.published import import_map

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
            raise InputError(
                f"{file} and {targets[target][0]} would both become {target}; import them into separate folders"
            )
        if target.exists() and not args.overwrite:
            raise InputError(f"{target} exists already; pass --overwrite or another --out")
        targets[target] = (file, remapping)
    make_folder(args.out)
    for target, (_, remapping) in targets.items():
        remapping.save(target)
    rows = [
        {
            "file": str(target),
            "from": file,
            "kind": remapping.kind,
            "fingerprint": remapping.fingerprint,
            **remapping.meta,
        }
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
