"""Trains one network of a regressor, epoch by epoch, until the validation does not get better."""

import dataclasses
import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mtmetrics.artifacts.files import atomic_path
from mtmetrics.errors import MTMetricsError
from mtmetrics.evaluation.correlation import pearson
from mtmetrics.training.config import RegressorConfig
from mtmetrics.training.layer_store import LayerStore

if TYPE_CHECKING:
    import torch

    from mtmetrics.scorers.networks import Member

log = logging.getLogger(__name__)
_LENGTH_NOISE = 0.1
_EVALUATION_BATCH = 128
_MARGIN = 0.1


@dataclasses.dataclass(frozen=True)
class Examples:
    """Pairs as a network reads them.

    Attributes:
        store: where the layers of the texts are.
        others: (n,) numbers of the texts in the store that translations are compared with.
        translations: (n,) numbers of the translations.
        features: (n, f) float32 standardised features.
        human: (n,) float64 judgements.
    """

    store: LayerStore
    others: np.ndarray
    translations: np.ndarray
    features: np.ndarray
    human: np.ndarray

    def __len__(self) -> int:
        return len(self.others)

    def take(self, rows: np.ndarray) -> "Examples":
        """Only some of the pairs."""
        columns = (self.others, self.translations, self.features, self.human)
        return Examples(self.store, *(column[rows] for column in columns))

    def lengths(self) -> np.ndarray:
        """(n,) word pieces of the longer side."""
        return np.maximum(self.store.lengths[self.others], self.store.lengths[self.translations])


def train_member(
    create: Callable[[], "Member"],
    train: Examples,
    valid: Examples,
    config: RegressorConfig,
    seed: int,
    checkpoint: Path,
    device: Any = "cpu",
) -> tuple[dict[str, "torch.Tensor"], list[dict[str, Any]]]:
    """Trains a network with Adam on the mean squared error.

    The learning rate is halved after every epoch in which the Pearson correlation of the validation does not rise, and
    training stops after `config.patience` of them in a row. A checkpoint is written after every epoch; since the random
    numbers of an epoch depend on seed and epoch alone, a resumed run ends with the same weights as an uninterrupted
    one.

    Args:
        create: makes the network.
        train: pairs to learn.
        valid: pairs that decide when to stop.
        config: schedule.
        seed: of the first weights, the order of the pairs, and dropout.
        checkpoint: the file.
        device: where the network runs.

    Returns:
        The weights of the best epoch, and one dictionary per epoch.

    Raises:
        MTMetricsError: the loss became infinite.
    """
    import torch
    from tqdm import tqdm

    torch.manual_seed(seed)
    member = create().to(device)
    optimizer = torch.optim.Adam(member.parameters(), lr=config.learning_rate)
    state: dict[str, Any] = {"epoch": 0, "stale": 0, "pearson": -np.inf, "best": {}, "history": []}
    if checkpoint.exists():
        saved = torch.load(checkpoint, map_location=device, weights_only=True)
        member.load_state_dict(saved["member"])
        optimizer.load_state_dict(saved["optimizer"])
        state = saved["state"]
    while state["epoch"] < config.epochs and state["stale"] < config.patience:
        epoch = state["epoch"] + 1
        torch.manual_seed(_mixed(seed, epoch))
        member.train()
        losses = []
        batches = plan(train.lengths(), config.batch, _mixed(seed, epoch))
        for batch in tqdm(batches, desc=f"seed {seed}, epoch {epoch}", unit="batch", disable=None, leave=False):
            optimizer.zero_grad()
            scores, targets = _forward(member, train.take(batch), device)
            loss = torch.nn.functional.mse_loss(scores, targets)
            if config.ranking:
                loss = loss + config.ranking * ranking_loss(scores, targets)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(member.parameters(), config.gradient_norm)
            optimizer.step()
            losses.append(loss.item())
        if not np.isfinite(losses).all():
            raise MTMetricsError(f"seed {seed}, epoch {epoch}: the loss is no longer finite; lower --learning-rate")
        found = pearson(predict(member, valid, device), valid.human)
        value = (
            found.value if found.reason is None else -1.0
        )  # a network that says the same of all texts has learnt nothing
        rate = optimizer.param_groups[0]["lr"]
        row = {"seed": seed, "epoch": epoch, "loss": float(np.mean(losses)), "pearson": value, "learning_rate": rate}
        log.info("seed %d, epoch %d: loss %.4f, Pearson %.4f, learning rate %.2g", *row.values())
        state = {**state, "epoch": epoch, "history": [*state["history"], row]}
        if value > state["pearson"]:
            best = {name: values.detach().cpu().clone() for name, values in member.state_dict().items()}
            state |= {"pearson": value, "stale": 0, "best": best}
        else:
            state["stale"] += 1
            for group in optimizer.param_groups:
                group["lr"] /= 2
        with atomic_path(checkpoint) as temporary:
            torch.save({"member": member.state_dict(), "optimizer": optimizer.state_dict(), "state": state}, temporary)
    return state["best"], state["history"]


