"""``mtmetrics train``: makes the small models that ship with the package, or others of their kind."""

import argparse
import dataclasses
import logging
import sys
from typing import TYPE_CHECKING, Any

from mtmetrics.cli.memory import keep_large_blocks
from mtmetrics.cli.options import add_settings

if TYPE_CHECKING:
    from mtmetrics.training.loop import Run


def add_parser(subparsers: Any) -> None:
    """Adds the command group to the parser."""
    from mtmetrics.training.config import (
        ContrastiveConfig,
        DistilConfig,
        EncoderConfig,
        LMConfig,
        RegressorConfig,
        TranslationConfig,
    )

    parser = subparsers.add_parser(
        "train",
        help="train an encoder, a language model, a sentence encoder, a translation model or a regressor",
        description="Trains models on your own text. An interrupted run goes on when the same command is given again.",
    )
    kinds = parser.add_subparsers(title="what to train", metavar="MODEL", required=True)

    encoder = kinds.add_parser(
        "encoder",
        help="a multilingual encoder, from an English one and parallel text",
        description="Gives an English sentence encoder a multilingual vocabulary, and teaches it to say of a source what the original "
        "says of its translation, token by token and as a whole.",
    )
    data = _add_parallel(encoder)
    _add_judged(data)
    _add_common(encoder, data, EncoderConfig)
    encoder.add_argument_group("models").add_argument(
        "--teacher",
        required=True,
        metavar="MODEL",
        help="English sentence encoder of the BERT architecture: a folder, a Hub repository, or all-MiniLM-L6-v2 of the extra [minilm]",
    )
    encoder.set_defaults(run=run_encoder)

    lm = kinds.add_parser(
        "lm",
        help="a language model, from text of one language",
        description="Trains a small GPT-2 model on single sentences, for the fluency term of a metric.",
    )
    data = lm.add_argument_group("data")
    data.add_argument(
        "--mono",
        nargs="+",
        default=[],
        metavar="FILE[:START-END[=ORIGIN],...]",
        help="text, one sentence per line; with line ranges, only those lines",
    )
    data.add_argument("--parallel", nargs="+", default=[], metavar="FILE", help="JSON Lines of which one side is used")
    data.add_argument("--side", choices=("source", "target"), default="target", help="that side (default: %(default)s)")
    data.add_argument(
        "--weight",
        nargs="+",
        default=[],
        metavar="ORIGIN=N",
        help="sentences of this origin occur N times per epoch; ORIGIN may end in *",
    )
    _add_common(lm, data, LMConfig)
    lm.set_defaults(run=run_lm)

    distil = kinds.add_parser(
        "distil",
        help="a multilingual sentence encoder, from an English one and parallel text",
        description="Teaches a multilingual student the sentence vectors of an English teacher (Reimers and Gurevych, 2020).",
    )
    data = _add_parallel(distil)
    _add_judged(data)
    _add_common(distil, data, DistilConfig)
    models = distil.add_argument_group(
        "models", "folder, bundled artifact, Hub repository, or all-MiniLM-L6-v2 of the extra [minilm]"
    )
    models.add_argument("--teacher", required=True, metavar="MODEL", help="a sentence-transformers model for English")
    models.add_argument(
        "--student", required=True, metavar="MODEL", help="a multilingual encoder, e.g. mini-encoder; it is mean-pooled"
    )
    distil.set_defaults(run=run_distil)

    contrastive = kinds.add_parser(
        "contrastive",
        help="a sentence encoder, from sentence pairs alone",
        description="Pulls the vectors of a sentence and of its translation together, and pushes those of other sentences away "
        "(the sentence level of UScore; Belouadi and Eger, 2023).",
    )
    data = _add_pairs(contrastive)
    data.add_argument(
        "--model",
        required=True,
        metavar="MODEL",
        help="the encoder to begin with: a folder, bundled artifact or Hub repository",
    )
    _add_seeded(contrastive, ContrastiveConfig)
    contrastive.set_defaults(run=run_contrastive)

    translation = kinds.add_parser(
        "translation",
        help="a translation model for pseudo-references, from sentence pairs",
        description="Fine-tunes an MBart for the translation of one language pair (Belouadi and Eger, 2023).",
    )
    data = _add_pairs(translation)
    data.add_argument("--lp", required=True, metavar="XX-YY", help="language pair of the files, such as de-en")
    data.add_argument(
        "--model",
        required=True,
        metavar="MODEL",
        help="the MBart to begin with, such as facebook/mbart-large-cc25, or a folder",
    )
    _add_seeded(translation, TranslationConfig)
    translation.set_defaults(run=run_translation)

    regressor = kinds.add_parser(
        "regressor",
        help="BiLSTM, BiLSTM with attention or ESIM, from human judgements",
        description="Trains a network on the vectors of a frozen encoder to predict human judgements (Mathur et al., 2019).",
    )
    data = regressor.add_argument_group("data")
    data.add_argument(
        "--judged",
        nargs="+",
        required=True,
        metavar="FILE",
        help="JSON Lines: reference or ref (source or src), translation or mt, human or score",
    )
    data.add_argument("--valid", nargs="+", default=[], metavar="FILE", help="judged segments that decide when to stop")
    data.add_argument(
        "--encoder",
        required=True,
        metavar="MODEL",
        help="folder, bundled artifact, Hub repository, or all-MiniLM-L6-v2",
    )
    data.add_argument(
        "--vectors",
        metavar="DIR",
        help="folder for the outputs of the encoder, to share between runs (default: WORK/vectors)",
    )
    _add_output(regressor)
    settings = regressor.add_argument_group("settings")
    settings.add_argument(
        "--curve",
        type=_numbers,
        metavar="N,N,...",
        help="instead of an artifact, make a table and a plot of the validation against that many training instances",
    )
    settings.add_argument(
        "--seeds", nargs="+", type=int, default=[1], metavar="N", help="a network each, averaged (default: 1)"
    )
    add_settings(settings, RegressorConfig)
    regressor.set_defaults(run=run_regressor)


