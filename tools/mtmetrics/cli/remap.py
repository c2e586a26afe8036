"""``mtmetrics train maps``: fits CLP and UMD maps for a language pair and an encoder.

A map changes the encoder's vectors of the source language, so that words or sentences and their
translations have more similar vectors. `mtmetrics.matching.remapping` has the equations of CLP and
UMD."""

import argparse
import functools
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mtmetrics.checks import choice, language_pair, positive, warn
from mtmetrics.cli import messages, options
from mtmetrics.cli.output import Document, check_new, print_json
from mtmetrics.cli.rows import sample_rows
from mtmetrics.errors import InputError
from mtmetrics.io.atomic import output_folder
from mtmetrics.io.lines import short_name
from mtmetrics.io.tables import read_word_pairs

if TYPE_CHECKING:
    from mtmetrics.mining.word_level import Vectors
    from mtmetrics.models.packed import Encoder
    from mtmetrics.models.pool import ModelPool

_DEFAULT_SENTENCES = 2000
_DEFAULT_THRESHOLD = 0.001
# Options, as Python keywords, that align words in sentence pairs.
_ALIGNMENT_OPTIONS = ("align_layer", "threshold")
# Options that choose sentence pairs from --parallel.
_SENTENCE_OPTIONS = ("exclude_origin", "sentences")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Fits CLP and UMD maps on word pairs (--word-pairs, or aligned in --parallel), or on sentence "
        "pairs. Writes one safetensors file per map."
    )
    options.add_encoder(parser)
    parser.add_argument("--layer", type=int, help="layer to remap (default: last)")
    parser.add_argument(
        "--level",
        choices=("word", "sentence"),
        default="word",
        help=(
            "map word vectors, for metrics with --similarity mover, or sentence vectors, for "
            "--similarity cosine (default: %(default)s)"
        ),
    )
    parser.add_argument(
        "--lp",
        metavar="XX-YY",
        required=True,
        help="language pair, such as de-en; the map is for the source side",
    )
    group = parser.add_mutually_exclusive_group(required=True)
    group.add_argument(
        "--parallel",
        metavar="FILE",
        **options.REPEATABLE_LIST,
        help="parallel text: JSONL (source, target, origin) or TSV",
    )
    group.add_argument("--word-pairs", metavar="FILE", help="TSV of words and their translations")
    parser.add_argument(
        "--exclude-origin",
        metavar="NAME",
        **options.REPEATABLE_LIST,
        help="leave out rows of --parallel of this origin; NAME* stands for all that begin with NAME",
    )
    parser.add_argument(
        "--sentences",
        type=int,
        help=f"sentence pairs to sample from --parallel (default: {_DEFAULT_SENTENCES})",
    )
    parser.add_argument(
        "--align-layer",
        type=int,
        help="layer that aligns the words of --parallel (default: --layer)",
    )
    parser.add_argument(
        "--threshold",
        type=float,
        help=(
            "lowest alignment probability, in both directions, of words aligned in --parallel "
            f"(default: {_DEFAULT_THRESHOLD})"
        ),
    )
    parser.add_argument(
        "--map",
        metavar="KIND",
        **options.REPEATABLE_LIST,
        help="clp, umd, clp+umd, umd+clp (default: clp umd)",
    )
    parser.add_argument(
        "--out",
        metavar="DIR",
        required=True,
        help="folder for the maps; maps of other language pairs in it are kept",
    )
    parser.add_argument("--overwrite", action="store_true", help="replace maps of the same name")
    parser.add_argument(
        "--half",
        action="store_true",
        help="store the numbers in half precision: files of half the size",
    )
    options.add_seed(parser, "the choice of sentences")
    options.add_model_options(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    from mtmetrics.matching.remapping import KINDS
    from mtmetrics.matching.remapping_files import map_file_name

    language_pair(args.lp)  # raises InputError
    if args.sentences is not None:
        positive("--sentences", args.sentences)
    kinds = args.map or ["clp", "umd"]
    for kind in kinds:
        choice("--map", kind, KINDS)
    if args.level == "sentence" and not args.parallel:
        raise InputError("--level sentence needs --parallel FILE, sentences and their translations")
    if args.word_pairs:
        _refuse_options(args, (*_SENTENCE_OPTIONS, *_ALIGNMENT_OPTIONS), "--word-pairs")
    if args.level == "sentence":
        _refuse_options(args, _ALIGNMENT_OPTIONS, "--level sentence")
    files = {kind: Path(args.out, map_file_name(args.lp, kind, args.level)) for kind in kinds}
    check_new(list(files.values()), "--out", overwrite=args.overwrite)
    with output_folder(args.out):
        if not os.access(args.out, os.W_OK):
            raise InputError(f"--out {args.out}: no permission to write there")
        print_json(_fit(args, files))


def _refuse_options(args: argparse.Namespace, names: Sequence[str], chosen_option: str) -> None:
    """Raises InputError if the user passed one of these options, since `chosen_option` makes it
    meaningless."""
    for name, value in options.passed_values(args, names).items():
        if value != []:  # the value of a repeatable option that was not passed
            raise InputError(
                f"{options.flag(name)} has no effect with {chosen_option}; leave it out"
            )


def _fit(args: argparse.Namespace, files: Mapping[str, Path]) -> list[Document]:
    """Fits a map of each kind, and writes it to its file.

    Args:
        args: parsed arguments.
        files: kind -> path of its map.

    Returns:
        A description of each file, for JSON.
    """
    from mtmetrics.matching.remapping import Remapping
    from mtmetrics.matching.remapping_files import map_meta

    pairs, corpus = _read_pairs(args)
    source, target, encoder = _encode_pairs(args, pairs, options.model_pool(args))
    if len(source) < 2:
        raise InputError(f"{len(source)} pair(s) of vectors determine no map; pass more text")
    if len(source) < encoder.dim:
        warn(
            f"{len(source)} pairs of vectors for an encoder of width {encoder.dim}: fewer pairs "
            "than dimensions leave most of a map to chance; pass more text"
        )
    sentence_count = len(pairs) if args.parallel else 0
    meta = map_meta(
        encoder,
        args.lp,
        level=args.level,
        corpus=corpus,
        sentences=str(sentence_count),
        seed=str(args.seed),
    )
    documents = []
    for kind, path in files.items():
        remapping = Remapping.fit(kind, source, target, meta)
        fingerprint = remapping.save(path, "float16" if args.half else "float32")
        document = {
            "file": str(path),
            "kind": kind,
            "fingerprint": fingerprint,
            "pairs": len(source),
        }
        if args.parallel:
            document["sentences"] = sentence_count
        documents.append(document)
    return documents


def _read_pairs(args: argparse.Namespace) -> tuple[list[tuple[str, str]], str]:
    """Returns pairs of words or of sentences, and the name of the corpus."""
    if args.word_pairs:
        return read_word_pairs(args.word_pairs), Path(args.word_pairs).name
    from mtmetrics.training.corpus import read_pairs

    rows, _ = read_pairs(args.parallel, args.exclude_origin)
    # A default above the number of rows is no reason for a warning of `sample_rows`.
    sample_size = args.sentences or min(_DEFAULT_SENTENCES, len(rows))
    pairs = [(row.source, row.target) for row in sample_rows(rows, sample_size, args.seed)]
    return pairs, " ".join(map(short_name, args.parallel))


def _encode_pairs(
    args: argparse.Namespace, pairs: list[tuple[str, str]], pool: "ModelPool"
) -> "tuple[*Vectors, Encoder]":
    """Returns the source vectors and the target vectors, (n, d) each, and their encoder.

    With --level word and sentence pairs, these are the vectors of n pairs of aligned words."""
    from mtmetrics.mining.word_level import vectors_from_sentences, vectors_from_words

    languages = language_pair(args.lp)
    if args.level == "sentence":
        encoder = pool.sentence_encoder(args.encoder, layer=args.layer)
        vectors = []
        for side, language in enumerate(languages):
            encoded = encoder.encode([pair[side] for pair in pairs], language)
            vectors.append(encoded.vectors[encoded.index])
        return *vectors, encoder
    encoder = pool.encoder(args.encoder, layer=args.layer)
    if args.word_pairs:
        return *vectors_from_words(pairs, encoder, languages), encoder
    aligner = encoder
    if args.align_layer is not None:
        aligner = pool.encoder(args.encoder, layer=args.align_layer)
    wrap = functools.partial(messages.progress, desc="aligning", unit=" batches")
    threshold = _DEFAULT_THRESHOLD if args.threshold is None else args.threshold
    vectors = vectors_from_sentences(
        pairs, encoder, aligner, languages, threshold=threshold, wrap=wrap
    )
    return *vectors, encoder
