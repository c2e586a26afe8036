"""Turns texts into packed token vectors: of one layer of a transformer encoder, or mixed from all
of them."""

import copy
import itertools
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mtmetrics._version import __version__
from mtmetrics.checks import positive
from mtmetrics.errors import InputError, MTMetricsError
from mtmetrics.models.cache import EmbeddingCache, EncodedText, ReadText
from mtmetrics.models.encoder_network import EncoderNetwork, Reading
from mtmetrics.models.packed import Language, Level, PackedTokens, distinct
from mtmetrics.models.text_units import TextUnits, text_words


class TokenEncoder:
    """Encodes each distinct text once and keeps no padding.

    Texts run in batches of like length through the layers that are used, and no further. Texts
    longer than the model's limit are cut there, special tokens kept, and marked as truncated. A
    folder may hold tokenizers of its own for some languages, as ``languages/en/tokenizer.json``;
    texts in all others are read with the usual one.

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
            0, no pass is shared); and the keywords of `mtmetrics.models.runner.Running`. Of several
            devices each gets a copy and its share of the batches.

    Raises:
        InputError: an unknown layer, device or dtype, a mix of another number of layers, or a batch
            size below 1.
        ArtifactError: the model cannot be found or loaded.
        MTMetricsError: the model does not fit into memory, or the embedding cache cannot be used.
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
        self._network = model
        self.name, self.label, self.fingerprint = model.name, model.label, model.fingerprint
        self.dtype = model.dtype
        self.tokenizer = model.tokenizer
        self.vocabulary_size = len(self.tokenizer)
        depth: int = model.config.num_hidden_layers
        self.depth: int | None = depth
        chosen = depth if layer is None else layer
        if isinstance(chosen, bool) or not isinstance(chosen, int) or not 0 <= chosen <= depth:
            raise InputError(
                f"layer {layer!r}: {self.name} has the layers 0 (embeddings) to {depth}",
                option="layer",
            )
        self.layer: int | None = chosen
        self.mix = None if mix is None else np.asarray(mix, dtype=np.float64)
        if self.mix is not None and (
            layer is not None or self.mix.ndim != 2 or self.mix.shape[1] != depth
        ):
            given = f"shape {self.mix.shape} and layer {layer}"
            raise InputError(
                f"mix: {self.name} needs rows of {depth} weights and no layer, got {given}"
            )
        self.readings = (
            [Reading(chosen)] if self.mix is None else [Reading.of_weights(row) for row in self.mix]
        )
        self.dim: int = model.config.hidden_size * len(self.readings)
        self.max_length = _max_length(self.tokenizer, model.config)
        if max_pieces is not None:
            most = positive("max_pieces", max_pieces) + self.tokenizer.num_special_tokens_to_add()
            self.max_length = min(self.max_length, most)
        self.counts = model.counts
        self._stored = None
        if model.running.embedding_cache is not None:
            self._stored = EmbeddingCache(
                model.running.embedding_cache, self.label, self._identity(), self.dim
            )
        self.level: Level = "word"
        self._tokens: TokenEncoder | None = None
        model.join(self)

    def at(
        self,
        *,
        layer: int | None = None,
        mix: np.ndarray | None = None,
        max_pieces: int | None = None,
    ) -> "TokenEncoder":
        """The same loaded model, read at another layer or mix. As long as both are in use, one pass
        over a text gives the vectors of both, and a cache keeps them until they are asked for."""
        return TokenEncoder(self._network, layer=layer, mix=mix, max_pieces=max_pieces)

    def means(self) -> "TokenEncoder":
        """The same, but with one vector for each text: the mean of all its tokens, special tokens
        included."""
        other = copy.copy(self)
        other.readings = [reading._replace(mean=True) for reading in self.readings]
        other.level = "sentence"
        # Stored are the vectors of tokens; else nobody may want those.
        other._tokens = self if self.stores else None
        self._network.join(other)
        return other

    def forget(self) -> None:
        """Empties the cache in memory, see `EncoderNetwork.forget`."""
        self._network.forget()

    @property
    def stores(self) -> bool:
        """Whether encoded texts are kept for later runs."""
        return self._stored is not None

    def store(self, texts: Iterable[tuple[Any, EncodedText]]) -> None:
        """Keeps texts for later runs that the pass of another reader computed, as far as the cache
        still has them."""
        known = ((key, text, self._network.known(key, self)) for key, text in texts)
        whole = (
            (key, text, [found.vectors for found in each])
            for key, text, each in known
            if each is not None
        )
        if self._stored is not None:
            self._stored.write(
                (key, text._replace(vectors=np.concatenate(rows, 1))) for key, text, rows in whole
            )

    @property
    def word_table(self) -> np.ndarray:
        return self._network.word_table

    def tokenizer_for(self, language: str | None) -> Any:
        """The tokenizer of texts in a language; an `InputError` where that depends on the language,
        and it is None."""
        own = self._network.own_tokenizers
        if own and language is None:
            reads = f"encoder {self.name} reads {' '.join(own)} with a vocabulary of its own"
            raise InputError(
                f"lang_pair is missing; {reads}: pass lang_pair=, such as 'de-en'",
                option="lang_pair",
                mentions=["lang_pair="],
            )
        return own.get(language or "", self.tokenizer)

    def text_words(
        self, text: str, language: str | None = None, *, pieces: bool = False
    ) -> TextUnits:
        """The words of a text, or its pieces, see `mtmetrics.models.text_units.text_words`."""
        return text_words(self.tokenizer_for(language), text, self.max_length, pieces=pieces)

    def encode(self, texts: Sequence[str], language: Language = None) -> PackedTokens:
        """Packed vectors of the distinct ones of N texts in order of first appearance, special
        tokens included.

        Args:
            texts: N texts.
            language: that of all texts, or of each; needed where the model reads some languages
                differently.
        """
        return self._encode(texts, language)

    def encode_words(
        self, sentences: Sequence[Sequence[str]], language: Language = None
    ) -> PackedTokens:
        """The same of sentences that are split into words already, which `PackedTokens.words` then
        counts."""
        return self._encode([tuple(words) for words in sentences], language)

    def _encode(self, keys: Sequence[Any], language: Language) -> PackedTokens:
        if self._tokens is not None:
            packed = self._tokens._encode(keys, language)
            return PackedTokens.of_texts(packed.means(), packed.index, packed.truncated)
        if own := self._network.own_tokenizers:
            given = (
                [language] * len(keys)
                if language is None or isinstance(language, str)
                else language
            )
            for each in set(given):
                self.tokenizer_for(each)
            known = (each if each in own else None for each in given)
            keys = [ReadText(key, each) for key, each in zip(keys, known, strict=True)]
        texts, index = distinct(keys)
        cached = {key: self._network.known(key, self) for key in texts}
        missing = [key for key, found in cached.items() if found is None]
        stored = self._stored.find(missing) if self._stored is not None and missing else {}
        new = [key for key in missing if key not in stored]
        self.counts.requested += len(keys)
        self.counts.loaded += len(stored)
        self.counts.computed += len(new)
        tokens = stored | dict(zip(new, self._tokenise(new), strict=True))
        tokens |= {key: found[0] for key, found in cached.items() if found is not None}
        packed = self._room([tokens[key] for key in texts], index)
        places = {key: packed.rows(place) for place, key in enumerate(texts)}
        for key, found in cached.items():
            for column, encoded in zip(self._columns, found or (), strict=False):
                packed.vectors[places[key], column] = encoded.vectors
        if self._stored is not None and stored:
            for key, vectors in self._stored.vectors(stored):
                packed.vectors[places[key]] = vectors
                for column, reading in zip(self._columns, self.readings, strict=True):
                    text = tokens[key]._replace(vectors=vectors[:, column])
                    self._network.remember(key, reading, text, self.max_length)
        self._compute(
            new, [tokens[key] for key in new], [packed.vectors[places[key]] for key in new]
        )
        if self._stored is not None and new:
            self._stored.write(
                (key, tokens[key]._replace(vectors=packed.vectors[places[key]])) for key in new
            )
        return packed

    @property
    def _columns(self) -> list[slice]:
        """Where in a vector each reading stands."""
        width = self.dim // len(self.readings)
        return [slice(place * width, (place + 1) * width) for place in range(len(self.readings))]

    def _room(self, texts: list[EncodedText], index: np.ndarray) -> PackedTokens:
        """The packed tokens of texts, or one row for each, whose vectors are still to be filled
        in."""
        cut = np.array([text.truncated for text in texts], dtype=bool)
        if self.level == "sentence":
            return PackedTokens.of_texts(
                np.empty((len(texts), self.dim), dtype=np.float32), index, cut
            )
        ids, words = ([getattr(text, name) for text in texts] for name in ("token_ids", "words"))
        return PackedTokens.of_tokens(
            np.empty((sum(map(len, ids)), self.dim), np.float32), ids, words, index, cut
        )

    def _tokenise(self, keys: list[Any]) -> Iterator[EncodedText]:
        """In order, without vectors; those of one tokenizer and kind that follow each other in one
        call."""
        nothing = np.zeros((0, self.dim), dtype=np.float32)
        given = (key if isinstance(key, ReadText) else ReadText(key, None) for key in keys)
        for (reader, kind), group in itertools.groupby(
            given, lambda key: (key.reader, type(key.text))
        ):
            texts = [key.text if kind is str else list(key.text) for key in group]
            tokenizer = self._network.own_tokenizers.get(reader or "", self.tokenizer)
            options = {"max_length": self.max_length, "is_split_into_words": kind is not str}
            encoded = tokenizer(texts, truncation=True, **options)
            for number, ids in enumerate(encoded["input_ids"]):
                words = [-1 if word is None else word for word in encoded.word_ids(number)]
                cut = bool(encoded.encodings[number].overflowing)
                yield EncodedText(
                    nothing, np.array(ids, dtype=np.int64), np.array(words, dtype=np.int64), cut
                )

    def _compute(self, keys: list[Any], texts: list[EncodedText], rooms: list[np.ndarray]) -> None:
        """Fills in the vectors of texts whose tokens are there."""
        places: dict[Reading, list[slice]] = {}
        for column, reading in zip(self._columns, self.readings, strict=True):
            places.setdefault(reading, []).append(column)

        def keep(number: int, reading: Reading, vectors: np.ndarray) -> None:
            if not np.isfinite(vectors).all():
                what = f"encoder {self.name}: layer {self.layer} overflows in {self.dtype}"
                raise MTMetricsError(
                    f"{what}; use dtype='float32'", option="encoder", mentions=["dtype='float32'"]
                )
            for column in places[reading]:
                rooms[number][:, column] = vectors

        self.counts.tokens += sum(len(text.token_ids) for text in texts)
        self.counts.padded_tokens += self._network.run(keys, texts, self, keep)

    def _identity(self) -> dict[str, object]:
        """What the vectors depend on, to the last bit, besides the text."""
        import tokenizers
        import torch
        import transformers

        return {
            "model": self.fingerprint,
            "layer": self.layer if self.mix is None else self.mix.tolist(),
            "dtype": self.dtype,
            "max_length": self.max_length,
            "devices": sorted({device.type for device in self._network.devices}),
            "versions": [
                __version__,
                torch.__version__,
                transformers.__version__,
                tokenizers.__version__,
            ],
        }


def _max_length(tokenizer: Any, config: Any) -> int:
    positions = getattr(config, "max_position_embeddings", None)
    if positions is None:
        return int(tokenizer.model_max_length)
    if config.model_type in {"roberta", "xlm-roberta", "camembert", "mpnet", "xlm-roberta-xl"}:
        positions -= config.pad_token_id + 1  # their position numbers start behind the padding id
    return int(min(positions, tokenizer.model_max_length))
