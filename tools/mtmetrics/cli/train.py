"""``mtmetrics train``: makes the models and tables that ship with the package, or others of their
kind.

Each model has a function that adds its options, and one that trains it; maps, tables, presets of
UScore and judgements have modules of their own."""

import argparse
import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

from mtmetrics.cli import messages, options
from mtmetrics.errors import InputError

if TYPE_CHECKING:
    from mtmetrics.training.corpus import ParallelText
    from mtmetrics.training.run import Run

_MODEL_PLACES = "folder, bundled artifact, or Hub repository"


def configure(parser: argparse.ArgumentParser) -> None:
    from mtmetrics.cli import idf, label, remap, uscore

    parser.description = (
        "Trains models on your own text, and makes the maps, tables and judgements that metrics "
        "need. An interrupted run goes on when the same command is given again."
    )
    kinds = parser.add_subparsers(title="what to train", metavar="MODEL", required=True)
    _add_encoder(kinds)
    _add_lm(kinds)
    _add_distil(kinds)
    _add_contrastive(kinds)
    _add_translation(kinds)
    _add_regressor(kinds)
    maps = kinds.add_parser("maps", help="remapping matrices for a language pair")
    remap.configure(maps)
    table = kinds.add_parser("idf", help="a table of inverse document frequencies")
    idf.configure(table)
    preset = kinds.add_parser("uscore", help="a UScore preset, from two monolingual files")
    uscore.configure(preset)
    labels = kinds.add_parser(
        "labels", help="judgements by metrics with references, to train one without"
    )
    label.configure(labels)


def _add_encoder(kinds: options.Subparsers) -> None:
    from mtmetrics.training.configs import EncoderConfig

    parser = kinds.add_parser(
        "encoder",
        help="a small multilingual encoder, from a large one and parallel text",
        description=(
            "Cuts a multilingual encoder to the languages of parallel text and to its lower "
            "layers, and teaches them which words are translations of each other."
        ),
    )
    data = parser.add_argument_group("data")
    _add_parallel_text(data)
    _add_judged_for_evaluation(data)
    data.add_argument(
        "--begin",
        metavar="MODEL",
        required=True,
        help="multilingual encoder of the BERT architecture with a Unigram vocabulary, such as "
        "intfloat/multilingual-e5-small: folder, or Hub repository",
    )
    _add_output(parser)
    _add_settings(parser, EncoderConfig)
    parser.set_defaults(run=_train_encoder)


def _train_encoder(args: argparse.Namespace) -> None:
    from mtmetrics.training.configs import EncoderConfig
    from mtmetrics.training.encoder import train_encoder

    text = _parallel_text(args)
    run = _opened_run(args, args.seed)
    folder = train_encoder(
        run,
        text=text,
        begin=args.begin,
        judged=args.judged,
        config=options.settings_of(args, EncoderConfig),
    )
    _print_folder(run, folder)


def _add_lm(kinds: options.Subparsers) -> None:
    from mtmetrics.training.configs import LMConfig

    parser = kinds.add_parser(
        "lm",
        help="a language model, from text of one language",
        description=(
            "Trains a small GPT-2 model on single sentences, for the fluency term of a metric."
        ),
    )
    data = parser.add_argument_group("data")
    data.add_argument(
        "--mono",
        metavar="FILE[:START-END[=ORIGIN],...]",
        **options.REPEATABLE_LIST,
        help="text, one sentence per line; with line ranges, only those lines",
    )
    data.add_argument(
        "--parallel",
        metavar="FILE",
        **options.REPEATABLE_LIST,
        help="JSON Lines of which one side is used",
    )
    data.add_argument(
        "--side",
        choices=("source", "target"),
        default="target",
        help="that side (default: %(default)s)",
    )
    data.add_argument(
        "--weight",
        metavar="ORIGIN=N",
        dest="weights",
        **options.REPEATABLE_LIST,
        help="sentences of this origin occur N times per epoch; ORIGIN may end in *",
    )
    _add_excluded_origins(data)
    _add_output(parser)
    _add_settings(parser, LMConfig)
    parser.set_defaults(run=_train_lm)


