"""Judged segments that were published as pickles of plain Python objects, turned into JSON
Lines."""

import math
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

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
    without hyphen, source, reference, and a list of translations with their judgements (twice).

    Args:
        path: the pickle.
        out: the file to write, whole or not at all.

    Raises:
        ArtifactError: the pickle is cut off, holds other things, or names a class or function.
        MTMetricsError: the file cannot be written.
    """
    try:
        with open(path, "rb") as stream:
            rows = list(_rows(_Plain(stream).load()))
    # What a damaged pickle raises is whatever its bytes happen to ask for.
    except (
        pickle.UnpicklingError,
        EOFError,
        ValueError,
        TypeError,
        KeyError,
        IndexError,
        AttributeError,
    ) as error:
        raise ArtifactError(
            f"{path}: no table of judged segments ({error}); nothing of it was kept"
        ) from error
    except (OverflowError, MemoryError, RecursionError) as error:
        raise ArtifactError(
            f"{path}: a damaged pickle ({type(error).__name__}); nothing of it was kept"
        ) from error
    write_rows(out, rows)


def _rows(table: object) -> Iterator[dict[str, Cell]]:
    if not isinstance(table, dict):
        raise TypeError(f"a dictionary is needed, it holds a {type(table).__name__}")
    for number, (pair, source, reference, judged, *_) in table.items():
        texts = [pair, source, reference, *(translation for translation, _ in judged)]
        if len(pair) != 4 or not all(isinstance(text, str) for text in texts):
            raise TypeError(f"sentence {number}: a language pair, texts and judgements are needed")
        for translation, human in judged:
            if not math.isfinite(value := float(human)):
                raise ValueError(f"sentence {number}: the judgement {human} is no finite number")
            row = {"lp": f"{pair[:2]}-{pair[2:]}", "source": source, "reference": reference}
            yield row | {"translation": translation, "human": value}
