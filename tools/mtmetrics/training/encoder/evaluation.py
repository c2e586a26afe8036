"""What a training of an encoder watches: the loss on held-back pairs, and correlations with human judgements."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from mtmetrics.evaluation.correlation import pearson
from mtmetrics.evaluation.data import Judged
from mtmetrics.training import corpus

_TEXTS_PER_BATCH = 64


def evaluate(model: Any, held: Any, tests: Sequence[Judged], tokenizer: Any, max_pieces: int) -> dict[str, float]:
    """Mean loss over the held-back batches, and Pearson's r of the similarities of sources and translations.

    Args:
        model: an `objective.Distillation` in evaluation mode.
        held: `batches.PairBatches` of the held-back pairs.
        tests: judged segments.
        tokenizer: of the student.
        max_pieces: texts are cut at that many pieces.

    Returns:
        ``held_back_loss``, and for each test set ``token_r_NAME`` (mean of the greatest cosines of the tokens) and
        ``sentence_r_NAME`` (cosine of the mean vectors); ``token_r`` and ``sentence_r`` are their means.
    """
    device = next(model.parameters()).device
    losses = []
    for number in range(len(held)):
        batch = {name: value.to(device) for name, value in held[number].items()}
        losses.append(model(**batch)["loss"].item())
    result = {"held_back_loss": round(float(np.mean(losses)), 4)}
    names = [corpus.short_name(test.file) for test in tests]
    for name, segments in zip(names, tests, strict=True):
        found = _similarities(model.student, segments, tokenizer, max_pieces)
        for kind, values in zip(("token", "sentence"), found, strict=True):
            result[f"{kind}_r_{name}"] = round(pearson(values, segments.human).value, 4)
    for kind in ("token", "sentence"):
        if tests:
            result[f"{kind}_r"] = round(float(np.mean([result[f"{kind}_r_{name}"] for name in names])), 4)
    return result


def _similarities(student: Any, segments: Judged, tokenizer: Any, max_pieces: int) -> tuple[np.ndarray, np.ndarray]:
    from mtmetrics.training.encoder.objective import encode, paired_token_similarity, pooled

    device = next(student.parameters()).device
    order = np.argsort([len(text) for text in segments.sources], kind="stable")
    tokens, sentences = np.zeros(len(segments)), np.zeros(len(segments))
    for begin in range(0, len(order), _TEXTS_PER_BATCH):
        rows = order[begin : begin + _TEXTS_PER_BATCH]
        sides = []
        for column in (segments.sources, segments.predictions):
            texts = [column[row] for row in rows]
            found = tokenizer(texts, truncation=True, max_length=max_pieces, padding=True, return_tensors="pt")
            mask = found["attention_mask"].bool().to(device)
            sides += [encode(student, found["input_ids"].to(device), mask), mask]
        tokens[rows] = paired_token_similarity(*sides).float().cpu().numpy()
        sentences[rows] = (pooled(*sides[:2]) * pooled(*sides[2:])).sum(-1).float().cpu().numpy()
    return tokens, sentences
