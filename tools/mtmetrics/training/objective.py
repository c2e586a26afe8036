"""A step of the encoder's training: the pairs that meet in it, what student and teacher read of them, and the loss, by
which the student says of a source what a frozen English teacher says of its translation."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from mtmetrics.training.corpus import Pair, text_key
from mtmetrics.training.trainers import PlannedBatches

# How often a word becomes what: an untranslated or a foreign word, nothing, two, or one in another place.
_CHANGES = {"untranslated": 0.4, "foreign": 0.25, "missing": 0.15, "doubled": 0.1, "misplaced": 0.1}


@dataclass(eq=False, repr=False)
class SentenceBatches(PlannedBatches):
    """Batches of sentence pairs as student and teacher read them.

    In most steps the student reads the sources of the pairs, and the teacher their English translations. In a share
    `english` of them the student reads the very English texts that the teacher reads, a share of them `worsened`: so it
    stays an English encoder, for which a word that was left untranslated is not understood. `tokenizers` holds those of
    the teacher, and of the student for ``english`` and ``others``.
    """

    pairs: Sequence[Pair]
    tokenizers: Mapping[str, Any]
    max_pieces: int
    seed: int
    english: float = 0.0
    worsened: float = 0.0

    def __getitem__(self, step: int) -> dict[str, Any]:
        """The ids and masks of both sides in a step, and which pairs have a side in common."""
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


class Distillation(nn.Module):
    """A student encoder with its loss over a batch of sentence pairs, of which the teacher reads the English sides.

    Two similarities are taught, that of mean-pooled sentence vectors (their cosine) and that of tokens (the mean over
    tokens of the greatest cosine with a token of the other side, averaged over both directions). Of each, the loss is
    the symmetric InfoNCE loss among the sentences of a batch, plus the mean distance (1 - similarity) of the pairs.

    Args:
        student: an encoder, cut off at the layer that is taught.
        teacher: a frozen encoder, cut off at the same layer; its weights are no part of this module's state.
        temperature: of both InfoNCE losses.
        distance_weight: of the mean distances.
        candidates: tokens are matched within blocks of so many pairs.
    """

    def __init__(
        self, student: nn.Module, teacher: nn.Module, temperature: float, distance_weight: float, candidates: int
    ) -> None:
        super().__init__()
        self.student = student
        self._teacher = (teacher.eval().requires_grad_(False),)
        self.temperature, self.distance_weight, self.candidates = temperature, distance_weight, candidates

    def forward(
        self, source_ids: Tensor, source_mask: Tensor, target_ids: Tensor, target_mask: Tensor, same: Tensor
    ) -> dict[str, Tensor]:
        """The loss of a batch; the arguments are those of `SentenceBatches`."""
        source = encode(self.student, source_ids, source_mask)
        with torch.no_grad():
            target = encode(self._teacher[0].to(source.device), target_ids, target_mask)
        # The temperature would magnify the rounding of bfloat16.
        with torch.autocast(source.device.type, enabled=False):
            loss = self._loss(pooled(source, source_mask) @ pooled(target, target_mask).T, same)
        source, target = functional.normalize(source, dim=-1), functional.normalize(target, dim=-1)
        for begin in range(0, len(source), self.candidates):
            part = slice(begin, begin + self.candidates)
            matches = token_similarity(source[part], source_mask[part], target[part], target_mask[part])
            loss = loss + self._loss(matches, same[part, part]) * (len(matches) / len(source))
        return {"loss": loss}

    def _loss(self, similarities: Tensor, same: Tensor) -> Tensor:
        distance = 1 - similarities.diagonal().mean()
        return symmetric_loss(similarities / self.temperature, same) + self.distance_weight * distance


def encode(encoder: Any, ids: Tensor, mask: Tensor) -> Tensor:
    """Token vectors, `(n, t, d)`."""
    return encoder(input_ids=ids, attention_mask=mask.long()).last_hidden_state


def pooled(states: Tensor, mask: Tensor) -> Tensor:
    """Mean over the tokens of each text, of unit length, `(n, d)` float32."""
    states, weights = states.float(), mask.float()[:, :, None]
    return functional.normalize((states * weights).sum(1) / weights.sum(1), dim=-1)


def token_similarity(source: Tensor, source_mask: Tensor, target: Tensor, target_mask: Tensor) -> Tensor:
    """Late interaction `(n, m)` of all sources `(n, s, d)` with all targets `(m, t, d)`, vectors of unit length."""
    cosines = (source.flatten(0, 1) @ target.flatten(0, 1).T).view(*source.shape[:2], *target.shape[:2])
    return _late_interaction(cosines, source_mask, target_mask[None])


def paired_token_similarity(source: Tensor, source_mask: Tensor, target: Tensor, target_mask: Tensor) -> Tensor:
    """Late interaction of each source with its own target only, `(n,)`; arguments as `token_similarity`, of any
    length."""
    source, target = functional.normalize(source, dim=-1), functional.normalize(target, dim=-1)
    cosines = (source @ target.transpose(1, 2))[:, :, None]
    return _late_interaction(cosines, source_mask, target_mask[:, None])[:, 0]


def _late_interaction(cosines: Tensor, source_mask: Tensor, target_mask: Tensor) -> Tensor:
    """From cosines `(n, s, m, t)` and masks `(n, s)` and `(1 or n, m, t)`, `(n, m)`."""
    hidden_source, hidden_target = (
        torch.where(mask, 0.0, -4.0).to(cosines.dtype) for mask in (source_mask, target_mask)
    )
    best_for_source = (cosines + hidden_target[:, None]).max(3).values.float()
    best_for_target = (cosines + hidden_source[:, :, None, None]).max(1).values.float()
    forwards = (best_for_source * source_mask[:, :, None]).sum(1) / source_mask.sum(1)[:, None]
    backwards = (best_for_target * target_mask).sum(2) / target_mask.sum(2)
    return (forwards + backwards) / 2


def symmetric_loss(similarities: Tensor, same: Tensor) -> Tensor:
    """Cross-entropy of the diagonal of `(n, n)` similarities over rows and columns; `same` pairs are no negatives."""
    similarities = similarities.float().masked_fill(same, -1e4)
    labels = torch.arange(len(similarities), device=similarities.device)
    return (functional.cross_entropy(similarities, labels) + functional.cross_entropy(similarities.T, labels)) / 2
