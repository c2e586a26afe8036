"""``mtmetrics train``: makes the models and tables that ship with the package, or your own.

Each model has a function that adds its options, and one that trains it. Maps, tables of
frequencies, UScore presets and labels have their own modules, whose options `configure` adds.

The models are in the order of their commands. After them come the options that several models
share, and then the steps that all trainings share. A row of training text has an *origin*: the name
of the corpus that it comes from. Options such as ``--cap`` and ``--exclude-origin`` choose rows by
their origin."""

import argparse
import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

from mtmetrics.cli import idf, label, messages, options, remap, uscore
from mtmetrics.errors import InputError
from mtmetrics.training.configs import (
    CompositionConfig,
    ContrastiveConfig,
    DistilConfig,
    EncoderConfig,
    LMConfig,
    RegressorConfig,
    TranslationConfig,
)

if TYPE_CHECKING:
    from mtmetrics.training.corpus import ParallelText
    from mtmetrics.training.run import Run

_MODEL_LOCATIONS = "folder, bundled artifact, or Hub repository"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Trains models on your own text, and makes the maps, tables and judgements that metrics "
        "need. An interrupted run resumes when you repeat the same command."
    )
    subparsers = parser.add_subparsers(title="models to train", metavar="MODEL", required=True)
    _add_encoder(subparsers)
    _add_lm(subparsers)
    _add_distil(subparsers)
    _add_contrastive(subparsers)
    _add_translation(subparsers)
    _add_regressor(subparsers)
    remap.configure(subparsers.add_parser("maps", help="remapping matrices for a language pair"))
    idf.configure(subparsers.add_parser("idf", help="a table of inverse document frequencies"))
    uscore.configure(
        subparsers.add_parser("uscore", help="a UScore preset, from two monolingual files")
    )
    label.configure(
        subparsers.add_parser(
            "labels",
            help="scores of reference-based metrics, as labels to train a reference-free metric",
        )
    )


def _add_encoder(subparsers: options.Subparsers) -> None:
    parser = subparsers.add_parser(
        "encoder",
        help="a small multilingual encoder, from a large one and parallel text",
        description=(
            "Reduces a multilingual encoder to the languages of the parallel text and to its "
            "lower layers, and trains the result to give translated words similar vectors."
        ),
    )
    group = parser.add_argument_group("data")
    _add_parallel_text(group)
    _add_judged_for_evaluation(group)
    group.add_argument(
        "--begin",
        metavar="MODEL",
        required=True,
        help="multilingual encoder of the BERT architecture with a Unigram vocabulary, such as "
        "intfloat/multilingual-e5-small; a folder or Hub repository",
    )
    group.add_argument(
        "--student",
        metavar="MODEL",
        help="an encoder that this command made of the same --begin, to train further",
    )
    group.add_argument(
        "--outputs",
        metavar="FILE",
        **options.REPEATABLE_LIST,
        help="outputs of translation systems with their references, as for 'train labels': the "
        "similarity with the source learns to follow that with the reference",
    )
    _add_output(parser)
    _add_settings(parser, EncoderConfig)
    parser.set_defaults(run=_train_encoder)


def _train_encoder(args: argparse.Namespace) -> None:
    from mtmetrics.training.encoder import train_encoder

    text = _parallel_text(args)
    run = _open_run(args, args.seed)
    folder = train_encoder(
        run,
        text=text,
        begin=args.begin,
        judged=args.judged,
        outputs=args.outputs or (),
        student=args.student,
        config=options.settings_of(args, EncoderConfig),
    )
    _print_folder(run, folder)


def _add_lm(subparsers: options.Subparsers) -> None:
    parser = subparsers.add_parser(
        "lm",
        help="a language model, from text of one language",
        description=(
            "Trains a small GPT-2 model on single sentences, for the fluency term of a metric."
        ),
    )
    group = parser.add_argument_group("data")
    group.add_argument(
        "--mono",
        metavar="FILE[:START-END[=ORIGIN],...]",
        **options.REPEATABLE_LIST,
        help="text, one sentence per line; with line ranges, only those lines",
    )
    group.add_argument(
        "--parallel",
        metavar="FILE",
        **options.REPEATABLE_LIST,
        help="parallel text as JSON Lines, of which only --side is used",
    )
    group.add_argument(
        "--side",
        choices=("source", "target"),
        default="target",
        help="side of --parallel to use (default: %(default)s)",
    )
    group.add_argument(
        "--weight",
        metavar="ORIGIN=N",
        dest="weights",
        **options.REPEATABLE_LIST,
        help="repeat sentences of this origin N times per epoch; ORIGIN may end in *",
    )
    _add_excluded_origins(group)
    _add_output(parser)
    _add_settings(parser, LMConfig)
    parser.set_defaults(run=_train_lm)


def _train_lm(args: argparse.Namespace) -> None:
    from mtmetrics.training.corpus import parse_numbers
    from mtmetrics.training.lm import train_lm

    weights = parse_numbers(args.weights, "--weight")
    run = _open_run(args, args.seed)
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


