"""Turns texts into packed token vectors: of one layer of a transformer encoder, or mixed from all of them."""

import dataclasses
import functools
import itertools
import string
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mtmetrics._version import __version__
from mtmetrics.artifacts.models import model_fingerprint, model_folder, model_label, own_tokenizers, pretrained
from mtmetrics.checks import positive
from mtmetrics.errors import InputError, MTMetricsError
from mtmetrics.io.languages import is_unspaced
from mtmetrics.models.cache import EmbeddingCache, EncodedText, ReadText
from mtmetrics.models.packed import Language, PackedTokens, distinct
from mtmetrics.models.runner import (
    BatchRunner,
    Devices,
    LayerMix,
    LayerTap,
    TextCache,
    pick_devices,
    pick_dtype,
    replicate,
    torch_dtype,
)
from mtmetrics.models.text_units import TextUnits, text_words

if TYPE_CHECKING:
    import torch


@dataclasses.dataclass
class EncodingCounts:
    """What an encoder has done so far: texts asked for, read from disk, computed; real and padded tokens computed."""

    requested: int = 0
    loaded: int = 0
    computed: int = 0
    tokens: int = 0
    padded_tokens: int = 0


class TokenEncoder:
    """Encodes each distinct text once and keeps no padding.

    Texts run in batches of like length through the layers that are used; the layers above are dropped. Texts longer
    than the model's limit are cut there, special tokens kept, and marked as truncated. A folder may hold tokenizers of
    its own for some languages, as ``languages/en/tokenizer.json``; texts in all others are read with the usual one.

    Args:
        model: folder, name of a bundled artifact, or Hub repository of any `transformers` encoder.
        layer: hidden state to return; 0 is the embedding layer, None the last layer.
        mix: instead of one layer, (C, layers) weights over all layers but the embeddings: a vector is then C weighted
            sums of them, one after the other, all from one pass. An identity matrix returns every layer.
        max_pieces: texts are cut at that many word pieces, special tokens not counted, where the model reads more.
        revision: Hub revision.
        device: ``"auto"`` (CUDA, then MPS, then CPU), a device, or several of them, see
            `mtmetrics.models.runner.pick_devices`; each gets a copy of the model and its share of the batches.
        dtype: ``"float32"``, ``"bfloat16"``, ``"float16"`` or ``"auto"``, see `mtmetrics.models.runner.pick_dtype`;
            whatever the weights are stored in.
        batch_tokens: padded tokens per batch; fewer where memory runs out.
        cache_bytes: bound of the cache of encoded texts in memory.
        embedding_cache: folder where encoded texts are kept for later runs (`mtmetrics.models.cache.EmbeddingCache`).
        local_files_only: never ask the Hub.

    Raises:
        InputError: an unknown layer, device or dtype, a mix of another number of layers, or a batch size below 1.
        ArtifactError: the model cannot be found or loaded.
        MTMetricsError: the model does not fit into memory, or the embedding cache cannot be used.
    """

    def __init__(
        self,
        model: str | Path,
        *,
        layer: int | None = None,
        mix: np.ndarray | None = None,
        max_pieces: int | None = None,
        revision: str | None = None,
        device: Devices = "auto",
        dtype: str = "float32",
        batch_tokens: int = 4096,
        cache_bytes: int = 128 * 2**20,
        embedding_cache: str | Path | None = None,
        local_files_only: bool = False,
    ) -> None:
        positive("batch_tokens", batch_tokens)
        self.dtype = pick_dtype(dtype, device)
        devices = pick_devices(device)
        self.name = str(model)
        self.label = model_label(model)
        folder = model_folder(model, revision=revision, local_files_only=local_files_only)
        self.fingerprint = model_fingerprint(folder)
        self.tokenizer, network = pretrained("AutoModel", folder, torch_dtype(self.dtype))
        self._readers = own_tokenizers(folder)
        depth: int = network.config.num_hidden_layers
        self.depth: int | None = depth
        chosen = depth if layer is None else layer
        if isinstance(chosen, bool) or not isinstance(chosen, int) or not 0 <= chosen <= depth:
            raise InputError(f"layer {layer!r}: {self.name} has the layers 0 (embeddings) to {depth}")
        self.layer: int | None = chosen
        self.mix = None if mix is None else np.asarray(mix, dtype=np.float64)
        if self.mix is not None and (layer is not None or self.mix.ndim != 2 or self.mix.shape[1] != depth):
            given = f"shape {self.mix.shape} and layer {layer}"
            raise InputError(f"mix: {self.name} needs rows of {depth} weights and no layer, got {given}")
        self.dim: int = network.config.hidden_size * (1 if self.mix is None else len(self.mix))
        self.max_length = _max_length(self.tokenizer, network.config)
        if max_pieces is not None:
            most = positive("max_pieces", max_pieces) + self.tokenizer.num_special_tokens_to_add()
            self.max_length = min(self.max_length, most)
        described = f"encoder {self.name}"
        copies = replicate(described, network.eval(), devices)
        taps = [LayerTap(copy, chosen) if self.mix is None else LayerMix(copy, self.mix) for copy in copies]
        self._runner = BatchRunner(described, taps, devices, batch_tokens, pad=self.tokenizer.pad_token_id or 0)
        self.counts = EncodingCounts()
        self._cache = TextCache(cache_bytes, lambda encoded: encoded.vectors.nbytes)
        self._stored = None
        if embedding_cache is not None:
            self._stored = EmbeddingCache(embedding_cache, self.label, self._identity(devices), self.dim)
        self.vocabulary_size = len(self.tokenizer)

    @functools.cached_property
    def word_table(self) -> np.ndarray:
        return word_table(self.tokenizer)

    def tokenizer_for(self, language: str | None) -> Any:
        """The tokenizer of texts in a language; an `InputError` where that depends on the language, and it is None."""
        if self._readers and language is None:
            own = f"encoder {self.name} reads {' '.join(self._readers)} with a vocabulary of its own"
            raise InputError(f"lang_pair is missing; {own}: pass lang_pair=, such as 'de-en'")
        return self._readers.get(language or "", self.tokenizer)

    def text_words(self, text: str, language: str | None = None, *, pieces: bool = False) -> TextUnits:
        """The words of a text, or its pieces, see `mtmetrics.models.text_units.text_words`."""
        return text_words(self.tokenizer_for(language), text, self.max_length, pieces=pieces)

    def encode(self, texts: Sequence[str], language: Language = None) -> PackedTokens:
        """Packed vectors of the distinct ones of N texts in order of first appearance, special tokens included.

        Args:
            texts: N texts.
            language: that of all texts, or of each; needed where the model reads some languages differently.
        """
        return self._encode(texts, language)

    def encode_words(self, sentences: Sequence[Sequence[str]], language: Language = None) -> PackedTokens:
        """The same of sentences that are split into words already, which `PackedTokens.words` then counts."""
        return self._encode([tuple(words) for words in sentences], language)

    def _encode(self, keys: Sequence[Any], language: Language) -> PackedTokens:
        if self._readers:
            given = [language] * len(keys) if language is None or isinstance(language, str) else language
            for each in set(given):
                self.tokenizer_for(each)
            known = (each if each in self._readers else None for each in given)
            keys = [ReadText(key, each) for key, each in zip(keys, known, strict=True)]
        texts, index = distinct(keys)
        found = {key: self._cache.get(key) for key in texts}
        missing = [key for key, encoded in found.items() if encoded is None]
        stored = self._stored.find(missing) if self._stored is not None and missing else {}
        found.update(stored)
        new = [key for key in missing if key not in stored]
        self.counts.requested += len(keys)
        self.counts.loaded += len(stored)
        self.counts.computed += len(new)
        if new:
            found.update(zip(new, self._tokenise(new), strict=True))
        ids, words = ([getattr(text, name) for text in found.values()] for name in ("token_ids", "words"))
        cut = np.array([text.truncated for text in found.values()], dtype=bool)
        room = np.empty((sum(map(len, ids)), self.dim), dtype=np.float32)
        packed = PackedTokens.of_tokens(room, ids, words, index, cut)
        places = {key: packed.rows(place) for place, key in enumerate(texts)}
        for key, text in found.items():
            room[places[key]][: len(text.vectors)] = text.vectors  # none yet of texts that are not in memory
        if self._stored is not None and stored:
            for key, vectors in self._stored.vectors(stored):
                packed.vectors[places[key]] = vectors
        self._compute(packed, [places[key] for key in new])
        if self._stored is not None and new:
            self._stored.write((key, found[key]._replace(vectors=packed.vectors[places[key]])) for key in new)
        for key in missing if self._cache.limit else ():
            self._cache.put(key, found[key]._replace(vectors=packed.vectors[places[key]].copy()))
        return packed

    def _tokenise(self, keys: list[Any]) -> Iterator[EncodedText]:
        """In order, without vectors; those of one tokenizer and kind that follow each other in one call."""
        nothing = np.zeros((0, self.dim), dtype=np.float32)
        given = (key if isinstance(key, ReadText) else ReadText(key, None) for key in keys)
        for (reader, kind), group in itertools.groupby(given, lambda key: (key.reader, type(key.text))):
            texts = [key.text if kind is str else list(key.text) for key in group]
            tokenizer = self._readers.get(reader or "", self.tokenizer)
            options = {"max_length": self.max_length, "is_split_into_words": kind is not str}
            encoded = tokenizer(texts, truncation=True, **options)
            for number, ids in enumerate(encoded["input_ids"]):
                words = [-1 if word is None else word for word in encoded.word_ids(number)]
                cut = bool(encoded.encodings[number].overflowing)
                yield EncodedText(nothing, np.array(ids, dtype=np.int64), np.array(words, dtype=np.int64), cut)

    def _compute(self, packed: PackedTokens, texts: list[slice]) -> None:
        """Fills in the vectors of texts whose tokens are there."""
        ids: list[Any] = [packed.token_ids[rows] for rows in texts]

        def compute(tap: Any, batch: "torch.Tensor", mask: "torch.Tensor", numbers: list[int]) -> None:
            states = tap(input_ids=batch, attention_mask=mask).float().cpu().numpy()
            for state, number in zip(states, numbers, strict=True):
                vectors = state[: len(ids[number])]
                if not np.isfinite(vectors).all():
                    what = f"encoder {self.name}: layer {self.layer} overflows in {self.dtype}"
                    raise MTMetricsError(f"{what}; use dtype='float32'")
                packed.vectors[texts[number]] = vectors

        self.counts.tokens += sum(map(len, ids))
        self.counts.padded_tokens += self._runner.run(ids, compute)

    def _identity(self, devices: "list[torch.device]") -> dict[str, object]:
        """What the vectors depend on, to the last bit, besides the text."""
        import tokenizers
        import torch
        import transformers

        return {
            "model": self.fingerprint,
            "layer": self.layer if self.mix is None else self.mix.tolist(),
            "dtype": self.dtype,
            "max_length": self.max_length,
            "devices": sorted({device.type for device in devices}),
            "versions": [__version__, torch.__version__, transformers.__version__, tokenizers.__version__],
        }


