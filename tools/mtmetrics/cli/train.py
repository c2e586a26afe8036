"""``mtmetrics train``: makes the small models that ship with the package, or others of their kind."""

import argparse
import dataclasses
import functools
import importlib
import logging
import sys
from typing import Any

from mtmetrics.cli.options import add_settings


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
        data, output = kind.add_argument_group("data"), kind.add_argument_group("output")
        names = [data.add_argument(flag, **option).dest for flag, option in options]
        output.add_argument("--out", required=True, metavar="DIR", help="the artifact folder to make")
        output.add_argument("--overwrite", action="store_true", help="replace an existing one")
        output.add_argument("--work", metavar="DIR", help="folder for checkpoints (default: OUT.work)")
        text = "discard what an earlier run left in the work folder"
        output.add_argument("--restart", action="store_true", help=text)
        text = "where to compute: auto, cpu, cuda, cuda:1 or 1, mps (default: %(default)s)"
        output.add_argument("--device", default="auto", metavar="NAME", help=text)
        group, config = kind.add_argument_group("settings"), getattr(settings, config_name)
        if "seeds" not in names:
            group.add_argument("--seed", type=int, default=1, help="of everything random (default: %(default)s)")
        add_settings(group, config)
        train = functools.partial(_train, function=function, names=names, config=config)
        kind.set_defaults(run=train, large_blocks=True)


def _train(args: argparse.Namespace, *, function: str, names: list[str], config: type) -> int:
    """Calls the training with the options of these names and its settings, and prints the folder."""
    from mtmetrics.training.corpus import parse_numbers
    from mtmetrics.training.run import Run

    given = {name: getattr(args, name) for name in names}
    for name, option in (("caps", "--cap"), ("weights", "--weight")):
        if name in given:
            given[name] = parse_numbers(given[name], option)
    seed = given["seeds"][0] if "seeds" in given else args.seed
    places = {name: getattr(args, name) for name in ("work", "overwrite", "restart", "device")}
    run = Run(args.out, seed=seed, **places)
    level = logging.INFO if run.is_main else logging.WARNING
    logging.basicConfig(level=level, stream=sys.stderr, format="%(message)s")
    module, _, train = function.rpartition(".")
    settings = config(**{field.name: getattr(args, field.name) for field in dataclasses.fields(config)})
    made = getattr(importlib.import_module(f"mtmetrics.training.{module}"), train)(run, **given, config=settings)
    if run.is_main:
        print(made)
    return 0


def _numbers(text: str) -> list[int]:
    try:
        return [int(number) for number in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r}: numbers joined by commas are needed, such as 500,1000") from None


Option = tuple[str, dict[str, Any]]


def _model(flag: str, text: str) -> Option:
    return flag, {"required": True, "metavar": "MODEL", "help": text}


def _files(flag: str, text: str, metavar: str = "FILE", required: bool = False, **settings: Any) -> Option:
    need = {"required": True} if required else {"default": []}
    return flag, {"nargs": "+", "metavar": metavar, "help": text, **need, **settings}


