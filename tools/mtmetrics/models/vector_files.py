"""Files of vectors that are computed some at a time, and go on where they were interrupted."""

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
    together: int,
    compute: Callable[[slice], Sequence[np.ndarray]],
) -> None:
    """Computes the rows of items, such as texts, and appends them to files that hold nothing else,
    to be memory-mapped.

    After every `together` items a note beside the first file (its name with ``.json``) says how
    many items are done and how many rows they have; what an interrupted call wrote behind it is cut
    off. Two calls must not write the same files at once. `compute` returns for a slice of the items
    one (n, width) array per file, with as many rows in each. An MTMetricsError says that a file
    cannot be written."""
    note = paths[0].with_suffix(".json")
    done, rows = json.loads(note.read_text(encoding="utf-8")) if note.exists() else (0, 0)
    with tqdm(total=items, initial=done, desc="encoding", unit="text", disable=None) as bar:
        while done < items:
            part = slice(done, min(done + together, items))
            arrays = compute(part)
            for path, array in zip(paths, arrays, strict=True):
                try:
                    with open(path, "ab") as stream:
                        stream.truncate(rows * array.shape[1] * array.itemsize)
                        stream.write(array.tobytes())
                        stream.flush()
                        os.fsync(stream.fileno())
                except OSError as error:
                    raise MTMetricsError(
                        f"cannot write {path}: {error.strerror or error}"
                    ) from error
            bar.update(part.stop - done)
            done, rows = part.stop, rows + len(arrays[0])
            write_atomic(note, json.dumps([done, rows]))
