"""``mtmetrics tune``: a preset whose options were chosen by a few human judgements."""

import argparse
from typing import Any

from mtmetrics.cli import options
from mtmetrics.cli.judged_files import judged_files
from mtmetrics.cli.output import TABLE_FORMATS, check_target, print_report, print_warnings
from mtmetrics.errors import InputError

_OPTIONS: options.Options = {
    "--data FILE ...!": "human judgements, at least 50, in any layout that mtmetrics evaluate reads; no test set",
    **options.JUDGED,
    "--try OPTION=VALUE,...": (
        "values to try of an option, 'all' for layers; repeatable, chosen one after the other, "
        "but each encoder is tried at every layer (default: layers, masses, pieces and weights, "
        "as the metric has them)",
        {"action": "append", "dest": "tried"},
    ),
    "--coefficient": ("that decides", ("pearson", "spearman", "kendall-b", "kendall-c")),
    "--folds": ("of the cross-validation", 5),
    "--out DIR!": "the preset, a new folder for --preset",
    "--overwrite": "replace a folder of that name",
}


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Chooses options of a metric by human judgements, such as the layer of an encoder, the "
        "weights of parts, or one of several encoders (--try encoder=A,B), and writes them as a "
        "preset. Cross-validation says what the choice gains on judgements that had no part in "
        "it, with its 95 % interval."
    )
    options.add_options(parser.add_argument_group("input"), _OPTIONS)
    options.add_metric_options(parser)
    options.add_output_options(parser, TABLE_FORMATS)
    parser.set_defaults(run=run, level="segment", column=[])


def run(args: argparse.Namespace) -> None:
    from mtmetrics.reports.metric_runs import MetricSpec
    from mtmetrics.reports.tuning import report_tuning, tune, tuned_options, write_preset
    from mtmetrics.scorers.registry import find_metric

    check_target(args.out, "--out", overwrite=args.overwrite, folder=True)
    first, *others = options.metric_specs(args).values()
    if others:
        raise InputError(f"--metric {others[0]}: one metric is tuned at a time")
    if not find_metric(first.metric).takes_presets:
        raise InputError(f"--metric {first.metric}: takes no presets, so none can be written")
    tried: dict[str, list[Any]] = {}
    for text in args.tried or []:
        name, equals, listed = text.partition("=")
        if not equals or not listed or name in tried:
            raise InputError(
                f"--try {text}: OPTION=VALUE,VALUE is needed, once for each option, such as "
                "layer=3,4"
            )
        if listed == "all":
            tried[name] = ["all"]
            continue
        parsed = (
            MetricSpec.parse(f"{first.metric}::{name}={value}") for value in listed.split(",")
        )
        tried[name.replace("-", "_")] = [value for spec in parsed for _, value in spec.options]
    asked = tried or tuned_options(first.metric)
    files = judged_files(args)
    with options.scoring(0):
        found = tune(
            first,
            files,
            options.model_pool(args),
            asked,
            coefficient=args.coefficient,
            folds=args.folds,
        )
    write_preset(found, args.out, overwrite=args.overwrite)
    print_report(report_tuning(found), args)
    print_warnings(found.remarks)
