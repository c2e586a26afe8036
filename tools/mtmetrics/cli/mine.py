"""``mtmetrics mine``: finds sentences that translate each other in two monolingual files."""

import argparse
import functools
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mtmetrics.cli.options import add_model_options, model_pool, progress
from mtmetrics.errors import InputError, require_extra
from mtmetrics.inputs import choice, language_pair, positive

# Vectors of either side take at most a third of the memory; the rest is for models, texts and one block.
_SIDES, _LEAST_MEMORY = 3, 2 * 2**30


def add_parser(subparsers: Any) -> None:
    """Adds the command to the parser."""
    parser = subparsers.add_parser(
        "mine",
        help="find parallel sentences in two monolingual files",
        description="Finds pairs of sentences that are likely translations of each other: by Word Mover's Distance "
        "(word) or by the ratio margin of sentence vectors (sentence). Writes source, target and score as JSON Lines, "
        "best first; prints what was read, left out and kept.",
    )
    add = parser.add_argument
    add("--lp", required=True, metavar="XX-YY", help="language pair, such as de-en")
    add("--source-text", required=True, metavar="FILE", help="sentences of the source language, one per line")
    add("--target-text", required=True, metavar="FILE", help="sentences of the target language")
    add("--out", required=True, metavar="FILE", help="the pairs, as JSON Lines")
    text = "folder, bundled artifact or Hub repository (default: %(default)s)"
    add("--encoder", default="mini-encoder", metavar="MODEL", help=text)
    add("--layer", type=int, help="hidden state of the encoder (default: last)")
    add("--level", choices=("word", "sentence"), default="word", help="what is compared (default: %(default)s)")
    add("--k", type=int, help="nearest neighbours to look at (default: 20 with word, 5 with sentence)")
    add("--share", type=float, help="word: pairs to keep, as a share of the sources (default: 0.05)")
    add("--limit", type=int, help="sentence: pairs to keep (default: 100000)")
    add("--map", help="word: map of the source side, clp or umd (default: none)")
    add("--maps", metavar="PATH|NAME", help="word: a map file, a folder of maps, or a map artifact")
    text = "stay below it, such as 4G; vectors that need more go to files beside --out, and are mined block by block "
    text += "(default: %(default)s)"
    add("--memory", type=_size, default="12G", metavar="SIZE", help=text)
    add = parser.add_argument_group("text").add_argument
    add("--sentences", type=int, default=40_000, help="sentences to draw from each file (default: %(default)s)")
    add("--seed", type=int, default=1, help="of the draw (default: %(default)s)")
    add("--prepared", action="store_true", help="the files hold clean sentences: do not filter them")
    add("--no-language-filter", action="store_true", help="keep sentences that seem to be of another language")
    add_model_options(parser)
    parser.set_defaults(run=run)


def _size(text: str) -> int:
    """Bytes of a size such as 4G or 1500M."""
    found = re.fullmatch(r"([0-9.]+)([MGT])i?B?", text, re.IGNORECASE)
    size = int(float(found[1]) * 2 ** {"M": 20, "G": 30, "T": 40}[found[2].upper()]) if found else 0
    if size < _LEAST_MEMORY:
        raise argparse.ArgumentTypeError(f"{text!r}: give at least 2G, for models and one block, such as 4G")
    return size


def run(args: argparse.Namespace) -> int:
    """Mines, and writes the pairs."""
    languages = _check(args)
    mine = _miner(args)
    sides, counts = [], {}
    for name, path, language in zip(("source", "target"), (args.source_text, args.target_text), languages, strict=True):
        sentences, counts[name] = _sentences(args, path, language)
        sides.append(sentences)
    mined = mine(*sides)
    mined.write(args.out)
    json.dump({**counts, "mined": mined.counts}, sys.stdout, indent=1)
    print()
    return 0


def _check(args: argparse.Namespace) -> tuple[str, str]:
    """The two languages; refuses before the work what would fail after it."""
    from mtmetrics.maps.remapping import KINDS

    require_extra("mining", "mtmetrics mine")
    languages = language_pair(args.lp)
    if languages[0] == languages[1]:
        raise InputError(f"--lp {args.lp}: two different languages are needed")
    if args.source_text == args.target_text:
        both = f"both are {args.source_text}; text of two languages is needed"
        raise InputError(f"--source-text and --target-text: {both}")
    for option in {"word": ("limit",), "sentence": ("share", "map", "maps")}[args.level]:
        if getattr(args, option) is not None:
            raise InputError(f"--{option} has no effect with --level {args.level}; leave it out")
    if (args.map is None) != (args.maps is None):
        raise InputError("--map KIND and --maps PATH|NAME belong together")
    if args.map is not None:
        choice("--map", args.map, KINDS)
    for option in ("sentences", "k", "limit"):
        if getattr(args, option) is not None:
            positive(f"--{option}", getattr(args, option))
    if args.share is not None and not 0 < args.share <= 1:
        raise InputError(f"--share {args.share}: must be above 0 and at most 1")
    if not Path(args.out).parent.is_dir():
        raise InputError(f"--out {args.out}: there is no such folder")
    return languages


def _miner(args: argparse.Namespace) -> Callable[[list[str], list[str]], Any]:
    from mtmetrics.maps.files import load_map
    from mtmetrics.mining.sentences import mine_sentences
    from mtmetrics.mining.sides import encode_side
    from mtmetrics.mining.words import mine_words

    pool = model_pool(args)
    given = {name: value for name in ("k", "share", "limit") if (value := getattr(args, name)) is not None}
    encoding, mining = (functools.partial(progress, desc=name, unit=" blocks") for name in ("encoding", "mining"))
    if args.level == "sentence":
        encoder, mine = pool.sentence_encoder(args.encoder, layer=args.layer), mine_sentences
    else:
        encoder, mine = pool.encoder(args.encoder, layer=args.layer), mine_words
        if args.maps is not None:
            given["remapping"] = load_map(args.maps, args.lp, args.map, encoder, local_files_only=args.local_files_only)
    room = {"memory_bytes": args.memory // _SIDES, "folder": Path(args.out).parent}
    encode = functools.partial(encode_side, encoder=encoder, wrap=encoding, **room)
    return lambda *sides: mine(*map(encode, sides), **given, wrap=mining)


def _sentences(args: argparse.Namespace, path: str, language: str) -> tuple[list[str], dict[str, int]]:
    from mtmetrics.mining.text import draw, prepare
    from mtmetrics.textio import iter_lines

    lines = progress(iter_lines(path), desc=f"preparing {language}", unit=" lines")
    if args.prepared:
        sentences, counts = [" ".join(line.split()) for line in lines if line.strip()], {}
        if not sentences:
            raise InputError(f"{path}: empty; there are no sentences")
    else:
        sentences, counts = prepare(lines, language, name=path, identify=not args.no_language_filter)
    drawn = draw(sentences, args.sentences, args.seed)
    return drawn, {**counts, "drawn": len(drawn)}
