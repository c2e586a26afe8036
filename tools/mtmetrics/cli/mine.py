"""``mtmetrics mine``: finds sentences that translate each other in two monolingual files."""

import argparse
import dataclasses
import functools
import operator
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mtmetrics.checks import choice, language_pair, positive, share
from mtmetrics.cli import messages, options
from mtmetrics.cli.output import check_target, print_json
from mtmetrics.errors import InputError, require_extra

_MEMORY, _LEAST_MEMORY = "12G", 2 * 2**30
_ENCODER, _WORD_LAYER = "mini-encoder", 4


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Finds pairs of sentences that are likely translations of each other: by Word Mover's "
        "Distance (word) or by the ratio margin of sentence vectors (sentence). Writes source, "
        "target and score as JSON Lines, best first; prints what was read, left out and kept."
    )
    parser.add_argument("--lp", metavar="XX-YY", required=True, help="language pair, such as de-en")
    parser.add_argument(
        "--source-text",
        metavar="FILE",
        required=True,
        help="sentences of the source language, one per line",
    )
    parser.add_argument(
        "--target-text", metavar="FILE", required=True, help="sentences of the target language"
    )
    parser.add_argument("--out", metavar="FILE", required=True, help="the pairs, as JSON Lines")
    parser.add_argument(
        "--encoder",
        metavar="MODEL",
        default=_ENCODER,
        help="folder, bundled artifact or Hub repository (default: %(default)s)",
    )
    parser.add_argument(
        "--layer",
        type=int,
        help=(
            f"hidden state of the encoder (default: last; with word and {_ENCODER} {_WORD_LAYER}, "
            "which knows words best)"
        ),
    )
    parser.add_argument(
        "--level",
        choices=("word", "sentence"),
        default="word",
        help="what is compared (default: %(default)s)",
    )
    parser.add_argument(
        "--k",
        type=int,
        help="nearest neighbours to look at (default: 20 with word, 5 with sentence)",
    )
    parser.add_argument(
        "--share", type=float, help="word: pairs to keep, as a share of the sources (default: 0.05)"
    )
    parser.add_argument("--limit", type=int, help="sentence: pairs to keep (default: 100000)")
    parser.add_argument(
        "--map", metavar="MAP", help="word: map of the source side, clp or umd (default: none)"
    )
    parser.add_argument(
        "--maps", metavar="PATH|NAME", help="word: a map file, a folder of maps, or a map artifact"
    )
    parser.add_argument(
        "--memory",
        metavar="SIZE",
        help=(
            "stay below it, such as 4G; vectors that need more go to files beside --out, and are "
            "mined block by block (default: 12G)"
        ),
    )
    parser.add_argument(
        "--engine",
        metavar="ray[=ADDRESS]",
        help=(
            "ray, or ray=ADDRESS of a cluster: blocks are its tasks; --out must be on a disk that "
            "all nodes share"
        ),
    )
    parser.add_argument(
        "--cpus-per-worker",
        metavar="N",
        type=int,
        default=1,
        help="with --engine on nodes without GPUs: CPUs that a task takes (default: %(default)s)",
    )
    text = parser.add_argument_group("text")
    text.add_argument(
        "--sentences",
        type=int,
        default=40000,
        help="sentences to draw from each file (default: %(default)s)",
    )
    text.add_argument("--seed", type=int, default=1, help="of the draw (default: %(default)s)")
    text.add_argument(
        "--prepared", action="store_true", help="the files hold clean sentences: do not filter them"
    )
    text.add_argument(
        "--no-language-filter",
        action="store_true",
        help="keep sentences that seem to be of another language",
    )
    options.add_model_options(parser)
    parser.set_defaults(run=run)


