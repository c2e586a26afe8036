"""Files of vectors that are computed in parts. An interrupted computation goes on at its last part."""

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from tqdm import tqdm

from mtmetrics.errors import MTMetricsError
from mtmetrics.io.atomic import write_atomic


def append_rows(
    paths: Sequence[Path],
    items: int,
    items_per_save: int,
    compute: Callable[[slice], Sequence[np.ndarray]],
) -> None:
    """Computes the rows of items, such as texts, and appends them to files of raw numbers, which can
    be memory-mapped.

    After each part, a note beside the first file (its name with ``.json``) says how many items are
    done and how many rows they have. The next call with the same files goes on there; rows behind
    it, of a part that was interrupted, are cut off. Two calls must not write the same files at once.

    Args:
        paths: the files.
        items: how many there are.
        items_per_save: items of a part.
        compute: returns for a slice of the items one (n, width) array for each file.

    Raises:
        MTMetricsError: a file cannot be written.
    """
    note = paths[0].with_suffix(".json")
    done, rows = json.loads(note.read_text(encoding="utf-8")) if note.exists() else (0, 0)
    with tqdm(total=items, initial=done, desc="encoding", unit="text", disable=None) as bar:
        while done < items:
            part = slice(done, min(done + items_per_save, items))
            arrays = compute(part)
            for path, array in zip(paths, arrays, strict=True):
                _append(path, array, rows)
            bar.update(part.stop - done)
            done, rows = part.stop, rows + len(arrays[0])
            write_atomic(note, json.dumps([done, rows]))


def _append(path: Path, array: np.ndarray, rows: int) -> None:
    """Writes an array behind the first rows of a file, and forces it to disk."""
    try:
        with open(path, "ab") as stream:
            stream.truncate(rows * array.shape[1] * array.itemsize)
            stream.write(array.tobytes())
            stream.flush()
            os.fsync(stream.fileno())
    except OSError as error:
        raise MTMetricsError(f"cannot write {path}: {error.strerror or error}") from error