def _train_lm(args: argparse.Namespace) -> None:
    from mtmetrics.training.configs import LMConfig
    from mtmetrics.training.corpus import parse_numbers
    from mtmetrics.training.lm import train_lm

    weights = parse_numbers(args.weights, "--weight")
    run = _opened_run(args, args.seed)
    folder = train_lm(
        run,
        mono=args.mono,
        parallel=args.parallel,
        side=args.side,
        exclude=args.exclude,
        weights=weights,
        config=options.settings_of(args, LMConfig),
    )
    _print_folder(run, folder)


def _add_distil(kinds: options.Subparsers) -> None:
    from mtmetrics.training.configs import DistilConfig

    parser = kinds.add_parser(
        "distil",
        help="a multilingual sentence encoder, from an English one and parallel text",
        description=(
            "Teaches a multilingual student the sentence vectors of an English teacher (Reimers "
            "and Gurevych, 2020)."
        ),
    )
    data = parser.add_argument_group("data")
    _add_parallel_text(data)
    _add_judged_for_evaluation(data)
    data.add_argument(
        "--teacher",
        metavar="MODEL",
        required=True,
        help=f"a sentence-transformers model for English: {_MODEL_PLACES}",
    )
    data.add_argument(
        "--student",
        metavar="MODEL",
        required=True,
        help="a multilingual encoder, e.g. mini-encoder, likewise; it is mean-pooled",
    )
    _add_output(parser)
    _add_settings(parser, DistilConfig)
    parser.set_defaults(run=_train_distil)


def _train_distil(args: argparse.Namespace) -> None:
    from mtmetrics.training.configs import DistilConfig
    from mtmetrics.training.sentence import train_distil

    text = _parallel_text(args)
    run = _opened_run(args, args.seed)
    folder = train_distil(
        run,
        text=text,
        teacher=args.teacher,
        student=args.student,
        judged=args.judged,
        config=options.settings_of(args, DistilConfig),
    )
    _print_folder(run, folder)


def _add_contrastive(kinds: options.Subparsers) -> None:
    from mtmetrics.training.configs import ContrastiveConfig

    parser = kinds.add_parser(
        "contrastive",
        help="a sentence encoder, from sentence pairs alone",
        description=(
            "Pulls the vectors of a sentence and of its translation together, and pushes those "
            "of other sentences away (the sentence level of UScore; Belouadi and Eger, 2023)."
        ),
    )
    data = parser.add_argument_group("data")
    _add_pairs(data)
    data.add_argument(
        "--model",
        metavar="MODEL",
        required=True,
        help="the encoder to begin with: a folder, bundled artifact or Hub repository",
    )
    _add_output(parser)
    _add_settings(parser, ContrastiveConfig)
    parser.set_defaults(run=_train_contrastive)


def _train_contrastive(args: argparse.Namespace) -> None:
    from mtmetrics.training.configs import ContrastiveConfig
    from mtmetrics.training.sentence import train_contrastive

    run = _opened_run(args, args.seed)
    folder = train_contrastive(
        run,
        parallel=args.parallel,
        model=args.model,
        config=options.settings_of(args, ContrastiveConfig),
    )
    _print_folder(run, folder)


def _add_translation(kinds: options.Subparsers) -> None:
    from mtmetrics.training.configs import TranslationConfig

    parser = kinds.add_parser(
        "translation",
        help="a translation model for pseudo-references, from sentence pairs",
        description=(
            "Trains an MBart for the translation of one language pair (Belouadi and Eger, 2023)."
        ),
    )
    data = parser.add_argument_group("data")
    _add_pairs(data)
    _add_caps(data)
    _add_excluded_origins(data)
    data.add_argument(
        "--lp",
        metavar="XX-YY",
        dest="lang_pair",
        required=True,
        help="language pair of the files, such as de-en",
    )
    data.add_argument(
        "--model",
        metavar="MODEL",
        required=True,
        help="the MBart to begin with, such as facebook/mbart-large-cc25, or a folder; or an "
        "encoder, such as mini-encoder, for a new small MBart that begins with its word vectors",
    )
    _add_output(parser)
    _add_settings(parser, TranslationConfig)
    parser.set_defaults(run=_train_translation)


def _train_translation(args: argparse.Namespace) -> None:
    from mtmetrics.training.configs import TranslationConfig
    from mtmetrics.training.translation import train_translation

    text = _parallel_text(args)
    run = _opened_run(args, args.seed)
    folder = train_translation(
        run,
        text=text,
        model=args.model,
        lang_pair=args.lang_pair,
        config=options.settings_of(args, TranslationConfig),
    )
    _print_folder(run, folder)