def _add_distil(subparsers: options.Subparsers) -> None:
    parser = subparsers.add_parser(
        "distil",
        help="a multilingual sentence encoder, from an English one and parallel text",
        description=(
            "Teaches a multilingual student the sentence vectors of an English teacher (Reimers "
            "and Gurevych, 2020)."
        ),
    )
    group = parser.add_argument_group("data")
    _add_parallel_text(group)
    _add_judged_for_evaluation(group)
    group.add_argument(
        "--teacher",
        metavar="MODEL",
        required=True,
        help=f"a sentence-transformers model for English: {_MODEL_LOCATIONS}",
    )
    group.add_argument(
        "--student",
        metavar="MODEL",
        required=True,
        help=f"a multilingual encoder, such as mini-encoder, which is mean-pooled: {_MODEL_LOCATIONS}",
    )
    _add_output(parser)
    _add_settings(parser, DistilConfig)
    parser.set_defaults(run=_train_distil)


def _train_distil(args: argparse.Namespace) -> None:
    from mtmetrics.training.sentence import train_distil

    text = _parallel_text(args)
    run = _open_run(args, args.seed)
    folder = train_distil(
        run,
        text=text,
        teacher=args.teacher,
        student=args.student,
        judged=args.judged,
        config=options.settings_of(args, DistilConfig),
    )
    _print_folder(run, folder)


def _add_contrastive(subparsers: options.Subparsers) -> None:
    parser = subparsers.add_parser(
        "contrastive",
        help="a sentence encoder, from sentence pairs alone",
        description=(
            "Pulls the vectors of a sentence and of its translation together, and pushes those "
            "of other sentences away. Such an encoder gives the sentence part of UScore "
            "(Belouadi and Eger, 2023)."
        ),
    )
    group = parser.add_argument_group("data")
    _add_pairs(group)
    group.add_argument(
        "--model",
        metavar="MODEL",
        required=True,
        help=f"the encoder to begin with: {_MODEL_LOCATIONS}",
    )
    _add_output(parser)
    _add_settings(parser, ContrastiveConfig)
    parser.set_defaults(run=_train_contrastive)


def _train_contrastive(args: argparse.Namespace) -> None:
    from mtmetrics.training.sentence import train_contrastive

    run = _open_run(args, args.seed)
    folder = train_contrastive(
        run,
        parallel=args.parallel,
        model=args.model,
        config=options.settings_of(args, ContrastiveConfig),
    )
    _print_folder(run, folder)


def _add_translation(subparsers: options.Subparsers) -> None:
    parser = subparsers.add_parser(
        "translation",
        help="a translation model for pseudo-references, from sentence pairs",
        description=(
            "Trains an mBART model to translate one language pair (Belouadi and Eger, 2023)."
        ),
    )
    group = parser.add_argument_group("data")
    _add_pairs(group)
    _add_caps(group)
    _add_excluded_origins(group)
    group.add_argument(
        "--lp",
        metavar="XX-YY",
        dest="lang_pair",
        required=True,
        help="language pair of the files, such as de-en",
    )
    group.add_argument(
        "--model",
        metavar="MODEL",
        required=True,
        help="the mBART model to begin with, such as facebook/mbart-large-cc25; or an encoder, such "
        "as mini-encoder, whose word vectors a new small mBART model begins with",
    )
    _add_output(parser)
    _add_settings(parser, TranslationConfig)
    parser.set_defaults(run=_train_translation)


def _train_translation(args: argparse.Namespace) -> None:
    from mtmetrics.training.translation import train_translation

    text = _parallel_text(args)
    run = _open_run(args, args.seed)
    folder = train_translation(
        run,
        text=text,
        model=args.model,
        lang_pair=args.lang_pair,
        config=options.settings_of(args, TranslationConfig),
    )
    _print_folder(run, folder)


def _add_regressor(subparsers: options.Subparsers) -> None:
    parser = subparsers.add_parser(
        "regressor",
        help="BiLSTM, BiLSTM with attention or ESIM, from human judgements",
        description=(
            "Trains a network on the vectors of a frozen encoder to predict human judgements "
            "(Mathur et al., 2019)."
        ),
    )
    group = parser.add_argument_group("data")
    group.add_argument(
        "--judged",
        metavar="FILE",
        **options.REPEATABLE_LIST,
        required=True,
        help="JSON Lines: source or src, reference or ref (those that --against names), translation "
        "or mt, human or score; or judged segments in the layout of a shared task",
    )
    options.add_where(group)
    group.add_argument(
        "--valid",
        metavar="FILE",
        **options.REPEATABLE_LIST,
        help="judged segments that decide when to stop",
    )
    group.add_argument("--encoder", metavar="MODEL", required=True, help=_MODEL_LOCATIONS)
    _add_composition(group)
    group.add_argument(
        "--vectors",
        metavar="DIR",
        help="cache of encoder outputs, which runs can share (default: WORK/vectors)",
    )
    group.add_argument(
        "--curve",
        metavar="N,N,...",
        type=_comma_separated_numbers,
        help="instead of a model, make a learning curve (table and plot) over these numbers of "
        "training instances",
    )
    group.add_argument(
        "--curve-means",
        metavar="N,N,...",
        type=_comma_separated_numbers,
        help="with --curve: also train on all translations, but with the mean of only N judgements "
        "of each; --judged needs a row per judgement",
    )
    group.add_argument(
        "--seeds",
        metavar="N",
        type=int,
        **options.REPEATABLE_LIST,
        help="train one network per seed, and average them (default: 1)",
    )
    _add_output(parser)
    fields_of_composition = {
        "lstm": dataclasses.fields(RegressorConfig),
        "transformer": dataclasses.fields(CompositionConfig),
    }
    options.add_settings(parser.add_argument_group("settings"), fields_of_composition)
    parser.set_defaults(run=_train_regressor)


