"""How far the work is: networks and scorers tell it, whoever shows it listens."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Literal

# ``texts`` that a network has read, ``segments`` that a metric has scored; and how many.
Listener = Callable[[Literal["texts", "segments"], int], None]
_listeners: list[Listener] = []


@contextlib.contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Tells the listener of all work that is done until the block ends, in any thread."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


def tell(what: Literal["texts", "segments"], count: int) -> None:
    """Tells every listener that so much more is done."""
    for listener in _listeners:
        listener(what, count)
