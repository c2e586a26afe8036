"""Reads what people thought of translations, in whichever of the known layouts it is stored."""

from collections.abc import Callable, Iterator
from pathlib import Path

from mtmetrics.errors import InputError
from mtmetrics.evaluation.eval_set import is_test_set
from mtmetrics.evaluation.judged import JudgedSegments, JudgedSystems
from mtmetrics.evaluation.readers import fields, jsonl, mlqe, mt_metrics_eval, systems, table
from mtmetrics.evaluation.readers.rows import Row, collect

# The first end of a file's name that fits says how it is read; a file of any other name is JSON Lines.
_LAYOUTS: dict[str, Callable[[str | Path], Iterator[tuple[str, Row]]]] = {
    mlqe.SUFFIX: mlqe.rows,
    ".tar": mlqe.archive_rows,
    ".tgz": mlqe.archive_rows,
    ".tsv": table.rows,
    ".csv": table.rows,
    ".jsonl": jsonl.rows,
}


def read_judged(
    path: str | Path, *, prediction_field: str = "translation", lang_pair: str | None = None
) -> list[JudgedSegments]:
    """Reads judged segments and says what belongs together: one result for each file and language pair in it.

    - JSON Lines, see `read_judged_segments`, with any number of language pairs.
    - ``.tsv`` and ``.csv`` with a header row; the columns have the same names. That includes WMT17's
    ``testset_XX-YY.tsv`` and the
      collections of WMT judgements on the Hub (``lp``, ``src``, ``mt``, ``ref``, ``score``, ``raw``, ``system``).
    - MLQE-PE, see `readers.mlqe`: ``*.df.short.tsv``, or the ``.tar.gz`` in which it is published.
    - A test set in the folder layout of mt-metrics-eval, see `readers.mt_metrics_eval`; ``metric-scores`` become
    columns.
    - Any other folder: all files of these names in it, in the order of their names.

    All but archives may be compressed, ``.gz``.

    Args:
        path: a file, a folder, or ``-`` for JSON Lines from standard input.
        prediction_field: the field that holds the translation.
        lang_pair: read this pair only; it is also the pair of rows that do not name one.

    Raises:
        InputError: nothing to read, or something that cannot be used; names file, line and field.
    """
    if is_test_set(path):
        return mt_metrics_eval.read_segments(path, lang_pair=lang_pair)
    found = []
    for file in _files(path):
        rows = _LAYOUTS.get(_end(file) or "", jsonl.rows)(file)
        found += collect(str(file), rows, prediction_field=prediction_field, lang_pair=lang_pair)
    if not found:
        raise InputError(f"{path}: holds no row of the language pair {lang_pair}")
    return found


def _files(path: str | Path) -> list[str | Path]:
    if not Path(path).is_dir():
        return [path]
    files = sorted(file for file in Path(path).rglob("*") if file.is_file() and _end(file))
    if not files:
        raise InputError(
            f"{path}: holds no judged data; files *{', *'.join(_LAYOUTS)} are read, or a test set of mt-metrics-eval"
        )
    return [*files]


def read_judged_segments(path: str | Path, *, prediction_field: str = "translation") -> JudgedSegments:
    """Reads a JSON Lines file, plain or ``.gz``, with one judged segment per line, all of one language pair.

    A row has the fields ``lp``, ``source``, `prediction_field` and ``human`` (a finite number, or null where there is
    no judgement); ``reference``, ``system``, ``sid`` and ``da_mean`` may be missing or null. Other names of these
    fields are in `readers.fields.NAMES`.

    Args:
        path: the file, or ``-`` for standard input.
        prediction_field: the field that holds the translation.

    Raises:
        InputError: the file cannot be read, holds no row or several language pairs, or a field is missing or cannot be
            used; names file, line and field.
    """
    [segments] = collect(str(path), _of_one_pair(jsonl.rows(path)), prediction_field=prediction_field)
    return segments


def read_judged_systems(
    path: str | Path, *, reference_field: str = "reference", lang_pair: str | None = None
) -> list[JudgedSystems]:
    """Reads whole outputs of systems and the judgement of each system, one result for each language pair.

    Args:
        path: ``XX-YY.jsonl`` or ``XX-YY.jsonl.gz`` with the judgements, beside ``XX-YY.outputs.jsonl`` or ``.gz``, or a
            folder of them; or a test set in the folder layout of mt-metrics-eval.
        reference_field: the field that holds the reference, in JSON Lines.
        lang_pair: read this pair only.

    Raises:
        InputError: nothing to read, or something that cannot be used; names file, line and field.
    """
    if is_test_set(path):
        return mt_metrics_eval.read_systems(path, lang_pair=lang_pair)
    found = [systems.read(file, reference_field=reference_field) for file in systems.find(path)]
    kept = [pair for pair in found if lang_pair in (None, pair.lang_pair)]
    if not kept:
        raise InputError(
            f"{path}: no language pair {lang_pair}; there are: {', '.join(pair.lang_pair for pair in found)}"
        )
    return kept


def _end(path: str | Path) -> str | None:
    name = str(path).removesuffix(".gz")
    return next((end for end in _LAYOUTS if name.endswith(end)), None)


def _of_one_pair(rows: Iterator[tuple[str, Row]]) -> Iterator[tuple[str, Row]]:
    first = None
    for where, row in rows:
        name = fields.field_name(row, "lp")
        pair = first if name is None else row[name]
        first = first or pair
        if pair != first:
            raise InputError(
                f"{where}, field {name!r}: {pair!r}, but the lines before have {first!r}; give each language pair its own file"
            )
        yield where, row
