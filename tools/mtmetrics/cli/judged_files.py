"""The judged data that the options of ``evaluate`` name."""

import argparse

from mtmetrics.errors import InputError, require_extra
from mtmetrics.judgements.judged import Judged, read_judged, read_judged_systems
from mtmetrics.judgements.readers import Condition


def judged_files(args: argparse.Namespace) -> list[Judged]:
    """Reads all files before the first is scored, so that a bad line in the last one does not cost
    an hour.

    Raises:
        InputError: a file cannot be read, a column is missing, or no row is left.
    """
    files = _read_segments(args) if args.level == "segment" else _read_systems(args)
    if args.where is not None:
        files = _chosen_rows(files, args.where)
    if args.detokenize:
        require_extra("mining", "--detokenize")
        files = [file.detokenised() for file in files]
    for file in files:
        for name in args.column:
            file.column(name)
    return files


def _read_segments(args: argparse.Namespace) -> list[Judged]:
    files = []
    for path in args.data:
        files += read_judged(path, lang_pair=args.pair, prediction_field=args.field)
    return files


def _read_systems(args: argparse.Namespace) -> list[Judged]:
    if args.field != "translation":
        raise InputError(
            f"--field {args.field}: is of judged segments; whole systems have their translations "
            "in the field outputs"
        )
    # A pattern such as wmt17_sys/*.jsonl.gz names the outputs too, which are read beside the
    # judgements.
    paths = [path for path in args.data if ".outputs.jsonl" not in path]
    files = []
    for path in paths or args.data:
        files += read_judged_systems(path, lang_pair=args.pair)
    return files


def _chosen_rows(files: list[Judged], where: str) -> list[Judged]:
    """Returns the rows for which a condition holds.

    A file without the field of the condition keeps all rows; a file whose rows all fail is left
    out.

    Raises:
        InputError: no file has the field, or the condition holds for no row.
    """
    condition = Condition.parse(where)
    field = condition.field
    if not any(field in file.rows for file in files):
        raise InputError(
            f"--where {where}: no file has a field {field!r} of numbers, or one of those that all "
            "have"
        )
    chosen_files = [file.having(condition) if field in file.rows else file for file in files]
    if not any(map(len, chosen_files)):
        raise InputError(f"--where {where}: holds for no row")
    return [file for file in chosen_files if len(file)]
