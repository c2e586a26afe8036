"""Worsened translations as hard negatives: untranslated, foreign, missing, doubled and misplaced words."""

import numpy as np

OPERATIONS = ("untranslated", "foreign", "missing", "doubled", "misplaced")
_SHARES = (0.4, 0.25, 0.15, 0.1, 0.1)


def corrupt(
    source: np.ndarray,
    target: np.ndarray,
    other: np.ndarray,
    begins: np.ndarray,
    share: float,
    rng: np.random.Generator,
) -> np.ndarray:
    """Worsens one translation; at least one word changes where that is possible.

    Args:
        source: token ids of the source, special tokens at both ends.
        target: token ids of the translation, likewise.
        other: token ids of another translation, from which foreign words are taken.
        begins: of the vocabulary, whether a subword begins a word, `(size,)`.
        share: of the words that change, on average.
        rng: the source of chance.

    Returns:
        The token ids of the worse translation.
    """
    words = split_words(target, begins)
    known = {tuple(word) for word in words}
    untranslated = [word for word in split_words(source, begins) if tuple(word) not in known]
    foreign = [word for word in split_words(other, begins) if tuple(word) not in known]
    chosen = rng.random(len(words)) < share * 2 * rng.random()
    if words and not chosen.any():
        chosen[rng.integers(len(words))] = True
    result: list[list[int]] = []
    for word, change in zip(words, chosen, strict=True):
        operation = rng.choice(OPERATIONS, p=_SHARES) if change else None
        if operation == "untranslated" and untranslated:
            result.append(untranslated[rng.integers(len(untranslated))])
        elif operation in ("untranslated", "foreign") and foreign:
            result.append(foreign[rng.integers(len(foreign))])
        elif operation == "missing" and len(words) > 1:
            continue
        elif operation == "doubled":
            result += [word, word]
        elif operation == "misplaced":
            result.insert(int(rng.integers(len(result) + 1)), word)
        else:
            result.append(word)
    return np.array([target[0], *(piece for word in result for piece in word), target[-1]], dtype=target.dtype)


def split_words(ids: np.ndarray, begins: np.ndarray) -> list[list[int]]:
    """The words of a text without its special tokens, each a list of token ids."""
    inner = ids[1:-1]
    starts = np.flatnonzero(begins[inner])
    if len(starts) == 0 or starts[0] != 0:
        starts = np.concatenate([[0], starts])
    return [part.tolist() for part in np.split(inner, starts[1:]) if len(part)]
