"""Trains one network of a regressor, epoch by epoch.

`LayerStore` keeps the outputs of an encoder in a file, `Examples` are the judged pairs whose texts
lie there, and `train_member` is the loop over epochs.
"""

import dataclasses
import hashlib
import json
import logging
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from tqdm import tqdm

from mtmetrics.errors import MTMetricsError
from mtmetrics.io.atomic import atomic_path, make_folder
from mtmetrics.models.networks import Member
from mtmetrics.models.packed import PackedTokens
from mtmetrics.models.token_encoder import TokenEncoder
from mtmetrics.models.vector_files import append_rows
from mtmetrics.statistics.correlation import pearson
from mtmetrics.training.configs import RegressorConfig

log = logging.getLogger(__name__)
_TEXTS_PER_SAVE = 512
# Lengths are disturbed by up to this share, so that every epoch has other batches.
_LENGTH_NOISE = 0.1
_EVALUATION_BATCH = 128
# Of the ranking loss: of scores, and of judgements that count as different.
_MARGIN = 0.1


class LayerStore:
    """The outputs of an encoder's layers for the word pieces of distinct texts, in float16, in a
    file that is mapped into memory.

    An interrupted computation goes on where it was, see `append_rows`; a later run with the same
    encoder, cut and texts finds the file.

    Args:
        folder: holds the file.
        encoder: with the identity as mix for all layers, or without a mix for one layer; it cuts
            long texts.
        texts: each with its language.
        special: whether special tokens count as pieces.

    Attributes:
        row: text with its language -> its number.
        lengths: (texts,) numbers of pieces.
        vectors: (tokens, layers, width) outputs for all tokens, special ones included.
        word_positions: (tokens,) number of the word of each token in its text; -1 for a special one.
        token_ids: (tokens,) numbers in the encoder's vocabulary.
        offsets: (texts + 1,) number of the first token of each text.
    """

    def __init__(
        self,
        folder: Path,
        encoder: TokenEncoder,
        texts: Sequence[tuple[str, str | None]],
        *,
        special: bool = False,
    ) -> None:
        depth = len(encoder.mix) if encoder.mix is not None else 1
        shape = (depth, encoder.dim // depth)
        layer = encoder.layer if encoder.mix is None else "all"
        identity = json.dumps(
            [encoder.fingerprint, layer, encoder.dtype, encoder.max_length, list(texts)]
        )
        name = hashlib.sha256(identity.encode("utf-8", "surrogatepass")).hexdigest()[:16]
        make_folder(folder)
        vector_file = folder / f"{name}.layers"
        token_file = folder / f"{name}.tokens"

        def outputs(part: slice) -> list[np.ndarray]:
            """The next rows of both files, of a part of the texts."""
            strings, languages = map(list, zip(*texts[part], strict=True))
            packed = encoder.encode(strings, languages)
            # A text in two languages that the encoder reads alike is encoded once, but stands here
            # twice.
            owners = np.repeat(np.arange(part.start, part.stop), packed.lengths[packed.index])
            rows = np.concatenate(
                [np.arange(*packed.offsets[number : number + 2]) for number in packed.index]
            )
            columns = np.stack([owners, packed.word_positions[rows], packed.token_ids[rows]], 1)
            return [packed.vectors[rows].astype(np.float16), columns.astype(np.int32)]

        append_rows([vector_file, token_file], len(texts), _TEXTS_PER_SAVE, outputs)
        columns = np.fromfile(token_file, dtype=np.int32).reshape(-1, 3).T.astype(np.int64)
        owners, self.word_positions, self.token_ids = columns
        vector_shape = (len(owners), *shape)
        self.vectors = np.memmap(vector_file, dtype=np.float16, mode="r", shape=vector_shape)
        self.offsets = np.searchsorted(owners, np.arange(len(texts) + 1))
        self.row = {text: number for number, text in enumerate(texts)}
        # The tokens that count as pieces; those of text i lie from bound i to bound i + 1.
        self._piece_tokens = np.flatnonzero((self.word_positions >= 0) | special)
        self._bounds = np.searchsorted(self._piece_tokens, self.offsets)
        self.lengths = np.diff(self._bounds)

    def pieces(self, texts: np.ndarray) -> torch.Tensor:
        """(pieces, layers, width) float32 outputs for the pieces of texts, which are numbers of
        `row`, one after the other."""
        tokens = [self._piece_tokens[self._bounds[text] : self._bounds[text + 1]] for text in texts]
        return torch.from_numpy(self.vectors[np.concatenate(tokens)]).float()

    def layer(self, number: int, texts: np.ndarray) -> PackedTokens:
        """Packed vectors of (n,) texts at layer 1 or higher, special tokens included."""
        rows = np.concatenate(
            [np.arange(self.offsets[text], self.offsets[text + 1]) for text in texts]
        )
        return PackedTokens(
            vectors=self.vectors[rows, number - 1].astype(np.float32),
            offsets=np.concatenate([[0], np.cumsum(np.diff(self.offsets)[texts])]),
            weights=np.ones(len(rows)),
            token_ids=self.token_ids[rows],
            word_positions=self.word_positions[rows],
            index=np.arange(len(texts)),
            truncated=np.zeros(len(texts), dtype=bool),
        )


@dataclasses.dataclass(frozen=True)
class Examples:
    """n pairs as a network reads them.

    Attributes:
        store: the texts.
        others: (n, m) numbers in the store of the texts to compare with: one, or a source and its
            reference.
        translations: (n,) numbers in the store of the translations.
        features: (n, f) standardised features.
        human: (n,) judgements.
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
        return np.maximum(
            self.store.lengths[self.others].sum(1), self.store.lengths[self.translations]
        )


def train_member(
    member: Member,
    train: Examples,
    valid: Examples,
    config: RegressorConfig,
    seed: int,
    checkpoint: Path,
    device: str = "cpu",
) -> tuple[dict[str, torch.Tensor], list[dict[str, float]]]:
    """Trains a network with Adam on the mean squared error.

    The learning rate is halved after every epoch in which the Pearson correlation of the validation
    does not rise, and training stops after `config.patience` of them in a row. A checkpoint is
    written after every epoch; since the random numbers of an epoch depend on seed and epoch alone,
    a resumed run ends with the same weights.

    Args:
        member: the new network.
        train: the pairs to learn from.
        valid: the pairs that decide when to stop.
        config: of the schedule.
        seed: of everything random in an epoch.
        checkpoint: the file that a resumed run goes on from.
        device: of the network.

    Returns:
        The weights after the best epoch; and a dictionary of numbers for each epoch.
    """
    member = member.to(device)
    optimizer = torch.optim.Adam(member.parameters(), lr=config.learning_rate)
    progress = _Progress()
    if checkpoint.exists():
        saved = torch.load(checkpoint, map_location=device, weights_only=True)
        member.load_state_dict(saved["member"])
        optimizer.load_state_dict(saved["optimizer"])
        progress = _Progress(**saved["state"])
    while progress.epoch < config.epochs and progress.stale < config.patience:
        progress.epoch += 1
        loss = _train_epoch(member, optimizer, train, config, seed, progress.epoch, device)
        correlation = pearson(predict(member, valid, device), valid.human)
        # A network that gives all texts the same score has learnt nothing.
        value = correlation.value if correlation.reason is None else -1.0
        row = {
            "seed": seed,
            "epoch": progress.epoch,
            "loss": loss,
            "pearson": value,
            "learning_rate": optimizer.param_groups[0]["lr"],
        }
        log.info("seed %d, epoch %d: loss %.4f, Pearson %.4f, learning rate %.2g", *row.values())
        progress.history.append(row)
        if value > progress.pearson:
            progress.pearson = value
            progress.stale = 0
            for name, values in member.state_dict().items():
                progress.best[name] = values.detach().cpu().clone()
        else:
            progress.stale += 1
            for group in optimizer.param_groups:
                group["lr"] /= 2
        document = {
            "member": member.state_dict(),
            "optimizer": optimizer.state_dict(),
            "state": vars(progress),
        }
        with atomic_path(checkpoint) as temporary:
            torch.save(document, temporary)
    return progress.best, progress.history


@dataclasses.dataclass
class _Progress:
    """How far the training of a network has come; a checkpoint holds it.

    Attributes:
        epoch: number of epochs that are done.
        stale: number of epochs since the best one.
        pearson: Pearson's r on the validation after the best epoch.
        best: the weights after the best epoch.
        history: the numbers of each epoch.
    """

    epoch: int = 0
    stale: int = 0
    pearson: float = -np.inf
    best: dict[str, torch.Tensor] = dataclasses.field(default_factory=dict)
    history: list[dict[str, float]] = dataclasses.field(default_factory=list)


def _train_epoch(
    member: Member,
    optimizer: torch.optim.Optimizer,
    train: Examples,
    config: RegressorConfig,
    seed: int,
    epoch: int,
    device: str,
) -> float:
    """Trains a network on all examples once; returns the mean loss of the batches."""
    torch.manual_seed(mixed_seed(seed, epoch))
    member.train()
    losses = []
    batches = plan(train.lengths(), config.batch, mixed_seed(seed, epoch))
    name = f"seed {seed}, epoch {epoch}"
    for rows in tqdm(batches, desc=name, unit="batch", disable=None, leave=False):
        optimizer.zero_grad()
        scores, human = _forward(member, train.take(rows), device)
        loss = torch.nn.functional.mse_loss(scores, human)
        if config.ranking:
            loss = loss + config.ranking * ranking_loss(scores, human)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(member.parameters(), config.gradient_norm)
        optimizer.step()
        losses.append(loss.item())
    if not np.isfinite(losses).all():
        raise MTMetricsError(f"{name}: the loss is no longer finite; lower --learning-rate")
    return float(np.mean(losses))


def plan(lengths: np.ndarray, batch: int, seed: int) -> list[np.ndarray]:
    """The rows of every batch of an epoch: `batch` pairs of about the same length, in random
    order."""
    generator = np.random.default_rng(seed)
    noise = generator.uniform(-_LENGTH_NOISE, _LENGTH_NOISE, len(lengths))
    order = np.argsort(lengths * (1 + noise), kind="stable")
    batches = [order[first : first + batch] for first in range(0, len(order), batch)]
    return [batches[number] for number in generator.permutation(len(batches))]


def predict(member: Member, pairs: Examples, device: str = "cpu") -> np.ndarray:
    """(n,) float64 scores of a network."""
    member.eval()
    scores = np.empty(len(pairs))
    order = np.argsort(pairs.lengths(), kind="stable")
    with torch.inference_mode():
        for first in range(0, len(order), _EVALUATION_BATCH):
            rows = order[first : first + _EVALUATION_BATCH]
            scores[rows] = _forward(member, pairs.take(rows), device)[0].cpu().numpy()
    return scores


def ranking_loss(scores: torch.Tensor, human: torch.Tensor) -> torch.Tensor:
    """Mean of ``max(0, margin - (s_i - s_j))`` where i was judged better than j by more, over a
    batch of (B,) scores and judgements; the paper proposes such a loss in its conclusions (Sec.
    5)."""
    better = human[:, None] - human[None, :] > _MARGIN
    gaps = (_MARGIN - (scores[:, None] - scores[None, :])).relu()
    return (gaps * better).sum() / better.sum().clamp(min=1)


def _forward(member: Member, pairs: Examples, device: str) -> tuple[torch.Tensor, torch.Tensor]:
    """(n,) scores and judgements of some pairs."""
    weights = member.mix.weights()
    sides, sizes = [], []
    for texts in (pairs.others, pairs.translations[:, None]):
        lengths = pairs.store.lengths[texts].sum(1)
        mixed = torch.einsum("nld,l->nd", pairs.store.pieces(texts.ravel()).to(device), weights)
        sides.append(
            torch.nn.utils.rnn.pad_sequence(mixed.split(lengths.tolist()), batch_first=True)
        )
        sizes.append(torch.from_numpy(lengths).to(device))
    features = torch.from_numpy(pairs.features).to(device) if pairs.features.shape[1] else None
    scores = member(*sides, (sizes[0], sizes[1]), features)
    return scores, torch.from_numpy(pairs.human).float().to(device)


def mixed_seed(seed: int, epoch: int) -> int:
    """A seed for the random numbers of one epoch."""
    return int(np.random.SeedSequence([seed, epoch]).generate_state(1)[0])
