"""What is compared: the outputs of several systems on one test set, in parallel files or one file."""

import argparse
from typing import Any, NamedTuple

from mtmetrics.cli.rows import KEYS, not_empty, require_files, system_names
from mtmetrics.errors import InputError
from mtmetrics.scorers.registry import Column
from mtmetrics.textio import iter_parallel, table_keys


class Systems(NamedTuple):
    """The outputs of several systems on one test set.

    Attributes:
        others: ``"sources"``, ``"references"`` or both -> n texts, or n lists of several references.
        predictions: system -> its n translations.
    """

    others: dict[Column, list[Any]]
    predictions: dict[str, list[str]]


def read_systems(args: argparse.Namespace) -> Systems:
    """Reads all that the arguments name, for metrics that compare with different columns of it.

    One FILE is JSON Lines here, with the keys ``source``, ``reference`` or both, and ``outputs``, an object with the
    translation of each system.

    Raises:
        InputError: the arguments name no or contradicting files; a file is missing, empty, damaged, or of another
            length; a system is named twice.
    """
    require_files(args)
    if args.file is not None:
        return _systems_of_file(args.file)
    references = args.references or []
    paths = [*([args.sources] if args.sources else []), *references, *args.predictions]
    columns = [list(column) for column in zip(*not_empty(iter_parallel(paths), paths[0]), strict=True)]
    names = system_names(args.predictions)
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise InputError(f"-t {twice[0]}: given twice")
    others: dict[Column, list[Any]] = {"sources": columns.pop(0)} if args.sources else {}
    if len(references) == 1:
        others["references"] = columns[0]
    elif references:
        others["references"] = [list(texts) for texts in zip(*columns[: len(references)], strict=True)]
    return Systems(others, dict(zip(names, columns[len(references) :], strict=True)))


def _systems_of_file(path: str) -> Systems:
    keys = table_keys(path) or []
    given = [column for column, key in KEYS.items() if key in keys]
    if "outputs" not in keys or not given:
        raise InputError(
            f"{path}: several systems in one FILE are JSON Lines with the key outputs, an object with the translation of each system, and "
            f"source or reference; the first row has: {', '.join(keys) or 'none of them'}; parallel files are passed with -s or -r, and -t"
        )
    from mtmetrics.evaluation.readers import fields, jsonl

    others: dict[Column, list[Any]] = {column: [] for column in given}
    predictions: dict[str, list[str]] = {}
    for where, row in jsonl.rows(path):
        outputs = row.get("outputs")
        if not isinstance(outputs, dict) or (predictions and outputs.keys() != predictions.keys()):
            wanted = f" of {', '.join(predictions)}, as in the first row" if predictions else ""
            raise InputError(f"{where}, field 'outputs': an object, system name -> translation{wanted}, is needed")
        for column in given:
            others[column].append(fields.required_text(row, KEYS[column], where))
        for name in outputs:
            predictions.setdefault(name, []).append(fields.text(outputs, name, f"{where}, field 'outputs'"))
    return Systems(others, predictions)
