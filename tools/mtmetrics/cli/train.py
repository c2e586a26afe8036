"""``mtmetrics train``: makes the small models that ship with the package, or others of their
kind."""

import argparse
import dataclasses
import functools
import importlib
from typing import Any

from mtmetrics.cli import options
from mtmetrics.errors import InputError


def configure(parser: argparse.ArgumentParser) -> None:
    from mtmetrics.training import configs

    parser.description = (
        "Trains models on your own text. An interrupted run goes on when the same command is "
        "given again."
    )
    kinds = parser.add_subparsers(title="what to train", metavar="MODEL", required=True)
    for name, (functions, config_names, own, text, description) in _KINDS.items():
        kind = kinds.add_parser(name, help=text, description=description)
        data, output = kind.add_argument_group("data"), kind.add_argument_group("output")
        names = options.add_options(data, own)
        options.add_options(output, _OUTPUT)
        group, classes = (
            kind.add_argument_group("settings"),
            [getattr(configs, one) for one in config_names.split()],
        )
        if "seeds" not in names:
            options.add_options(group, {"--seed SEED": ("of everything random", 1)})
        options.add_settings(group, *classes)
        train = functools.partial(_train, functions=functions.split(), names=names, configs=classes)
        kind.set_defaults(run=train, large_blocks=True)


def _train(
    args: argparse.Namespace, *, functions: list[str], names: list[str], configs: list[type]
) -> None:
    """Calls the training with the options of these names and its settings, and prints the
    folder."""
    from mtmetrics.judgements.readers import Condition
    from mtmetrics.training.corpus import ParallelText, parse_numbers
    from mtmetrics.training.judged_pairs import JudgedFiles
    from mtmetrics.training.run import Run

    given = {name: getattr(args, name) for name in names}
    composed = given.pop("composition", "lstm") == "transformer"
    config, function = configs[composed], functions[composed]
    _refuse_others(args, config, configs)
    for name, option in (("caps", "--cap"), ("weights", "--weight"), ("repeats", "--repeat")):
        if name in given:
            given[name] = parse_numbers(given[name], option, whole=name != "repeats")
    seed = given["seeds"][0] if "seeds" in given else args.seed
    if len(functions) > 1:
        given = _of_composition(given, composed)
        where = given.pop("where")
        condition = None if where is None else Condition.parse(where)
        given["files"] = JudgedFiles(given.pop("judged"), given.pop("valid"), condition)
    if "caps" in given:
        given["text"] = ParallelText(*(given.pop(name) for name in ("parallel", "exclude", "caps")))
    places = {name: getattr(args, name) for name in ("work", "overwrite", "restart", "device")}
    run = Run(args.out, seed=seed, **places)
    options.show_notes(run.is_main)
    module, _, train = function.rpartition(".")
    train = getattr(importlib.import_module(f"mtmetrics.training.{module}"), train)
    made = train(run, **given, config=options.settings_of(args, config))
    if run.is_main:
        print(made)


def _refuse_others(args: argparse.Namespace, config: type, configs: list[type]) -> None:
    """Refuses settings of another class than the one that is asked for."""
    own = {field.name for field in dataclasses.fields(config)}
    for other in configs:
        for field in dataclasses.fields(other):
            if field.name not in own and getattr(args, field.name) is not None:
                flag = f"--{field.name.replace('_', '-')}"
                raise InputError(
                    f"{flag}: is for the other --composition, not for {args.composition}; leave "
                    "it out"
                )


def _of_composition(given: dict[str, Any], composed: bool) -> dict[str, Any]:
    """The options of one composition of a regressor; refuses those of the other."""
    if composed and (len(given["seeds"]) > 1 or given["curve"] is not None):
        raise InputError(
            "a transformer composition has one network; leave out curve, and pass one seed"
        )
    if not composed and (given["begin"] or given["repeats"] or given["original"]):
        raise InputError("begin, original and repeats are for a transformer composition")
    others = ("seeds", "curve") if composed else ("begin", "original", "repeats")
    return {name: value for name, value in given.items() if name not in others}


def _numbers(text: str) -> list[int]:
    try:
        return [int(number) for number in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r}: numbers joined by commas are needed, such as 500,1000"
        ) from None


