"""The objective of the encoder: a student says of a source what a frozen English teacher says of its translation."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional


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
        self.temperature = temperature
        self.distance_weight = distance_weight
        self.candidates = candidates

    def forward(
        self, source_ids: Tensor, source_mask: Tensor, target_ids: Tensor, target_mask: Tensor, same: Tensor
    ) -> dict[str, Tensor]:
        """The loss of a batch and its parts; the arguments are those of `batches.PairBatches`."""
        source = encode(self.student, source_ids, source_mask)
        with torch.no_grad():
            target = encode(self._teacher[0].to(source.device), target_ids, target_mask)
        sentences = pooled(source, source_mask) @ pooled(target, target_mask).T
        sentence_loss = self._loss(sentences, same)
        source, target = functional.normalize(source, dim=-1), functional.normalize(target, dim=-1)
        losses = []
        for begin in range(0, len(source), self.candidates):
            part = slice(begin, begin + self.candidates)
            matches = token_similarity(source[part], source_mask[part], target[part], target_mask[part])
            losses.append(self._loss(matches, same[part, part]) * len(matches))
        token_loss = torch.stack(losses).sum() / len(source)
        parts = {"sentence_loss": sentence_loss, "token_loss": token_loss}
        return {"loss": sentence_loss + token_loss, **{name: part.detach() for name, part in parts.items()}}

    def _loss(self, similarities: Tensor, same: Tensor) -> Tensor:
        distance = 1 - similarities.diagonal().mean()
        return symmetric_loss(similarities / self.temperature, same) + self.distance_weight * distance


def encode(encoder: Any, ids: Tensor, mask: Tensor) -> Tensor:
    """Token vectors, `(n, t, d)`."""
    return encoder(input_ids=ids, attention_mask=mask.long()).last_hidden_state


def pooled(states: Tensor, mask: Tensor) -> Tensor:
    """Mean over the tokens of each text, of unit length, `(n, d)`."""
    weights = mask.to(states.dtype)[:, :, None]
    return functional.normalize(((states * weights).sum(1) / weights.sum(1)).float(), dim=-1)


def token_similarity(source: Tensor, source_mask: Tensor, target: Tensor, target_mask: Tensor) -> Tensor:
    """Late interaction of all sources with all targets, `(n, m)`.

    Args:
        source: token vectors of unit length, `(n, s, d)`.
        source_mask: which of them count, `(n, s)`.
        target: `(m, t, d)`.
        target_mask: `(m, t)`.
    """
    n, s, width = source.shape
    m, t, _ = target.shape
    cosines = (source.reshape(n * s, width) @ target.reshape(m * t, width).T).view(n, s, m, t)
    hidden_target = torch.where(target_mask, 0.0, -4.0).to(cosines.dtype)
    hidden_source = torch.where(source_mask, 0.0, -4.0).to(cosines.dtype)
    best_for_source = (cosines + hidden_target[None, None]).max(3).values.float()
    best_for_target = (cosines + hidden_source[:, :, None, None]).max(1).values.float()
    source_weights = source_mask.float() / source_mask.sum(1, keepdim=True)
    target_weights = target_mask.float() / target_mask.sum(1, keepdim=True)
    forwards = (best_for_source * source_weights[:, :, None]).sum(1)
    backwards = (best_for_target * target_weights[None]).sum(2)
    return (forwards + backwards) / 2


def symmetric_loss(similarities: Tensor, same: Tensor) -> Tensor:
    """Cross-entropy of the diagonal over rows and over columns.

    Args:
        similarities: of all sources with all targets, `(n, n)`.
        same: pairs that share a side and are therefore no negatives, `(n, n)`.
    """
    similarities = similarities.float().masked_fill(same, -1e4)
    labels = torch.arange(len(similarities), device=similarities.device)
    return (functional.cross_entropy(similarities, labels) + functional.cross_entropy(similarities.T, labels)) / 2


def paired_token_similarity(source: Tensor, source_mask: Tensor, target: Tensor, target_mask: Tensor) -> Tensor:
    """Late interaction of each source with its own target only, `(n,)`; arguments as `token_similarity`, with m = n."""
    source, target = functional.normalize(source, dim=-1), functional.normalize(target, dim=-1)
    cosines = source @ target.transpose(1, 2)
    hidden_target = torch.where(target_mask, 0.0, -4.0).to(cosines.dtype)[:, None]
    hidden_source = torch.where(source_mask, 0.0, -4.0).to(cosines.dtype)[:, :, None]
    forwards = ((cosines + hidden_target).amax(2).float() * source_mask).sum(1) / source_mask.sum(1)
    backwards = ((cosines + hidden_source).amax(1).float() * target_mask).sum(1) / target_mask.sum(1)
    return (forwards + backwards) / 2
