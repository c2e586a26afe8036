"""Contrastive sentence encoder: a sentence is pulled to its translation and pushed from the other ones of a batch
(UScore, Sec. 3.2)."""

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from mtmetrics.artifacts.files import new_folder
from mtmetrics.artifacts.models import model_folder, sentence_model
from mtmetrics.errors import InputError
from mtmetrics.training import corpus, loop, recording
from mtmetrics.training.config import ContrastiveConfig

log = logging.getLogger(__name__)
_ROWS_TOGETHER = 32


def contrastive_loss(
    first: torch.Tensor, second: torch.Tensor, *, temperature: float = 0.05, margin: float = 0.0, symmetric: bool = True
) -> torch.Tensor:
    """Mean over the batch of ``-log softmax(cos(x_i, y_j) / temperature)`` at ``j = i``, as the published code of
    UScore computes it.

    Eq. 4 of the paper leaves the pair itself out of the denominator; the code, like the works that the equation
    follows, keeps it.

    Args:
        first: (n, d) vectors x.
        second: (n, d) vectors y; row i belongs to row i of `first`.
        temperature: divides the cosines.
        margin: is subtracted from the cosine of a pair before that.
        symmetric: add the loss of the other direction, from y to x (a sum, not a mean).
    """
    similarity = torch.nn.functional.normalize(first, dim=-1) @ torch.nn.functional.normalize(second, dim=-1).T
    scores = (similarity - margin * torch.eye(len(similarity), device=similarity.device)) / temperature
    truth = torch.arange(len(scores), device=scores.device)
    loss = torch.nn.functional.cross_entropy(scores, truth)
    return loss + torch.nn.functional.cross_entropy(scores.T, truth) if symmetric else loss


def train_contrastive(
    run: loop.Run, parallel: Sequence[str | Path], model: str | Path, *, config: ContrastiveConfig | None = None
) -> Path:
    """Trains a sentence encoder on sentence pairs, mined ones for instance, with the other pairs of a step as
    negatives.

    The artifact is a sentence-transformers folder, weights in float16. Training always begins with `model`: successive
    rounds of UScore each begin with the same one.

    Args:
        run: where the artifact and the checkpoints go, and the seed.
        parallel: files of pairs, see `corpus.read_pairs`. A pair of which a sentence occurred before is left out, since
            it would be its own negative.
        model: an encoder, which is mean-pooled, or a sentence-transformers model; see
            `mtmetrics.artifacts.models.model_folder`.
        config: schedule.

    Returns:
        The artifact folder.

    Raises:
        InputError: files or settings cannot be used.
        ArtifactError: the model cannot be found or loaded.
    """
    config = config or ContrastiveConfig()
    if config.temperature <= 0:
        raise InputError(f"temperature {config.temperature}: must be above 0")
    folder = model_folder(model)
    settings: dict[str, Any] = {
        "model": recording.pinned(model, folder),
        "parallel": [str(path) for path in parallel],
    }
    settings = run.open(config, settings, parallel)
    pairs, counts = corpus.read_pairs(parallel)
    train = distinct_sentences(pairs)
    counts.left_out["sentence repeated"] += len(pairs) - len(train)
    if len(train) < 2:
        raise InputError("a pair is told apart from others, so at least two without a common sentence are needed")
    schedule = loop.Passes.over(len(train), config)
    log.info("%d sentence pairs for training, %d steps", len(train), schedule.steps)
    trainer = _trainer(run, config, schedule, folder, train)
    encoder, limit = trainer.model, trainer.model.max_seq_length
    encoder.max_seq_length = min(config.max_pieces, limit)
    history = run.train(trainer)
    encoder.max_seq_length = limit
    record = {
        "kind": "sentence encoder",
        "command": "mtmetrics train contrastive",
        **settings,
        "parallel": [corpus.short_name(path) for path in parallel],
        "started_from": recording.read_record(folder),
        "data": counts.as_dict(),
        "pairs": len(train),
        "steps": schedule.steps,
    }
    with new_folder(run.output, run.overwrite) as temporary:
        recording.save_sentence_encoder(encoder, temporary)
        recording.write_record(temporary, record, history)
    return run.output


def sentence_vectors(model: Any, batch: dict[str, Any]) -> torch.Tensor:
    """(n, d) float32 vectors of a batch, encoded in parts of like length: a step of 256 sentences would be mostly
    padding.

    Args:
        model: a sentence-transformers model.
        batch: what its tokenizer gives, padded on the right.
    """
    lengths = batch["attention_mask"].sum(1)
    order = lengths.argsort(stable=True)
    parts = []
    for rows in order.split(_ROWS_TOGETHER):
        longest = int(lengths[rows].max())
        cut = {name: value[rows, :longest] if torch.is_tensor(value) else value for name, value in batch.items()}
        parts.append(model(cut)["sentence_embedding"].float())
    return torch.cat(parts)[order.argsort()]


def distinct_sentences(pairs: Sequence[corpus.Pair]) -> list[corpus.Pair]:
    """The pairs, first ones first, of which neither sentence occurred before on its side."""
    seen: tuple[set[str], set[str]] = (set(), set())
    kept = []
    for pair in pairs:
        if pair.source not in seen[0] and pair.target not in seen[1]:
            kept.append(pair)
            seen[0].add(pair.source)
            seen[1].add(pair.target)
    return kept


def _trainer(
    run: loop.Run, config: ContrastiveConfig, schedule: loop.Passes, folder: Path, pairs: Sequence[corpus.Pair]
) -> Any:
    from datasets import Dataset
    from sentence_transformers import SentenceTransformerTrainer, SentenceTransformerTrainingArguments
    from transformers import set_seed

    class Trainer(SentenceTransformerTrainer):
        def add_model_card_callback(self, *args: Any, **kwargs: Any) -> None:
            """The card that it would write quotes the training text."""

    class Loss(torch.nn.Module):
        def __init__(self, model: Any) -> None:
            super().__init__()
            self.model = model

        def forward(self, features: Any, labels: Any = None) -> torch.Tensor:
            return contrastive_loss(
                *(sentence_vectors(self.model, side) for side in features), temperature=config.temperature
            )

    set_seed(run.seed)
    encoder = sentence_model(folder, "cuda" if torch.cuda.is_available() else "cpu")
    arguments = loop.trainer_settings(
        run.work,
        schedule,
        config.learning_rate,
        run.seed,
        rows_per_step=config.pairs_per_step,
        arguments=SentenceTransformerTrainingArguments,
    )
    arguments.weight_decay = config.weight_decay
    columns = {side: [getattr(pair, side) for pair in pairs] for side in ("source", "target")}
    return Trainer(model=encoder, args=arguments, train_dataset=Dataset.from_dict(columns), loss=Loss(encoder))
