"""Token vectors of texts, from one layer of a transformer encoder or a mix of its layers.

A `TokenEncoder` tokenises texts, has its `EncoderNetwork` compute the texts that are not in the cache,
and packs the vectors.
"""

import copy
import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mtmetrics.artifacts.models import NetworkConfig, Tokenizer
from mtmetrics.checks import positive
from mtmetrics.errors import InputError
from mtmetrics.models.devices import overflow_error, warn_of_slow_dtype
from mtmetrics.models.encoder_network import EncodedText, EncoderNetwork, TextKey, VectorSpec
from mtmetrics.models.packed import Language, Level, PackedTokens, distinct
from mtmetrics.models.text_units import TextUnits, text_words, tokenizer_limit

# Models whose first position is the one after the padding id, as in RoBERTa. The positions before it
# are never used.
_OFFSET_MODEL_TYPES = {
    "roberta",
    "xlm-roberta",
    "camembert",
    "mpnet",
    "xlm-roberta-xl",
    "roberta-prelayernorm",
    "data2vec-text",
    "longformer",
    "xmod",
    "ibert",
    "luke",
    "lilt",
    "layoutlmv3",
    "markuplm",
    "esm",
}


class TokenEncoder:
    """Turns texts into token vectors. Equal texts are encoded once.

    Texts of similar length run together, and only through the layers that are needed. Texts longer
    than the model's limit are truncated, but keep their special tokens. A model's folder may hold
    tokenizers for single languages, such as ``languages/en/tokenizer.json``. Then the language of
    each text must be named; texts in languages without a tokenizer get the default one.

    `mtmetrics.models.packed.WordEncoder` describes the attributes that all encoders have.

    Args:
        model: folder, name of a bundled artifact, or Hub repository of any `transformers` encoder;
            or a loaded `EncoderNetwork`.
        layer: hidden state to return; 0 is the embedding layer, None the last layer.
        mix: instead of a layer, (C, layers) weights of all layers but the embeddings. A vector is
            then the concatenation of C weighted sums of layers. An identity matrix returns every
            layer.
        max_pieces: highest number of word pieces of a text, special tokens not counted, if the
            model's own limit is not lower.
        **load_options: options for loading `model`, ignored for a loaded `EncoderNetwork`: its Hub
            `revision`; `cache_bytes`, the size of the cache of encoded texts for each layer or sum
            (with 0, encoders that share the model do not share its passes); and the keywords of
            `mtmetrics.models.running.Running`. With several devices, each gets a copy of the model
            and its share of the batches.

    Attributes:
        tokenizer: the default tokenizer.
        layer: the layer; the last one with a `mix`.
        mix: (C, layers) float64 weights, or None.
        level: ``"word"``; ``"sentence"`` for an encoder that `means` made.
        vector_specs: the kinds of vectors that it wants from the network, one per layer or sum.
        max_length: highest number of tokens of a text, special tokens included.
        counts: ``requested`` and ``computed`` texts, ``tokens`` and ``padded_tokens``, over all
            encoders that share the network. Repeated texts count as requested, but are computed once.

    Raises:
        InputError: an unknown layer, device or dtype, a mix with the wrong number of layers, or a
            batch size below 1.
        ArtifactError: the model cannot be found or loaded.
        MTMetricsError: the model does not fit into memory.
    """

    def __init__(
        self,
        model: str | Path | EncoderNetwork,
        *,
        layer: int | None = None,
        mix: np.ndarray | None = None,
        max_pieces: int | None = None,
        **load_options: Any,
    ) -> None:
        if isinstance(model, EncoderNetwork):
            network = model
        else:
            network = EncoderNetwork(model, **load_options)
            warn_of_slow_dtype(network.run_options.dtype, network.run_options.device)
        self._network = network
        self.name, self.label, self.fingerprint = network.name, network.label, network.fingerprint
        self.dtype = network.dtype
        self.tokenizer = network.tokenizer
        self.vocabulary_size = len(self.tokenizer)
        self.counts = network.counts
        self.level: Level = "word"
        depth: int = network.config.num_hidden_layers
        self.depth: int | None = depth
        self.layer: int | None = self._checked_layer(layer, depth)
        self.mix = None if mix is None else np.asarray(mix, dtype=np.float64)
        if self.mix is None:
            self.vector_specs = [VectorSpec.from_layer(self.layer)]
        else:
            self._check_mix(self.mix, layer, depth)
            self.vector_specs = [VectorSpec.from_mix(row) for row in self.mix]
        self.dim: int = network.config.hidden_size * len(self.vector_specs)
        self.max_length = _max_length(self.tokenizer, network.config)
        if max_pieces is not None:
            special_tokens = self.tokenizer.num_special_tokens_to_add()
            limit = positive("max_pieces", max_pieces) + special_tokens
            self.max_length = min(self.max_length, limit)
        network.register(self)

    def _checked_layer(self, layer: int | None, depth: int) -> int:
        if layer is None:
            return depth
        if isinstance(layer, bool) or not isinstance(layer, int) or not 0 <= layer <= depth:
            raise InputError(
                f"layer {layer!r}: {self.name} has the layers 0 (embeddings) to {depth}",
                option="layer",
            )
        return layer

    def _check_mix(self, mix: np.ndarray, layer: int | None, depth: int) -> None:
        if layer is not None or mix.ndim != 2 or mix.shape[1] != depth:
            raise InputError(
                f"mix: {self.name} needs rows of {depth} weights and no layer, got shape "
                f"{mix.shape} and layer {layer}",
                option="mix",
            )
        if not mix.any(axis=1).all():
            raise InputError("mix: each row needs a weight that is not 0", option="mix")

    def at(
        self,
        *,
        layer: int | None = None,
        mix: np.ndarray | None = None,
        max_pieces: int | None = None,
    ) -> "TokenEncoder":
        """Returns an encoder that reads another layer or mix of the same loaded model.

        It returns token vectors, also if this encoder comes from `means`, and does not take over
        `max_pieces`. While both are in use, one pass of a text computes the vectors of both; the cache
        keeps them until the other encoder wants them.
        """
        return TokenEncoder(self._network, layer=layer, mix=mix, max_pieces=max_pieces)

    def means(self) -> "TokenEncoder":
        """Returns an encoder with one vector per text: the mean of all its tokens, special tokens
        included. It shares the loaded model."""
        sentence_encoder = copy.copy(self)
        sentence_encoder.vector_specs = [spec._replace(is_mean=True) for spec in self.vector_specs]
        sentence_encoder.level = "sentence"
        self._network.register(sentence_encoder)
        return sentence_encoder

    def clear_cache(self) -> None:
        """Empties the cache in memory, see `EncoderNetwork.clear_cache`."""
        self._network.clear_cache()

    @property
    def word_table(self) -> np.ndarray:
        """(V,) bool, true for the tokens that the word filter of XMoverScore keeps."""
        return self._network.word_table

    def tokenizer_for(self, language: str | None) -> Tokenizer:
        """Returns the tokenizer for texts in a language.

        It is the default tokenizer for a language that has no tokenizer. A missing language may be
        one that has a tokenizer, so it is an error.

        Raises:
            InputError: the tokenizer depends on the language, but `language` is None.
        """
        tokenizers = self._network.language_tokenizers
        if tokenizers and language is None:
            reason = (
                f"encoder {self.name} reads {' '.join(tokenizers)} with a vocabulary of its own"
            )
            raise InputError(
                f"lang_pair is missing; {reason}: pass lang_pair=, such as 'de-en'",
                option="lang_pair",
                mentions=["lang_pair="],
            )
        return tokenizers.get(language or "", self.tokenizer)

    def text_words(
        self, text: str, language: str | None = None, *, pieces: bool = False
    ) -> TextUnits:
        """Returns the words of a text, or its pieces, see
        `mtmetrics.models.text_units.text_words`."""
        return text_words(self.tokenizer_for(language), text, self.max_length, pieces=pieces)

    def encode(self, texts: Sequence[str], language: Language = None) -> PackedTokens:
        """Returns the packed vectors of N texts, special tokens included; equal texts share rows.

        Args:
            texts: N texts.
            language: language of all texts, or one per text; needed if the model has tokenizers for
                single languages.

        Raises:
            InputError: a language is missing, see `tokenizer_for`.
            MTMetricsError: a text does not fit into memory, or the model overflows.
        """
        return self._encode(texts, language)

    def encode_words(
        self, sentences: Sequence[Sequence[str]], language: Language = None
    ) -> PackedTokens:
        """Encodes sentences that are split into words already, see `encode`.

        The `word_positions` of the result are positions among these words.
        """
        return self._encode([tuple(words) for words in sentences], language)

    def _encode(self, texts: Sequence[str | tuple[str, ...]], language: Language) -> PackedTokens:
        keys, index = distinct(self._keys(texts, language))
        # The cached texts, once for each kind of vectors.
        cached: dict[TextKey, list[EncodedText]] = {}
        uncached_keys: list[TextKey] = []
        for key in keys:
            cached_text = self._network.cached(key, self)
            if cached_text is None:
                uncached_keys.append(key)
            else:
                cached[key] = cached_text
        self.counts.requested += len(texts)
        self.counts.computed += len(uncached_keys)
        uncached_texts = list(self._tokenise(uncached_keys))
        texts_by_key = dict(zip(uncached_keys, uncached_texts, strict=True))
        texts_by_key |= {key: by_spec[0] for key, by_spec in cached.items()}
        packed = self._pack_empty([texts_by_key[key] for key in keys], index)
        # Views of the packed vectors, to be filled.
        rows = {key: packed.vectors[packed.rows(number)] for number, key in enumerate(keys)}
        for key, by_spec in cached.items():
            for columns, text in zip(self._columns, by_spec, strict=True):
                rows[key][:, columns] = text.vectors
        self._fill(uncached_keys, uncached_texts, [rows[key] for key in uncached_keys])
        return packed

    def _keys(self, texts: Sequence[str | tuple[str, ...]], language: Language) -> list[TextKey]:
        """Returns the key of each text. Its language is None for the default tokenizer."""
        tokenizers = self._network.language_tokenizers
        if not tokenizers:
            return [TextKey(text, None) for text in texts]
        if language is None or isinstance(language, str):
            languages: Sequence[str | None] = [language] * len(texts)
        else:
            languages = language
        for name in set(languages):
            self.tokenizer_for(name)  # refuses a language that is missing
        return [
            TextKey(text, name if name in tokenizers else None)
            for text, name in zip(texts, languages, strict=True)
        ]

    @property
    def _columns(self) -> list[slice]:
        """Columns of a vector that each of the `vector_specs` fills."""
        width = self.dim // len(self.vector_specs)
        return [slice(first, first + width) for first in range(0, self.dim, width)]

    def _pack_empty(self, texts: list[EncodedText], index: np.ndarray) -> PackedTokens:
        """Packs texts, a row per token or per text, with vectors that are not filled in yet."""
        truncated = np.array([text.is_truncated for text in texts], dtype=bool)
        if self.level == "sentence":
            # Zeros, because nothing fills the row of a text without tokens.
            vectors = np.zeros((len(texts), self.dim), dtype=np.float32)
            return PackedTokens.from_text_vectors(vectors, index, truncated)
        ids = [text.token_ids for text in texts]
        word_positions = [text.word_positions for text in texts]
        vectors = np.empty((sum(map(len, ids)), self.dim), dtype=np.float32)
        return PackedTokens.from_tokens(vectors, ids, word_positions, index, truncated)

    def _tokenise(self, keys: list[TextKey]) -> Iterator[EncodedText]:
        """Yields the texts without vectors, in order.

        Consecutive texts with one tokenizer are tokenised in one call. Sentences that are split into
        words need a separate call.
        """
        no_vectors = np.zeros((0, self.dim), dtype=np.float32)
        groups = itertools.groupby(keys, lambda key: (key.language, isinstance(key.text, tuple)))
        for (language, is_split), group in groups:
            tokenizer = self.tokenizer
            if language is not None:
                tokenizer = self._network.language_tokenizers[language]
            encoded = tokenizer(
                [list(key.text) if is_split else key.text for key in group],
                truncation=True,
                max_length=self.max_length,
                is_split_into_words=is_split,
            )
            for index, ids in enumerate(encoded["input_ids"]):
                word_positions = [-1 if word is None else word for word in encoded.word_ids(index)]
                encoding = encoded.encodings[index]
                # The types of the default tokenizer do not tell languages apart: they are for pairs of
                # texts.
                has_type = language is not None and len(ids) > 0
                yield EncodedText(
                    vectors=no_vectors,
                    token_ids=np.array(ids, dtype=np.int64),
                    word_positions=np.array(word_positions, dtype=np.int64),
                    is_truncated=bool(encoding.overflowing),
                    token_type=encoding.type_ids[0] if has_type else 0,
                )

    def _fill(self, keys: list[TextKey], texts: list[EncodedText], rows: list[np.ndarray]) -> None:
        """Computes the vectors of tokenised texts, and writes them into their rows."""
        # Rows of a mix may be equal; then one kind of vectors fills several columns.
        columns_by_spec: dict[VectorSpec, list[slice]] = {}
        for columns, spec in zip(self._columns, self.vector_specs, strict=True):
            columns_by_spec.setdefault(spec, []).append(columns)

        def write(index: int, spec: VectorSpec, vectors: np.ndarray) -> None:
            if not np.isfinite(vectors).all():
                layers = " + ".join(map(str, spec.layers))
                raise overflow_error(
                    f"encoder {self.name}: layer {layers}", self.dtype, option="encoder"
                )
            for columns in columns_by_spec[spec]:
                rows[index][:, columns] = vectors

        self.counts.tokens += sum(len(text.token_ids) for text in texts)
        self.counts.padded_tokens += self._network.compute_vectors(keys, texts, self, write)


def _max_length(tokenizer: Tokenizer, config: NetworkConfig) -> int:
    """Returns the number of tokens that a model can read at once."""
    limit = tokenizer_limit(tokenizer)
    positions = getattr(config, "max_position_embeddings", None)
    if positions is None:
        return limit
    if config.model_type in _OFFSET_MODEL_TYPES:
        positions -= config.pad_token_id + 1
    return int(min(positions, limit))
