"""Worsens English text as bad translations do: untranslated, foreign, missing, doubled and misplaced words."""

import numpy as np

OPERATIONS = ("untranslated", "foreign", "missing", "doubled", "misplaced")
_SHARES = (0.4, 0.25, 0.15, 0.1, 0.1)


def worsen(source: str, target: str, other: str, share: float, rng: np.random.Generator) -> str:
    """Worsens one translation; at least one word changes where that is possible.

    Args:
        source: the text that was translated; untranslated words are taken from it.
        target: the translation.
        other: another translation, from which foreign words are taken.
        share: of the words that change, at most; on average half of it.
        rng: the source of chance.
    """
    words = target.split()
    known = {word.lower() for word in words}
    untranslated = [word for word in source.split() if word.lower() not in known]
    foreign = [word for word in other.split() if word.lower() not in known]
    chosen = rng.random(len(words)) < share * rng.random()
    if words and not chosen.any():
        chosen[rng.integers(len(words))] = True
    result: list[str] = []
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
    return " ".join(result) or target
