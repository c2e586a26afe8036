"""``mtmetrics mine``: finds sentences that translate each other in two monolingual files.

`run` loads the encoder, draws sentences from both files, and mines them in this process or on a
cluster."""

import argparse
import dataclasses
import functools
import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from mtmetrics.checks import choice, language_pair, positive, share
from mtmetrics.cli import messages, options
from mtmetrics.cli.output import check_target, print_json
from mtmetrics.errors import InputError, require_extra

if TYPE_CHECKING:
    import numpy as np

    from mtmetrics.cluster.engine import Engine
    from mtmetrics.matching.remapping import Remapping
    from mtmetrics.mining.kept_pairs import MinedPairs
    from mtmetrics.models.packed import Encoder, PackedTokens

    # Keywords of `mine_words` or `mine_sentences`.
    MiningOptions = dict[str, int | float | Remapping]

_DEFAULT_MEMORY = "12G"
_LEAST_MEMORY = 2 * 2**30
_DEFAULT_ENCODER = "mini-encoder"
# The layer of that encoder that knows words best.
_WORD_LAYER = 4
_SIDES = ("source", "target")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Finds pairs of sentences that are likely translations of each other: by Word Mover's "
        "Distance (word) or by the ratio margin of sentence vectors (sentence). Writes source, "
        "target and score as JSON Lines, best first; prints what was read, left out and kept."
    )
    options.add_monolingual_files(parser)
    parser.add_argument("--out", metavar="FILE", required=True, help="the pairs, as JSON Lines")
    parser.add_argument(
        "--encoder",
        metavar="MODEL",
        default=_DEFAULT_ENCODER,
        help="folder, bundled artifact or Hub repository (default: %(default)s)",
    )
    parser.add_argument(
        "--layer",
        type=int,
        help=(
            f"hidden state of the encoder (default: last; with word and {_DEFAULT_ENCODER} {_WORD_LAYER}, "
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
    options.add_seed(text, "the draw")
    text.add_argument(
        "--prepared", action="store_true", help="the files hold clean sentences: do not filter them"
    )
    options.add_language_filter(text)
    options.add_model_options(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """Mines, writes the pairs, and prints what was read, left out and kept."""
    languages = _check(args)
    if args.layer is None and args.level == "word" and args.encoder == _DEFAULT_ENCODER:
        args.layer = _WORD_LAYER
    # Models are loaded before the texts are prepared, which takes longer.
    encoder = _Encoder(args).loaded
    mining_options = _mining_options(args, encoder)
    engine = _engine(args)
    sentences, counts = {}, {}
    for side, path, language in zip(
        _SIDES, (args.source_text, args.target_text), languages, strict=True
    ):
        sentences[side], counts[side] = _read_sentences(args, path, language)
    if engine is None:
        mined = _mine_here(args, sentences, encoder, mining_options)
    else:
        mined = _mine_on_cluster(args, engine, sentences, encoder, mining_options)
    mined.write(args.out)
    if engine is not None:
        shutil.rmtree(_work_folder(args))
    print_json({**counts, "mined": mined.counts})


def _memory_bytes(args: argparse.Namespace) -> int:
    """Reads the size that --memory gives, such as 4G or 1500M."""
    text = args.memory or _DEFAULT_MEMORY
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([MGT])i?B?", text, re.IGNORECASE)
    size = 0
    if match is not None:
        size = int(float(match[1]) * 2 ** {"M": 20, "G": 30, "T": 40}[match[2].upper()])
    if size < _LEAST_MEMORY:
        raise InputError(
            f"--memory {text!r}: give at least 2G, for models and one block, such as 4G"
        )
    return size


def _check(args: argparse.Namespace) -> tuple[str, str]:
    """Refuses, before the work, what would fail after it. Returns the two languages."""
    from mtmetrics.matching.remapping import KINDS

    require_extra("mining", "mtmetrics mine")
    languages = language_pair(args.lp)
    if languages[0] == languages[1]:
        raise InputError(f"--lp {args.lp}: two different languages are needed")
    if args.source_text == args.target_text:
        raise InputError(
            f"--source-text and --target-text: both are {args.source_text}; text of two languages "
            "is needed"
        )
    options_of_other_level = ("limit",) if args.level == "word" else ("share", "map", "maps")
    for option in options_of_other_level:
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
    _memory_bytes(args)
    check_target(args.out, "--out")
    return languages


class _Encoder:
    """The encoder that the arguments name; each process of a cluster loads its own when it needs
    it."""

    def __init__(self, args: argparse.Namespace) -> None:
        self._args = args
        self.level = args.level

    @functools.cached_property
    def loaded(self) -> "Encoder":
        pool = options.model_pool(self._args, dtype="auto" if self._args.engine else "float32")
        load = pool.encoder if self.level == "word" else pool.sentence_encoder
        return load(self._args.encoder, layer=self._args.layer)

    def encode(self, texts: list[str], language: str | None) -> "PackedTokens":
        return self.loaded.encode(texts, language)

    @property
    def word_table(self) -> "np.ndarray":
        return self.loaded.word_table


def _mining_options(args: argparse.Namespace, encoder: "Encoder") -> "MiningOptions":
    """Returns the keywords that the user gave for mining, with the map."""
    from mtmetrics.matching.remapping_files import load_map

    values = {name: getattr(args, name) for name in ("k", "share", "limit")}
    mining_options = {name: value for name, value in values.items() if value is not None}
    if args.maps is not None:
        mining_options["remapping"] = load_map(
            args.maps,
            args.lp,
            args.map,
            encoder,
            local_files_only=bool(args.local_files_only),
        )
    return mining_options


def _engine(args: argparse.Namespace) -> "Engine | None":
    """Returns the cluster that --engine names."""
    if args.engine is None:
        return None
    from mtmetrics.cluster.engine import Engine

    may_use_gpus = args.device in (None, "auto")
    return Engine.parse(args.engine, cpus_per_worker=args.cpus_per_worker, gpus=may_use_gpus)


def _mine_here(
    args: argparse.Namespace,
    sentences: Mapping[str, list[str]],
    encoder: "Encoder",
    mining_options: "MiningOptions",
) -> "MinedPairs":
    """Mines the sentences of source and target in this process."""
    from mtmetrics.mining.sides import encode_side

    sides = []
    for side, language in zip(_SIDES, language_pair(args.lp), strict=True):
        encoded_side = encode_side(
            sentences[side],
            encoder,
            language=language,
            # A third of the memory for each side; the rest is for models, texts and one block.
            memory_bytes=_memory_bytes(args) // 3,
            folder=Path(args.out).parent,
            wrap=_bar("encoding"),
        )
        sides.append(encoded_side)
    return _mine(args)(*sides, **mining_options, wrap=_bar("mining"))


def _mine_on_cluster(
    args: argparse.Namespace,
    engine: "Engine",
    sentences: Mapping[str, list[str]],
    encoder: "Encoder",
    mining_options: "MiningOptions",
) -> "MinedPairs":
    """Mines the sentences of source and target on a cluster, whose tasks are blocks. What they
    have done stays in a folder until the end, so that an interrupted call goes on."""
    from mtmetrics.cli.ray import absolute_paths
    from mtmetrics.cluster.engine import connected
    from mtmetrics.cluster.task_map import TaskMap
    from mtmetrics.mining.sides import encode_side

    remapping = mining_options.get("remapping")
    settings = {
        **{name: getattr(args, name) for name in ("level", "layer", "dtype", "k")},
        "encoder": encoder.fingerprint,
        "map": None if remapping is None else remapping.fingerprint,
    }
    folder = _work_folder(args)
    encoding = TaskMap(engine, folder / "encoded", settings, _bar("encoding"))
    mining_engine = dataclasses.replace(engine, gpus=False)
    mining = TaskMap(mining_engine, folder / "mined", settings, _bar("mining"))
    worker_args = argparse.Namespace(**vars(args) | absolute_paths({"encoder": args.encoder}))
    if args.level == "word":
        mining_options["threads"] = args.cpus_per_worker
    with connected(engine):
        sides = []
        for side, language in zip(_SIDES, language_pair(args.lp), strict=True):
            encoded_side = encode_side(
                sentences[side],
                _Encoder(worker_args),
                language=language,
                memory_bytes=None,
                folder=folder / side,
                run=encoding,
            )
            sides.append(encoded_side)
        return _mine(args)(*sides, **mining_options, run=mining)


def _mine(args: argparse.Namespace) -> "Callable[..., MinedPairs]":
    """Returns the function that mines on the level of the arguments."""
    from mtmetrics.mining.sentences import mine_sentences
    from mtmetrics.mining.word_level import mine_words

    return mine_words if args.level == "word" else mine_sentences


def _bar(description: str) -> Callable:
    """Returns a function that wraps an iteration in a bar of progress."""
    return functools.partial(messages.progress, desc=description, unit=" blocks")


def _work_folder(args: argparse.Namespace) -> Path:
    """Returns where a run on a cluster keeps vectors and results until it is done."""
    return Path(args.out).absolute().with_suffix(".work")


def _read_sentences(
    args: argparse.Namespace, path: str, language: str
) -> tuple[list[str], dict[str, int]]:
    """Reads and cleans sentences, and draws as many as --sentences says.

    Returns:
        The sentences, and how many were read, left out and drawn.
    """
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