def _max_length(tokenizer: Any, config: Any) -> int:
    positions = getattr(config, "max_position_embeddings", None)
    if positions is None:
        return int(tokenizer.model_max_length)
    if config.model_type in {"roberta", "xlm-roberta", "camembert", "mpnet", "xlm-roberta-xl"}:
        positions -= config.pad_token_id + 1  # their position numbers start behind the padding id
    return int(min(positions, tokenizer.model_max_length))


def one_hot_mix(layers: Sequence[int], depth: int) -> np.ndarray:
    """(C, depth) weights that pick C layers, from 1 up, for `TokenEncoder`."""
    mix = np.zeros((len(layers), depth))
    mix[np.arange(len(layers)), np.array(layers) - 1] = 1.0
    return mix


class LayerView:
    """One of the layers of an encoder that was opened with `one_hot_mix` of `layers`."""

    def __init__(self, tokens: TokenEncoder, layers: Sequence[int], position: int) -> None:
        self.tokens = tokens
        self.name, self.label, self.fingerprint = tokens.name, tokens.label, tokens.fingerprint
        self.layer: int | None = layers[position]
        self.depth, self.dtype = tokens.depth, tokens.dtype
        self.dim = tokens.dim // len(layers)
        self._columns = slice(position * self.dim, (position + 1) * self.dim)
        self.text_words = tokens.text_words

    def encode(self, texts: Sequence[str], language: Language = None) -> PackedTokens:
        """Packed vectors of the distinct texts."""
        return self.view(self.tokens.encode(texts, language))

    def view(self, tokens: PackedTokens) -> PackedTokens:
        """The same from tokens that the encoder gave already."""
        return tokens.with_vectors(lambda vectors: vectors[:, self._columns])


