"""``mtmetrics train``: makes the small models that ship with the package, or others of their kind."""

import argparse
import dataclasses
import functools
import importlib
import logging
import sys
from collections.abc import Callable
from typing import Any

from mtmetrics.cli.options import add_settings

Add = Callable[..., Any]


def add_parser(subparsers: Any) -> None:
    """Adds the command group to the parser."""
    from mtmetrics.training import settings

    parser = subparsers.add_parser(
        "train",
        help="train an encoder, a language model, a sentence encoder, a translation model or a regressor",
        description="Trains models on your own text. An interrupted run goes on when the same command is given again.",
    )
    kinds = parser.add_subparsers(title="what to train", metavar="MODEL", required=True)
    for name, function, config_name, options, text, description in _KINDS:
        kind = kinds.add_parser(name, help=text, description=description)
        names: list[str] = []
        options(_recording(kind.add_argument_group("data"), names))
        output = kind.add_argument_group("output")
        output.add_argument("--out", required=True, metavar="DIR", help="the artifact folder to make")
        output.add_argument("--overwrite", action="store_true", help="replace an existing one")
        output.add_argument("--work", metavar="DIR", help="folder for checkpoints (default: OUT.work)")
        output.add_argument(
            "--restart", action="store_true", help="discard what an earlier run left in the work folder"
        )
        group, config = kind.add_argument_group("settings"), getattr(settings, config_name)
        if "seeds" not in names:
            group.add_argument("--seed", type=int, default=1, help="of everything random (default: %(default)s)")
        add_settings(group, config)
        train = functools.partial(_train, function=function, names=names, config=config)
        kind.set_defaults(run=train, large_blocks=True)


def _recording(group: Any, names: list[str]) -> Add:
    return lambda flag, **settings: names.append(group.add_argument(flag, **settings).dest)


def _train(args: argparse.Namespace, *, function: str, names: list[str], config: type) -> int:
    """Calls the training with the options of these names and its settings, and prints the folder."""
    from mtmetrics.training.corpus import parse_numbers
    from mtmetrics.training.run import Run

    given = {name: getattr(args, name) for name in names}
    for name, option in (("caps", "--cap"), ("weights", "--weight")):
        if name in given:
            given[name] = parse_numbers(given[name], option)
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(message)s")
    seed = given["seeds"][0] if "seeds" in given else args.seed
    run = Run(args.out, seed=seed, work=args.work, overwrite=args.overwrite, restart=args.restart)
    module, _, train = function.rpartition(".")
    settings = config(**{field.name: getattr(args, field.name) for field in dataclasses.fields(config)})
    print(getattr(importlib.import_module(f"mtmetrics.training.{module}"), train)(run, **given, config=settings))
    return 0


# The names of these options are those of the training's arguments.


def _encoder_options(add: Add) -> None:
    _parallel_text(add)
    _judged(add)
    text = "English sentence encoder of the BERT architecture: a folder, a Hub repository, or all-MiniLM-L6-v2"
    add("--teacher", required=True, metavar="MODEL", help=f"{text} of the extra [minilm]")


def _lm_options(add: Add) -> None:
    add(
        "--mono",
        nargs="+",
        default=[],
        metavar="FILE[:START-END[=ORIGIN],...]",
        help="text, one sentence per line; with line ranges, only those lines",
    )
    add("--parallel", nargs="+", default=[], metavar="FILE", help="JSON Lines of which one side is used")
    add("--side", choices=("source", "target"), default="target", help="that side (default: %(default)s)")
    text = "sentences of this origin occur N times per epoch; ORIGIN may end in *"
    add("--weight", dest="weights", nargs="+", default=[], metavar="ORIGIN=N", help=text)
    _excluded(add)


def _distil_options(add: Add) -> None:
    _parallel_text(add)
    _judged(add)
    model = "folder, bundled artifact, Hub repository, or all-MiniLM-L6-v2 of the extra [minilm]"
    add("--teacher", required=True, metavar="MODEL", help=f"a sentence-transformers model for English: {model}")
    text = "a multilingual encoder, e.g. mini-encoder, likewise; it is mean-pooled"
    add("--student", required=True, metavar="MODEL", help=text)


def _contrastive_options(add: Add) -> None:
    _pairs(add)
    text = "the encoder to begin with: a folder, bundled artifact or Hub repository"
    add("--model", required=True, metavar="MODEL", help=text)