def _add_composition(group: options.Container) -> None:
    """Adds ``--composition`` and the options of a transformer composition.

    An ESIM compares the words of two texts. Its composition network then reads the compared words.
    """
    group.add_argument(
        "--composition",
        choices=("lstm", "transformer"),
        default="lstm",
        help="composition layer of an ESIM: LSTMs as in Mathur et al., or the encoder's upper "
        "layers (default: %(default)s)",
    )
    group.add_argument(
        "--begin",
        metavar="MODEL",
        help="transformer composition only: a regressor to train further, instead of layers of an "
        "encoder",
    )
    group.add_argument(
        "--original",
        metavar="MODEL",
        help="transformer composition only: the encoder whose upper layers the composition begins "
        "with (default: --encoder)",
    )
    group.add_argument(
        "--repeat",
        metavar="NAME=N",
        dest="repeats",
        **options.REPEATABLE_LIST,
        help="transformer composition only: repeat N times per epoch, such as 2 or 0.5, the rows of "
        "files whose names begin with NAME",
    )


def _train_regressor(args: argparse.Namespace) -> None:
    from mtmetrics.judgements.readers import Condition
    from mtmetrics.training.corpus import parse_numbers
    from mtmetrics.training.judged_pairs import JudgedFiles

    repeats = parse_numbers(args.repeats, "--repeat", whole=False)
    _refuse_options_of_other_composition(args)
    condition = None if args.where is None else Condition.parse(args.where)
    files = JudgedFiles(args.judged, args.valid, condition)
    seeds = args.seeds or [1]
    run = _open_run(args, seeds[0])
    if args.composition == "transformer":
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


def _refuse_options_of_other_composition(args: argparse.Namespace) -> None:
    """Raises InputError for options that have no effect with the chosen composition."""
    if args.composition == "transformer":
        _refuse_settings(args, used=CompositionConfig, unused=RegressorConfig)
        if len(args.seeds) > 1 or args.curve is not None or args.curve_means is not None:
            raise InputError(
                "a transformer composition has one network; leave out --curve and --curve-means, "
                "and pass one seed"
            )
    else:
        _refuse_settings(args, used=RegressorConfig, unused=CompositionConfig)
        if args.begin or args.repeats or args.original:
            raise InputError("--begin, --original and --repeat need --composition transformer")
        if args.curve_means and args.curve is None:
            raise InputError("--curve-means adds to a curve; pass --curve too")


def _refuse_settings(args: argparse.Namespace, *, used: type, unused: type) -> None:
    """Raises InputError if the user passed a setting that is a field of `unused` only."""
    used_names = {field.name for field in dataclasses.fields(used)}
    for field in dataclasses.fields(unused):
        if field.name not in used_names and getattr(args, field.name) is not None:
            raise InputError(
                f"{options.flag(field.name)}: is for the other --composition, not for "
                f"{args.composition}; leave it out"
            )


def _comma_separated_numbers(text: str) -> list[int]:
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
        help="segments with human judgements (JSON Lines), to evaluate with; their sentences are "
        "removed from the parallel text",
    )


def _add_output(parser: argparse.ArgumentParser) -> None:
    """Adds the options that say where a training writes and where it computes.

    `large_blocks` tells `mtmetrics.cli.main` to keep freed memory, which a training soon needs
    again."""
    parser.set_defaults(large_blocks=True)
    group = parser.add_argument_group("output")
    group.add_argument("--out", metavar="DIR", required=True, help="the artifact folder to make")
    group.add_argument("--overwrite", action="store_true", help="replace an existing folder")
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
    """Adds ``--seed`` and an option for each field of `config`."""
    group = parser.add_argument_group("settings")
    options.add_seed(group, "all random choices")
    options.add_settings(group, {"": dataclasses.fields(config)})


def _parallel_text(args: argparse.Namespace) -> "ParallelText":
    from mtmetrics.training.corpus import ParallelText, parse_numbers

    return ParallelText(args.parallel, args.exclude, parse_numbers(args.caps, "--cap"))


def _open_run(args: argparse.Namespace, seed: int) -> "Run":
    """Opens a training run: its folders, seed and device. If several processes train, only the main
    process prints notes."""
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
    """Prints the folder of the artifact, once even if several processes train."""
    if run.is_main:
        print(folder)
