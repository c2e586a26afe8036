"""A loaded encoder, of which several readers take what they want from one pass over each text."""

import functools
import threading
import weakref
from collections.abc import Collection, Hashable, Iterable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from mtmetrics.artifacts.models import own_tokenizers, pretrained_tokenizer
from mtmetrics.models.cache import EncodedText
from mtmetrics.models.loaded import LoadedModel
from mtmetrics.models.packed import Level
from mtmetrics.models.runner import TextCache, torch_dtype
from mtmetrics.models.text_units import word_table

if TYPE_CHECKING:
    import torch


class Reading(NamedTuple):
    """Vectors that a pass can give: of a hidden state, or of a weighted sum of them; and of each
    token, or of texts.

    Attributes:
        states: number of a hidden state, 0 for the embeddings; or a weight for each layer but the
            embeddings.
        mean: one vector for each text, the mean over all its tokens.
    """

    states: int | tuple[float, ...]
    mean: bool = False

    @classmethod
    def of_weights(cls, weights: Sequence[float]) -> "Reading":
        """A weighted sum of layers, which may be one of them."""
        row = tuple(map(float, weights))
        alone = row.count(0.0) == len(row) - 1 and 1.0 in row
        return cls(row.index(1.0) + 1 if alone else row)

    @property
    def layers(self) -> list[int]:
        """The hidden states that it is made of."""
        if isinstance(self.states, int):
            return [self.states]
        return [layer for layer, weight in enumerate(self.states, 1) if weight]

    def of(self, found: "dict[int, torch.Tensor]") -> "torch.Tensor":
        """The vectors of tokens, of the hidden states that a pass found."""
        import torch

        if isinstance(self.states, int):
            return found[self.states]
        # One sum grows in place: as tensors of their own, the products would take the memory of all
        # layers again.
        total = torch.zeros_like(next(iter(found.values())))
        for layer in self.layers:
            total.add_(found[layer], alpha=self.states[layer - 1])
        return total


class Reader(Protocol):
    """Who takes vectors from a shared network: what of a pass, of texts how long, and whether it
    keeps them for later runs; the means of a reader of sentences are not kept."""

    readings: list[Reading]
    max_length: int
    level: Level

    @property
    def stores(self) -> bool: ...

    def store(self, texts: Iterable[tuple[Any, EncodedText]]) -> None: ...