def _size(text: str) -> int:
    """Bytes of a size such as 4G or 1500M."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([MGT])i?B?", text, re.IGNORECASE)
    size = int(float(match[1]) * 2 ** {"M": 20, "G": 30, "T": 40}[match[2].upper()]) if match else 0
    if size < _LEAST_MEMORY:
        raise InputError(
            f"--memory {text!r}: give at least 2G, for models and one block, such as 4G"
        )
    return size


def run(args: argparse.Namespace) -> int:
    """Mines, and writes the pairs."""
    languages = _check(args)
    mine = _miner(args)
    sides, counts = [], {}
    for name, path, language in zip(
        ("source", "target"), (args.source_text, args.target_text), languages, strict=True
    ):
        sentences, counts[name] = _sentences(args, path, language)
        sides.append(sentences)
    mined = mine(*sides)
    mined.write(args.out)
    if args.engine is not None:
        shutil.rmtree(_work(args))
    print_json({**counts, "mined": mined.counts})
    return 0


def _check(args: argparse.Namespace) -> tuple[str, str]:
    """The two languages; refuses before the work what would fail after it."""
    from mtmetrics.matching.remapping import KINDS

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
    if args.share is not None:
        share("--share", args.share)
    if args.engine is not None:
        require_extra("ray", "--engine ray")
        if args.memory is not None:
            raise InputError(
                "--memory has no effect with --engine, whose tasks hold one block each; leave "
                "it out"
            )
    elif args.cpus_per_worker != 1:
        raise InputError("--cpus-per-worker has no effect without --engine; leave it out")
    _size(args.memory or _MEMORY)
    check_target(args.out, "--out")
    return languages


class _Encoder:
    """The encoder that the arguments name; each process of a cluster loads its own when it needs
    it."""

    def __init__(self, args: argparse.Namespace) -> None:
        self._args, self.level = args, args.level

    @functools.cached_property
    def loaded(self) -> Any:
        pool = options.model_pool(self._args, dtype="auto" if self._args.engine else "float32")
        load = pool.encoder if self._args.level == "word" else pool.sentence_encoder
        return load(self._args.encoder, layer=self._args.layer)

    def encode(self, texts: list[str], language: str | None) -> Any:
        return self.loaded.encode(texts, language)

    @property
    def word_table(self) -> Any:
        return self.loaded.word_table


def _miner(args: argparse.Namespace) -> Callable[[list[str], list[str]], Any]:
    from mtmetrics.matching.remapping_files import load_map
    from mtmetrics.mining.sentences import mine_sentences
    from mtmetrics.mining.sides import encode_side
    from mtmetrics.mining.word_level import mine_words

    mine = mine_words if args.level == "word" else mine_sentences
    given = {
        name: value
        for name in ("k", "share", "limit")
        if (value := getattr(args, name)) is not None
    }
    if args.layer is None and args.level == "word" and args.encoder == _ENCODER:
        args.layer = _WORD_LAYER
    encoder = _Encoder(args).loaded  # before the texts are prepared, which takes longer
    if args.maps is not None:
        known = {"local_files_only": bool(args.local_files_only)}
        given["remapping"] = load_map(args.maps, args.lp, args.map, encoder, **known)
    languages = language_pair(args.lp)
    bar = functools.partial(messages.progress, unit=" blocks")
    encoding, mining = (functools.partial(bar, desc=name) for name in ("encoding", "mining"))
    if args.engine is None:
        # Vectors of either side take at most a third of the memory; the rest is for models, texts
        # and one block.
        room = {"memory_bytes": _size(args.memory or _MEMORY) // 3, "folder": Path(args.out).parent}
        encode = functools.partial(encode_side, encoder=encoder, wrap=encoding, **room)
        encoders = [functools.partial(encode, language=language) for language in languages]
        return lambda *sides: mine(
            *(encode(side) for encode, side in zip(encoders, sides, strict=True)),
            **given,
            wrap=mining,
        )

    from mtmetrics.cli.ray import absolute_paths
    from mtmetrics.cluster.engine import Engine, connected
    from mtmetrics.cluster.task_map import TaskMap

    engine = Engine.parse(
        args.engine, cpus_per_worker=args.cpus_per_worker, gpus=args.device in (None, "auto")
    )
    fingerprint = given["remapping"].fingerprint if "remapping" in given else None
    settings = {name: getattr(args, name) for name in ("level", "layer", "dtype", "k")}
    settings |= {"encoder": encoder.fingerprint, "map": fingerprint}
    folder = _work(args)
    run = TaskMap(engine, folder / "encoded", settings, encoding)
    paths = absolute_paths({"encoder": args.encoder})
    lazy = _Encoder(argparse.Namespace(**vars(args) | paths))
    encode = functools.partial(encode_side, encoder=lazy, memory_bytes=None, run=run)
    run = TaskMap(dataclasses.replace(engine, gpus=False), folder / "mined", settings, mining)
    if args.level == "word":
        given["threads"] = args.cpus_per_worker
    names = zip(("source", "target"), languages, strict=True)
    encoders = [
        functools.partial(encode, folder=folder / name, language=language)
        for name, language in names
    ]

    def mined(*sides: list[str]) -> Any:
        with connected(engine):
            return mine(*map(operator.call, encoders, sides), **given, run=run)

    return mined


def _work(args: argparse.Namespace) -> Path:
    """Where a run on a cluster keeps vectors and results until it is done."""
    return Path(args.out).absolute().with_suffix(".work")


def _sentences(
    args: argparse.Namespace, path: str, language: str
) -> tuple[list[str], dict[str, int]]:
    from mtmetrics.io.lines import iter_lines
    from mtmetrics.mining.clean_text import draw, prepare

    lines = messages.progress(
        iter_lines(path, "segments"), desc=f"preparing {language}", unit=" lines"
    )
    if args.prepared:
        sentences, counts = [" ".join(line.split()) for line in lines if line.strip()], {}
        if not sentences:
            raise InputError(f"{path}: empty; there are no sentences")
    else:
        sentences, counts = prepare(
            lines, language, name=path, identify=not args.no_language_filter
        )
    drawn = draw(sentences, args.sentences, args.seed)
    return drawn, {**counts, "drawn": len(drawn)}
