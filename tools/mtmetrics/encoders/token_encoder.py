"""Turns texts into packed token vectors of one layer of a transformer encoder."""

import dataclasses
from collections.abc import Callable, Hashable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mtmetrics.artifacts.models import fingerprint, fingerprint_files, model_folder, model_label, pretrained
from mtmetrics.encoders.batching import length_batches
from mtmetrics.encoders.cache import EncodedText, TextCache
from mtmetrics.encoders.device import pick_device, torch_dtype
from mtmetrics.encoders.layers import LayerTap
from mtmetrics.encoders.packed import PackedTokens
from mtmetrics.encoders.words import text_words, word_table
from mtmetrics.errors import InputError, MTMetricsError
from mtmetrics.inputs import positive

if TYPE_CHECKING:
    import torch


@dataclasses.dataclass
class EncodingCounts:
    """What an encoder has done so far: texts asked for, texts computed, real and padded tokens computed."""

    requested: int = 0
    computed: int = 0
    tokens: int = 0
    padded_tokens: int = 0


class TokenEncoder:
    """Encodes each distinct text once and keeps no padding.

    Texts are tokenised, sorted by length, and run in batches of a token budget through the layers that are used; the layers above are
    dropped. Texts longer than the model's limit are cut there, special tokens kept, and marked as truncated.

    Args:
        model: folder, name of a bundled artifact, or Hub repository of any `transformers` encoder.
        layer: hidden state to return; 0 is the embedding layer, None the last layer.
        revision: Hub revision.
        device: ``"auto"`` (CUDA, then MPS, then CPU) or a torch device.
        dtype: ``"float32"``, ``"bfloat16"`` or ``"float16"``, whatever the weights are stored in.
        batch_tokens: padded tokens per batch.
        cache_bytes: bound of the cache of encoded texts.
        local_files_only: never ask the Hub.

    Raises:
        InputError: an unknown layer, device or dtype, or a batch size below 1.
        ArtifactError: the model cannot be found or loaded.
    """

    def __init__(
        self,
        model: str | Path,
        *,
        layer: int | None = None,
        revision: str | None = None,
        device: str = "auto",
        dtype: str = "float32",
        batch_tokens: int = 4096,
        cache_bytes: int = 128 * 2**20,
        local_files_only: bool = False,
    ) -> None:
        self.batch_tokens = positive("batch_tokens", batch_tokens)
        self.dtype = dtype
        self.device = pick_device(device)
        self.name = str(model)
        self.label = model_label(model)
        folder = model_folder(model, revision=revision, local_files_only=local_files_only)
        self.fingerprint = fingerprint(fingerprint_files(folder))
        self.tokenizer, network = pretrained("AutoModel", folder, torch_dtype(dtype))
        depth = network.config.num_hidden_layers
        self.layer = depth if layer is None else layer
        if isinstance(self.layer, bool) or not isinstance(self.layer, int) or not 0 <= self.layer <= depth:
            raise InputError(f"layer {layer!r}: {self.name} has the layers 0 (embeddings) to {depth}")
        self.dim: int = network.config.hidden_size
        self._tap = LayerTap(network.eval().to(self.device), self.layer)
        self.max_length = _max_length(self.tokenizer, network.config)
        self.counts = EncodingCounts()
        self._cache = TextCache(cache_bytes)
        self._word_table: np.ndarray | None = None

    @property
    def word_table(self) -> np.ndarray:
        """(V,) bool table of `mtmetrics.encoders.words.word_table` for this encoder's vocabulary."""
        if self._word_table is None:
            self._word_table = word_table(self.tokenizer)
        return self._word_table

    @property
    def vocabulary_size(self) -> int:
        """Number of token ids."""
        return len(self.tokenizer)

    def text_words(self, text: str) -> tuple[list[str], np.ndarray]:
        """The words of a text, see `mtmetrics.encoders.words.text_words`."""
        return text_words(self.tokenizer, text, self.max_length)

    def encode(self, texts: Sequence[str]) -> PackedTokens:
        """Encodes texts, special tokens included.

        Args:
            texts: N strings; equal ones are encoded once.

        Returns:
            Packed vectors of the distinct texts in order of first appearance, with uniform weights 1.
        """
        return self._encode(texts, self._tokenise)

    def encode_words(self, sentences: Sequence[Sequence[str]]) -> PackedTokens:
        """Encodes sentences that are split into words already; `PackedTokens.words` then counts these words."""
        keys = [tuple(words) for words in sentences]
        return self._encode(keys, lambda batch: self._tokenise([list(words) for words in batch], is_split_into_words=True))

    def _encode(self, keys: Sequence[Hashable], tokenise: Callable[[list[Any]], list[EncodedText]]) -> PackedTokens:
        position = {key: number for number, key in enumerate(dict.fromkeys(keys))}
        found = {key: self._cache.get(key) for key in position}
        missing = [key for key, encoded in found.items() if encoded is None]
        self.counts.requested += len(keys)
        self.counts.computed += len(missing)
        if missing:
            found.update(zip(missing, tokenise(missing), strict=True))
        index = np.fromiter((position[key] for key in keys), dtype=np.int64, count=len(keys))
        packed = _pack(list(found.values()), index, self.dim)
        rows = [packed.rows(position[key]) for key in missing]
        for number, vectors in self._run([packed.token_ids[row] for row in rows]):
            packed.vectors[rows[number]] = vectors
        for key, row in zip(missing, rows, strict=True):
            self._cache.put(key, found[key]._replace(vectors=packed.vectors[row].copy()))
        return packed

    def _tokenise(self, batch: list[Any], **options: Any) -> list[EncodedText]:
        encoded = self.tokenizer(batch, truncation=True, max_length=self.max_length, **options)
        nothing = np.zeros((0, self.dim), dtype=np.float32)
        return [
            EncodedText(
                nothing,
                np.array(encoded["input_ids"][number], dtype=np.int64),
                np.array([-1 if word is None else word for word in encoded.word_ids(number)], dtype=np.int64),
                bool(encoded.encodings[number].overflowing),
            )
            for number in range(len(batch))
        ]

    def _run(self, ids: list[np.ndarray]) -> Iterator[tuple[int, np.ndarray]]:
        import torch

        for numbers in length_batches([len(row) for row in ids], self.batch_tokens):
            width = max(len(ids[number]) for number in numbers)
            batch = torch.full((len(numbers), width), self.tokenizer.pad_token_id or 0, dtype=torch.long)
            mask = torch.zeros((len(numbers), width), dtype=torch.long)
            for row, number in enumerate(numbers):
                batch[row, : len(ids[number])] = torch.from_numpy(ids[number])
                mask[row, : len(ids[number])] = 1
            self.counts.tokens += int(mask.sum())
            self.counts.padded_tokens += mask.numel()
            states = self._forward(batch, mask)
            for row, number in enumerate(numbers):
                vectors = states[row, : len(ids[number])]
                if not np.isfinite(vectors).all():
                    raise MTMetricsError(f"encoder {self.name}: layer {self.layer} overflows in {self.dtype}; use dtype='float32'")
                yield number, vectors

    def _forward(self, batch: "torch.Tensor", mask: "torch.Tensor") -> np.ndarray:
        import torch

        with torch.inference_mode():
            states = self._tap(input_ids=batch.to(self.device), attention_mask=mask.to(self.device))
            return states.float().cpu().numpy()


