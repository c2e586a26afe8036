"""``mtmetrics idf``: counts in how many texts each piece of an encoder's vocabulary occurs, for weights of tokens."""

import argparse
import itertools
import json
from pathlib import Path
from typing import Any

from mtmetrics.cli.options import add_model_options, model_pool, progress
from mtmetrics.errors import InputError


def add_parser(subparsers: Any) -> None:
    """Adds the command to the parser."""
    parser = subparsers.add_parser(
        "idf",
        help="make a table of inverse document frequencies",
        description="Makes a table of inverse document frequencies over the vocabulary of an encoder, for --weights of "
        "xmoverscore: ln((M + 1) / (df + 1)) + 1, where df of M texts hold the piece. Prints what it wrote as JSON.",
    )
    add = parser.add_argument
    add("--encoder", required=True, metavar="MODEL", help="folder, bundled artifact or Hub repository")
    text = "text of source and target language, one segment per line, each of which counts as a document"
    add("--text", required=True, nargs="+", metavar="FILE", help=text)
    text = "of each file, such as --languages de en; where the encoder reads some languages differently"
    add("--languages", nargs="+", metavar="XX", help=text)
    add("--out", required=True, metavar="FILE", help="the table, such as idf.safetensors")
    add("--overwrite", action="store_true", help="replace a file of that name")
    add_model_options(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Fits and writes the table."""
    from mtmetrics.models.words import TokenWeights
    from mtmetrics.textio import iter_lines

    out = Path(args.out)
    if out.exists() and not args.overwrite:
        raise InputError(f"--out {out}: exists already; pass --overwrite or another name")
    if not out.parent.is_dir():
        raise InputError(f"--out {out}: there is no folder {out.parent}")
    languages = args.languages or [None] * len(args.text)
    if len(languages) != len(args.text):
        raise InputError(f"--languages: {len(languages)} for {len(args.text)} file(s) of --text; pass one for each")
    files = zip(args.text, languages, strict=True)
    lines = ((line, language) for path, language in files for line in iter_lines(path) if line.strip())
    texts, each = itertools.tee(progress(lines, desc="counting", unit=" lines"))
    weights = TokenWeights.fit(
        model_pool(args).encoder(args.encoder),
        (line for line, _ in texts),
        languages=(language for _, language in each),
    )
    weights.save(out)
    print(json.dumps({"file": str(out), "fingerprint": weights.fingerprint, "pieces": len(weights.table)}, indent=1))
    return 0
