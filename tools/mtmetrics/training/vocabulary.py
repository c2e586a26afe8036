"""The subword vocabularies: WordPiece for the encoder, whose new pieces begin as means of old ones, and byte-level BPE
for the language model."""

import json
import random
import unicodedata
from array import array
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from mtmetrics.training.corpus import Pair

_TEXTS_PER_CALL = 20_000
_ROWS_PER_PRODUCT = 2000
_MOST_MIXED = 8
# A piece that only the other tokenizer uses. Texts are split at spaces before pieces are looked up, so that it is never
# found.
_UNUSED = "~ {}"
_QUOTES = {"“": '"', "”": '"', "„": '"', "«": '"', "»": '"', "’": "'", "‘": "'", "‚": "'", "`": "'", "–": "-", "—": "-"}
_SPECIAL = {
    "wordpiece": {"pad": "[PAD]", "unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"},
    "bpe": {"pad": "<pad>", "bos": "<s>", "eos": "</s>"},
}
WORDPIECE_SPECIAL = tuple(_SPECIAL["wordpiece"].values())


def _plain() -> list[normalizers.Normalizer]:
    """Compatibility form, plain quotation marks and dashes; the Turkish capital dotted I gets one lower-case letter."""
    replaced = [normalizers.Replace(old, new) for old, new in _QUOTES.items()]
    return [normalizers.NFKC(), *replaced, normalizers.Replace("İ", "i")]


def train_wordpiece(texts: Iterable[str], size: int) -> Tokenizer:
    """Trains a lower-casing WordPiece vocabulary; accents are kept, Chinese characters stand alone."""
    texts = list(texts)
    tokenizer, most = _lower_casing({}), max(1000, size // 6)

    def trained(first: Sequence[str], size: int) -> dict[str, int]:
        trainer = trainers.WordPieceTrainer(
            vocab_size=size,
            min_frequency=2,
            limit_alphabet=most,
            special_tokens=[*WORDPIECE_SPECIAL, *first],
            continuing_subword_prefix="##",
            show_progress=False,
        )
        tokenizer.train_from_iterator(texts, trainer)
        return tokenizer.get_vocab()

    # Of pairs that are as frequent the one of the lower numbers is merged, and characters inside words are numbered in
    # the order of a hash table, another one in every process. So they come first, in an order of their own.
    letters = sorted(piece for piece in trained([], len(WORDPIECE_SPECIAL)) if piece.startswith("##"))
    return wordpiece(trained(letters, size))


def wordpiece(vocabulary: dict[str, int]) -> Tokenizer:
    """The lower-casing WordPiece tokenizer of a vocabulary, with special tokens at both ends of a text."""
    tokenizer = _lower_casing(vocabulary)
    ends = [(token, vocabulary[token]) for token in ("[CLS]", "[SEP]")]
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS]:0 $A:0 [SEP]:0", pair="[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1", special_tokens=ends
    )
    return tokenizer


def _lower_casing(vocabulary: dict[str, int]) -> Tokenizer:
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]", max_input_chars_per_word=100))
    bert = normalizers.BertNormalizer(clean_text=True, handle_chinese_chars=True, strip_accents=False, lowercase=True)
    tokenizer.normalizer = normalizers.Sequence([*_plain(), bert])
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece(prefix="##")
    return tokenizer


def train_bpe(texts: Iterable[str], size: int) -> Tokenizer:
    """Trains a lower-casing byte-level BPE vocabulary that can spell every text.

    No special token is added on its own: the language model's user decides about the start-of-text token.
    """
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.Sequence([*_plain(), normalizers.Lowercase()])
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        min_frequency=2,
        special_tokens=list(_SPECIAL["bpe"].values()),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def as_pretrained(tokenizer: Tokenizer, max_length: int) -> Any:
    """Wraps a trained vocabulary as a `transformers` tokenizer with its special tokens."""
    from transformers import PreTrainedTokenizerFast

    kind = "wordpiece" if isinstance(tokenizer.model, models.WordPiece) else "bpe"
    special = {f"{name}_token": AddedToken(token, special=True) for name, token in _SPECIAL[kind].items()}
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        model_max_length=max_length,
        padding_side="right",
        clean_up_tokenization_spaces=False,
        model_input_names=["input_ids", "attention_mask"],
        **special,
    )


