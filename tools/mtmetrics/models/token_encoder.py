"""Token vectors of texts, from one layer of a transformer encoder or a mix of its layers.

A `TokenEncoder` tokenises texts, has its `EncoderNetwork` compute those that the cache lacks, and
packs the vectors.
"""

import copy
import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mtmetrics.artifacts.models import NetworkConfig, Tokenizer
from mtmetrics.checks import positive
from mtmetrics.errors import InputError, MTMetricsError
from mtmetrics.models.devices import warn_of_slow_dtype
from mtmetrics.models.encoder_network import EncodedText, EncoderNetwork, Reading, TextKey
from mtmetrics.models.packed import Language, Level, PackedTokens, distinct
from mtmetrics.models.text_units import TextUnits, text_words


class TokenEncoder:
    """Encodes each distinct text once and keeps no padding.

    Texts run in batches of like length through the layers that are used, and no further. Texts
    longer than the model's limit are cut there, special tokens kept, and marked as truncated. A
    model's folder may hold tokenizers of single languages, such as ``languages/en/tokenizer.json``;
    texts in all other languages are read with the usual one.

    Args:
        model: folder, name of a bundled artifact, or Hub repository of any `transformers` encoder;
            or a loaded `EncoderNetwork`.
        layer: hidden state to return; 0 is the embedding layer, None the last layer.
        mix: instead of one layer, (C, layers) weights over all layers but the embeddings: a vector
            is then C weighted sums of them, one after the other, all from one pass. An identity
            matrix returns every layer.
        max_pieces: texts are cut at that many word pieces, special tokens not counted, where the
            model reads more.
        **opening: how the model is loaded, if it is not yet: its Hub `revision`; `cache_bytes`, the
            bound of the cache of encoded texts in memory, for each layer or sum that is read (with
            0, no pass is shared); and the keywords of `mtmetrics.models.running.Running`. Of several
            devices each gets a copy and its share of the batches.

    Raises:
        InputError: an unknown layer, device or dtype, a mix of another number of layers, or a batch
            size below 1.
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
        **opening: Any,
    ) -> None:
        if not isinstance(model, EncoderNetwork):
            model = EncoderNetwork(model, **opening)
            warn_of_slow_dtype(model.running.dtype, model.running.device)
        self._network = model
        self.name, self.label, self.fingerprint = model.name, model.label, model.fingerprint
        self.dtype = model.dtype
        self.tokenizer = model.tokenizer
        self.vocabulary_size = len(self.tokenizer)
        self.counts = model.counts
        self.level: Level = "word"
        depth: int = model.config.num_hidden_layers
        self.depth: int | None = depth
        self.layer: int | None = self._checked_layer(layer, depth)
        self.mix = None if mix is None else np.asarray(mix, dtype=np.float64)
        if self.mix is None:
            self.readings = [Reading(self.layer)]
        else:
            self._check_mix(self.mix, layer, depth)
            self.readings = [Reading.of_weights(row) for row in self.mix]
        self.dim: int = model.config.hidden_size * len(self.readings)
        self.max_length = _max_length(self.tokenizer, model.config)
        if max_pieces is not None:
            special_tokens = self.tokenizer.num_special_tokens_to_add()
            limit = positive("max_pieces", max_pieces) + special_tokens
            self.max_length = min(self.max_length, limit)
        model.join(self)

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

    def at(
        self,
        *,
        layer: int | None = None,
        mix: np.ndarray | None = None,
        max_pieces: int | None = None,
    ) -> "TokenEncoder":
        """Returns an encoder that reads another layer or mix of the same loaded model.

        While both are in use, one pass of a text gives the vectors of both; the cache keeps those
        of the other one.
        """
        return TokenEncoder(self._network, layer=layer, mix=mix, max_pieces=max_pieces)

    def means(self) -> "TokenEncoder":
        """Returns an encoder with one vector for each text: the mean of all its tokens, special
        tokens included."""
        sentence_encoder = copy.copy(self)
        sentence_encoder.readings = [reading._replace(mean=True) for reading in self.readings]
        sentence_encoder.level = "sentence"
        self._network.join(sentence_encoder)
        return sentence_encoder

    def forget(self) -> None:
        """Empties the cache in memory, see `EncoderNetwork.forget`."""
        self._network.forget()

    @property
    def word_table(self) -> np.ndarray:
        """(V,) bool, true for the tokens that the published word filter keeps."""
        return self._network.word_table

    def tokenizer_for(self, language: str | None) -> Tokenizer:
        """Returns the tokenizer of texts in a language.

        Raises:
            InputError: the tokenizer depends on the language, and it is None.
        """
        tokenizers = self._network.language_tokenizers
        if tokenizers and language is None:
            reads = f"encoder {self.name} reads {' '.join(tokenizers)} with a vocabulary of its own"
            raise InputError(
                f"lang_pair is missing; {reads}: pass lang_pair=, such as 'de-en'",
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
        """Returns packed vectors of N texts, special tokens included; equal texts share theirs.

        Args:
            texts: N texts.
            language: of all texts, or of each; needed where the model has tokenizers of single
                languages.
        """
        return self._encode(texts, language)

    def encode_words(
        self, sentences: Sequence[Sequence[str]], language: Language = None
    ) -> PackedTokens:
        """Encodes sentences that are split into words already; see `encode`. `PackedTokens.words`
        counts these words."""
        return self._encode([tuple(words) for words in sentences], language)

    def _encode(self, texts: Sequence[str | tuple[str, ...]], language: Language) -> PackedTokens:
        keys, index = distinct(self._keys(texts, language))
        # One text with the vectors of each reading.
        cached: dict[TextKey, list[EncodedText]] = {}
        new: list[TextKey] = []
        for key in keys:
            cached_text = self._network.cached(key, self)
            if cached_text is None:
                new.append(key)
            else:
                cached[key] = cached_text
        self.counts.requested += len(texts)
        self.counts.computed += len(new)
        texts_by_key = dict(zip(new, self._tokenise(new), strict=True))
        texts_by_key |= {key: by_reading[0] for key, by_reading in cached.items()}
        packed = self._unfilled([texts_by_key[key] for key in keys], index)
        # Views of the packed vectors, to be filled.
        rows = {key: packed.vectors[packed.rows(text)] for text, key in enumerate(keys)}
        for key, by_reading in cached.items():
            for columns, text in zip(self._columns, by_reading, strict=True):
                rows[key][:, columns] = text.vectors
        self._fill(new, [texts_by_key[key] for key in new], [rows[key] for key in new])
        return packed

    def _keys(self, texts: Sequence[str | tuple[str, ...]], language: Language) -> list[TextKey]:
        """Returns each text with the language of its tokenizer, None for the usual tokenizer."""
        tokenizers = self._network.language_tokenizers
        if not tokenizers:
            return [TextKey(text, None) for text in texts]
        if language is None or isinstance(language, str):
            languages: Sequence[str | None] = [language] * len(texts)
        else:
            languages = language
        for name in set(languages):
            self.tokenizer_for(name)  # refuses texts of an unknown language
        return [
            TextKey(text, name if name in tokenizers else None)
            for text, name in zip(texts, languages, strict=True)
        ]

    @property
    def _columns(self) -> list[slice]:
        """Columns of a vector that each reading fills."""
        width = self.dim // len(self.readings)
        return [slice(first, first + width) for first in range(0, self.dim, width)]

    def _unfilled(self, texts: list[EncodedText], index: np.ndarray) -> PackedTokens:
        """Packs texts, token by token or one row for each text, with vectors that are not filled
        in yet."""
        truncated = np.array([text.is_truncated for text in texts], dtype=bool)
        if self.level == "sentence":
            vectors = np.empty((len(texts), self.dim), dtype=np.float32)
            return PackedTokens.from_texts(vectors, index, truncated)
        ids = [text.token_ids for text in texts]
        words = [text.words for text in texts]
        vectors = np.empty((sum(map(len, ids)), self.dim), dtype=np.float32)
        return PackedTokens.from_tokens(vectors, ids, words, index, truncated)

    def _tokenise(self, keys: list[TextKey]) -> Iterator[EncodedText]:
        """Yields the texts without vectors, in order.

        Texts of one tokenizer and kind that follow each other are tokenised in one call.
        """
        no_vectors = np.zeros((0, self.dim), dtype=np.float32)
        groups = itertools.groupby(keys, lambda key: (key.language, type(key.text)))
        for (language, kind), group in groups:
            tokenizer = self.tokenizer
            if language is not None:
                tokenizer = self._network.language_tokenizers[language]
            is_split = kind is not str
            encoded = tokenizer(
                [list(key.text) if is_split else key.text for key in group],
                truncation=True,
                max_length=self.max_length,
                is_split_into_words=is_split,
            )
            for index, ids in enumerate(encoded["input_ids"]):
                words = [-1 if word is None else word for word in encoded.word_ids(index)]
                is_truncated = bool(encoded.encodings[index].overflowing)
                yield EncodedText(
                    vectors=no_vectors,
                    token_ids=np.array(ids, dtype=np.int64),
                    words=np.array(words, dtype=np.int64),
                    is_truncated=is_truncated,
                )

    def _fill(self, keys: list[TextKey], texts: list[EncodedText], rows: list[np.ndarray]) -> None:
        """Computes the vectors of texts that are tokenised, and writes them into their rows."""
        columns_of: dict[Reading, list[slice]] = {}
        for columns, reading in zip(self._columns, self.readings, strict=True):
            columns_of.setdefault(reading, []).append(columns)

        def keep(index: int, reading: Reading, vectors: np.ndarray) -> None:
            if not np.isfinite(vectors).all():
                raise MTMetricsError(
                    f"encoder {self.name}: layer {self.layer} overflows in {self.dtype}; use "
                    "dtype='float32'",
                    option="encoder",
                    mentions=["dtype='float32'"],
                )
            for columns in columns_of[reading]:
                rows[index][:, columns] = vectors

        self.counts.tokens += sum(len(text.token_ids) for text in texts)
        self.counts.padded_tokens += self._network.run(keys, texts, self, keep)


def _max_length(tokenizer: Tokenizer, config: NetworkConfig) -> int:
    """Returns the number of tokens that a model can read at once."""
    positions = getattr(config, "max_position_embeddings", None)
    if positions is None:
        return int(tokenizer.model_max_length)
    if config.model_type in {"roberta", "xlm-roberta", "camembert", "mpnet", "xlm-roberta-xl"}:
        positions -= config.pad_token_id + 1  # their position numbers start behind the padding id
    return int(min(positions, tokenizer.model_max_length))
