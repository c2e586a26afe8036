"""A loaded encoder, of which several readers take their vectors from one pass over each text."""

import functools
import threading
import weakref
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from mtmetrics.artifacts.models import own_tokenizers, pretrained_tokenizer
from mtmetrics.models.devices import torch_dtype
from mtmetrics.models.loaded import LoadedModel
from mtmetrics.models.text_cache import TextCache
from mtmetrics.models.text_units import word_table

if TYPE_CHECKING:
    import torch


class TextKey(NamedTuple):
    """A text, or the words of one, and the language of the tokenizer that reads it; None for the
    tokenizer that reads all languages but some."""

    text: str | tuple[str, ...]
    language: str | None


class EncodedText(NamedTuple):
    """One text as an encoder reads it.

    Attributes:
        vectors: (n, d) float32, or (0, d) before they are computed.
        token_ids: (n,) int64.
        words: (n,) int64 position of the word that a token belongs to, -1 for special tokens.
        is_truncated: whether the text was cut.
    """

    vectors: np.ndarray
    token_ids: np.ndarray
    words: np.ndarray
    is_truncated: bool


class Reading(NamedTuple):
    """Vectors that a pass can give: of a hidden state, or of a weighted sum of hidden states.

    Attributes:
        states: number of a hidden state, 0 for the embeddings; or a weight for each layer but the
            embeddings.
        mean: whether there is one vector for each text, the mean over all its tokens.
    """

    states: int | tuple[float, ...]
    mean: bool = False

    @classmethod
    def of_weights(cls, weights: Sequence[float]) -> "Reading":
        """Makes the reading of a weighted sum of layers; it may come to a single layer."""
        row = tuple(map(float, weights))
        is_one_layer = row.count(0.0) == len(row) - 1 and 1.0 in row
        return cls(row.index(1.0) + 1 if is_one_layer else row)

    @property
    def layers(self) -> list[int]:
        """The hidden states that it is made of."""
        if isinstance(self.states, int):
            return [self.states]
        return [layer for layer, weight in enumerate(self.states, 1) if weight]

    def of(self, hidden_states: "dict[int, torch.Tensor]") -> "torch.Tensor":
        """Returns the vectors of tokens, made of the hidden states of a pass."""
        import torch

        if isinstance(self.states, int):
            return hidden_states[self.states]
        # One sum grows in place: as tensors of their own, the products would take the memory of all
        # layers again.
        total = torch.zeros_like(next(iter(hidden_states.values())))
        for layer in self.layers:
            total.add_(hidden_states[layer], alpha=self.states[layer - 1])
        return total


class Reader(Protocol):
    """A user of a shared network.

    Attributes:
        readings: the vectors that it takes from a pass.
        max_length: number of tokens at which it cuts a text.
    """

    readings: list[Reading]
    max_length: int


# Takes the index of a text, a reading, and the vectors of the text.
Keep = Callable[[int, Reading, np.ndarray], None]


