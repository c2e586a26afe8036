"""Which sentence pairs meet in a step, and what the student and the teacher read of them: pairs as they
are, or English text of which some is worsened as bad translations are."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from mtmetrics.training.corpus import Pair, text_key

_OPERATIONS = ("untranslated", "foreign", "missing", "doubled", "misplaced")
_SHARES = (0.4, 0.25, 0.15, 0.1, 0.1)


class PairBatches:
    """Map-style dataset whose items are whole batches, as a plan has them.

    In most steps the student reads the sources of the pairs, and the teacher their English translations. In the other
    ones the student reads English as well, the very texts that the teacher reads, some of them worsened: so it stays an
    English encoder, for which a word that was left untranslated is not understood.

    Args:
        pairs: text and word lists whose target side is English.
        plan: index arrays, one per step.
        student: tokenizer of the student.
        teacher: tokenizer of the teacher.
        max_pieces: texts are cut at that many pieces.
        seed: of the random choices.
        english: share of the steps in which the student reads English.
        worsened: share of the texts of these steps that are worsened.
    """

    def __init__(
        self,
        pairs: Sequence[Pair],
        plan: Sequence[np.ndarray],
        student: Any,
        teacher: Any,
        max_pieces: int,
        seed: int,
        english: float = 0.0,
        worsened: float = 0.0,
    ) -> None:
        self.pairs = pairs
        self.plan = plan
        self.student = student
        self.teacher = teacher
        self.max_pieces = max_pieces
        self.seed = seed
        self.english = english
        self.worsened = worsened

    def __len__(self) -> int:
        return len(self.plan)

    def __getitem__(self, step: int) -> dict[str, Any]:
        """The ``source_ids``, ``source_mask``, ``target_ids``, ``target_mask`` of a step, and which pairs are
        ``same``."""
        import torch

        rng = np.random.default_rng((self.seed, step))
        chosen = [self.pairs[index] for index in self.plan[step]]
        sources, targets = [pair.source for pair in chosen], [pair.target for pair in chosen]
        if rng.random() < self.english and not chosen[0].group.endswith(".words"):
            others = rng.permutation(len(chosen))
            targets = [
                worsen(pair.source, pair.target, chosen[other].target, 0.5, rng)
                if rng.random() < self.worsened
                else pair.target
                for pair, other in zip(chosen, others, strict=True)
            ]
            sources = targets
        batch: dict[str, Any] = {}
        for side, tokenizer, texts in (("source", self.student, sources), ("target", self.teacher, targets)):
            found = tokenizer(texts, truncation=True, max_length=self.max_pieces, padding=True, return_tensors="pt")
            batch[f"{side}_ids"], batch[f"{side}_mask"] = found["input_ids"], found["attention_mask"].bool()
        keys = [np.unique([text_key(text) for text in side], return_inverse=True)[1] for side in (sources, targets)]
        same = np.logical_or(*(side[:, None] == side for side in keys))
        np.fill_diagonal(same, False)
        batch["same"] = torch.from_numpy(same)
        return batch


def worsen(source: str, target: str, other: str, share: float, rng: np.random.Generator) -> str:
    """Worsens one translation as bad ones are: with untranslated, foreign, missing, doubled and misplaced words.

    At least one word changes where that is possible.

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
        operation = rng.choice(_OPERATIONS, p=_SHARES) if change else None
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