def _add_parallel(parser: argparse.ArgumentParser) -> Any:
    """Adds the group of data options, for trainings on parallel text."""
    data = parser.add_argument_group("data")
    data.add_argument(
        "--parallel",
        nargs="+",
        required=True,
        metavar="FILE",
        help="JSON Lines (source, target, origin) or .tsv word lists; the name begins with the language pair, e.g. de-en.jsonl.gz",
    )
    data.add_argument(
        "--cap",
        nargs="+",
        default=[],
        metavar="ORIGIN=N",
        help="use at most N rows of this origin per file; ORIGIN may end in *",
    )
    return data


def _add_judged(data: Any) -> None:
    data.add_argument(
        "--judged",
        nargs="+",
        default=[],
        metavar="FILE",
        help="segments with human judgements (JSON Lines), to evaluate with; what they share with the parallel text is left out of it",
    )


def _add_pairs(parser: argparse.ArgumentParser) -> Any:
    """Adds the group of data options, for trainings on the sentence pairs of one language pair."""
    data = parser.add_argument_group("data")
    data.add_argument(
        "--parallel",
        nargs="+",
        required=True,
        metavar="FILE",
        help="sentence pairs: TSV, or JSON Lines with source and target",
    )
    return data


def _add_common(parser: argparse.ArgumentParser, data: Any, config: type) -> None:
    data.add_argument(
        "--exclude-origin",
        nargs="+",
        default=[],
        metavar="ORIGIN",
        help="leave out rows of these origins; a name may end in *",
    )
    _add_seeded(parser, config)


def _add_seeded(parser: argparse.ArgumentParser, config: type) -> None:
    _add_output(parser)
    settings = parser.add_argument_group("settings")
    settings.add_argument("--seed", type=int, default=1, help="of everything random (default: %(default)s)")
    add_settings(settings, config)


