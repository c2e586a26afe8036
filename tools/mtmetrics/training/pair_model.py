"""The training objective of the encoder: translations are found among the batch, by sentence vector and by token
match."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional


class PairModel(nn.Module):
    """An encoder with the loss over a batch of sentence pairs.

    The loss is the symmetric InfoNCE loss of two similarities: the cosine of mean-pooled sentence vectors, and the mean
    over tokens of the greatest cosine with a token of the other side, averaged over both directions.

    Args:
        encoder: a `transformers` encoder.
        pooled_temperature: of the sentence similarity.
        token_temperature: of the token similarity.
        teacher_weight: of the mean cosine distance of both sides' sentence vectors from those of a teacher, where a
            batch has these (Reimers and Gurevych, 2020).
        teacher_margin: of the mean squared difference between student and teacher in how much further a worsened
            translation is than the right one.
        token_block: the token similarity compares blocks of that many pairs.
    """

    def __init__(
        self,
        encoder: nn.Module,
        pooled_temperature: float,
        token_temperature: float,
        teacher_weight: float = 0.0,
        teacher_margin: float = 0.0,
        token_block: int = 64,
    ) -> None:
        super().__init__()
        self.teacher_weight = teacher_weight
        self.teacher_margin = teacher_margin
        self.encoder = encoder
        self.pooled_temperature = pooled_temperature
        self.token_temperature = token_temperature
        self.token_block = token_block

    def encode(self, ids: Tensor, mask: Tensor, start: int = 0) -> Tensor:
        """Token vectors, `(n, t, d)`."""
        positions = torch.arange(start, start + ids.shape[1], device=ids.device)[None]
        return self.encoder(input_ids=ids, attention_mask=mask.long(), position_ids=positions).last_hidden_state

    def forward(
        self,
        source_ids: Tensor,
        source_mask: Tensor,
        source_kept: Tensor,
        source_start: int,
        source_keys: Tensor,
        target_ids: Tensor,
        target_mask: Tensor,
        target_kept: Tensor,
        target_start: int,
        target_keys: Tensor,
        worse_ids: Tensor | None = None,
        worse_mask: Tensor | None = None,
        worse_kept: Tensor | None = None,
        taught: Tensor | None = None,
        worse_taught: Tensor | None = None,
    ) -> dict[str, Tensor]:
        """The loss of a batch and its parts; the arguments are those of `pair_batches.BatchDataset`.

        A worsened translation, where there is one, is one more negative of its source.
        """
        source = self.encode(source_ids, source_mask, source_start)
        target = self.encode(target_ids, target_mask, target_start)
        worse = None if worse_ids is None else self.encode(worse_ids, worse_mask, target_start)
        same = (source_keys[:, None] == source_keys) | (target_keys[:, None] == target_keys)
        same = same & ~torch.eye(len(same), dtype=torch.bool, device=same.device)
        centres = pooled(source, source_mask)
        target_centres = pooled(target, target_mask)
        sentences = centres @ target_centres.T
        own = None if worse is None else (centres * pooled(worse, worse_mask)).sum(-1)
        pooled_loss = symmetric_loss(
            sentences / self.pooled_temperature, same, None if own is None else own / self.pooled_temperature
        )
        taught_loss = torch.zeros_like(pooled_loss)
        if taught is not None:
            distances = 2 - (centres * taught).sum(-1) - (target_centres * taught).sum(-1)
            taught_loss = self.teacher_weight * distances.mean()
            if own is not None and worse_taught is not None:
                wanted = 1 - (taught * worse_taught).sum(-1)
                taught_loss = taught_loss + self.teacher_margin * functional.mse_loss(
                    sentences.diagonal() - own, wanted
                )
        source, target = functional.normalize(source, dim=-1), functional.normalize(target, dim=-1)
        own = None
        if worse is not None:
            worse = functional.normalize(worse, dim=-1)
            own = paired_token_similarity(source, source_kept, worse, worse_kept) / self.token_temperature
        losses = []
        for begin in range(0, len(source), self.token_block):
            part = slice(begin, begin + self.token_block)
            matches = token_similarity(source[part], source_kept[part], target[part], target_kept[part])
            extra = None if own is None else own[part]
            losses.append(symmetric_loss(matches / self.token_temperature, same[part, part], extra))
        token_loss = torch.stack(losses).mean()
        parts = {"pooled": pooled_loss, "token": token_loss, "taught": taught_loss}
        return {"loss": pooled_loss + token_loss + taught_loss, **{name: part.detach() for name, part in parts.items()}}


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
    best_for_source = (cosines + hidden_target[None, None]).amax(3).float()
    best_for_target = (cosines + hidden_source[:, :, None, None]).amax(1).float()
    source_weights = source_mask.float() / source_mask.sum(1, keepdim=True)
    target_weights = target_mask.float() / target_mask.sum(1, keepdim=True)
    forwards = (best_for_source * source_weights[:, :, None]).sum(1)
    backwards = (best_for_target * target_weights[None]).sum(2)
    return (forwards + backwards) / 2


def paired_token_similarity(source: Tensor, source_mask: Tensor, target: Tensor, target_mask: Tensor) -> Tensor:
    """Late interaction of each source with its own target only, `(n,)`; arguments as `token_similarity`, with m = n."""
    cosines = source @ target.transpose(1, 2)
    hidden_target = torch.where(target_mask, 0.0, -4.0).to(cosines.dtype)[:, None]
    hidden_source = torch.where(source_mask, 0.0, -4.0).to(cosines.dtype)[:, :, None]
    forwards = ((cosines + hidden_target).amax(2).float() * source_mask).sum(1) / source_mask.sum(1)
    backwards = ((cosines + hidden_source).amax(1).float() * target_mask).sum(1) / target_mask.sum(1)
    return (forwards + backwards) / 2


def symmetric_loss(similarities: Tensor, same: Tensor, worse: Tensor | None = None) -> Tensor:
    """Cross-entropy of the diagonal over rows and over columns.

    Args:
        similarities: of all sources with all targets, `(n, n)`.
        same: pairs that share a side and are therefore no negatives, `(n, n)`.
        worse: similarity of each source with a worsened translation, `(n,)`: a further negative in its row.
    """
    similarities = similarities.float().masked_fill(same, -1e4)
    labels = torch.arange(len(similarities), device=similarities.device)
    rows = similarities if worse is None else torch.cat([similarities, worse.float()[:, None]], dim=1)
    return (functional.cross_entropy(rows, labels) + functional.cross_entropy(similarities.T, labels)) / 2


@torch.no_grad()
def matching_accuracy(model: PairModel, data: Any, groups: dict[str, Any], batch: int = 50) -> dict[str, float]:
    """Share of held-back texts whose nearest neighbour on the other side is their translation, mean of both directions.

    Args:
        model: in evaluation mode.
        data: the held-back `TokenisedPairs`.
        groups: index arrays of the language pairs; each is matched on its own.
        batch: texts encoded at a time.

    Returns:
        `pooled` and `token` accuracy: `pooled_p1`, `token_p1` (means over the language pairs) and those of each pair.
    """
    from mtmetrics.training.pair_batches import pad

    device = next(model.parameters()).device
    result: dict[str, float] = {}
    for name, indices in groups.items():
        sides = []
        for side in (0, 1):
            ids, mask = (torch.from_numpy(array).to(device) for array in pad(data.rows(side, indices)))
            parts = [model.encode(ids[i : i + batch], mask[i : i + batch]) for i in range(0, len(ids), batch)]
            sides.append((torch.cat(parts), mask))
        (source, source_mask), (target, target_mask) = sides
        sentences = pooled(source, source_mask) @ pooled(target, target_mask).T
        source, target = functional.normalize(source, dim=-1), functional.normalize(target, dim=-1)
        tokens = torch.cat(
            [
                token_similarity(source[i : i + batch], source_mask[i : i + batch], target, target_mask)
                for i in range(0, len(source), batch)
            ]
        )
        truth = torch.arange(len(indices), device=device)
        for kind, matrix in (("pooled", sentences), ("token", tokens)):
            hits = (matrix.argmax(1) == truth).float().mean() + (matrix.argmax(0) == truth).float().mean()
            result[f"{kind}_p1_{name}"] = round(hits.item() / 2, 4)
    for kind in ("pooled", "token"):
        values = [value for key, value in result.items() if key.startswith(f"{kind}_p1_")]
        result[f"{kind}_p1"] = round(sum(values) / len(values), 4)
    return result
