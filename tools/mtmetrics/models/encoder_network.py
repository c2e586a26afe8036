"""A loaded encoder, and the passes of texts through its layers.

A `Reader`, such as a `TokenEncoder`, wants vectors of one layer, or of a weighted sum of layers: its
`Reading` objects say which. Several readers share one `EncoderNetwork`. One pass of a text through
the layers gives the vectors of all of them; those that nobody has asked for yet wait in a cache.
"""

import functools
import threading
import weakref
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from mtmetrics.artifacts.models import Network, language_tokenizers, pretrained_tokenizer
from mtmetrics.models.devices import torch_dtype
from mtmetrics.models.loaded import LoadedModel
from mtmetrics.models.text_cache import TextCache
from mtmetrics.models.text_units import word_table

if TYPE_CHECKING:
    import torch


class TextKey(NamedTuple):
    """A text as the cache finds it.

    Attributes:
        text: the text, or its words.
        language: of the tokenizer that reads it; None for the model's usual tokenizer.
    """

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
    """Vectors that a pass can give: a hidden state, or a weighted sum of hidden states.

    Attributes:
        states: number of a hidden state, 0 for the embeddings; or the weights of hidden states 1,
            2, and so on.
        mean: whether a text has one vector, the mean over all its tokens, instead of one for each
            token.
    """

    states: int | tuple[float, ...]
    mean: bool = False

    @classmethod
    def of_weights(cls, weights: Sequence[float]) -> "Reading":
        """Makes the reading of a weighted sum; a layer of weight 1 alone is read as that layer."""
        row = tuple(map(float, weights))
        is_one_layer = row.count(0.0) == len(row) - 1 and 1.0 in row
        return cls(row.index(1.0) + 1 if is_one_layer else row)

    @property
    def layers(self) -> list[int]:
        """Numbers of the hidden states that it needs."""
        if isinstance(self.states, int):
            return [self.states]
        return [layer for layer, weight in enumerate(self.states, 1) if weight]

    def vectors_from(self, hidden_states: "dict[int, torch.Tensor]") -> "torch.Tensor":
        """Makes (B, T, d) vectors of tokens from the hidden states of a pass, by number."""
        import torch

        if isinstance(self.states, int):
            return hidden_states[self.states]
        # In place: separate products would take as much memory as all layers again.
        total = torch.zeros_like(next(iter(hidden_states.values())))
        for layer in self.layers:
            total.add_(hidden_states[layer], alpha=self.states[layer - 1])
        return total


class Reader(Protocol):
    """Somebody who reads vectors from a shared network.

    Attributes:
        readings: the vectors that it wants.
        max_length: number of tokens at which it cuts a text.
    """

    readings: list[Reading]
    max_length: int


# Called with the index of a text, a reading, and the vectors of the text.
Keep = Callable[[int, Reading, np.ndarray], None]


