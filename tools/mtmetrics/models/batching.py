"""Which texts run together, so that little of a batch is padding."""

from collections.abc import Callable, Iterator, Sequence

_MOST_PADDING = 1.05


def length_batches(lengths: Sequence[int], batch_tokens: Callable[[], int]) -> Iterator[list[int]]:
    """Yields the numbers of texts, longest first, in batches that hold at most 5 % padding.

    Args:
        lengths: tokens of each text; texts of no tokens are left out.
        batch_tokens: tells the largest padded size of a batch, except that a single text may be longer; it is asked
            while batches are made, since the answer becomes smaller where memory runs out.
    """
    batch: list[int] = []
    real = 0
    for number in sorted(range(len(lengths)), key=lambda item: -lengths[item]):
        padded = lengths[batch[0]] * (len(batch) + 1) if batch else 0
        if batch and (padded > batch_tokens() or padded > _MOST_PADDING * (real + lengths[number])):
            yield batch
            batch, real = [], 0
        if lengths[number]:
            batch.append(number)
            real += lengths[number]
    if batch:
        yield batch
