"""A loaded encoder that several readers share, and its forward passes.

A `Reader`, such as a `TokenEncoder`, wants vectors of one layer, or of a weighted sum of layers; a
`VectorSpec` says which. One pass of a text through an `EncoderNetwork` computes the vectors for all
its readers. A cache keeps them, also for readers that will read this text later.
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
from mtmetrics.models.text_units import require_fast_tokenizer, word_table

if TYPE_CHECKING:
    import torch


class TextKey(NamedTuple):
    """Key of a text in the cache.

    Attributes:
        text: the text, or its words.
        language: language of the tokenizer; None for the model's default tokenizer.
    """

    text: str | tuple[str, ...]
    language: str | None


class EncodedText(NamedTuple):
    """The tokens of a text, and its vectors for one `VectorSpec`.

    Attributes:
        vectors: (n, d) float32, one per token; (1, d) if the spec is a mean; (0, d) before they are
            computed.
        token_ids: (n,) int64.
        word_positions: (n,) int64 position of the word that a token belongs to, -1 for special
            tokens.
        is_truncated: whether the text was truncated.
        token_type: type of all its tokens, for encoders that tell languages apart by it.
    """

    vectors: np.ndarray
    token_ids: np.ndarray
    word_positions: np.ndarray
    is_truncated: bool
    token_type: int = 0


class VectorSpec(NamedTuple):
    """Kind of vectors that a reader wants: the weighted sum of some layers.

    "Layer k" is the hidden state after block k of the encoder, "layer 0" the embeddings.

    Attributes:
        layer_weights: pairs of a layer and its weight, in ascending order of the layers.
        is_mean: whether a text has one vector, the mean over all its tokens, instead of one per
            token.
    """

    layer_weights: tuple[tuple[int, float], ...]
    is_mean: bool = False

    @classmethod
    def from_layer(cls, layer: int) -> "VectorSpec":
        """Returns the spec for the vectors of one layer."""
        return cls(((layer, 1.0),))

    @classmethod
    def from_mix(cls, weights: Sequence[float]) -> "VectorSpec":
        """Returns the spec for a weighted sum of the layers 1, 2, and so on. Layers of weight 0 are
        left out; at least one weight must not be 0."""
        return cls(
            tuple((layer, float(weight)) for layer, weight in enumerate(weights, 1) if weight)
        )

    @property
    def layers(self) -> list[int]:
        """Layers in the sum."""
        return [layer for layer, _ in self.layer_weights]

    def vectors_from(self, states: "dict[int, torch.Tensor]") -> "torch.Tensor":
        """Computes the (B, T, d) weighted sum from the hidden states of a pass, layer -> (B, T, d)."""
        import torch

        if len(self.layer_weights) == 1:
            [(layer, weight)] = self.layer_weights
            if weight == 1:
                return states[layer]
        # In place: separate products would take as much memory as all layers again.
        total = torch.zeros_like(next(iter(states.values())))
        for layer, weight in self.layer_weights:
            total.add_(states[layer], alpha=weight)
        return total


class Reader(Protocol):
    """A consumer of vectors from a shared network, such as a `TokenEncoder`.

    Attributes:
        vector_specs: kinds of vectors that it wants.
        max_length: highest number of tokens of a text; longer texts are truncated.
    """

    vector_specs: list[VectorSpec]
    max_length: int


# A function (index, spec, vectors) that receives the vectors of the text at an index. It raises an error
# if they are not finite. It copies the vectors, because they are part of an array of the whole batch.
# With several devices, calls run at the same time; after memory ran out, a text may come again.
VectorCallback = Callable[[int, VectorSpec, np.ndarray], None]


class PartialEncoder:
    """Runs a `transformers` encoder up to the highest layer that is needed.

    Layers are numbered as in the ``hidden_states`` of `transformers`. If the model normalises the
    output of its last block, the last layer is normalised too. Passes must not overlap: the states of
    the present pass are kept here.
    """

    def __init__(self, network: Network) -> None:
        self._network = network
        self._depth = network.config.num_hidden_layers
        # The list of blocks inside the model, which is cut to the blocks that are needed. `_blocks`
        # keeps all of them. None for a model that always runs as a whole.
        self._running_blocks = _find_blocks(network, self._depth)
        self._blocks = list(self._running_blocks or ())
        # Layers that the current pass has to keep; the values are None until they are computed.
        self._states: dict[int, Any] = {}
        for number, block in enumerate(self._blocks, 1):
            block.register_forward_hook(self._output_hook(number))
        if self._blocks:
            self._blocks[0].register_forward_pre_hook(self._record_input, with_kwargs=True)

    def __call__(
        self, layers: Collection[int], **inputs: "torch.Tensor"
    ) -> "dict[int, torch.Tensor]":
        """Returns the hidden states of some layers; `inputs` are those of the network."""
        if self._running_blocks is None:
            states = self._network(**inputs, output_hidden_states=True).hidden_states
            return {layer: states[layer] for layer in layers}
        block_count = max(1, *layers)  # for layer 0 too: the first block records its input
        if len(self._running_blocks) != block_count:
            del self._running_blocks[:]
            self._running_blocks.extend(self._blocks[:block_count])
        self._states = dict.fromkeys(layers)
        try:
            result = self._network(**inputs)
            if self._depth in layers:
                self._states[self._depth] = result.last_hidden_state
            if all(state is not None for state in self._states.values()):
                return self._states
        finally:
            # Frees the memory of the states, also after an error: memory may have run out.
            self._states = {}
        # A state is missing: the network calls the `forward` of its blocks, which skips the hooks, as
        # SqueezeBERT does. From now on it runs as a whole.
        self._running_blocks.extend(self._blocks[block_count:])
        self._running_blocks = None
        return self(layers, **inputs)

    def _record_input(self, _module: object, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Records the input of the first block, layer 0."""
        if 0 in self._states:
            self._states[0] = args[0] if args else kwargs["hidden_states"]

    def _output_hook(self, number: int) -> Callable[..., None]:
        """Makes a function that records the output of a block."""

        def record(_module: object, _args: object, output: Any) -> None:
            if number in self._states:
                self._states[number] = output[0] if isinstance(output, tuple) else output

        return record