def save_tokenizer(tokenizer: Any, folder: str | Path) -> None:
    """Writes tokenizer.json and tokenizer_config.json; the class name is one that transformers 4 and 5 both know."""
    tokenizer.save_pretrained(folder)
    path = Path(folder) / "tokenizer_config.json"
    config = json.loads(path.read_text(encoding="utf-8"))
    if config["tokenizer_class"] == "TokenizersBackend":
        config["tokenizer_class"] = "PreTrainedTokenizerFast"
    for name in ("backend", "is_local", "local_files_only"):
        config.pop(name, None)
    path.write_text(json.dumps(config, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def balanced(texts: dict[str, list[str]], characters: int, seed: int) -> Iterator[str]:
    """Sentences of every language up to about `characters` each; short lists are repeated at most three times."""
    rng = random.Random(seed)
    for language in sorted(texts):
        sentences = list(texts[language])
        total = 0
        for _ in range(3):
            rng.shuffle(sentences)
            for sentence in sentences:
                if total >= characters:
                    break
                total += len(sentence)
                yield sentence


def two_tokenizers(
    pairs: Sequence[Pair], original: Any, size: int, english: int, characters: int, seed: int
) -> dict[str, Any]:
    """Two lower-casing WordPiece tokenizers that share one table of word vectors, for ``english`` and ``others``.

    Both number the same `size` pieces: pieces without letters, which both use; pieces of the original, the letters and
    the most frequent ones in English, `english` in all, which split English as before; and pieces of the other
    languages, most frequent first. A word that a translation left as it was in its source is so a different piece there
    than in the source, of which the English reader knows nothing.

    Args:
        pairs: sources and English translations.
        original: the tokenizer of an English encoder.
        size: pieces in all.
        english: of them so many belong to English.
        characters: so many of each language are looked at.
        seed: of which.
    """
    texts: dict[str, dict[str, None]] = {}
    for pair in pairs:
        texts.setdefault(pair.group.split("-")[0], {})[pair.source] = None
    others = balanced({language: list(unique) for language, unique in texts.items()}, characters, seed)
    trained = _by_number(train_wordpiece(others, size))
    known = _by_number(original)
    counts = piece_counts([pair.target for pair in pairs], original)
    frequent = [known[number] for number in np.argsort(-counts, kind="stable") if counts[number]]
    letters = [piece for piece in frequent if len(piece.removeprefix("##")) == 1 and _has_letter(piece)]
    usual = [piece for piece in frequent if _has_letter(piece)]
    special = list(WORDPIECE_SPECIAL)
    shared = list(dict.fromkeys(piece for piece in (*frequent, *trained) if not _has_letter(piece)))
    shared = [piece for piece in shared if piece not in special][: size // 16]
    english_only = list(dict.fromkeys([*letters, *usual]))[:english]
    free = size - len(special) - len(shared) - len(english_only)
    others_only = [piece for piece in trained if _has_letter(piece) and piece not in special][:free]
    tables = {
        "english": [*english_only, *map(_UNUSED.format, others_only)],
        "others": [*map(_UNUSED.format, english_only), *others_only],
    }
    made = {}
    for name, pieces in tables.items():
        made[name] = wordpiece({piece: number for number, piece in enumerate([*special, *shared, *pieces])})
    made["english"].normalizer = original.backend_tokenizer.normalizer
    return {name: as_pretrained(tokenizer, original.model_max_length) for name, tokenizer in made.items()}


def _has_letter(piece: str) -> bool:
    return any(character.isalpha() or unicodedata.category(character).startswith("M") for character in piece)


def _by_number(tokenizer: Any) -> list[str]:
    found = tokenizer.get_vocab()
    return sorted(found, key=found.__getitem__)


def piece_counts(texts: Sequence[str], tokenizer: Any) -> np.ndarray:
    """How often each piece of the vocabulary occurs, `(size,)`."""
    counts = np.zeros(len(tokenizer), dtype=np.int64)
    for ids in _tokenised(texts, tokenizer):
        np.add.at(counts, ids, 1)
    return counts


def counted_vectors(
    pairs: Sequence[Pair], tokenizer: Any, english: Any, original: Any, vectors: np.ndarray
) -> np.ndarray:
    """Word vectors for the pieces of `two_tokenizers`, `(size, d)`: means of the English pieces in their translations.

    Pieces that English uses have the vector of the original. Of the others, each gets the mean of the vectors of the
    8 original pieces with the highest Dice coefficient, weighted by its square and brought to their mean length.
    """
    sources = _occurrences([pair.source for pair in pairs], tokenizer)
    targets = _occurrences([pair.target for pair in pairs], original)
    source_counts, target_counts = (np.asarray(table.sum(axis=0)).ravel() for table in (sources, targets))
    result = np.tile(vectors.mean(0), (len(tokenizer), 1)).astype(np.float32)
    norms = np.linalg.norm(vectors, axis=1)
    columns = sources.T.tocsr()
    for begin in range(0, len(tokenizer), _ROWS_PER_PRODUCT):
        together = (columns[begin : begin + _ROWS_PER_PRODUCT] @ targets).tocsr()
        for row in range(together.shape[0]):
            part = slice(together.indptr[row], together.indptr[row + 1])
            found = together.indices[part]
            if not len(found):
                continue
            dice = 2 * together.data[part] / (source_counts[begin + row] + target_counts[found])
            best = np.argsort(-dice, kind="stable")[:_MOST_MIXED]
            weights = dice[best] ** 2 / (dice[best] ** 2).sum()
            mean = weights @ vectors[found[best]]
            result[begin + row] = mean * (weights @ norms[found[best]] / max(np.linalg.norm(mean), 1e-6))
    known = original.get_vocab()
    for piece, number in english.get_vocab().items():
        if piece in known:
            result[number] = vectors[known[piece]]
    return result


def _occurrences(texts: Sequence[str], tokenizer: Any) -> Any:
    """Which text holds which piece: a sparse matrix of ones, `(texts, vocabulary)`."""
    from scipy import sparse

    indices, offsets = array("i"), array("q", [0])
    for ids in _tokenised(texts, tokenizer):
        indices.frombytes(np.unique(ids).tobytes())
        offsets.append(len(indices))
    ones = np.ones(len(indices), dtype=np.float32)
    parts = (ones, np.array(indices, dtype=np.int32), np.array(offsets, dtype=np.int64))
    return sparse.csr_matrix(parts, shape=(len(texts), len(tokenizer)))


def _tokenised(texts: Sequence[str], tokenizer: Any) -> Iterator[np.ndarray]:
    """The pieces of each whole text, special tokens left out."""
    ordinary = np.ones(len(tokenizer), dtype=bool)
    ordinary[tokenizer.all_special_ids] = False
    # Millions of short texts: the fast tokenizer itself, without what transformers adds to each, nor the cut and the
    # padding that its file may ask for.
    fast = tokenizer.backend_tokenizer
    fast.no_truncation()
    fast.no_padding()
    for begin in range(0, len(texts), _TEXTS_PER_CALL):
        for found in fast.encode_batch_fast(texts[begin : begin + _TEXTS_PER_CALL], add_special_tokens=False):
            ids = np.array(found.ids, dtype=np.int32)
            yield ids[ordinary[ids]]