def _translation_options(add: Add) -> None:
    _pairs(add)
    text = "language pair of the files, such as de-en"
    add("--lp", dest="lang_pair", required=True, metavar="XX-YY", help=text)
    text = "the MBart to begin with, such as facebook/mbart-large-cc25, or a folder"
    add("--model", required=True, metavar="MODEL", help=text)


def _regressor_options(add: Add) -> None:
    text = "JSON Lines: reference or ref (source or src), translation or mt, human or score"
    add("--judged", nargs="+", required=True, metavar="FILE", help=text)
    add("--valid", nargs="+", default=[], metavar="FILE", help="judged segments that decide when to stop")
    text = "folder, bundled artifact, Hub repository, or all-MiniLM-L6-v2"
    add("--encoder", required=True, metavar="MODEL", help=text)
    text = "folder for the outputs of the encoder, to share between runs (default: WORK/vectors)"
    add("--vectors", metavar="DIR", help=text)
    add(
        "--curve",
        type=_numbers,
        metavar="N,N,...",
        help="instead of an artifact, make a table and a plot of the validation against that many training instances",
    )
    text = "a network each, averaged (default: 1)"
    add("--seeds", nargs="+", type=int, default=[1], metavar="N", help=text)


def _parallel_text(add: Add) -> None:
    add(
        "--parallel",
        nargs="+",
        required=True,
        metavar="FILE",
        help="JSON Lines (source, target, origin) or .tsv word lists; the name begins with the language pair, e.g. "
        "de-en.jsonl.gz",
    )
    text = "use at most N rows of this origin per file; ORIGIN may end in *"
    add("--cap", dest="caps", nargs="+", default=[], metavar="ORIGIN=N", help=text)
    _excluded(add)


def _judged(add: Add) -> None:
    add(
        "--judged",
        nargs="+",
        default=[],
        metavar="FILE",
        help="segments with human judgements (JSON Lines), to evaluate with; what they share with the parallel text is "
        "left out of it",
    )


def _excluded(add: Add) -> None:
    text = "leave out rows of these origins; a name may end in *"
    add("--exclude-origin", dest="exclude", nargs="+", default=[], metavar="ORIGIN", help=text)


def _pairs(add: Add) -> None:
    text = "sentence pairs: TSV, or JSON Lines with source and target"
    add("--parallel", nargs="+", required=True, metavar="FILE", help=text)


def _numbers(text: str) -> list[int]:
    try:
        return [int(number) for number in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r}: numbers joined by commas are needed, such as 500,1000") from None


# Name of the command, function that trains, class of its settings, options, help and description.
_KINDS = [
    (
        "encoder",
        "encoder.train.train_encoder",
        "EncoderConfig",
        _encoder_options,
        "a multilingual encoder, from an English one and parallel text",
        "Gives an English sentence encoder a multilingual vocabulary, and teaches it to say of a source what the "
        "original says of its translation, token by token and as a whole.",
    ),
    (
        "lm",
        "lm.train_lm",
        "LMConfig",
        _lm_options,
        "a language model, from text of one language",
        "Trains a small GPT-2 model on single sentences, for the fluency term of a metric.",
    ),
    (
        "distil",
        "distil.train_distil",
        "DistilConfig",
        _distil_options,
        "a multilingual sentence encoder, from an English one and parallel text",
        "Teaches a multilingual student the sentence vectors of an English teacher (Reimers and Gurevych, 2020).",
    ),
    (
        "contrastive",
        "sentence.train_contrastive",
        "ContrastiveConfig",
        _contrastive_options,
        "a sentence encoder, from sentence pairs alone",
        "Pulls the vectors of a sentence and of its translation together, and pushes those of other sentences away "
        "(the sentence level of UScore; Belouadi and Eger, 2023).",
    ),
    (
        "translation",
        "translation.train_translation",
        "TranslationConfig",
        _translation_options,
        "a translation model for pseudo-references, from sentence pairs",
        "Fine-tunes an MBart for the translation of one language pair (Belouadi and Eger, 2023).",
    ),
    (
        "regressor",
        "regressor.train_regressor",
        "RegressorConfig",
        _regressor_options,
        "BiLSTM, BiLSTM with attention or ESIM, from human judgements",
        "Trains a network on the vectors of a frozen encoder to predict human judgements (Mathur et al., 2019).",
    ),
]
