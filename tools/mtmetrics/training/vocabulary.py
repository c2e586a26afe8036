"""Subword vocabularies: cut Unigram for encoders, WordPiece for translation, byte-level BPE for
language models."""

import json
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from tokenizers import (
    AddedToken,
    Regex,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)

from mtmetrics.errors import InputError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

_TEXTS_PER_CALL = 20_000
# The mark of SentencePiece for a space.
_SPACE = "▁"
# Rarer characters of a sample are not worth a row of the table of word vectors.
_RAREST_CHARACTER = 5
_QUOTES = {
    "“": '"',
    "”": '"',
    "„": '"',
    "«": '"',
    "»": '"',
    "’": "'",
    "‘": "'",
    "‚": "'",
    "`": "'",
    "–": "-",
    "—": "-",
}
_JOINERS = ("\u200c", "\u200d")
_SPECIAL = {
    "wordpiece": {"pad": "[PAD]", "unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"},
    "bpe": {"pad": "<pad>", "bos": "<s>", "eos": "</s>"},
    "unigram": {"bos": "<s>", "pad": "<pad>", "eos": "</s>", "unk": "<unk>"},
}
# Token type of a text that is read as English; others have 0.
ENGLISH_TYPE = 1
WORDPIECE_SPECIAL = tuple(_SPECIAL["wordpiece"].values())


def _plain() -> list[normalizers.Normalizer]:
    """Compatibility form, plain quotation marks and dashes; the Turkish capital dotted I gets one
    lower-case letter."""
    replaced = [normalizers.Replace(old, new) for old, new in _QUOTES.items()]
    return [normalizers.NFKC(), *replaced, normalizers.Replace("İ", "i")]


def train_wordpiece(texts: Iterable[str], size: int) -> Tokenizer:
    """Trains a WordPiece vocabulary. Capitals and accents are kept, Chinese characters stand
    alone."""
    texts = list(texts)
    tokenizer = _wordpiece_tokenizer({})
    most_characters = max(1000, size // 6)

    def trained(first: Sequence[str], size: int) -> dict[str, int]:
        trainer = trainers.WordPieceTrainer(
            vocab_size=size,
            min_frequency=2,
            limit_alphabet=most_characters,
            special_tokens=[*WORDPIECE_SPECIAL, *first],
            continuing_subword_prefix="##",
            show_progress=False,
        )
        tokenizer.train_from_iterator(texts, trainer)
        return tokenizer.get_vocab()

    # Of pairs that are as frequent the one of the lower numbers is merged, and characters inside
    # words are numbered in the order of a hash table, another one in every process. So they come
    # first, in an order of their own.
    letters = sorted(
        piece for piece in trained([], len(WORDPIECE_SPECIAL)) if piece.startswith("##")
    )
    return wordpiece(trained(letters, size))


def wordpiece(vocabulary: dict[str, int]) -> Tokenizer:
    """The WordPiece tokenizer of a vocabulary, with special tokens at both ends of a
    text."""
    tokenizer = _wordpiece_tokenizer(vocabulary)
    ends = [(token, vocabulary[token]) for token in ("[CLS]", "[SEP]")]
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS]:0 $A:0 [SEP]:0",
        pair="[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1",
        special_tokens=ends,
    )
    return tokenizer


def _wordpiece_tokenizer(vocabulary: dict[str, int]) -> Tokenizer:
    tokenizer = Tokenizer(
        models.WordPiece(vocabulary, unk_token="[UNK]", max_input_chars_per_word=100)
    )
    bert = normalizers.BertNormalizer(
        clean_text=True,
        handle_chinese_chars=True,
        strip_accents=False,
        lowercase=False,
    )
    tokenizer.normalizer = normalizers.Sequence([*_plain(), bert])
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece(prefix="##")
    return tokenizer


def train_bpe(texts: Iterable[str], size: int) -> Tokenizer:
    """Trains a lower-casing byte-level BPE vocabulary that can spell every text.

    No special token is added on its own: the language model's user decides about the start-of-text
    token."""
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


