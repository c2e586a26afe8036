"""Progress of the work on texts: who does some reports it, and whoever listens is told."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Literal

# "texts" are read by a network, "segments" are scored by a metric.
Unit = Literal["texts", "segments"]
Listener = Callable[[Unit, int], None]
_listeners: list[Listener] = []


@contextlib.contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Calls the listener for all work that is done until the block ends, in any thread."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


def report_progress(unit: Unit, count: int) -> None:
    """Tells every listener that `count` more texts or segments are done."""
    for listener in _listeners:
        listener(unit, count)