class LayerStates:
    """Runs a `transformers` encoder up to the highest hidden state that is asked for.

    State k is the output of block k, as in ``output_hidden_states``; 0 is the input of the first
    block. Where k is the last layer, a closing normalisation of the model is applied, as the model
    itself would.
    """

    def __init__(self, network: Any) -> None:
        self._network = network
        self._depth = network.config.num_hidden_layers
        self._stack = _find_blocks(network, self._depth)
        self._blocks = [] if self._stack is None else list(self._stack)
        # The states that the pass which is running should note, None until they are computed.
        self._states: dict[int, Any] = {}
        for number, block in enumerate(self._blocks, 1):
            block.register_forward_hook(self._noter(number))
        if self._blocks:
            self._blocks[0].register_forward_pre_hook(self._note_input, with_kwargs=True)

    def __call__(self, layers: Collection[int], **inputs: "torch.Tensor") -> Any:
        """Returns the hidden states of these numbers, as a dictionary of tensors."""
        if self._stack is None:  # a model that runs one block several times
            states = self._network(**inputs, output_hidden_states=True).hidden_states
            return {layer: states[layer] for layer in layers}
        depth = max(1, *layers)
        if len(self._stack) != depth:
            del self._stack[:]
            self._stack.extend(self._blocks[:depth])
        self._states = dict.fromkeys(layers)
        try:
            result = self._network(**inputs)
            if self._depth in layers:
                self._states[self._depth] = result.last_hidden_state
            return self._states
        finally:
            self._states = {}  # also after an error: where memory ran out, it is needed

    def _note_input(self, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if 0 in self._states:
            self._states[0] = args[0] if args else kwargs["hidden_states"]

    def _noter(self, number: int) -> Callable[..., None]:
        def note(module: Any, args: tuple[Any, ...], output: Any) -> None:
            if number in self._states:
                self._states[number] = output[0] if isinstance(output, tuple) else output

        return note


def _find_blocks(network: Any, depth: int) -> Any:
    """Returns the list of a network that holds its `depth` blocks; None where there is none."""
    import torch

    for module in network.modules():
        if not isinstance(module, torch.nn.ModuleList) or len(module) != depth:
            continue
        if not isinstance(module[0], torch.nn.ModuleList):
            return module
    return None


class EncoderNetwork(LoadedModel):
    """A loaded encoder and its tokenizers. Where several `TokenEncoder` share one, a pass over a
    text gives the vectors of all of them, and a cache keeps them until they are asked for.

    The arguments are those of `TokenEncoder`; the cache holds `cache_bytes` for each reading.

    Attributes:
        counts: texts that were asked for and that were computed; real and padded tokens that were
            computed.
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
        self._cache: TextCache[tuple[TextKey, Reading, int | None], EncodedText]
        self._cache = TextCache(0, lambda encoded: encoded.vectors.nbytes)
        self._cache_bytes = cache_bytes
        self.counts = SimpleNamespace(requested=0, computed=0, tokens=0, padded_tokens=0)
        self._readers: weakref.WeakSet[Reader] = weakref.WeakSet()
        # A reader may be made in one thread while another one encodes.
        self._readers_lock = threading.Lock()

    @functools.cached_property
    def word_table(self) -> np.ndarray:
        """(V,) bool, true for the tokens that the published word filter keeps."""
        return word_table(self.tokenizer)

    def join(self, reader: Reader) -> None:
        """Computes for one more reader, as long as it lives."""
        with self._readers_lock:
            self._readers.add(reader)
            readings = {reading for each in self._readers for reading in each.readings}
        self._cache.limit = self._cache_bytes * len(readings)

    def cached(self, key: TextKey, reader: Reader) -> list[EncodedText] | None:
        """Returns the text from the cache, once for each reading of a reader; None where one is
        missing."""
        texts = []
        for reading in reader.readings:
            text = self._cache.get((key, reading, None))
            if text is None or len(text.token_ids) > reader.max_length:
                text = self._cache.get((key, reading, reader.max_length))
            if text is None:
                return None
            texts.append(text)
        return texts

    def run(
        self, keys: Sequence[TextKey], texts: Sequence[EncodedText], reader: Reader, keep: Keep
    ) -> int:
        """Passes once over the tokens of texts, and caches the vectors that other readers want.

        Args:
            keys: by which the cache finds the texts.
            texts: as the reader's tokenizer made them, without vectors.
            reader: who asks.
            keep: is called with each vector of the reader's readings; it refuses vectors that are
                not finite.

        Returns:
            The number of padded tokens that were computed.
        """
        readers = self._readers_with(reader)
        readings = list(dict.fromkeys(reading for each in readers for reading in each.readings))
        layers = sorted({layer for reading in readings for layer in reading.layers})
        limits = {
            reading: {each.max_length for each in readers if reading in each.readings}
            for reading in readings
        }
        to_cache: dict[tuple[int, Reading], np.ndarray] = {}
        free_bytes = self._cache.limit

        def is_useful(text: EncodedText, reading: Reading) -> bool:
            """Whether a reader that wants this reading cuts the text at the same place."""
            if not text.is_truncated and len(text.token_ids) <= max(limits[reading]):
                return True
            return reader.max_length in limits[reading]

        def compute(
            network: Any, ids: "torch.Tensor", mask: "torch.Tensor", indices: list[int]
        ) -> None:
            nonlocal free_bytes
            states = network(layers, input_ids=ids, attention_mask=mask)
            for reading in readings:
                batch = reading.of(states).float().cpu().numpy()
                for index, row in zip(indices, batch, strict=True):
                    text = texts[index]
                    vectors = row[: len(text.token_ids)]
                    if reading.mean:
                        vectors = vectors.mean(0, keepdims=True)
                    if reading in reader.readings:
                        keep(index, reading, vectors)
                    if not self._cache_bytes or not is_useful(text, reading):
                        continue
                    # Vectors that the cache could not hold are not kept here either. The mean of a
                    # text is small and always finds room.
                    if reading.mean:
                        to_cache[index, reading] = vectors.copy()
                    elif vectors.nbytes <= free_bytes:
                        free_bytes -= vectors.nbytes
                        to_cache[index, reading] = vectors.copy()

        padded_tokens = self._runner.run([text.token_ids for text in texts], compute)

        def order(item: tuple[tuple[int, Reading], np.ndarray]) -> tuple[bool, bool]:
            # The last ones stay longest in the cache: small means, and vectors that nobody got yet.
            (_, reading), _ = item
            return reading.mean, reading not in reader.readings

        for (index, reading), vectors in sorted(to_cache.items(), key=order):
            if reading in reader.readings or np.isfinite(vectors).all():
                self._remember(keys[index], reading, texts[index], vectors, reader.max_length)
        return padded_tokens

    def forget(self) -> None:
        """Empties the cache: the next texts are computed in batches of their own, whatever was
        read before."""
        self._cache.clear()

    def _readers_with(self, reader: Reader) -> list[Reader]:
        """Returns a reader and, where a cache can keep their vectors, all others."""
        if not self._cache_bytes:
            return [reader]
        with self._readers_lock:
            return [reader, *(each for each in self._readers if each is not reader)]

    def _remember(
        self,
        key: TextKey,
        reading: Reading,
        text: EncodedText,
        vectors: np.ndarray,
        max_length: int,
    ) -> None:
        """Keeps a text in the cache; where it was cut, only for readers with the same limit."""
        limit = max_length if text.is_truncated else None
        self._cache.put((key, reading, limit), text._replace(vectors=vectors))
