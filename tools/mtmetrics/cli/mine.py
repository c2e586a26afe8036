"""``mtmetrics mine``: finds sentences that translate each other in two monolingual files."""

import argparse
import functools
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mtmetrics.cli.options import add_model_options, model_pool, progress
from mtmetrics.errors import InputError


def add_parser(subparsers: Any) -> None:
    """Adds the command to the parser."""
    parser = subparsers.add_parser(
        "mine",
        help="find parallel sentences in two monolingual files",
        description="Finds pairs of sentences that are likely translations of each other: by Word Mover's Distance "
        "(word) or by the ratio margin of sentence vectors (sentence). Writes source, target and score as JSON Lines, "
        "best first; prints what was read, left out and kept.",
    )
    parser.add_argument("--lp", required=True, metavar="XX-YY", help="language pair, such as de-en")
    parser.add_argument(
        "--source-text", required=True, metavar="FILE", help="sentences of the source language, one per line"
    )
    parser.add_argument("--target-text", required=True, metavar="FILE", help="sentences of the target language")
    parser.add_argument("--out", required=True, metavar="FILE", help="the pairs, as JSON Lines")
    parser.add_argument("--encoder", required=True, metavar="MODEL", help="folder, bundled artifact or Hub repository")
    parser.add_argument("--layer", type=int, help="hidden state of the encoder (default: last)")
    parser.add_argument(
        "--level", choices=("word", "sentence"), default="word", help="what is compared (default: %(default)s)"
    )
    parser.add_argument("--k", type=int, help="nearest neighbours to look at (default: 20 with word, 5 with sentence)")
    parser.add_argument("--share", type=float, help="word: pairs to keep, as a share of the sources (default: 0.05)")
    parser.add_argument("--limit", type=int, help="sentence: pairs to keep (default: 100000)")
    parser.add_argument("--map", help="word: map of the source side, clp or umd (default: none)")
    parser.add_argument("--maps", metavar="PATH|NAME", help="word: a map file, a folder of maps, or a map artifact")
    text = parser.add_argument_group("text")
    text.add_argument(
        "--sentences", type=int, default=40_000, help="sentences to draw from each file (default: %(default)s)"
    )
    text.add_argument("--seed", type=int, default=1, help="of the draw (default: %(default)s)")
    text.add_argument("--prepared", action="store_true", help="the files hold clean sentences: do not filter them")
    text.add_argument(
        "--no-language-filter", action="store_true", help="keep sentences that seem to be of another language"
    )
    add_model_options(parser)
    parser.set_defaults(run=run)


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
    from mtmetrics.errors import require_extra
    from mtmetrics.inputs import choice, language_pair, positive
    from mtmetrics.maps.remapping import KINDS

    require_extra("mining", "mtmetrics mine")
    languages = language_pair(args.lp)
    if languages[0] == languages[1]:
        raise InputError(f"--lp {args.lp}: two different languages are needed")
    if args.source_text == args.target_text:
        raise InputError(
            f"--source-text and --target-text: both are {args.source_text}; text of two languages is needed"
        )
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
    """What mines, its models loaded."""
    from mtmetrics.maps.files import load_map
    from mtmetrics.mining.sentences import mine_sentences
    from mtmetrics.mining.words import encode_side, mine_words

    pool = model_pool(args)
    given = {name: value for name in ("k", "share", "limit") if (value := getattr(args, name)) is not None}
    encoding, mining = (functools.partial(progress, desc=name, unit=" blocks") for name in ("encoding", "mining"))
    if args.level == "sentence":
        sentences = pool.sentence_encoder(args.encoder, layer=args.layer)
        return lambda *sides: mine_sentences(*sides, sentences, **given, wrap=encoding)
    words = pool.encoder(args.encoder, layer=args.layer)
    remapping = None
    if args.maps is not None:
        remapping = load_map(args.maps, args.lp, args.map, words, local_files_only=args.local_files_only)
    return lambda *sides: mine_words(
        *(encode_side(side, words, wrap=encoding) for side in sides), remapping, **given, wrap=mining
    )


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