class LayerStates:
    """Runs a `transformers` encoder up to the highest hidden state that is asked for.

    State k is the output of block k; state 0 is the input of the first block. They are those that
    `transformers` calls ``hidden_states``. A model may normalise the output of its last block; then
    the state of the last block is normalised too.
    """

    def __init__(self, network: Network) -> None:
        self._network = network
        self._depth = network.config.num_hidden_layers
        # The model's own list of its blocks, from which those above the highest state are taken
        # away; `_blocks` remembers all.
        self._running_blocks = _find_blocks(network, self._depth)
        self._blocks = list(self._running_blocks or ())
        # States that the present pass has to keep, by number; None until they are computed.
        self._states: dict[int, Any] = {}
        for number, block in enumerate(self._blocks, 1):
            block.register_forward_hook(self._output_hook(number))
        if self._blocks:
            self._blocks[0].register_forward_pre_hook(self._note_input, with_kwargs=True)

    def __call__(
        self, layers: Collection[int], **inputs: "torch.Tensor"
    ) -> "dict[int, torch.Tensor]":
        """Returns the hidden states of these numbers; `inputs` are those of the network."""
        if self._running_blocks is None:  # a model that runs one block several times
            states = self._network(**inputs, output_hidden_states=True).hidden_states
            return {layer: states[layer] for layer in layers}
        depth = max(1, *layers)
        if len(self._running_blocks) != depth:
            del self._running_blocks[:]
            self._running_blocks.extend(self._blocks[:depth])
        self._states = dict.fromkeys(layers)
        try:
            result = self._network(**inputs)
            if self._depth in layers:
                self._states[self._depth] = result.last_hidden_state
            return self._states
        finally:
            # Frees the states. After an error too: memory may have run out.
            self._states = {}

    def _note_input(self, _module: object, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Notes the input of the first block."""
        if 0 in self._states:
            self._states[0] = args[0] if args else kwargs["hidden_states"]

    def _output_hook(self, number: int) -> Callable[..., None]:
        """Makes a function that notes the output of a block."""

        def note(_module: object, _args: object, output: Any) -> None:
            if number in self._states:
                self._states[number] = output[0] if isinstance(output, tuple) else output

        return note


def _find_blocks(network: Network, depth: int) -> "torch.nn.ModuleList | None":
    """Returns the list of a network that holds its `depth` blocks; None where there is none."""
    import torch

    for module in network.modules():
        if not isinstance(module, torch.nn.ModuleList) or len(module) != depth:
            continue
        if not isinstance(module[0], torch.nn.ModuleList):
            return module
    return None


class EncoderNetwork(LoadedModel):
    """A loaded encoder, its tokenizers, and a cache of encoded texts.

    Args:
        model: folder, name of a bundled artifact, or Hub repository.
        revision: Hub revision.
        cache_bytes: bound of the cache for each reading; with 0, a pass gives the vectors of one
            reader only.
        **running: keywords of `mtmetrics.models.running.Running`.

    Attributes:
        counts: ``requested`` and ``computed`` texts; ``tokens`` and ``padded_tokens`` that were
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
        self.language_tokenizers = language_tokenizers(self.folder)
        self.config = network.config
        self._runner = self.on_devices(network, self.tokenizer.pad_token_id or 0)
        self._runner.replicas = [
            (LayerStates(copy), device) for copy, device in self._runner.replicas
        ]
        # The key of a text that was cut also holds the number of tokens at which it was cut.
        self._cache: TextCache[tuple[TextKey, Reading, int | None], EncodedText]
        self._cache = TextCache(0, lambda encoded: encoded.vectors.nbytes)
        self._cache_bytes = cache_bytes
        self.counts = SimpleNamespace(requested=0, computed=0, tokens=0, padded_tokens=0)
        self._readers: weakref.WeakSet[Reader] = weakref.WeakSet()
        # A reader may be made in one thread while another one encodes.
        self._readers_lock = threading.Lock()

    @functools.cached_property
    def word_table(self) -> np.ndarray:
        """(V,) bool table of tokens, see `mtmetrics.models.text_units.word_table`."""
        return word_table(self.tokenizer)

    def join(self, reader: Reader) -> None:
        """Lets passes give the vectors of one more reader, as long as the reader exists."""
        with self._readers_lock:
            self._readers.add(reader)
            readings = {reading for each in self._readers for reading in each.readings}
        self._cache.limit = self._cache_bytes * len(readings)

    def cached(self, key: TextKey, reader: Reader) -> list[EncodedText] | None:
        """Returns a text from the cache, with the vectors of each reading of a reader; None where
        those of one reading are missing."""
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
        """Runs texts through the layers once. Caches the vectors for all readers.

        Args:
            keys: by which the cache finds the texts.
            texts: as the reader's tokenizer made them, without vectors.
            reader: wants the vectors now.
            keep: is called with the vectors of each text and reading of the reader; it refuses
                vectors that are not finite.

        Returns:
            The number of padded tokens that were computed.
        """
        readers = self._readers_with(reader)
        readings = list(dict.fromkeys(reading for each in readers for reading in each.readings))
        layers = sorted({layer for reading in readings for layer in reading.layers})
        to_cache = _VectorsToCache(reader, readers, self._cache.limit if self._cache_bytes else 0)

        def compute(
            network: LayerStates, ids: "torch.Tensor", mask: "torch.Tensor", indices: list[int]
        ) -> None:
            states = network(layers, input_ids=ids, attention_mask=mask)
            for reading in readings:
                batch = reading.vectors_from(states).float().cpu().numpy()
                for index, row in zip(indices, batch, strict=True):
                    text = texts[index]
                    vectors = row[: len(text.token_ids)]
                    if reading.mean:
                        vectors = vectors.mean(0, keepdims=True)
                    if reading in reader.readings:
                        keep(index, reading, vectors)
                    to_cache.add(index, reading, text, vectors)

        padded_tokens = self._runner.run([text.token_ids for text in texts], compute)
        for index, reading, vectors in to_cache.in_order():
            if reading in reader.readings or np.isfinite(vectors).all():
                self._put(keys[index], reading, texts[index]._replace(vectors=vectors), reader)
        return padded_tokens

    def forget(self) -> None:
        """Empties the cache, so that the batches of the next texts do not depend on earlier texts."""
        self._cache.clear()

    def _readers_with(self, reader: Reader) -> list[Reader]:
        """Returns a reader and, where a cache can keep their vectors, all others."""
        if not self._cache_bytes:
            return [reader]
        with self._readers_lock:
            return [reader, *(each for each in self._readers if each is not reader)]

    def _put(self, key: TextKey, reading: Reading, text: EncodedText, reader: Reader) -> None:
        """Keeps a text in the cache; where it was cut, only for readers with the same limit."""
        limit = reader.max_length if text.is_truncated else None
        self._cache.put((key, reading, limit), text)


class _VectorsToCache:
    """The vectors of a pass that the cache should keep.

    Args:
        reader: wants the vectors of the pass now; its limit cuts the texts.
        readers: all readers for whom the pass computes vectors.
        free_bytes: bound of the vectors; 0 where no cache is wanted.
    """

    def __init__(self, reader: Reader, readers: Sequence[Reader], free_bytes: int) -> None:
        self._reader = reader
        self._is_wanted = free_bytes > 0
        self._free_bytes = free_bytes
        # Reading -> the limits of the readers that want it.
        self._limits: dict[Reading, set[int]] = {}
        for each in readers:
            for reading in each.readings:
                self._limits.setdefault(reading, set()).add(each.max_length)
        self._vectors: dict[tuple[int, Reading], np.ndarray] = {}

    def add(self, index: int, reading: Reading, text: EncodedText, vectors: np.ndarray) -> None:
        """Keeps the vectors of a text, if a reader can use them and there is room."""
        if not self._is_wanted or not self._is_useful(text, reading):
            return
        # The mean of a text is small and always finds room.
        if not reading.mean:
            if vectors.nbytes > self._free_bytes:
                return
            self._free_bytes -= vectors.nbytes
        self._vectors[index, reading] = vectors.copy()

    def in_order(self) -> Iterator[tuple[int, Reading, np.ndarray]]:
        """Yields index of the text, reading and vectors. The last ones stay longest in the cache:
        small means, and vectors that nobody got yet."""

        def order(key: tuple[int, Reading]) -> tuple[bool, bool]:
            _, reading = key
            return reading.mean, reading not in self._reader.readings

        for index, reading in sorted(self._vectors, key=order):
            yield index, reading, self._vectors[index, reading]

    def _is_useful(self, text: EncodedText, reading: Reading) -> bool:
        """Whether a reader that wants this reading cuts the text at the same place."""
        limits = self._limits[reading]
        if not text.is_truncated and len(text.token_ids) <= max(limits):
            return True
        return self._reader.max_length in limits