def _find_blocks(network: Network, depth: int) -> "torch.nn.ModuleList | None":
    """Finds the list of the `depth` blocks in a network.

    Returns None if it has no such list: ALBERT runs one block several times, and XLM has a list for
    each part of its blocks.
    """
    import torch

    for parent in network.modules():
        lists = [
            child
            for child in parent.children()
            if isinstance(child, torch.nn.ModuleList)
            and len(child) == depth
            and not isinstance(child[0], torch.nn.ModuleList)
        ]
        if lists:
            return lists[0] if len(lists) == 1 else None
    return None


class EncoderNetwork(LoadedModel):
    """A loaded encoder, its tokenizers, and a cache of encoded texts.

    Readers may be registered in any thread, but only one thread at a time may encode.

    Args:
        model: folder, name of a bundled artifact, or Hub repository.
        revision: Hub revision.
        cache_bytes: bytes of the cache for each `VectorSpec` of the registered readers; one spec may
            fill the bytes of all. With 0, a pass computes the vectors of one reader only.
        **run_options: keywords of `mtmetrics.models.running.Running`, such as ``device``.

    Attributes:
        tokenizer: the default tokenizer.
        language_tokenizers: language -> its own tokenizer, empty for most models.
        config: configuration of the network.
        counts: statistics, which the readers update: how many texts were ``requested``, how many of
            them had to be ``computed``, and the tokens of the computed texts, without padding
            (``tokens``) and with it (``padded_tokens``).
    """

    def __init__(
        self,
        model: str | Path,
        *,
        revision: str | None = None,
        cache_bytes: int = 128 * 2**20,
        **run_options: Any,
    ) -> None:
        super().__init__("encoder", model, revision, run_options)
        from mtmetrics.models.plain_networks import load_network

        self.tokenizer = pretrained_tokenizer(self.folder)
        require_fast_tokenizer(self.tokenizer, self.description)
        network = load_network("AutoModel", self.folder, torch_dtype(self.dtype))
        self.language_tokenizers = language_tokenizers(self.folder)
        self.config = network.config
        self._runner = self.on_devices(network, self.tokenizer.pad_token_id or 0)
        self._runner.replicas = [
            (PartialEncoder(replica), device) for replica, device in self._runner.replicas
        ]
        # A key holds everything that the tokens and vectors of a text depend on. It ends in the token
        # limit at which the text was truncated, or in None for a whole text.
        self._cache: TextCache[tuple[TextKey, VectorSpec, int | None], EncodedText]
        self._cache = TextCache(0, lambda encoded: encoded.vectors.nbytes)
        self._cache_bytes = cache_bytes
        self.counts = SimpleNamespace(requested=0, computed=0, tokens=0, padded_tokens=0)
        self._readers: weakref.WeakSet[Reader] = weakref.WeakSet()
        # A reader may be made in one thread while another one encodes.
        self._readers_lock = threading.Lock()

    @functools.cached_property
    def word_table(self) -> np.ndarray:
        """(V,) bool, true for the tokens that the word filter of XMoverScore keeps, see
        `mtmetrics.models.text_units.word_table`."""
        return word_table(self.tokenizer)

    def register(self, reader: Reader) -> None:
        """Adds a reader: all later passes also compute its vectors, as long as the reader exists. Fits
        the size of the cache to the readers that exist now."""
        with self._readers_lock:
            self._readers.add(reader)
            specs = {spec for other in self._readers for spec in other.vector_specs}
            self._cache.limit = self._cache_bytes * len(specs)

    def cached(self, key: TextKey, reader: Reader) -> list[EncodedText] | None:
        """Returns a text from the cache, once for each `VectorSpec` of a reader.

        Returns None if one of them is missing.
        """
        texts = []
        for spec in reader.vector_specs:
            text = self._cache.get((key, spec, None))
            if text is None or len(text.token_ids) > reader.max_length:
                # The whole text is missing, or too long for this reader.
                text = self._cache.get((key, spec, reader.max_length))
            if text is None:
                return None
            texts.append(text)
        return texts

    def compute_vectors(
        self,
        keys: Sequence[TextKey],
        tokenised_texts: Sequence[EncodedText],
        reader: Reader,
        deliver: VectorCallback,
    ) -> int:
        """Runs texts through the layers once. Delivers the vectors to a reader, and caches the vectors
        for all readers. A text without tokens is skipped.

        Args:
            keys: keys of the texts in the cache.
            tokenised_texts: the texts without vectors, truncated at the reader's limit.
            reader: the reader that wants the vectors now.
            deliver: receives the vectors of each text, for each `VectorSpec` of the reader.

        Returns:
            The number of computed tokens, padding included.
        """
        readers = self._readers_with(reader)
        specs = list(dict.fromkeys(spec for other in readers for spec in other.vector_specs))
        layers = sorted({layer for spec in specs for layer in spec.layers})
        candidates = _CacheCandidates(reader, readers, self._cache.limit)

        def compute(
            network: PartialEncoder, ids: "torch.Tensor", mask: "torch.Tensor", indices: list[int]
        ) -> None:
            types = [tokenised_texts[index].token_type for index in indices]
            inputs = {"input_ids": ids, "attention_mask": mask}
            if any(types):
                inputs["token_type_ids"] = ids.new_tensor(types)[:, None].expand_as(ids)
            states = network(layers, **inputs)
            for spec in specs:
                batch_vectors = spec.vectors_from(states).float().cpu().numpy()
                for index, padded_vectors in zip(indices, batch_vectors, strict=True):
                    text = tokenised_texts[index]
                    vectors = padded_vectors[: len(text.token_ids)]
                    if spec.is_mean:
                        vectors = vectors.mean(0, keepdims=True)
                    if spec in reader.vector_specs:
                        deliver(index, spec, vectors)
                    candidates.add(index, spec, text, vectors)

        padded_tokens = self._runner.run([text.token_ids for text in tokenised_texts], compute)
        for index, spec, vectors in candidates.by_priority():
            # `deliver` has checked the vectors of this reader, but not those of others.
            if spec in reader.vector_specs or np.isfinite(vectors).all():
                text = tokenised_texts[index]._replace(vectors=vectors)
                truncated_at = reader.max_length if text.is_truncated else None
                self._cache.put((keys[index], spec, truncated_at), text)
        return padded_tokens

    def clear_cache(self) -> None:
        """Empties the cache. All next texts are computed, so that their batches, and with them the last
        digits of their vectors, do not depend on earlier texts."""
        self._cache.clear()

    def _readers_with(self, reader: Reader) -> list[Reader]:
        """Returns a reader and, if there is a cache for their vectors, all other readers."""
        if not self._cache_bytes:
            return [reader]
        with self._readers_lock:
            return [reader, *(other for other in self._readers if other is not reader)]