class LayerStates:
    """Runs a `transformers` encoder up to the highest hidden state that is asked for.

    State k is the output of block k, as in ``output_hidden_states``; 0 is the input of the first
    block. Where k is the last layer, a closing normalisation of the model is applied, as the model
    itself would."""

    def __init__(self, network: Any) -> None:
        import torch

        self._network = network
        self._depth = network.config.num_hidden_layers
        lists = [module for module in network.modules() if isinstance(module, torch.nn.ModuleList)]
        stacks = [
            found
            for found in lists
            if len(found) == self._depth and not isinstance(found[0], type(found))
        ]
        self._stack: Any = stacks[0] if stacks else None
        self._blocks = list(stacks[0]) if stacks else []
        self._found: dict[int, Any] = {}
        for number, block in enumerate(self._blocks, 1):
            block.register_forward_hook(self._keeper(number))
        if self._blocks:
            self._blocks[0].register_forward_pre_hook(self._keep_input, with_kwargs=True)

    def __call__(self, layers: Collection[int], **inputs: Any) -> "dict[int, torch.Tensor]":
        """The hidden states of these numbers."""
        if self._stack is None:  # a model that runs one block several times
            states = self._network(**inputs, output_hidden_states=True).hidden_states
            return {layer: states[layer] for layer in layers}
        wanted = max(1, *layers)
        if len(self._stack) != wanted:
            del self._stack[:]
            self._stack.extend(self._blocks[:wanted])
        self._found = dict.fromkeys(layers)
        try:
            result = self._network(**inputs)
            if self._depth in layers:
                self._found[self._depth] = result.last_hidden_state
            return self._found
        finally:
            self._found = {}  # also after an error: where memory ran out, it is needed

    def _keep_input(self, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if 0 in self._found:
            self._found[0] = args[0] if args else kwargs["hidden_states"]

    def _keeper(self, number: int) -> Any:
        def keep(module: Any, args: tuple[Any, ...], output: Any) -> None:
            if number in self._found:
                self._found[number] = output[0] if isinstance(output, tuple) else output

        return keep


class EncoderNetwork(LoadedModel):
    """A loaded encoder and its tokenizers. Where several `TokenEncoder` share one, a pass over a
    text gives what all of them want, and a cache keeps it until they ask.

    The arguments are those of `TokenEncoder`; the cache holds `cache_bytes` for each reading.
    """

    def __init__(
        self,
        model: str | Path,
        *,
        revision: str | None = None,
        cache_bytes: int = 128 * 2**20,
        **running: Any,
    ) -> None:
        super().__init__("encoder", model, revision, running)
        from mtmetrics.models.plain_networks import network as load

        self.tokenizer = pretrained_tokenizer(self.folder)
        network = load("AutoModel", self.folder, torch_dtype(self.dtype))
        self.own_tokenizers = own_tokenizers(self.folder)
        self.config = network.config
        self._runner = self.on_devices(network, self.tokenizer.pad_token_id or 0)
        self._runner.replicas = [
            (LayerStates(copy), device) for copy, device in self._runner.replicas
        ]
        self._cache = TextCache(0, lambda encoded: encoded.vectors.nbytes)
        self._cache_bytes = cache_bytes
        # Texts asked for, read from disk, computed; real and padded tokens computed.
        self.counts = SimpleNamespace(requested=0, loaded=0, computed=0, tokens=0, padded_tokens=0)
        self._readers: weakref.WeakSet[Reader] = weakref.WeakSet()
        self._joining = (
            threading.Lock()
        )  # a reader may be made in one thread while another one encodes

    @functools.cached_property
    def word_table(self) -> np.ndarray:
        return word_table(self.tokenizer)

    def join(self, reader: Reader) -> None:
        """Computes for one more reader, as long as it lives."""
        with self._joining:
            self._readers.add(reader)
            readings = {reading for other in self._readers for reading in other.readings}
        self._cache.limit = self._cache_bytes * len(readings)

    def known(self, key: Hashable, reader: Reader) -> list[EncodedText] | None:
        """What the cache has of a text, for each reading of a reader; None where anything lacks."""
        found = []
        for reading in reader.readings:
            whole = self._cache.get((key, reading, None))
            if whole is None or len(whole.token_ids) > reader.max_length:
                whole = self._cache.get((key, reading, reader.max_length))
            if whole is None:
                return None
            found.append(whole)
        return found

    def run(
        self, keys: Sequence[Hashable], texts: Sequence[EncodedText], reader: Reader, keep: Any
    ) -> int:
        """One pass over the tokens of texts; the cache gets what other readers want of them.

        Args:
            keys: what the cache finds the texts by.
            texts: as the reader's tokenizer gave them, with no vectors.
            reader: who asks.
            keep: called with the number of a text, one of the reader's readings, and its vectors;
                refuses those that are not finite.

        Returns:
            Padded tokens that were computed.
        """
        with self._joining:
            everybody = list(self._readers)
        others = [other for other in everybody if other is not reader] if self._cache_bytes else []
        others = [other for other in others if other.level == "word" or not other.stores]
        shared = [reader, *others]
        readings = list(dict.fromkeys(reading for other in shared for reading in other.readings))
        layers = sorted({layer for reading in readings for layer in reading.layers})
        cuts = {
            reading: {other.max_length for other in shared if reading in other.readings}
            for reading in readings
        }
        found: dict[tuple[int, Reading], np.ndarray] = {}
        room = self._cache.limit

        def compute(
            network: Any, batch: "torch.Tensor", mask: "torch.Tensor", numbers: list[int]
        ) -> None:
            nonlocal room
            states = network(layers, input_ids=batch, attention_mask=mask)
            for reading in readings:
                values = reading.of(states).float().cpu().numpy()
                for vectors, number in zip(values, numbers, strict=True):
                    text = texts[number]
                    vectors = vectors[: len(text.token_ids)]
                    if reading.mean:
                        vectors = vectors.mean(0, keepdims=True)
                    if reading in reader.readings:
                        keep(number, reading, vectors)
                    whole = not text.truncated and len(text.token_ids) <= max(cuts[reading])
                    if not self._cache_bytes or not (whole or reader.max_length in cuts[reading]):
                        continue
                    if (
                        reading.mean or vectors.nbytes <= room
                    ):  # what the cache could not hold is not kept here either
                        room -= 0 if reading.mean else vectors.nbytes
                        found[number, reading] = vectors.copy()

        rows: list[Any] = [text.token_ids for text in texts]
        padded = self._runner.run(rows, compute)
        # What was asked for goes out already, and single vectors are small, so they come last and
        # stay longest.
        for (number, reading), vectors in sorted(
            found.items(), key=lambda item: _order(item[0][1], reader)
        ):
            if (
                reading in reader.readings or np.isfinite(vectors).all()
            ):  # what was asked for is looked at by `keep`
                self.remember(
                    keys[number],
                    reading,
                    texts[number]._replace(vectors=vectors),
                    reader.max_length,
                )
        for other in others:
            if other.stores:
                other.store(
                    (keys[number], texts[number]) for number in {number for number, _ in found}
                )
        return padded

    def forget(self) -> None:
        """Empties the cache: what is asked for next is computed in batches of its own, whatever was
        read before."""
        self._cache.clear()

    def remember(
        self, key: Hashable, reading: Reading, text: EncodedText, max_length: int | None
    ) -> None:
        """Keeps the vectors of a text in the cache; of one that was cut, by the length where it
        was."""
        self._cache.put((key, reading, max_length if text.truncated else None), text)


def _order(reading: Reading, reader: Reader) -> tuple[bool, bool]:
    return reading.mean, reading not in reader.readings