def _add_regressor(kinds: options.Subparsers) -> None:
    from mtmetrics.training.configs import CompositionConfig, RegressorConfig

    parser = kinds.add_parser(
        "regressor",
        help="BiLSTM, BiLSTM with attention or ESIM, from human judgements",
        description=(
            "Trains a network on the vectors of a frozen encoder to predict human judgements "
            "(Mathur et al., 2019)."
        ),
    )
    data = parser.add_argument_group("data")
    data.add_argument(
        "--judged",
        metavar="FILE",
        **options.REPEATABLE_LIST,
        required=True,
        help="JSON Lines: reference or ref (source or src), translation or mt, human or score; or "
        "judged segments as shared tasks published them",
    )
    options.add_where(data)
    data.add_argument(
        "--valid",
        metavar="FILE",
        **options.REPEATABLE_LIST,
        help="judged segments that decide when to stop",
    )
    data.add_argument("--encoder", metavar="MODEL", required=True, help=_MODEL_PLACES)
    _add_composition(data)
    data.add_argument(
        "--vectors",
        metavar="DIR",
        help="folder for the outputs of the encoder, to share between runs (default: WORK/vectors)",
    )
    data.add_argument(
        "--curve",
        metavar="N,N,...",
        type=_numbers,
        help="instead of an artifact, make a table and a plot of the validation against that "
        "many training instances",
    )
    data.add_argument(
        "--curve-means",
        metavar="N,N,...",
        type=_numbers,
        help="with --curve: also train on all translations with the mean of that many judgements "
        "of each, where --judged has a row per judgement",
    )
    data.add_argument(
        "--seeds",
        metavar="N",
        type=int,
        **options.REPEATABLE_LIST,
        help="a network each, averaged (default: 1)",
    )
    _add_output(parser)
    owners = {
        "lstm": dataclasses.fields(RegressorConfig),
        "transformer": dataclasses.fields(CompositionConfig),
    }
    options.add_settings(parser.add_argument_group("settings"), owners)
    parser.set_defaults(run=_train_regressor, large_blocks=True)


def _add_composition(group: options.Container) -> None:
    """Adds the network that composes an ESIM, and options of one that is a transformer."""
    group.add_argument(
        "--composition",
        choices=("lstm", "transformer"),
        default="lstm",
        help="what composes an ESIM: LSTMs as in the paper, or the encoder's upper layers "
        "(default: %(default)s)",
    )
    group.add_argument(
        "--begin",
        metavar="MODEL",
        help="of a transformer composition: a regressor to begin with, instead of the encoder's "
        "layers",
    )
    group.add_argument(
        "--original",
        metavar="MODEL",
        help="of a transformer composition: the encoder whose layers it begins as (default: the "
        "encoder that is read)",
    )
    group.add_argument(
        "--repeat",
        metavar="NAME=N",
        dest="repeats",
        **options.REPEATABLE_LIST,
        help="of a transformer composition: how often in an epoch the rows of files whose name "
        "begins so are read",
    )


def _train_regressor(args: argparse.Namespace) -> None:
    from mtmetrics.judgements.readers import Condition
    from mtmetrics.training.configs import CompositionConfig, RegressorConfig
    from mtmetrics.training.corpus import parse_numbers
    from mtmetrics.training.judged_pairs import JudgedFiles

    is_composed = args.composition == "transformer"
    if is_composed:
        _refuse_settings(args, CompositionConfig, RegressorConfig)
    else:
        _refuse_settings(args, RegressorConfig, CompositionConfig)
    repeats = parse_numbers(args.repeats, "--repeat", whole=False)
    if args.curve_means and args.curve is None:
        raise InputError("--curve-means adds to a curve; pass --curve too")
    if is_composed and (len(args.seeds) > 1 or args.curve is not None):
        raise InputError(
            "a transformer composition has one network; leave out curve, and pass one seed"
        )
    if not is_composed and (args.begin or repeats or args.original):
        raise InputError("begin, original and repeats are for a transformer composition")
    condition = None if args.where is None else Condition.parse(args.where)
    files = JudgedFiles(args.judged, args.valid, condition)
    seeds = args.seeds or [1]
    run = _opened_run(args, seeds[0])
    if is_composed:
        from mtmetrics.training.composed import train_composed

        folder = train_composed(
            run,
            files=files,
            encoder=args.encoder,
            original=args.original,
            vectors=args.vectors,
            begin=args.begin,
            repeats=repeats,
            config=options.settings_of(args, CompositionConfig),
        )
    else:
        from mtmetrics.training.recurrent import train_regressor

        folder = train_regressor(
            run,
            files=files,
            encoder=args.encoder,
            seeds=seeds,
            vectors=args.vectors,
            curve=args.curve,
            curve_means=args.curve_means or (),
            config=options.settings_of(args, RegressorConfig),
        )
    _print_folder(run, folder)


