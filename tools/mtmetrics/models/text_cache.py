"""A cache in memory of what a model computed for the texts that it read last."""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class TextCache(Generic[Key, Value]):
    """Values of the texts that were used most recently, up to a total size.

    Args:
        limit: largest total size.
        size_of: returns the size of a value, such as its bytes; by default each value counts 1.

    Attributes:
        size: total size of the values that are kept.
    """

    def __init__(self, limit: int, size_of: Callable[[Value], int] | None = None) -> None:
        self.limit = limit
        self.size = 0
        self._size_of = size_of or (lambda _: 1)
        self._values: OrderedDict[Key, Value] = OrderedDict()

    def get(self, key: Key) -> Value | None:
        """Returns the value of a text, or None where it is not kept."""
        if key in self._values:
            self._values.move_to_end(key)
        return self._values.get(key)

    def put(self, key: Key, value: Value) -> None:
        """Keeps a value, and drops the values that were not used for longest to make room.

        A value that is kept already stays; one that is larger than `limit` is not kept.
        """
        size = self._size_of(value)
        if key in self._values or size > self.limit:
            return
        self._values[key] = value
        self.size += size
        while self.size > self.limit:
            _, dropped = self._values.popitem(last=False)
            self.size -= self._size_of(dropped)

    def clear(self) -> None:
        """Forgets all texts."""
        self._values.clear()
        self.size = 0

    def values(
        self, keys: Sequence[Key], compute: Callable[[list[Key]], Iterable[Value]]
    ) -> list[Value]:
        """Returns the values of texts. Those that are not kept are computed in one call, each once.

        Args:
            keys: the texts.
            compute: returns the values of some of the texts, in their order.
        """
        values: dict[Key, Value] = {}
        missing: dict[Key, None] = {}
        for key in keys:
            value = self.get(key)
            if value is None:
                missing[key] = None
            else:
                values[key] = value
        if missing:
            values.update(zip(missing, compute(list(missing)), strict=True))
        for key in dict.fromkeys(keys):
            self.put(key, values[key])
        return [values[key] for key in keys]
