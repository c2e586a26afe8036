"""``mtmetrics uscore``: makes a UScore preset for a language pair from two monolingual files."""

import argparse
import dataclasses
import logging
import os
import sys
from typing import Any

from mtmetrics.cli.options import add_model_options, add_settings, model_pool, progress


def add_parser(subparsers: Any) -> None:
    """Adds the command to the parser."""
    from mtmetrics.uscore import UScoreConfig

    parser = subparsers.add_parser(
        "uscore",
        help="make a UScore preset from two monolingual files",
        description="Makes a preset of the metric uscore for a language pair (Belouadi and Eger, 2023): prepares "
        "text, mines pairs, remaps the encoder, trains a sentence encoder and a translation model, and measures each "
        "stage. Run again after an interruption, it goes on where it was; mined and translated text stays in OUT/work, "
        "which may be removed at the end.",
    )
    add = parser.add_argument_group("data").add_argument
    add("--lp", required=True, metavar="XX-YY", help="language pair, such as de-en")
    add("--source-text", required=True, metavar="FILE", help="sentences of the source language, one per line")
    add("--target-text", required=True, metavar="FILE", help="sentences of the target language")
    text = "sentences and their translations (JSON Lines or TSV), to learn from at the end"
    add("--parallel", metavar="FILE", help=text)
    text = "sentences and their translations, to measure precision after each round; not learnt from"
    add("--held-back", metavar="FILE", help=text)
    text = "judged segments of the pair, to measure the agreement with"
    add("--judged", nargs="+", default=[], metavar="FILE", help=text)
    add("--no-language-filter", action="store_true", help="keep sentences that seem to be of another language")
    to = parser.add_argument_group("output").add_argument
    to("--preset", default="paper", metavar="NAME|DIR", help="preset whose models to start from (default: %(default)s)")
    to("--out", required=True, metavar="DIR", help="the folder to make")
    to("--without", nargs="+", default=[], metavar="PART", help="do not make: sentences, translation")
    text = "translation model to start from; small makes one from the encoder"
    to("--translation-start", metavar="MODEL|small", help=text)
    text = "language model of the target language, or none (default: the preset's, none where it has none)"
    to("--lm", metavar="MODEL", help=text)
    settings = parser.add_argument_group("settings")
    settings.add_argument("--seed", type=int, default=1, help="of everything random (default: %(default)s)")
    settings.add_argument("--workers", type=int, help="threads and processes that look for pairs (default: all cores)")
    add_settings(settings, UScoreConfig)
    add_model_options(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Makes the folder and prints its name."""
    from mtmetrics.inputs import positive
    from mtmetrics.uscore import UScoreConfig
    from mtmetrics.uscore.production import Material, produce_uscore

    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(message)s")
    material = Material(args.source_text, args.target_text, args.parallel, args.held_back, args.judged)
    config = UScoreConfig(**{field.name: getattr(args, field.name) for field in dataclasses.fields(UScoreConfig)})
    options = {"without": args.without, "translation": args.translation_start, "lm": args.lm, "config": config}
    options |= {
        "seed": args.seed,
        "identify": not args.no_language_filter,
        "pool": model_pool(args),
        "progress": progress,
    }
    threads = positive("workers", args.workers or os.cpu_count() or 1)
    print(produce_uscore(args.out, args.lp, material, args.preset, threads=threads, **options))
    return 0