def _refuse_settings(args: argparse.Namespace, config: type, other_config: type) -> None:
    """Refuses settings that only the other composition has."""
    names = {field.name for field in dataclasses.fields(config)}
    for field in dataclasses.fields(other_config):
        if field.name not in names and getattr(args, field.name) is not None:
            raise InputError(
                f"{options.flag(field.name)}: is for the other --composition, not for "
                f"{args.composition}; leave it out"
            )


def _numbers(text: str) -> list[int]:
    try:
        return [int(number) for number in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r}: numbers joined by commas are needed, such as 500,1000"
        ) from None


def _add_pairs(group: options.Container) -> None:
    group.add_argument(
        "--parallel",
        metavar="FILE",
        **options.REPEATABLE_LIST,
        required=True,
        help="sentence pairs: TSV, or JSON Lines with source and target",
    )


def _add_parallel_text(group: options.Container) -> None:
    group.add_argument(
        "--parallel",
        metavar="FILE",
        **options.REPEATABLE_LIST,
        required=True,
        help="JSON Lines (source, target, origin) or .tsv word lists; the name begins with the "
        "language pair, e.g. de-en.jsonl.gz",
    )
    _add_caps(group)
    _add_excluded_origins(group)


def _add_caps(group: options.Container) -> None:
    group.add_argument(
        "--cap",
        metavar="ORIGIN=N",
        dest="caps",
        **options.REPEATABLE_LIST,
        help="use at most N rows of this origin per file; ORIGIN may end in *",
    )


def _add_excluded_origins(group: options.Container) -> None:
    group.add_argument(
        "--exclude-origin",
        metavar="ORIGIN",
        dest="exclude",
        **options.REPEATABLE_LIST,
        help="leave out rows of these origins; a name may end in *",
    )


def _add_judged_for_evaluation(group: options.Container) -> None:
    group.add_argument(
        "--judged",
        metavar="FILE",
        **options.REPEATABLE_LIST,
        help="segments with human judgements (JSON Lines), to evaluate with; what they share "
        "with the parallel text is left out of it",
    )


def _add_output(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("output")
    group.add_argument("--out", metavar="DIR", required=True, help="the artifact folder to make")
    group.add_argument("--overwrite", action="store_true", help="replace an existing one")
    group.add_argument("--work", metavar="DIR", help="folder for checkpoints (default: OUT.work)")
    group.add_argument(
        "--restart",
        action="store_true",
        help="discard what an earlier run left in the work folder",
    )
    group.add_argument(
        "--device",
        metavar="NAME",
        default="auto",
        help="where to compute: auto, cpu, cuda, cuda:1 or 1, mps (default: %(default)s)",
    )


def _add_settings(parser: argparse.ArgumentParser, config: type) -> None:
    """Adds the seed and the settings of a training with checkpoints."""
    group = parser.add_argument_group("settings")
    options.add_seed(group, "everything random")
    options.add_settings(group, {"": dataclasses.fields(config)})
    parser.set_defaults(large_blocks=True)


def _parallel_text(args: argparse.Namespace) -> "ParallelText":
    from mtmetrics.training.corpus import ParallelText, parse_numbers

    return ParallelText(args.parallel, args.exclude, parse_numbers(args.caps, "--cap"))


def _opened_run(args: argparse.Namespace, seed: int) -> "Run":
    """Returns where the training writes; the first process shows what it does."""
    from mtmetrics.training.run import Run

    run = Run(
        args.out,
        seed=seed,
        work=args.work,
        overwrite=args.overwrite,
        restart=args.restart,
        device=args.device,
    )
    messages.show_notes(run.is_main)
    return run


def _print_folder(run: "Run", folder: Path) -> None:
    if run.is_main:
        print(folder)