def plan(lengths: np.ndarray, batch: int, seed: int) -> list[np.ndarray]:
    """Batches of pairs of about the same length, in random order (lengths are disturbed by up to a tenth before
    sorting)."""
    generator = np.random.default_rng(seed)
    order = np.argsort(lengths * (1 + generator.uniform(-_LENGTH_NOISE, _LENGTH_NOISE, len(lengths))), kind="stable")
    batches = [order[first : first + batch] for first in range(0, len(order), batch)]
    return [batches[number] for number in generator.permutation(len(batches))]


def predict(member: "Member", pairs: Examples, device: Any = "cpu") -> np.ndarray:
    """(n,) float64 scores of a network."""
    import torch

    member.eval()
    scores = np.empty(len(pairs))
    order = np.argsort(pairs.lengths(), kind="stable")
    with torch.inference_mode():
        for first in range(0, len(order), _EVALUATION_BATCH):
            rows = order[first : first + _EVALUATION_BATCH]
            scores[rows] = _forward(member, pairs.take(rows), device)[0].cpu().numpy()
    return scores


def ranking_loss(scores: "torch.Tensor", human: "torch.Tensor") -> "torch.Tensor":
    """Hinge loss over the ordered pairs of a batch: mean of ``max(0, margin - (s_i - s_j))`` where i was judged better
    than j by more.

    The paper proposes such a loss in its conclusions (Sec. 5).

    Args:
        scores: (B,) of the network.
        human: (B,) judgements.
    """
    better = human[:, None] - human[None, :] > _MARGIN
    gaps = (_MARGIN - (scores[:, None] - scores[None, :])).relu()
    return (gaps * better).sum() / better.sum().clamp(min=1)


def _forward(member: "Member", pairs: Examples, device: Any) -> "tuple[torch.Tensor, torch.Tensor]":
    import torch

    weights = member.mix.weights()
    sides, sizes = [], []
    for texts in (pairs.others, pairs.translations):
        lengths = pairs.store.lengths[texts]
        mixed = torch.einsum("nld,l->nd", pairs.store.pieces(texts).to(device), weights)
        sides.append(torch.nn.utils.rnn.pad_sequence(mixed.split(lengths.tolist()), batch_first=True))
        sizes.append(torch.from_numpy(lengths).to(device))
    features = torch.from_numpy(pairs.features).to(device) if pairs.features.shape[1] else None
    return member(*sides, (sizes[0], sizes[1]), features), torch.from_numpy(pairs.human).float().to(device)


def _mixed(seed: int, epoch: int) -> int:
    return int(np.random.SeedSequence([seed, epoch]).generate_state(1)[0])


def summary(scores: np.ndarray, human: np.ndarray, groups: Sequence[str]) -> dict[str, float]:
    """Pearson correlations over all rows (`pearson`), and within each group of rows where it is defined."""
    names = np.array(groups)
    found = {"pearson": pearson(scores, human)}
    found |= {f"pearson_{name}": pearson(scores[names == name], human[names == name]) for name in dict.fromkeys(groups)}
    return {name: round(value.value, 6) for name, value in found.items() if value.reason is None}
