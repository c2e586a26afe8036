"""Judged segments that were published as pickles of plain Python objects, turned into JSON
Lines."""

import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

from mtmetrics.errors import ArtifactError
from mtmetrics.io.row_writer import write_rows
from mtmetrics.judgements import Cell


class _Plain(pickle.Unpickler):
    """Reads dictionaries, lists, texts and numbers; a pickle that names anything else, which it
    could run, is refused."""

    def find_class(self, module: str, name: str) -> NoReturn:
        raise pickle.UnpicklingError(
            f"it names {module}.{name}, and only texts, numbers and tables of them are read"
        )


def convert(path: Path, out: Path) -> None:
    """Writes the judged segments of a pickle as JSON Lines: language pair, source, reference,
    translation, judgement.

    The pickle is that of Song et al. (2021) for WMT17: number of a sentence -> language pair
    without hyphen, source, reference, and a list of translations with their judgements (twice). Its
    checksum is in the registry, so what it holds is known, and is not checked again.

    Args:
        path: the pickle.
        out: the file to write, whole or not at all.

    Raises:
        ArtifactError: the pickle is cut off, or names a class or function.
        MTMetricsError: the file cannot be written.
    """
    try:
        with open(path, "rb") as stream:
            table = _Plain(stream).load()
    except (pickle.UnpicklingError, EOFError) as error:
        raise ArtifactError(
            f"{path}: no table of judged segments ({error}); nothing of it was kept"
        ) from error
    write_rows(out, _rows(table))


def _rows(table: dict[int, Any]) -> Iterator[dict[str, Cell]]:
    """The judged segments of the table of a pickle."""
    for pair, source, reference, judged, *_ in table.values():
        for translation, human in judged:
            row = {"lp": f"{pair[:2]}-{pair[2:]}", "source": source, "reference": reference}
            yield row | {"translation": translation, "human": float(human)}
