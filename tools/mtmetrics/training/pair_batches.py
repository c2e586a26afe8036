"""Tokenised sentence pairs, and the plan which of them meet in a batch."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mtmetrics.training.corpus import Pair, text_key
from mtmetrics.training.corruption import corrupt


class TokenisedPairs:
    """The token ids of both sides of all pairs, kept flat.

    Args:
        pairs: the pairs.
        sides: `(token ids (T,), offsets (n + 1,))` of the sources and of the targets, special tokens included, see
            `tokenise`.

    Attributes:
        keys: one number per text of each side; equal texts have equal numbers.
        groups: index arrays of the pairs of each language pair.
    """

    def __init__(self, pairs: Sequence[Pair], sides: tuple[tuple[np.ndarray, np.ndarray], ...]) -> None:
        self.sides = sides
        self.keys = tuple(_numbers([text_key(getattr(pair, side)) for pair in pairs]) for side in ("source", "target"))
        names = np.array([pair.group for pair in pairs])
        self.groups = {str(name): np.flatnonzero(names == name) for name in np.unique(names)}

    def lengths(self) -> np.ndarray:
        """Tokens per pair, both sides together, `(n,)`."""
        return sum(np.diff(offsets) for _, offsets in self.sides)

    def rows(self, side: int, indices: np.ndarray) -> list[np.ndarray]:
        """Token ids of the chosen texts of one side."""
        ids, offsets = self.sides[side]
        return [ids[offsets[i] : offsets[i + 1]] for i in indices]


def tokenise(texts: list[str], tokenizer: Any, max_pieces: int) -> tuple[np.ndarray, np.ndarray]:
    """Token ids of all texts one after the other `(T,)`, and where each begins and ends `(n + 1,)`."""
    parts, lengths = [], []
    for begin in range(0, len(texts), 20_000):
        for ids in tokenizer(texts[begin : begin + 20_000], truncation=True, max_length=max_pieces)["input_ids"]:
            parts.append(np.array(ids, dtype=np.int32))
            lengths.append(len(ids))
    return np.concatenate(parts), np.concatenate([[0], np.cumsum(lengths)])


def _numbers(keys: list[str]) -> np.ndarray:
    known: dict[str, int] = {}
    return np.array([known.setdefault(key, len(known)) for key in keys], dtype=np.int64)


def plan_batches(
    groups: dict[str, np.ndarray], lengths: np.ndarray, size: int, steps: int, seed: int, words: float = 0.4
) -> list[np.ndarray]:
    """Chooses the pairs of every step: all of one language pair and of similar length, so that they are hard to tell
    apart.

    Each language pair is drawn with a probability proportional to its size to the power 0.7 and gone through in random
    order, again and again; word lists (groups ending in ``.words``) are drawn `words` times as often as text. A shorter
    plan is the beginning of a longer one.
    """
    rng = np.random.default_rng(seed)
    names = sorted(groups)
    share = np.array([len(groups[name]) ** 0.7 * (words if name.endswith(".words") else 1.0) for name in names])
    waiting: dict[str, list[np.ndarray]] = {name: [] for name in names}
    plan = []
    for _ in range(steps):
        name = names[rng.choice(len(names), p=share / share.sum())]
        if not waiting[name]:
            waiting[name] = _one_pass(groups[name], lengths, size, rng)
        plan.append(waiting[name].pop())
    return plan


def _one_pass(indices: np.ndarray, lengths: np.ndarray, size: int, rng: np.random.Generator) -> list[np.ndarray]:
    order = rng.permutation(indices)
    batches = []
    for begin in range(0, len(order), size * 24):
        chunk = order[begin : begin + size * 24]
        chunk = chunk[np.argsort(lengths[chunk], kind="stable")]
        parts = [chunk[i : i + size] for i in range(0, len(chunk), size)]
        batches += [part for part in parts if len(part) == size or len(parts) == 1]
    rng.shuffle(batches)
    return batches


# Takes the numbers of a batch's pairs, and the token ids of their worsened translations, if there are any. Returns the
# teacher's vectors of the translations and of the worsened ones, one after the other, `(n, d)` float32; None where it
# does not know the language.
Teach = Callable[[np.ndarray, list[np.ndarray]], np.ndarray | None]


class BatchDataset:
    """Map-style dataset whose items are whole batches, as the plan has them.

    Args:
        data: the tokenised pairs.
        plan: index arrays, one per step.
        table: of the vocabulary, true for subwords that begin a word and are no punctuation, `(size,)`.
        begins: of the vocabulary, true for subwords that begin a word, `(size,)`.
        positions: number of positions of the model; batches begin at random ones, so that all of them are trained.
        seed: of the random starts and of the corruption.
        corrupted: share of the words that change in a worsened translation of each pair; 0 for none. See `corruption`.
        teach: a teacher, see `Teach`; None for none.
    """

    def __init__(
        self,
        data: TokenisedPairs,
        plan: list[np.ndarray],
        table: np.ndarray,
        begins: np.ndarray,
        positions: int,
        seed: int,
        corrupted: float = 0.0,
        teach: Teach | None = None,
    ) -> None:
        self.teach = teach
        self.data = data
        self.plan = plan
        self.table = table
        self.begins = begins
        self.positions = positions
        self.seed = seed
        self.corrupted = corrupted
        names = [name for name in data.groups if name.endswith(".words")]
        self.words = np.concatenate([data.groups[name] for name in names]) if names else np.zeros(0, dtype=np.int64)

    def __len__(self) -> int:
        return len(self.plan)

    def __getitem__(self, step: int) -> dict[str, Any]:
        import torch

        indices = self.plan[step]
        rng = np.random.default_rng((self.seed, step))
        word_starts_only = bool(rng.random() < 0.5)
        batch: dict[str, Any] = {}
        for side, name in enumerate(("source", "target")):
            ids, mask = pad(self.data.rows(side, indices))
            start = int(rng.integers(self.positions - ids.shape[1] + 1)) if rng.random() < 0.25 else 0
            batch[f"{name}_ids"] = torch.from_numpy(ids)
            batch[f"{name}_mask"] = torch.from_numpy(mask)
            batch[f"{name}_kept"] = torch.from_numpy(mask & self.table[ids] if word_starts_only else mask)
            batch[f"{name}_start"] = start
            batch[f"{name}_keys"] = torch.from_numpy(self.data.keys[side][indices])
        worsened: list[np.ndarray] = []
        if self.corrupted and not np.isin(indices[0], self.words):
            worsened = self._worsened(indices, rng, batch["target_ids"].shape[1])
            ids, mask = pad(worsened)
            batch["worse_ids"], batch["worse_mask"] = torch.from_numpy(ids), torch.from_numpy(mask)
            batch["worse_kept"] = torch.from_numpy(mask & self.table[ids] if word_starts_only else mask)
        vectors = None if self.teach is None else self.teach(indices, worsened)
        if vectors is not None:
            batch["taught"] = torch.from_numpy(vectors[: len(indices)])
            if worsened:
                batch["worse_taught"] = torch.from_numpy(vectors[len(indices) :])
        return batch

    def _worsened(self, indices: np.ndarray, rng: np.random.Generator, longest: int) -> list[np.ndarray]:
        sources, targets = self.data.rows(0, indices), self.data.rows(1, indices)
        others = rng.permutation(len(indices))
        return [
            corrupt(source, target, targets[other], self.begins, self.corrupted, rng)[:longest]
            for source, target, other in zip(sources, targets, others, strict=True)
        ]


def pad(rows: list[np.ndarray], value: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Pads rows of token ids to `(n, longest)`; returns them and their mask."""
    ids = np.full((len(rows), max(len(row) for row in rows)), value, dtype=np.int64)
    mask = np.zeros(ids.shape, dtype=bool)
    for number, row in enumerate(rows):
        ids[number, : len(row)] = row
        mask[number, : len(row)] = True
    return ids, mask


def word_starts(tokenizer: Any) -> np.ndarray:
    """True for subwords that begin a word and hold a letter or digit, and for [CLS] and [SEP]; `(size,)`."""
    table = np.zeros(len(tokenizer), dtype=bool)
    for token, number in tokenizer.get_vocab().items():
        table[number] = not token.startswith("##") and any(c.isalnum() for c in token)
    table[[tokenizer.pad_token_id, tokenizer.mask_token_id]] = False
    table[tokenizer.unk_token_id] = True
    return table


def word_beginnings(tokenizer: Any) -> np.ndarray:
    """True for subwords that begin a word, `(size,)`."""
    table = np.zeros(len(tokenizer), dtype=bool)
    for token, number in tokenizer.get_vocab().items():
        table[number] = not token.startswith("##")
    return table