def _max_length(tokenizer: Any, config: Any) -> int:
    positions = getattr(config, "max_position_embeddings", None)
    if positions is None:
        return int(tokenizer.model_max_length)
    if config.model_type in {"roberta", "xlm-roberta", "camembert", "mpnet", "xlm-roberta-xl"}:
        positions -= config.pad_token_id + 1  # their position numbers start behind the padding id
    return int(min(positions, tokenizer.model_max_length))


def _pack(texts: list[EncodedText], index: np.ndarray, dim: int) -> PackedTokens:
    """Packs texts; the rows of those that have no vectors yet are left for the caller to fill."""
    lengths = [len(text.token_ids) for text in texts]
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    vectors = np.empty((int(offsets[-1]), dim), dtype=np.float32)
    for text, first in zip(texts, offsets[:-1], strict=True):
        vectors[first : first + len(text.vectors)] = text.vectors
    return PackedTokens(
        vectors=vectors,
        offsets=offsets,
        weights=np.ones(len(vectors)),
        token_ids=np.concatenate([text.token_ids for text in texts]) if texts else np.zeros(0, dtype=np.int64),
        words=np.concatenate([text.words for text in texts]) if texts else np.zeros(0, dtype=np.int64),
        index=index,
        truncated=np.array([text.truncated for text in texts], dtype=bool),
    )
