"""Trains the subword vocabularies: WordPiece for the encoder, byte-level BPE for the language model."""

import json
import random
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

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
    """Trains a lower-casing WordPiece vocabulary; accents are kept, Chinese characters stand alone.

    Order and entries may differ from run to run where counts are equal (`tokenizers` goes through hash tables), so that
    two runs of one seed agree exactly only if the second one takes over the vocabulary of the first.
    """
    tokenizer = _lower_casing({})
    trainer = trainers.WordPieceTrainer(
        vocab_size=size,
        min_frequency=2,
        limit_alphabet=max(1000, size // 6),
        special_tokens=list(WORDPIECE_SPECIAL),
        continuing_subword_prefix="##",
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return wordpiece(tokenizer.get_vocab())


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
