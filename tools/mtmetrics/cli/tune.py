"""Presets whose options were chosen by a few human judgements, for ``mtmetrics evaluate --tune``."""

import argparse

from mtmetrics.artifacts.presets import require_extendable
from mtmetrics.cli import messages, options
from mtmetrics.cli.judged_files import judged_files
from mtmetrics.cli.output import check_target, print_report, print_warnings
from mtmetrics.errors import InputError
from mtmetrics.reports.tuning import default_values_to_try, report_tuning, tune, write_preset
from mtmetrics.scorers.registry import find_metric
from mtmetrics.scorers.spec import MetricSpec


def tune_metric(args: argparse.Namespace, coefficient: str) -> None:
    """Tunes the metric that the arguments name, writes the preset, and prints what the choice
    gains.

    Args:
        args: parsed arguments.
        coefficient: decides between values.

    Raises:
        InputError: there are several metrics, or one without presets; or the preset cannot be written.
    """
    check_target(args.tuned_preset, "--tune", overwrite=args.overwrite, folder=True)
    spec, *further_specs = options.metric_specs(args).values()
    if further_specs:
        raise InputError(f"--metric {further_specs[0]}: one metric is tuned at a time")
    if not find_metric(spec.metric).takes_presets:
        raise InputError(f"--metric {spec.metric}: takes no presets, so none can be written")
    pool = options.model_pool(args)
    if spec.preset is not None:
        require_extendable(spec.metric, spec.preset, local_files_only=pool.local_files_only)
    candidates = _values_to_try(args.tried, spec.metric) or default_values_to_try(spec.metric)
    files = judged_files(args)
    with messages.scoring(0):
        tuning = tune(spec, files, pool, candidates, coefficient=coefficient, folds=args.folds)
    write_preset(tuning, args.tuned_preset, overwrite=args.overwrite)
    print_report(report_tuning(tuning), args)
    print_warnings(tuning.remarks)


def _values_to_try(texts: list[str], metric: str) -> dict[str, list[options.PlainValue]]:
    """Returns option -> values, read from ``OPTION=VALUE,...``."""
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