# The names of the options are those of the training's arguments.
_EXCLUDE = _files("--exclude-origin", "leave out rows of these origins; a name may end in *", "ORIGIN", dest="exclude")
_CAP = "use at most N rows of this origin per file; ORIGIN may end in *"
_NAMES = "the name begins with the language pair, e.g. de-en.jsonl.gz"
_PARALLEL = f"JSON Lines (source, target, origin) or .tsv word lists; {_NAMES}"
_SHARED = "what they share with the parallel text is left out of it"
_JUDGED = f"segments with human judgements (JSON Lines), to evaluate with; {_SHARED}"
_DISTILLATION = [
    _files("--parallel", _PARALLEL, required=True),
    _files("--cap", _CAP, "ORIGIN=N", dest="caps"),
    _EXCLUDE,
    _files("--judged", _JUDGED),
]
_PAIRS = _files("--parallel", "sentence pairs: TSV, or JSON Lines with source and target", required=True)
_MINILM = "all-MiniLM-L6-v2 of the extra [minilm]"
_ANY = "folder, bundled artifact, Hub repository, or all-MiniLM-L6-v2"
_MONO = "text, one sentence per line; with line ranges, only those lines"
_WEIGHT = "sentences of this origin occur N times per epoch; ORIGIN may end in *"
_LM = [
    _files("--mono", _MONO, "FILE[:START-END[=ORIGIN],...]"),
    _files("--parallel", "JSON Lines of which one side is used"),
    ("--side", {"choices": ("source", "target"), "default": "target", "help": "that side (default: %(default)s)"}),
    _files("--weight", _WEIGHT, "ORIGIN=N", dest="weights"),
    _EXCLUDE,
]
_VECTORS = "folder for the outputs of the encoder, to share between runs (default: WORK/vectors)"
_CURVE = "instead of an artifact, make a table and a plot of the validation against that many training instances"
_SEEDS = "a network each, averaged (default: 1)"
_SCORED = "JSON Lines: reference or ref (source or src), translation or mt, human or score"
_REGRESSOR = [
    _files("--judged", _SCORED, required=True),
    _files("--valid", "judged segments that decide when to stop"),
    _model("--encoder", _ANY),
    ("--vectors", {"metavar": "DIR", "help": _VECTORS}),
    ("--curve", {"type": _numbers, "metavar": "N,N,...", "help": _CURVE}),
    ("--seeds", {"nargs": "+", "type": int, "default": [1], "metavar": "N", "help": _SEEDS}),
]
_TEACHER = f"English sentence encoder of the BERT architecture: a folder, a Hub repository, or {_MINILM}"
_SENTENCES = f"a sentence-transformers model for English: {_ANY} of the extra [minilm]"
_START = "the encoder to begin with: a folder, bundled artifact or Hub repository"
_MBART = "the MBart to begin with, such as facebook/mbart-large-cc25, or a folder"
_LP = {"dest": "lang_pair", "required": True, "metavar": "XX-YY", "help": "language pair of the files, such as de-en"}

# Name of the command, function that trains, class of its settings, options, help and description.
_KINDS: list[tuple[str, str, str, list[Option], str, str]] = [
    (
        "encoder",
        "encoder.train_encoder",
        "EncoderConfig",
        [*_DISTILLATION, _model("--teacher", _TEACHER)],
        "a multilingual encoder, from an English one and parallel text",
        "Gives an English sentence encoder a multilingual vocabulary, and teaches it to say of a source what the "
        "original says of its translation, token by token and as a whole.",
    ),
    (
        "lm",
        "lm.train_lm",
        "LMConfig",
        _LM,
        "a language model, from text of one language",
        "Trains a small GPT-2 model on single sentences, for the fluency term of a metric.",
    ),
    (
        "distil",
        "sentence.train_distil",
        "DistilConfig",
        [
            *_DISTILLATION,
            _model("--teacher", _SENTENCES),
            _model("--student", "a multilingual encoder, e.g. mini-encoder, likewise; it is mean-pooled"),
        ],
        "a multilingual sentence encoder, from an English one and parallel text",
        "Teaches a multilingual student the sentence vectors of an English teacher (Reimers and Gurevych, 2020).",
    ),
    (
        "contrastive",
        "sentence.train_contrastive",
        "ContrastiveConfig",
        [_PAIRS, _model("--model", _START)],
        "a sentence encoder, from sentence pairs alone",
        "Pulls the vectors of a sentence and of its translation together, and pushes those of other sentences away "
        "(the sentence level of UScore; Belouadi and Eger, 2023).",
    ),
    (
        "translation",
        "translation.train_translation",
        "TranslationConfig",
        [_PAIRS, ("--lp", _LP), _model("--model", _MBART)],
        "a translation model for pseudo-references, from sentence pairs",
        "Fine-tunes an MBart for the translation of one language pair (Belouadi and Eger, 2023).",
    ),
    (
        "regressor",
        "regressor.train_regressor",
        "RegressorConfig",
        _REGRESSOR,
        "BiLSTM, BiLSTM with attention or ESIM, from human judgements",
        "Trains a network on the vectors of a frozen encoder to predict human judgements (Mathur et al., 2019).",
    ),
]
