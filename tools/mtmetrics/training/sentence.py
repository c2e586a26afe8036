"""Sentence encoders: what their trainings share, and contrastive learning from sentence pairs (UScore, Sec. 3.2)."""

import contextlib
import logging
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mtmetrics.artifacts.models import model_folder, sentence_model
from mtmetrics.errors import InputError
from mtmetrics.training import corpus
from mtmetrics.training.run import Run, pinned, read_record, save_model, trainer_settings
from mtmetrics.training.settings import ContrastiveConfig, DistilConfig

if TYPE_CHECKING:
    import torch

log = logging.getLogger(__name__)
_ROWS_TOGETHER = 32


def train_contrastive(
    run: Run, parallel: Sequence[str | Path], model: str | Path, *, config: ContrastiveConfig | None = None
) -> Path:
    """Trains a sentence encoder on sentence pairs, with the other pairs of a step as negatives.

    The artifact is a sentence-transformers folder, weights in float16. Training always begins with `model`: successive
    rounds of UScore each begin with the same one.

    Args:
        run: where the artifact and the checkpoints go, and the seed.
        parallel: see `corpus.read_pairs`. A pair of which a sentence occurred before is left out, since
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
    start = model_folder(model)
    run.open(config, {"parallel": parallel}, model=pinned(model, start))
    pairs, counts = corpus.read_pairs(parallel)
    train = distinct_pairs(pairs)
    counts.left_out["sentence repeated"] += len(pairs) - len(train)
    if len(train) < 2:
        raise InputError("a pair is told apart from others, so at least two without a common sentence are needed")
    trainer = _trainer(run, config, start, train)
    steps = trainer.args.max_steps
    log.info("%d sentence pairs for training, %d steps", len(train), steps)
    with texts_cut(trainer.model, config.max_pieces):
        run.train(trainer)
    record = {"started_from": read_record(start), "data": counts.as_dict(), "pairs": len(train), "steps": steps}
    with run.artifact("sentence encoder", "mtmetrics train contrastive", **record) as folder:
        save_sentence_encoder(trainer.model, folder)
    return run.output


def _trainer(run: Run, config: ContrastiveConfig, start: Path, pairs: Sequence[corpus.Pair]) -> Any:
    from transformers import set_seed

    def loss(model: Any, sides: Sequence[Any], _: None) -> "torch.Tensor":
        return contrastive_loss(*(sentence_vectors(model, side) for side in sides), temperature=config.temperature)

    set_seed(run.seed)
    return sentence_trainer(loss)(
        model=sentence_model(start, run.device),
        args=sentence_settings(run, config, rows=len(pairs), weight_decay=config.weight_decay),
        train_dataset=pair_columns(pairs),
    )


def contrastive_loss(
    first: "torch.Tensor",
    second: "torch.Tensor",
    *,
    temperature: float = 0.05,
    margin: float = 0.0,
    symmetric: bool = True,
) -> "torch.Tensor":
    """Mean of ``-log softmax(cos(x_i, y_j) / temperature)`` at ``j = i``, as the published code of UScore has it.

    Eq. 4 of the paper leaves the pair itself out of the denominator; the code, like the works that the equation
    follows, keeps it. (The losses of sentence-transformers take the mean of the two directions, and know no margin.)

    Args:
        first: (n, d) vectors x.
        second: (n, d) vectors y; row i belongs to row i of `first`.
        temperature: divides the cosines.
        margin: is subtracted from the cosine of a pair before that.
        symmetric: add the loss of the other direction, from y to x (a sum, not a mean).
    """
    import torch
    from torch.nn.functional import cross_entropy, normalize

    similarity = normalize(first, dim=-1) @ normalize(second, dim=-1).T
    scores = (similarity - margin * torch.eye(len(similarity), device=similarity.device)) / temperature
    truth = torch.arange(len(scores), device=scores.device)
    loss = cross_entropy(scores, truth)
    return loss + cross_entropy(scores.T, truth) if symmetric else loss


def sentence_vectors(model: Any, batch: dict[str, Any]) -> "torch.Tensor":
    """(n, d) float32 vectors of a batch padded on the right, encoded in parts of like length to save padding."""
    import torch

    lengths = batch["attention_mask"].sum(1)
    order = lengths.argsort(stable=True)
    parts = []
    for rows in order.split(_ROWS_TOGETHER):
        longest = int(lengths[rows].max())
        cut = {name: value[rows, :longest] if torch.is_tensor(value) else value for name, value in batch.items()}
        parts.append(model(cut)["sentence_embedding"].float())
    return torch.cat(parts)[order.argsort()]


def distinct_pairs(pairs: Sequence[corpus.Pair]) -> list[corpus.Pair]:
    """The pairs, first ones first, of which neither sentence occurred before on its side."""
    sources: set[str] = set()
    targets: set[str] = set()
    kept = []
    for pair in pairs:
        if pair.source not in sources and pair.target not in targets:
            kept.append(pair)
            sources.add(pair.source)
            targets.add(pair.target)
    return kept


def sentence_trainer(loss: Callable[[Any, Sequence[Any], Any], "torch.Tensor"]) -> Any:
    """A trainer of sentence encoders whose loss is that of model, batches of both sides, and labels."""
    from sentence_transformers import SentenceTransformerTrainer

    class Trainer(SentenceTransformerTrainer):
        def add_model_card_callback(self, *args: Any, **kwargs: Any) -> None:
            """The card that it would write quotes the training text."""

        def compute_loss(self, model: Any, inputs: dict[str, Any], *args: Any, **kwargs: Any) -> "torch.Tensor":
            return loss(model, *self.collect_features(inputs))

    return Trainer


def sentence_settings(run: Run, config: ContrastiveConfig | DistilConfig, **options: Any) -> Any:
    """The settings of such a trainer; options as for `trainer_settings`."""
    from sentence_transformers import SentenceTransformerTrainingArguments

    options |= {"rows_per_step": config.pairs_per_step, "arguments": SentenceTransformerTrainingArguments}
    return trainer_settings(run, config, config.learning_rate, **options)


def pair_columns(pairs: Sequence[corpus.Pair], **columns: list[int]) -> Any:
    """The data set of pairs: columns source and target, and further ones."""
    from datasets import Dataset

    sides = {side: [getattr(pair, side) for pair in pairs] for side in ("source", "target")}
    return Dataset.from_dict(sides | columns)


@contextlib.contextmanager
def texts_cut(model: Any, pieces: int) -> Iterator[None]:
    """Texts are cut at so many pieces in training; the artifact has the limit that the model had."""
    limit = model.max_seq_length
    model.max_seq_length = min(pieces, limit)
    yield
    model.max_seq_length = limit


def save_sentence_encoder(model: Any, folder: Path) -> None:
    """Saves a model whose first module is a transformer, with its weights in float16."""
    model.save_pretrained(str(folder), create_model_card=False)
    network = model[0].auto_model
    network.pooler = None  # of BERT and its kin: no part of a mean over tokens, and not trained
    for path in folder.glob("*.safetensors*"):
        path.unlink()
    save_model(network, model.tokenizer, folder)
