"""Which sentence pairs meet in a step, and what the student and the teacher read of them."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mtmetrics.training.corpus import Pair, text_key

# How often a word becomes what: an untranslated or a foreign word, nothing, two, or one in another place.
_CHANGES = {"untranslated": 0.4, "foreign": 0.25, "missing": 0.15, "doubled": 0.1, "misplaced": 0.1}


class PairBatches:
    """Map-style dataset whose items are whole batches, as a plan has them.

    In most steps the student reads the sources of the pairs, and the teacher their English translations. In a share
    `english` of them the student reads the very English texts that the teacher reads, a share of them `worsened`: so it
    stays an English encoder, for which a word that was left untranslated is not understood. `tokenizers` holds those of
    the teacher, and of the student for ``english`` and ``others``.
    """

    def __init__(
        self,
        pairs: Sequence[Pair],
        plan: Sequence[np.ndarray],
        tokenizers: Mapping[str, Any],
        max_pieces: int,
        seed: int,
        english: float = 0.0,
        worsened: float = 0.0,
    ) -> None:
        self.pairs, self.plan, self.tokenizers = pairs, plan, tokenizers
        self.max_pieces, self.seed, self.english, self.worsened = max_pieces, seed, english, worsened

    def __len__(self) -> int:
        return len(self.plan)

    def __getitem__(self, step: int) -> dict[str, Any]:
        """The ids and masks of both sides in a step, and which pairs have a side in common."""
        import torch

        rng = np.random.default_rng((self.seed, step))
        chosen = [self.pairs[index] for index in self.plan[step]]
        sources, targets, student = [pair.source for pair in chosen], [pair.target for pair in chosen], "others"
        if rng.random() < self.english and not chosen[0].group.endswith(".words"):
            others = rng.permutation(len(chosen))
            targets = [
                worsen(pair.source, pair.target, chosen[other].target, 0.5, rng)
                if rng.random() < self.worsened
                else pair.target
                for pair, other in zip(chosen, others, strict=True)
            ]
            sources, student = targets, "english"
        batch: dict[str, Any] = {}
        for side, reader, texts in (("source", student, sources), ("target", "teacher", targets)):
            found = self.tokenizers[reader](
                texts, truncation=True, max_length=self.max_pieces, padding=True, return_tensors="pt"
            )
            batch[f"{side}_ids"], batch[f"{side}_mask"] = found["input_ids"], found["attention_mask"].bool()
        keys = [np.unique([text_key(text) for text in side], return_inverse=True)[1] for side in (sources, targets)]
        same = np.logical_or(*(side[:, None] == side for side in keys))
        np.fill_diagonal(same, False)
        return batch | {"same": torch.from_numpy(same)}


def worsen(source: str, target: str, other: str, share: float, rng: np.random.Generator) -> str:
    """Worsens a translation as bad ones are, with words of its source and of another translation: at least one word
    changes where that is possible, at most that share, on average half of it."""
    words = target.split()
    known = {word.lower() for word in words}
    untranslated, foreign = ([word for word in text.split() if word.lower() not in known] for text in (source, other))
    chosen = rng.random(len(words)) < share * rng.random()
    if words and not chosen.any():
        chosen[rng.integers(len(words))] = True
    result: list[str] = []
    for word, change in zip(words, chosen, strict=True):
        operation = rng.choice(list(_CHANGES), p=list(_CHANGES.values())) if change else None
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
