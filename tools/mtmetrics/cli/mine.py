"""``mtmetrics mine``: finds sentences of two monolingual files that are translations of each other.

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

from mtmetrics import checks
from mtmetrics.cli import messages, options
from mtmetrics.cli.output import check_target, print_json
from mtmetrics.errors import InputError, require_extra

if TYPE_CHECKING:
    import numpy as np

    from mtmetrics.cluster.engine import Engine
    from mtmetrics.matching.remapping import Remapping
    from mtmetrics.mining.kept_pairs import MinedPairs
    from mtmetrics.models.packed import Encoder, PackedTokens

    # Keyword arguments of `mine_words` or `mine_sentences`.
    MiningOptions = dict[str, int | float | Remapping]

_DEFAULT_MEMORY = "12G"
_LEAST_MEMORY = 2 * 2**30  # bytes
_DEFAULT_ENCODER = "mini-encoder"
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
        help="hidden state of the encoder (default: the last)",
    )
    parser.add_argument(
        "--level",
        choices=("word", "sentence"),
        default="word",
        help="compare the words of sentences, or one vector per sentence (default: %(default)s)",
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
        "--map",
        metavar="KIND",
        help="word: kind of the map of the source side: clp, umd, clp+umd or umd+clp (default: "
        "none)",
    )
    parser.add_argument(
        "--maps", metavar="PATH|NAME", help="word: a map file, a folder of maps, or a map artifact"
    )
    parser.add_argument(
        "--memory",
        metavar="SIZE",
        help=(
            "memory limit, such as 4G; vectors that need more go to files beside --out, and are "
            f"mined block by block (default: {_DEFAULT_MEMORY})"
        ),
    )
    parser.add_argument(
        "--engine",
        metavar="ray[=ADDRESS]",
        help=(
            "ray, or ray=ADDRESS of a cluster: run each block as a task; --out must be on a disk that "
            "all nodes share"
        ),
    )
    parser.add_argument(
        "--cpus-per-worker",
        metavar="N",
        type=int,
        default=1,
        help="with --engine: CPUs that a task takes (default: %(default)s); where there are GPUs, a "
        "task that encodes takes one of them too",
    )
    text_group = parser.add_argument_group("text")
    text_group.add_argument(
        "--sentences",
        type=int,
        default=40000,
        help="sentences to sample from each file (default: %(default)s)",
    )
    options.add_seed(text_group, "the sample")
    text_group.add_argument(
        "--prepared", action="store_true", help="the files hold clean sentences: skip the cleaning"
    )
    options.add_no_language_filter(text_group)
    options.add_model_options(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """Mines, writes the pairs, and prints what was read, left out and kept."""
    _check_arguments(args)
    engine: Engine | None = None
    if args.engine is not None:
        from mtmetrics.cli.ray import parse_engine

        engine = parse_engine(args)
    # Models are loaded first, so that a wrong name fails before the slow preparation of the texts.
    # A run on a cluster needs the encoder here too, for its fingerprint and for the map.
    encoder = _load_encoder(args)
    mining_options = _mining_options(args, encoder)
    sentences, counts = {}, {}
    for side, path, language in zip(
        _SIDES,
        (args.source_text, args.target_text),
        checks.language_pair(args.lp),
        strict=True,
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
    """Reads the size that --memory gives, such as 4G or 3000M, in bytes.

    Raises:
        InputError: it is no size, or a size below 2G.
    """
    text = args.memory or _DEFAULT_MEMORY
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([MGT])i?B?", text, re.IGNORECASE)
    size = 0
    if match is not None:
        unit = {"M": 2**20, "G": 2**30, "T": 2**40}[match[2].upper()]
        size = int(float(match[1]) * unit)
    if size < _LEAST_MEMORY:
        raise InputError(
            f"--memory {text!r}: give at least 2G, for models and one block, such as 4G"
        )
    return size


def _check_arguments(args: argparse.Namespace) -> None:
    """Checks the arguments before any work starts.

    Raises:
        InputError: a value cannot be used, or has no effect beside the others.
        MissingExtraError: a package is not installed.
    """
    from mtmetrics.matching.remapping import KINDS

    require_extra("mining", "mtmetrics mine")
    source_language, target_language = checks.language_pair(args.lp)
    if source_language == target_language:
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
        checks.choice("--map", args.map, KINDS)
    for option in ("sentences", "k", "limit"):
        if getattr(args, option) is not None:
            checks.positive(f"--{option}", getattr(args, option))
    if args.share is not None:
        checks.share("--share", args.share)
    if args.engine is not None:
        require_extra("ray", "--engine ray")
        if args.memory is not None:
            raise InputError(
                "--memory has no effect with --engine, whose tasks hold one block each; leave "
                "it out"
            )
    elif args.cpus_per_worker != 1:
        raise InputError("--cpus-per-worker has no effect without --engine; leave it out")
    _memory_bytes(args)  # raises InputError
    check_target(args.out, "--out")


def _load_encoder(args: argparse.Namespace) -> "Encoder":
    """Loads the encoder for words or for sentences that the arguments name."""
    pool = options.model_pool(args, dtype="auto" if args.engine else "float32")
    load = pool.encoder if args.level == "word" else pool.sentence_encoder
    return load(args.encoder, layer=args.layer)


class _LazyEncoder:
    """The encoder for tasks of a cluster. It is pickled without the model; each process loads the
    model when it encodes for the first time."""

    def __init__(self, args: argparse.Namespace) -> None:
        self._args = args
        self.level = args.level

    @functools.cached_property
    def _encoder(self) -> "Encoder":
        return _load_encoder(self._args)

    def encode(self, texts: list[str], language: str | None) -> "PackedTokens":
        return self._encoder.encode(texts, language)

    @property
    def word_table(self) -> "np.ndarray":
        """The mask of words in the vocabulary of an encoder for words, see
        `mtmetrics.models.packed.WordEncoder`."""
        return self._encoder.word_table


def _mining_options(args: argparse.Namespace, encoder: "Encoder") -> "MiningOptions":
    """Returns the keyword arguments for mining that the user passed, with the map of --maps."""
    from mtmetrics.matching.remapping_files import load_map

    mining_options = options.passed_values(args, ("k", "share", "limit"))
    if args.maps is not None:
        mining_options["remapping"] = load_map(
            args.maps,
            args.lp,
            args.map,
            encoder,
            local_files_only=bool(args.local_files_only),
        )
    return mining_options


def _mine_here(
    args: argparse.Namespace,
    sentences: Mapping[str, list[str]],
    encoder: "Encoder",
    mining_options: "MiningOptions",
) -> "MinedPairs":
    """Mines the sentences of source and target in this process."""
    from mtmetrics.mining.sides import encode_side

    sides = []
    for side, language in zip(_SIDES, checks.language_pair(args.lp), strict=True):
        encoded_side = encode_side(
            sentences[side],
            encoder,
            language=language,
            # A third of the memory for each side; the rest is for models, texts and one block.
            memory_bytes=_memory_bytes(args) // 3,
            folder=Path(args.out).parent,
            wrap=_progress_bar("encoding"),
        )
        sides.append(encoded_side)
    return _mining_function(args)(*sides, **mining_options, wrap=_progress_bar("mining"))


def _mine_on_cluster(
    args: argparse.Namespace,
    engine: "Engine",
    sentences: Mapping[str, list[str]],
    encoder: "Encoder",
    mining_options: "MiningOptions",
) -> "MinedPairs":
    """Mines the sentences of source and target on a cluster. Each block is one task.

    Results of finished tasks stay in the work folder until the end, so that an interrupted run can
    be resumed."""
    from mtmetrics.cli.ray import absolute_paths
    from mtmetrics.cluster.engine import connected
    from mtmetrics.cluster.task_map import TaskMap
    from mtmetrics.mining.sides import encode_side

    remapping = mining_options.get("remapping")
    # Results of tasks depend on these settings and on the texts of the tasks. --share and --limit
    # choose pairs after the tasks. The work folder of a run with other settings is refused.
    settings = {
        **{name: getattr(args, name) for name in ("level", "layer", "dtype", "k")},
        "encoder": encoder.fingerprint,
        "map": None if remapping is None else remapping.fingerprint,
    }
    folder = _work_folder(args)
    encode_tasks = TaskMap(engine, folder / "encoded", settings, _progress_bar("encoding"))
    mining_engine = dataclasses.replace(engine, gpus=False)  # only encoding runs a model
    mine_tasks = TaskMap(mining_engine, folder / "mined", settings, _progress_bar("mining"))
    worker_args = argparse.Namespace(**vars(args) | absolute_paths({"encoder": args.encoder}))
    if args.level == "word":
        mining_options = mining_options | {"threads": args.cpus_per_worker}
    with connected(engine):
        sides = []
        for side, language in zip(_SIDES, checks.language_pair(args.lp), strict=True):
            encoded_side = encode_side(
                sentences[side],
                _LazyEncoder(worker_args),
                language=language,
                memory_bytes=None,
                folder=folder / side,
                run=encode_tasks,
            )
            sides.append(encoded_side)
        return _mining_function(args)(*sides, **mining_options, run=mine_tasks)


def _mining_function(args: argparse.Namespace) -> "Callable[..., MinedPairs]":
    """Returns the function that mines by words or by sentence vectors, as --level says."""
    from mtmetrics.mining.sentences import mine_sentences
    from mtmetrics.mining.word_level import mine_words

    return mine_words if args.level == "word" else mine_sentences


def _progress_bar(description: str) -> Callable:
    """Returns a function that shows a progress bar over an iterable."""
    return functools.partial(messages.progress, desc=description, unit=" blocks")


def _work_folder(args: argparse.Namespace) -> Path:
    """Returns the folder where a run on a cluster keeps vectors and results until it is done."""
    out = Path(args.out).absolute()
    return out.with_name(out.name + ".work")


def _read_sentences(
    args: argparse.Namespace, path: str, language: str
) -> tuple[list[str], dict[str, int]]:
    """Reads and cleans sentences, and samples up to --sentences of them.

    Returns:
        The sentences, and how many were drawn; without --prepared also how many were read and left
        out.
    """
    from mtmetrics.io.lines import iter_lines
    from mtmetrics.mining.clean_text import draw, prepare

    lines = messages.progress(
        iter_lines(path, "segments"), desc=f"preparing {language}", unit=" lines"
    )
    if args.prepared:
        sentences = [" ".join(line.split()) for line in lines if line.strip()]
        counts = {}
        if not sentences:
            raise InputError(f"{path}: empty; there are no sentences")
    else:
        sentences, counts = prepare(
            lines, language, name=path, identify=not args.no_language_filter
        )
    drawn = draw(sentences, args.sentences, args.seed)
    return drawn, {**counts, "drawn": len(drawn)}
