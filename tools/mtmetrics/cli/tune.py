"""Presets whose options were chosen by a few human judgements, for ``mtmetrics evaluate --tune``;
and ``mtmetrics tune``, its old name."""

import argparse

from mtmetrics.cli import messages, options
from mtmetrics.cli.judged_files import judged_files
from mtmetrics.cli.output import TABLE_FORMATS, check_target, print_report, print_warnings
from mtmetrics.errors import InputError


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Chooses options of a metric by human judgements, such as the layer of an encoder, the "
        "weights of parts, or one of several encoders (--try encoder=A,B), and writes them as a "
        "preset. Cross-validation says what the choice gains on judgements that had no part in "
        "it, with its 95 % interval."
    )
    inputs = parser.add_argument_group("input")
    inputs.add_argument(
        "--data",
        metavar="FILE",
        **options.REPEATABLE_LIST,
        required=True,
        help="human judgements, at least 50, in any layout that mtmetrics evaluate reads; no test "
        "set",
    )
    options.add_judged_options(inputs)
    inputs.add_argument(
        "--coefficient",
        choices=("pearson", "spearman", "kendall-b", "kendall-c"),
        default="pearson",
        help="that decides (default: %(default)s)",
    )
    inputs.add_argument(
        "--out", metavar="DIR", required=True, help="the preset, a new folder for --preset"
    )
    add_search_options(inputs)
    options.add_metric_options(parser)
    options.add_output_options(parser, TABLE_FORMATS)
    parser.set_defaults(run=run, level="segment", column=[])


def add_search_options(group: options.Container) -> None:
    """Adds ``--try``, the values to try, ``--folds`` and ``--overwrite``."""
    group.add_argument(
        "--try",
        metavar="OPTION=VALUE,...",
        dest="tried",
        action="append",
        default=[],
        help="values to try of an option, 'all' for layers; repeatable, chosen one after the "
        "other, but each encoder is tried at every layer (default: layers, masses, pieces and "
        "weights, as the metric has them)",
    )
    group.add_argument(
        "--folds", type=int, default=5, help="of the cross-validation (default: %(default)s)"
    )
    group.add_argument("--overwrite", action="store_true", help="replace a folder of that name")


def run(args: argparse.Namespace) -> None:
    tune_metric(args, args.out, "--out", args.coefficient)


def tune_metric(args: argparse.Namespace, out: str, out_option: str, coefficient: str) -> None:
    """Tunes the metric that the arguments name, writes the preset, and prints what the choice
    gains.

    Args:
        args: parsed arguments.
        out: the preset, a new folder.
        out_option: names `out` in messages.
        coefficient: decides between values.

    Raises:
        InputError: there are several metrics, or one without presets; or `out` cannot be written.
    """
    from mtmetrics.reports.tuning import default_values_to_try, report_tuning, tune, write_preset
    from mtmetrics.scorers.registry import find_metric

    check_target(out, out_option, overwrite=args.overwrite, folder=True)
    spec, *further_specs = options.metric_specs(args).values()
    if further_specs:
        raise InputError(f"--metric {further_specs[0]}: one metric is tuned at a time")
    if not find_metric(spec.metric).takes_presets:
        raise InputError(f"--metric {spec.metric}: takes no presets, so none can be written")
    candidates = _values_to_try(args.tried, spec.metric) or default_values_to_try(spec.metric)
    files = judged_files(args)
    pool = options.model_pool(args)
    with messages.scoring(0):
        tuning = tune(spec, files, pool, candidates, coefficient=coefficient, folds=args.folds)
    write_preset(tuning, out, overwrite=args.overwrite)
    print_report(report_tuning(tuning), args)
    print_warnings(tuning.remarks)


def _values_to_try(texts: list[str], metric: str) -> dict[str, list[options.PlainValue]]:
    """Returns option -> values, read from ``OPTION=VALUE,...``."""
    from mtmetrics.scorers.spec import MetricSpec

    candidates: dict[str, list[options.PlainValue]] = {}
    for text in texts:
        flag_name, _, listed_values = text.partition("=")
        name = flag_name.replace("-", "_")
        if not listed_values or name in candidates:
            raise InputError(
                f"--try {text}: OPTION=VALUE,VALUE is needed, once for each option, such as "
                "layer=3,4"
            )
        if listed_values == "all":
            candidates[name] = ["all"]
            continue
        values = []
        for value in listed_values.split(","):
            spec = MetricSpec.parse(f"{metric}::{name}={value}")
            values += [parsed for _, parsed in spec.options]
        candidates[name] = values
    return candidates
