"""Judged systems in JSON Lines: ``XX-YY.jsonl`` has a judgement per system, ``XX-YY.outputs.jsonl`` what the systems
wrote."""

from pathlib import Path
from typing import Any

from mtmetrics.errors import InputError
from mtmetrics.evaluation.judged import JudgedSystems
from mtmetrics.evaluation.readers import fields, jsonl
from mtmetrics.evaluation.readers.rows import checked_pair

_ENDS = (".jsonl", ".jsonl.gz")


def find(path: str | Path) -> list[Path]:
    """The files with judgements of systems: the one that was named, or those of a folder that have outputs beside them.

    Raises:
        InputError: there is none.
    """
    path = Path(path)
    if not path.is_dir():
        return [path]
    found = [
        file
        for file in sorted(path.iterdir())
        if file.name.endswith(_ENDS) and ".outputs." not in file.name and _outputs_file(file)
    ]
    if not found:
        raise InputError(f"{path}: holds no XX-YY.jsonl with XX-YY.outputs.jsonl beside it, plain or .gz")
    return found


def read(path: Path, *, reference_field: str) -> JudgedSystems:
    """Reads one language pair.

    Rows of the judgements have ``lp``, ``system`` and ``human``, a finite number; rows of the outputs have ``lp``,
    ``source`` and ``outputs``, an object with the translation of every judged system, and may have a reference.

    Args:
        path: the file with the judgements.
        reference_field: the field that holds the reference.

    Raises:
        InputError: a file is missing or empty, a row lacks a field or holds something else, or a system has no
            translation.
    """
    lang_pair, human = _judgements(path)
    outputs_file = _outputs_file(path)
    if outputs_file is None:
        raise InputError(f"{path}: no {_stem(path)}.outputs.jsonl or .gz beside it, which holds what the systems wrote")
    sources: list[str] = []
    references: list[str | None] = []
    outputs: dict[str, list[str]] = {system: [] for system in human}
    for where, row in jsonl.rows(outputs_file):
        if fields.required_text(row, "lp", where) != lang_pair:
            raise InputError(f"{where}, field 'lp': {row['lp']!r}, but {path} is of {lang_pair}")
        sources.append(fields.required_text(row, "source", where))
        references.append(None if row.get(reference_field) is None else fields.text(row, reference_field, where))
        written: Any = row.get("outputs")
        if not isinstance(written, dict):
            raise InputError(f"{where}, field 'outputs': an object, system name -> translation, is needed")
        for system, translations in outputs.items():
            if system not in written:
                raise InputError(f"{where}, field 'outputs': no translation of the judged system {system!r}")
            translations.append(fields.text(written, system, f"{where}, field 'outputs'"))
    if not sources:
        raise InputError(f"{outputs_file}: holds no row, there is nothing to judge")
    return JudgedSystems(str(path), lang_pair, sources, references, outputs, human)


def _judgements(path: Path) -> tuple[str, dict[str, float]]:
    lang_pair = ""
    human: dict[str, float] = {}
    for where, row in jsonl.rows(path):
        pair = checked_pair(fields.required_text(row, "lp", where), where)
        lang_pair = lang_pair or pair
        if pair != lang_pair:
            raise InputError(f"{where}, field 'lp': {pair!r}, but the lines before have {lang_pair!r}")
        system = fields.required_text(row, "system", where)
        if system in human:
            raise InputError(f"{where}, field 'system': {system!r} has a judgement already")
        human[system] = fields.required_number(row, "human", where)
    if not human:
        raise InputError(f"{path}: holds no row, there is nothing to judge")
    return lang_pair, human


def _stem(path: Path) -> str:
    return path.name.removesuffix(".gz").removesuffix(".jsonl")


def _outputs_file(path: Path) -> Path | None:
    names = (f"{_stem(path)}.outputs{end}" for end in _ENDS)
    return next((path.with_name(name) for name in names if path.with_name(name).is_file()), None)
