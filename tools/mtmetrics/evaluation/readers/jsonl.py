"""JSON Lines: one judged segment per line."""

from collections.abc import Iterator
from pathlib import Path

from mtmetrics.evaluation.readers.rows import Row
from mtmetrics.textio import iter_jsonl


def rows(path: str | Path) -> Iterator[tuple[str, Row]]:
    """Yields place and content of every row.

    Raises:
        InputError: as `mtmetrics.textio.iter_jsonl`.
    """
    return ((f"{path}, line {number}", row) for number, row in iter_jsonl(path))