_OUTPUT: options.Options = {
    "--out DIR!": "the artifact folder to make",
    "--overwrite": "replace an existing one",
    "--work DIR": "folder for checkpoints (default: OUT.work)",
    "--restart": "discard what an earlier run left in the work folder",
    "--device NAME": ("where to compute: auto, cpu, cuda, cuda:1 or 1, mps", "auto"),
}
# The names of the options are those of the training's arguments, or of the files that it takes as
# one.
_EXCLUDE: options.Options = {
    "--exclude-origin ORIGIN ...": (
        "leave out rows of these origins; a name may end in *",
        {"dest": "exclude"},
    )
}
_CAP: options.Options = {
    "--cap ORIGIN=N ...": (
        "use at most N rows of this origin per file; ORIGIN may end in *",
        {"dest": "caps"},
    )
}
_DISTILLATION: options.Options = {
    "--parallel FILE ...!": (
        "JSON Lines (source, target, origin) or .tsv word lists; the name begins with the "
        "language pair, e.g. de-en.jsonl.gz"
    ),
    **_CAP,
    **_EXCLUDE,
    "--judged FILE ...": (
        "segments with human judgements (JSON Lines), to evaluate with; what they share with "
        "the parallel text is left out of it"
    ),
}
_LM: options.Options = {
    "--mono FILE[:START-END[=ORIGIN],...] ...": "text, one sentence per line; with line ranges, only those lines",
    "--parallel FILE ...": "JSON Lines of which one side is used",
    "--side": (
        "that side (default: %(default)s)",
        {"choices": ("source", "target"), "default": "target"},
    ),
    "--weight ORIGIN=N ...": (
        "sentences of this origin occur N times per epoch; ORIGIN may end in *",
        {"dest": "weights"},
    ),
    **_EXCLUDE,
}
_PAIRS: options.Options = {
    "--parallel FILE ...!": "sentence pairs: TSV, or JSON Lines with source and target"
}
_TRANSLATION: options.Options = {
    **_PAIRS,
    **_CAP,
    **_EXCLUDE,
    "--lp XX-YY!": ("language pair of the files, such as de-en", {"dest": "lang_pair"}),
    "--model MODEL!": (
        "the MBart to begin with, such as facebook/mbart-large-cc25, or a folder; or an "
        "encoder, such as mini-encoder, for a new small MBart that begins with its word vectors"
    ),
}
_ANY = "folder, bundled artifact, or Hub repository"
_REGRESSOR: options.Options = {
    "--judged FILE ...!": (
        "JSON Lines: reference or ref (source or src), translation or mt, human or score; or "
        "judged segments as shared tasks published them"
    ),
    **options.WHERE,
    "--valid FILE ...": "judged segments that decide when to stop",
    "--encoder MODEL!": _ANY,
    "--composition": (
        "what composes an ESIM: LSTMs as in the paper, or the encoder's upper layers",
        ("lstm", "transformer"),
    ),
    "--begin MODEL": (
        "of a transformer composition: a regressor to begin with, instead of the encoder's layers"
    ),
    "--original MODEL": (
        "of a transformer composition: the encoder whose layers it begins as (default: the "
        "encoder that is read)"
    ),
    "--repeat NAME=N ...": (
        (
            "of a transformer composition: how often in an epoch the rows of files whose name "
            "begins so are read"
        ),
        {"dest": "repeats"},
    ),
    "--vectors DIR": "folder for the outputs of the encoder, to share between runs (default: WORK/vectors)",
    "--curve N,N,...": (
        (
            "instead of an artifact, make a table and a plot of the validation against that many "
            "training instances"
        ),
        {"type": _numbers},
    ),
    "--seeds N ...": ("a network each, averaged (default: 1)", {"type": int, "default": [1]}),
}
_MULTILINGUAL = (
    "multilingual encoder of the BERT architecture with a Unigram vocabulary, such as "
    "intfloat/multilingual-e5-small: folder, or Hub repository"
)
_STUDENT: options.Options = {
    "--teacher MODEL!": f"a sentence-transformers model for English: {_ANY}",
    "--student MODEL!": "a multilingual encoder, e.g. mini-encoder, likewise; it is mean-pooled",
}

# Name of the command -> function that trains, class of its settings, options, help and description;
# of a regressor two functions and classes, for either composition.
_KINDS: dict[str, tuple[str, str, options.Options, str, str]] = {
    "encoder": (
        "encoder.train_encoder",
        "EncoderConfig",
        {**_DISTILLATION, "--begin MODEL!": _MULTILINGUAL},
        "a small multilingual encoder, from a large one and parallel text",
        "Cuts a multilingual encoder to the languages of parallel text and to its lower layers, "
        "and teaches them which words are translations of each other.",
    ),
    "lm": (
        "lm.train_lm",
        "LMConfig",
        _LM,
        "a language model, from text of one language",
        "Trains a small GPT-2 model on single sentences, for the fluency term of a metric.",
    ),
    "distil": (
        "sentence.train_distil",
        "DistilConfig",
        {**_DISTILLATION, **_STUDENT},
        "a multilingual sentence encoder, from an English one and parallel text",
        (
            "Teaches a multilingual student the sentence vectors of an English teacher (Reimers and "
            "Gurevych, 2020)."
        ),
    ),
    "contrastive": (
        "sentence.train_contrastive",
        "ContrastiveConfig",
        {
            **_PAIRS,
            "--model MODEL!": "the encoder to begin with: a folder, bundled artifact or Hub repository",
        },
        "a sentence encoder, from sentence pairs alone",
        "Pulls the vectors of a sentence and of its translation together, and pushes those of "
        "other sentences away (the sentence level of UScore; Belouadi and Eger, 2023).",
    ),
    "translation": (
        "translation.train_translation",
        "TranslationConfig",
        _TRANSLATION,
        "a translation model for pseudo-references, from sentence pairs",
        "Trains an MBart for the translation of one language pair (Belouadi and Eger, 2023).",
    ),
    "regressor": (
        "recurrent.train_regressor composed.train_composed",
        "RegressorConfig CompositionConfig",
        _REGRESSOR,
        "BiLSTM, BiLSTM with attention or ESIM, from human judgements",
        (
            "Trains a network on the vectors of a frozen encoder to predict human judgements "
            "(Mathur et al., 2019)."
        ),
    ),
}
