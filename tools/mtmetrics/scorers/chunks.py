"""Rows of text as scorers take them: chunk by chunk, with one reference at a time."""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mtmetrics.checks import SourceAndReference

if TYPE_CHECKING:
    from mtmetrics.scorers.base import Scorer

CHUNK_LINES = 1024


def chunk_lines(scorers: "Sequence[Scorer]", columns: int) -> int:
    """How many lines of so many columns are a chunk. Several metrics take turns after fewer: then the cache of an
    encoder still holds what the metric before encoded; unless one of them is better off with more."""
    most = max(scorer.lines for scorer in scorers)
    return most if len(scorers) == 1 or most > CHUNK_LINES else max(64, CHUNK_LINES // columns)


def chunked(rows: Iterable[Sequence[str]], lines: int = CHUNK_LINES) -> Iterator[list[list[str]]]:
    """Turns rows of columns into the chunks of columns that `Scorer.score_stream` takes."""
    rows = iter(rows)
    while block := list(itertools.islice(rows, lines)):
        yield [list(column) for column in zip(*block, strict=True)]


def unfolded(others: Sequence[Any]) -> tuple[list[Any], np.ndarray | None]:
    """Lists of references as one list of m texts, or pairs of source and text, and for each (m,) the number of its
    segment; None where every segment has a single one."""
    several = [_each(other) for other in others]
    if all(len(texts) == 1 for texts in several) and not any(isinstance(other, list) for other in others):
        return [text for [text] in several], None
    owners = np.repeat(np.arange(len(others)), [len(texts) for texts in several])
    return [text for texts in several for text in texts], owners


def _each(other: Any) -> list[Any]:
    """What a segment is compared with, one reference at a time."""
    if isinstance(other, SourceAndReference):
        return [other._replace(reference=text) for text in _each(other.reference)]
    return [other] if isinstance(other, str) else list(other)


def best_of_each(scores: np.ndarray, owners: np.ndarray) -> np.ndarray:
    """(n,) row of the highest of the (m,) scores of each segment, the first of equal ones; owners ascend."""
    order = np.lexsort((-scores, owners))
    return order[np.flatnonzero(np.diff(owners[order], prepend=-1))]