class _CacheCandidates:
    """Collects the vectors of a pass for the cache.

    A pass may compute more than the cache can hold. The token vectors are therefore limited to the
    size of the cache (means are small, and not counted), and candidates enter it in order of their
    use: the cache drops the oldest entries first.

    Args:
        reader: the reader that wants the vectors now; the texts are truncated at its limit.
        readers: all readers for whom the pass computes vectors.
        byte_budget: largest total size of the token vectors; 0 if there is no cache.
    """

    def __init__(self, reader: Reader, readers: Sequence[Reader], byte_budget: int) -> None:
        self._reader = reader
        self._byte_budget = byte_budget
        self._used_bytes = 0
        # The token limits of the readers of each spec.
        self._limits: dict[VectorSpec, set[int]] = {}
        for other in readers:
            for spec in other.vector_specs:
                self._limits.setdefault(spec, set()).add(other.max_length)
        self._vectors: dict[tuple[int, VectorSpec], np.ndarray] = {}
        # With several devices, batches run at the same time.
        self._lock = threading.Lock()

    def add(self, index: int, spec: VectorSpec, text: EncodedText, vectors: np.ndarray) -> None:
        """Keeps the vectors of a text, if a reader can use them and there is room.

        A text that comes again, after memory ran out, is kept once.
        """
        if not self._byte_budget or not self._is_useful(text, spec):
            return
        with self._lock:
            if (index, spec) in self._vectors:
                return
            # The mean of a text is small and always has room.
            if not spec.is_mean:
                if self._used_bytes + vectors.nbytes > self._byte_budget:
                    return
                self._used_bytes += vectors.nbytes
            self._vectors[index, spec] = vectors.copy()

    def by_priority(self) -> Iterator[tuple[int, VectorSpec, np.ndarray]]:
        """Yields the index of a text, a spec, and the vectors; the most useful vectors come last.

        Means come after token vectors, because they are small. Vectors for other readers come after
        those of this reader, which has received its vectors already.
        """

        def priority(key: tuple[int, VectorSpec]) -> tuple[bool, bool]:
            _, spec = key
            is_for_others = spec not in self._reader.vector_specs
            return spec.is_mean, is_for_others

        for index, spec in sorted(self._vectors, key=priority):
            yield index, spec, self._vectors[index, spec]

    def _is_useful(self, text: EncodedText, spec: VectorSpec) -> bool:
        """Whether a reader of this spec would tokenise the text into the same tokens."""
        limits = self._limits[spec]
        if not text.is_truncated and len(text.token_ids) <= max(limits):
            return True
        return self._reader.max_length in limits
