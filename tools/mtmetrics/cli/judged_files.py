"""Judged data as the options of a command name it, and metrics on it."""

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mtmetrics.cli import messages, options
from mtmetrics.errors import InputError, require_extra

if TYPE_CHECKING:
    from mtmetrics.judgements.judged import Judged
    from mtmetrics.reports.agreement import Measure, MetricTable
    from mtmetrics.reports.metric_runs import Entry, MetricRuns


def judged_files(args: argparse.Namespace) -> "list[Judged]":
    """All files, read before the first is scored, so that a bad line in the last one does not cost
    an hour."""
    from mtmetrics.judgements.judged import read_judged, read_judged_systems

    fields, read, paths = {"lang_pair": args.pair}, read_judged_systems, args.data
    if args.level == "segment":
        read, fields = read_judged, {**fields, "prediction_field": args.field}
    elif args.field != "translation":
        where = "whole systems have their translations in the field outputs"
        raise InputError(f"--field {args.field}: is of judged segments; {where}")
    else:
        # A pattern such as wmt17_sys/*.jsonl.gz names the outputs too, which are read beside the
        # judgements.
        paths = [path for path in args.data if ".outputs.jsonl" not in path] or args.data
    files = [part for path in paths for part in read(path, **fields)]
    if args.where is not None:
        files = _chosen_rows(files, args.where)
    if args.detokenize:
        require_extra("mining", "--detokenize")
        files = [file.detokenised() for file in files]
    for file in files:
        for name in args.column:
            file.column(name)
    return files


def judge(
    args: argparse.Namespace,
    entries: "Sequence[Entry]",
    files: "Sequence[Judged]",
    measure: "Measure",
    **settings: Any,
) -> "tuple[MetricRuns, MetricTable]":
    """Runs the metrics of the rows on judged data, with the models that the arguments name, and
    shows a bar; see `mtmetrics.reports.agreement.judge_entries`."""
    from mtmetrics.reports.agreement import judge_entries

    with messages.scoring(
        sum(entry.metric is not None for entry in entries) * sum(map(len, files))
    ):
        return judge_entries(entries, files, options.model_pool(args), measure, **settings)


def _chosen_rows(files: "list[Judged]", where: str) -> "list[Judged]":
    """The rows for which a condition holds, of files with such a field, and all of the other
    files."""
    from mtmetrics.judgements.readers import Condition

    condition = Condition.parse(where)
    name = condition.field
    if not any(name in file.rows for file in files):
        raise InputError(
            f"--where {where}: no file has a field {name!r} of numbers, or one of those that all "
            "have"
        )
    kept = [file.having(condition) if name in file.rows else file for file in files]
    if not any(map(len, kept)):
        raise InputError(f"--where {where}: holds for no row")
    return [file for file in kept if len(file)]