def _add_output(parser: argparse.ArgumentParser) -> None:
    output = parser.add_argument_group("output")
    output.add_argument("--out", required=True, metavar="DIR", help="the artifact folder to make")
    output.add_argument("--overwrite", action="store_true", help="replace an existing one")
    output.add_argument("--work", metavar="DIR", help="folder for checkpoints (default: OUT.work)")
    output.add_argument("--restart", action="store_true", help="discard what an earlier run left in the work folder")


def run_encoder(args: argparse.Namespace) -> int:
    """Trains an encoder and prints its folder."""
    from mtmetrics.training.config import EncoderConfig
    from mtmetrics.training.corpus import parse_numbers
    from mtmetrics.training.encoder.train import train_encoder

    caps = parse_numbers(args.cap, "--cap")
    common = _common(args, EncoderConfig)
    print(train_encoder(_run(args), args.parallel, args.teacher, judged=args.judged, caps=caps, **common))
    return 0


def run_lm(args: argparse.Namespace) -> int:
    """Trains a language model and prints its folder."""
    from mtmetrics.training.config import LMConfig
    from mtmetrics.training.corpus import parse_numbers
    from mtmetrics.training.lm import train_lm

    weights = parse_numbers(args.weight, "--weight")
    print(train_lm(_run(args), args.mono, args.parallel, side=args.side, weights=weights, **_common(args, LMConfig)))
    return 0


def run_distil(args: argparse.Namespace) -> int:
    """Trains a sentence encoder and prints its folder."""
    from mtmetrics.training.config import DistilConfig
    from mtmetrics.training.corpus import parse_numbers
    from mtmetrics.training.distil import train_distil

    caps = parse_numbers(args.cap, "--cap")
    common = _common(args, DistilConfig)
    print(train_distil(_run(args), args.parallel, args.teacher, args.student, judged=args.judged, caps=caps, **common))
    return 0


def run_contrastive(args: argparse.Namespace) -> int:
    """Trains a sentence encoder on pairs alone and prints its folder."""
    from mtmetrics.training.config import ContrastiveConfig
    from mtmetrics.training.contrastive import train_contrastive

    print(train_contrastive(_run(args), args.parallel, args.model, config=_config(args, ContrastiveConfig)))
    return 0


def run_translation(args: argparse.Namespace) -> int:
    """Fine-tunes a translation model and prints its folder."""
    from mtmetrics.training.config import TranslationConfig
    from mtmetrics.training.translation import train_translation

    print(train_translation(_run(args), args.parallel, args.model, args.lp, config=_config(args, TranslationConfig)))
    return 0


def run_regressor(args: argparse.Namespace) -> int:
    """Trains a regressor, or draws its learning curve, and prints the folder."""
    from mtmetrics.training.config import RegressorConfig
    from mtmetrics.training.regressor import train_regressor
    from mtmetrics.training.regressor_curve import train_curve

    run = _run(args, args.seeds[0])
    common = {
        "valid": args.valid,
        "seeds": args.seeds,
        "vectors": args.vectors,
        "config": _config(args, RegressorConfig),
    }
    if args.curve is None:
        print(train_regressor(run, args.judged, args.encoder, **common))
    else:
        print(train_curve(run, args.judged, args.encoder, args.curve, **common))
    return 0


def _numbers(text: str) -> list[int]:
    try:
        return [int(number) for number in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r}: numbers joined by commas are needed, such as 500,1000") from None


def _run(args: argparse.Namespace, seed: int | None = None) -> "Run":
    from mtmetrics.training.loop import Run

    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(message)s")
    keep_large_blocks()
    return Run(
        args.out,
        seed=args.seed if seed is None else seed,
        work=args.work,
        overwrite=args.overwrite,
        restart=args.restart,
    )


def _common(args: argparse.Namespace, config: type) -> dict[str, Any]:
    return {"exclude": args.exclude_origin, "config": _config(args, config)}


def _config(args: argparse.Namespace, config: type) -> Any:
    return config(**{field.name: getattr(args, field.name) for field in dataclasses.fields(config)})