def word_table(tokenizer: Any) -> np.ndarray:
    """(V,) bool table over the vocabulary: true for special tokens and for first pieces of words that are no
    punctuation.

    WordPiece vocabularies: false for single ASCII punctuation characters and for pieces that contain ``##``, as in the
    first published code of XMoverScore. SentencePiece vocabularies, for which the authors wrote no filter, get the
    equivalent: false for pieces of ASCII punctuation alone, and for pieces without the space mark, unless they begin
    with a character of a script that is written without spaces (multilingual BERT splits Chinese text into characters,
    none of which carries ``##``).

    Raises:
        InputError: the vocabulary marks words in neither way (byte-level BPE, for example).
    """
    vocabulary: dict[str, int] = tokenizer.get_vocab()
    special = set(tokenizer.all_special_ids)
    table = np.ones(max(vocabulary.values()) + 1, dtype=bool)
    if any(piece.startswith("##") for piece in vocabulary):
        rule = _wordpiece
    elif any(piece.startswith("▁") for piece in vocabulary):
        rule = _sentencepiece
    else:
        known = "the word filter knows WordPiece ('##') and SentencePiece ('▁') vocabularies"
        raise InputError(f"{known}; this encoder has another one: use variant='release', which keeps all tokens")
    for piece, number in vocabulary.items():
        table[number] = number in special or rule(piece)
    return table


def _wordpiece(piece: str) -> bool:
    return "##" not in piece and not (len(piece) == 1 and piece in string.punctuation)


def _sentencepiece(piece: str) -> bool:
    text = piece.removeprefix("▁")
    if not text or all(character in string.punctuation for character in text):
        return False
    return piece.startswith("▁") or is_unspaced(text[0])
