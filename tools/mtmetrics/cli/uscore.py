"""``mtmetrics train uscore``: makes a UScore preset for a language pair from two monolingual files."""

import argparse
import dataclasses
import os
from pathlib import Path

from mtmetrics.artifacts.catalog import REPOSITORY_NAME_PATTERN
from mtmetrics.checks import positive
from mtmetrics.cli import messages, options
from mtmetrics.cli.space import as_text
from mtmetrics.errors import InputError
from mtmetrics.uscore import Request, UScoreConfig


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Makes a preset of the metric uscore for a language pair (Belouadi and Eger, 2023): "
        "prepares text, mines pairs, remaps the encoder, trains a sentence encoder and a "
        "translation model, and measures each stage. Run again after an interruption, it goes "
        "on where it was; mined and translated text stays in OUT/work, which may be removed at "
        "the end."
    )
    data = parser.add_argument_group("data")
    options.add_monolingual_files(data)
    data.add_argument(
        "--parallel",
        metavar="FILE",
        help="sentences and their translations (JSON Lines or TSV), to learn from at the end",
    )
    data.add_argument(
        "--held-back",
        metavar="FILE",
        help=(
            "sentences and their translations, to measure precision after each round; not learnt "
            "from"
        ),
    )
    data.add_argument(
        "--judged",
        metavar="FILE",
        **options.REPEATABLE_LIST,
        help="judged segments of the pair, to measure the agreement with",
    )
    options.add_no_language_filter(data)
    output = parser.add_argument_group("output")
    output.add_argument(
        "--preset",
        metavar="NAME|DIR",
        default="paper",
        help="preset whose models to start from (default: %(default)s)",
    )
    output.add_argument("--out", metavar="DIR", required=True, help="the folder to make")
    output.add_argument(
        "--without",
        metavar="PART",
        **options.REPEATABLE_LIST,
        help="do not make: sentences, translation",
    )
    output.add_argument(
        "--translation-start",
        metavar="MODEL|small",
        help="translation model to start from; small makes one from the encoder",
    )
    output.add_argument(
        "--publish",
        metavar="ORG",
        help="then push models and preset to repositories of this user or organisation on the Hub",
    )
    output.add_argument(
        "--license",
        metavar="ID",
        help="licence of the weights, such as cc-by-4.0, for the card; needed to publish",
    )
    output.add_argument(
        "--lm",
        metavar="MODEL",
        help=(
            "language model of the target language, or none (default: the preset's, none where it "
            "has none)"
        ),
    )
    settings = parser.add_argument_group("settings")
    options.add_seed(settings, "everything random")
    settings.add_argument(
        "--workers",
        type=int,
        help="threads and processes that look for pairs (default: all cores)",
    )
    options.add_settings(settings, {"": dataclasses.fields(UScoreConfig)})
    options.add_model_options(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    from mtmetrics.uscore.production import produce_uscore

    messages.show_notes()
    request = Request(
        args.lp,
        args.source_text,
        args.target_text,
        args.preset,
        parallel=args.parallel,
        held_back=args.held_back,
        judged=args.judged,
        without=args.without,
        lm=args.lm,
        seed=args.seed,
        translation=args.translation_start,
        identify=not args.no_language_filter,
        licence=args.license,
        config=options.settings_of(args, UScoreConfig),
    )
    threads = os.cpu_count() or 1
    if args.workers is not None:
        threads = positive("--workers", args.workers)
    if args.publish:
        _check_publication(args)
    folder = produce_uscore(
        args.out,
        request,
        threads=threads,
        pool=options.model_pool(args),
        progress=messages.progress,
    )
    print(folder)
    if args.publish:
        from mtmetrics.uscore.publication import publish_production

        for plan in publish_production(folder, args.publish):
            print(as_text(plan), flush=True)


def _check_publication(args: argparse.Namespace) -> None:
    """Refuses what could not be published, before anything is made."""
    repository = f"{args.publish}/{Path(args.out).name}"
    if not REPOSITORY_NAME_PATTERN.fullmatch(repository):
        raise InputError(f"--publish {args.publish}: with --out, {repository} is no repository")
    if not args.license:
        raise InputError(
            "--publish: --license is missing: under which licence others may use the weights"
        )
    if not args.judged:
        raise InputError(
            "--publish: --judged is missing: the card states how far the metric agrees with people"
        )
