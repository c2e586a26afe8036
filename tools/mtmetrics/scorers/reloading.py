"""Scorers in other processes: a pickle holds the names that a scorer was loaded by, and loads it
again where it is read."""

import dataclasses

from mtmetrics.models.pool import ModelPool
from mtmetrics.scorers.side import Options

# Running options, as text -> the pool of this process for them, so that scorers which arrive later
# find their models.
_POOLS: dict[str, ModelPool] = {}


@dataclasses.dataclass(frozen=True)
class Origin:
    """The names that a scorer was loaded by, as `Scorer.load` took them.

    Attributes:
        preset, lang_pair, options: its arguments.
        running: keywords of `mtmetrics.models.running.Running`, of the pool that it took.
    """

    preset: str | None
    lang_pair: str | None
    options: Options
    running: Options


def shared_pool(running: Options) -> ModelPool:
    """The pool of this process for scorers that are loaded again with these running options."""
    key = repr(sorted(running.items()))
    if key not in _POOLS:
        _POOLS[key] = ModelPool(**running)
    return _POOLS[key]
