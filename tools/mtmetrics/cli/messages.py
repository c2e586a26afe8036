"""Messages of commands on standard error beside errors and warnings: bars of progress, and notes."""

import contextlib
import logging
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from tqdm import tqdm

    from mtmetrics.models.progress import Unit

T = TypeVar("T")
# Set by `main`: no bars and no notes.
quiet = False
# A bar of segments runs ahead of the scored segments, by the texts that networks have read. This is
# the most, so that a bad guess of the texts per segment does not end the bar too early.
_MOST_SEGMENTS_AHEAD = 1000
# The guess before any segments are scored.
_FIRST_TEXTS_PER_SEGMENT = 3.0


def show_notes(are_shown: bool = True) -> None:
    """Shows the package's notes on what it does, and the progress of trainings; not with --quiet.

    Args:
        are_shown: False for a process that is not the main one of a training; it shows warnings only.
    """
    level = logging.INFO if are_shown and not quiet else logging.WARNING
    logging.basicConfig(level=level, format="%(message)s")
    # faiss notes which processors it was not built for.
    logging.getLogger("faiss").setLevel(logging.WARNING)


def progress(iterable: Iterable[T] | None = None, **keywords: Any) -> "tqdm[T]":
    """Returns a bar of progress over an iterable, or one that is moved by ``update``.

    It is shown on a terminal only, and not with --quiet. The keywords are those of tqdm."""
    from tqdm import tqdm

    return tqdm(iterable, disable=quiet or None, **keywords)


@contextlib.contextmanager
def scoring(total: int) -> Iterator[None]:
    """Shows how many segments are scored while the block runs, and the time left.

    Args:
        total: segments to score; 0 where that is not known.
    """
    from mtmetrics.models.progress import listening

    with progress(total=total or None, desc="scoring", unit=" segments") as bar:
        with listening(_SegmentMeter(bar)):
            yield
        bar.update(max(total - bar.n, 0))


class _SegmentMeter:
    """Moves a bar by the segments that are scored and, between them, by the texts that networks
    have read.

    Attributes:
        segments: segments scored so far.
        texts: texts read since the last segments were scored.
        texts_per_segment: texts that were read for each of the last scored segments, at least 1.
    """

    def __init__(self, bar: "tqdm") -> None:
        self._bar = bar
        self.segments = self.texts = 0
        self.texts_per_segment = _FIRST_TEXTS_PER_SEGMENT

    def __call__(self, unit: "Unit", count: int) -> None:
        if unit == "texts":
            self.texts += count
        else:
            self.segments += count
            self.texts_per_segment = max(self.texts / count, 1.0)
            self.texts = 0
        segments_ahead = min(self.texts / self.texts_per_segment, _MOST_SEGMENTS_AHEAD)
        position = self.segments + segments_ahead
        position = int(min(position, self._bar.total or position))
        self._bar.update(max(position - self._bar.n, 0))