def as_pretrained(
    tokenizer: Tokenizer,
    max_length: int,
    gives_types: bool = False,
) -> "PreTrainedTokenizerFast":
    """Wraps a trained vocabulary as a `transformers` tokenizer with its special tokens.

    Args:
        tokenizer: the vocabulary.
        max_length: number of tokens that the model reads.
        gives_types: whether the model needs the token types of the texts.
    """
    from transformers import PreTrainedTokenizerFast

    kind = type(tokenizer.model).__name__.lower()
    special = {
        f"{name}_token": AddedToken(token, special=True) for name, token in _SPECIAL[kind].items()
    }
    inputs = ["input_ids", "attention_mask"]
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        model_max_length=max_length,
        padding_side="right",
        clean_up_tokenization_spaces=False,
        model_input_names=[*inputs, "token_type_ids"] if gives_types else inputs,
        **special,
    )


def save_tokenizer(tokenizer: "PreTrainedTokenizerFast", folder: str | Path) -> None:
    """Writes tokenizer.json, without indentation, and tokenizer_config.json, with a class name that
    transformers 4 and 5 both know."""
    tokenizer.save_pretrained(folder)
    vocabulary_path = Path(folder) / "tokenizer.json"
    stored = json.loads(vocabulary_path.read_text(encoding="utf-8"))
    compact = json.dumps(stored, ensure_ascii=False, separators=(",", ":"))
    vocabulary_path.write_text(compact, encoding="utf-8")
    path = Path(folder) / "tokenizer_config.json"
    config = json.loads(path.read_text(encoding="utf-8"))
    if config["tokenizer_class"] == "TokenizersBackend":
        config["tokenizer_class"] = "PreTrainedTokenizerFast"
    for name in ("backend", "is_local", "local_files_only"):
        config.pop(name, None)
    path.write_text(json.dumps(config, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def balanced(texts: dict[str, list[str]], characters: int, seed: int) -> Iterator[str]:
    """Sentences of every language up to about `characters` each; short lists are repeated at most
    three times."""
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


def cut_tokenizers(
    texts: dict[str, list[str]],
    original: "PreTrainedTokenizerFast",
    size: int,
    characters: int,
    seed: int,
) -> "dict[str, PreTrainedTokenizerFast]":
    """Cuts a multilingual Unigram vocabulary to the languages of some texts.

    Both tokenizers have the same pieces: the special tokens, then the pieces of the original that
    the texts need most, each with its score, in the order of the original. Every language counts
    the same. The tokenizer ``english`` gives its tokens the type `ENGLISH_TYPE`, which tells the
    network what should be English. So it can learn that words of another language were left
    untranslated there.

    Args:
        texts: language -> sentences; ``en`` is one of the languages.
        original: a `transformers` tokenizer with a Unigram vocabulary.
        size: number of pieces, special tokens included.
        characters: number of characters of each language that are counted.
        seed: of the choice of the sentences.

    Returns:
        The tokenizers ``english`` and ``others``; `original_numbers` finds their pieces in the
        original.

    Raises:
        InputError: the original has another kind of vocabulary.
    """
    stored = json.loads(original.backend_tokenizer.to_str())["model"]
    if stored["type"] != "Unigram":
        raise InputError(
            f"a Unigram vocabulary is needed to begin with, this one is {stored['type']}"
        )
    scores = dict(stored["vocab"])
    frequencies = np.zeros(len(original))
    is_character = np.zeros(len(original), dtype=bool)
    for language, sentences in sorted(texts.items()):
        sample = list(balanced({language: sentences}, characters, seed))
        counts = piece_counts(sample, original)
        frequencies += counts / max(counts.sum(), 1)
        is_character |= _usual_characters(sample, original)
    # Single characters come first: every word can be spelt with them.
    by_need = np.lexsort((-frequencies, ~is_character))
    special = list(_SPECIAL["unigram"].values())
    needed = [number for number in by_need if frequencies[number] or is_character[number]]
    kept = sorted(needed[: size - len(special)])
    original_pieces = pieces_by_number(original)
    pieces = [original_pieces[number] for number in kept]
    vocabulary = [(piece, 0.0) for piece in special] + [(piece, scores[piece]) for piece in pieces]
    return {
        "english": _unigram(vocabulary, original, token_type=ENGLISH_TYPE),
        "others": _unigram(vocabulary, original),
    }


def original_numbers(
    tokenizer: "PreTrainedTokenizerFast",
    original: "PreTrainedTokenizerFast",
) -> np.ndarray:
    """Number in the original vocabulary of every piece of a cut one, `(size,)`."""
    numbers = original.get_vocab()
    special = {
        token: getattr(original, f"{name}_token_id") for name, token in _SPECIAL["unigram"].items()
    }
    pieces = pieces_by_number(tokenizer)
    return np.array([special[piece] if piece in special else numbers[piece] for piece in pieces])


def _usual_characters(sentences: Sequence[str], tokenizer: "PreTrainedTokenizerFast") -> np.ndarray:
    """Whether a piece is a single character that is frequent enough to be spelt,
    `(vocabulary,)`."""
    normalizer = tokenizer.backend_tokenizer.normalizer
    counts: Counter[str] = Counter()
    for sentence in sentences:
        counts.update(normalizer.normalize_str(sentence) if normalizer else sentence)
    usual = {character for character, count in counts.items() if count >= _RAREST_CHARACTER}
    result = np.zeros(len(tokenizer), dtype=bool)
    for piece, number in tokenizer.get_vocab().items():
        # A mark of a space before a character does not count.
        result[number] = piece == _SPACE or piece.removeprefix(_SPACE) in usual
    return result


def _unigram(
    vocabulary: list[tuple[str, float]],
    original: "PreTrainedTokenizerFast",
    token_type: int = 0,
) -> "PreTrainedTokenizerFast":
    """A tokenizer of these pieces and scores that normalises as the original, and sets marks
    apart. All tokens of its texts have the type `token_type`."""
    special = _SPECIAL["unigram"]
    numbers = {piece: number for number, (piece, _) in enumerate(vocabulary)}
    tokenizer = Tokenizer(
        models.Unigram(vocabulary, unk_id=numbers[special["unk"]], byte_fallback=False)
    )
    backend = original.backend_tokenizer
    # No multilingual Unigram vocabulary has the joiners of Indic scripts: words would fall apart
    # there.
    replaced = _QUOTES | dict.fromkeys(_JOINERS, "")
    plain = [normalizers.Replace(old, new) for old, new in replaced.items()]
    tokenizer.normalizer = normalizers.Sequence(
        [*plain, *([backend.normalizer] if backend.normalizer else [])]
    )
    # A mark of punctuation is a word of its own; the space before it stays with it, as in the
    # original.
    marks = pre_tokenizers.Split(Regex(rf"{_SPACE}?(?!{_SPACE})[\p{{P}}\p{{S}}]"), "isolated")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([backend.pre_tokenizer, marks])
    tokenizer.decoder = backend.decoder
    begin, end = special["bos"], special["eos"]
    first, last = f"{begin}:{token_type}", f"{end}:{token_type}"
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{first} $A:{token_type} {last}",
        pair=f"{first} $A:{token_type} {last} {last} $B:{token_type} {last}",
        special_tokens=[(token, numbers[token]) for token in (begin, end)],
    )
    return as_pretrained(tokenizer, original.model_max_length, gives_types=token_type != 0)


def pieces_by_number(tokenizer: "PreTrainedTokenizerFast") -> list[str]:
    """The pieces of a tokenizer in the order of their numbers."""
    numbers = tokenizer.get_vocab()
    return sorted(numbers, key=numbers.__getitem__)


def piece_counts(texts: Sequence[str], tokenizer: "PreTrainedTokenizerFast") -> np.ndarray:
    """The number of times that each piece of the vocabulary occurs, `(size,)`; 0 for special
    tokens."""
    counts = np.zeros(len(tokenizer), dtype=np.int64)
    for ids in token_ids(texts, tokenizer, add_special_tokens=False):
        np.add.at(counts, ids, 1)
    counts[tokenizer.all_special_ids] = 0
    return counts


def token_ids(
    texts: Sequence[str],
    tokenizer: "PreTrainedTokenizerFast",
    **options: object,
) -> Iterator[list[int]]:
    """Yields the numbers of the pieces of each text. A tokenizer gets some thousand texts at a time,
    because what it returns besides takes much memory.

    Args:
        texts: the texts.
        tokenizer: of the pieces.
        **options: of the call of the tokenizer.
    """
    for begin in range(0, len(texts), _TEXTS_PER_CALL):
        some = list(texts[begin : begin + _TEXTS_PER_CALL])
        yield from tokenizer(some, return_attention_mask=False, verbose=False, **options)[
            "input_ids"
        ]
