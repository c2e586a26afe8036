"""Inputs of the benchmarks: sentences, and small models built on the fly."""

import itertools
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from mtmetrics.judgements.judged import read_judged_segments

PAIRS = 560
_ONSETS = (
    "b",
    "d",
    "f",
    "g",
    "h",
    "k",
    "l",
    "m",
    "n",
    "p",
    "r",
    "s",
    "t",
    "v",
    "st",
    "tr",
    "kl",
    "sch",
)
_VOWELS = ("a", "e", "i", "o", "u", "ei", "au")
_CODAS = ("", "", "n", "r", "s", "t", "l", "nd")


def made_sentences(count: int, seed: int) -> Iterator[str]:
    """Yields sentences of invented words: Zipfian frequencies, lengths as in news (about 20 words,
    from 2 to 80)."""
    letters = random.Random(0)
    parts = (_ONSETS, _VOWELS, _CODAS)
    vocabulary = [
        "".join(letters.choice(part) for part in parts * letters.choice((1, 2, 2, 3)))
        for _ in range(8000)
    ]
    ranks = [1.0 / rank for rank in range(1, len(vocabulary) + 1)]
    cumulative = list(itertools.accumulate(ranks))
    rng = random.Random(seed)
    for _ in range(count):
        length = min(max(round(rng.lognormvariate(2.9, 0.5)), 2), 80)
        yield " ".join(rng.choices(vocabulary, cum_weights=cumulative, k=length)) + "."


def made_pairs(count: int, seed: int = 0) -> tuple[list[str], list[str]]:
    """Sources and translations of about the same length each: a translation is another sentence cut
    or filled up to its source's length."""
    sources = list(made_sentences(count, seed))
    spare = " ".join(made_sentences(2 * count, seed + 1)).replace(".", "").split()
    rng = random.Random(seed + 2)
    predictions, used = [], 0
    for source in sources:
        length = max(2, round(len(source.split()) * rng.uniform(0.8, 1.2)))
        predictions.append(" ".join(spare[used : used + length]) + ".")
        used += length
    return sources, predictions


def judged_or_made(path: str | None) -> tuple[list[str], list[str]]:
    """Sources and translations of a file's first segments, or made-up ones."""
    if path is None:
        return made_pairs(PAIRS)
    data = read_judged_segments(path)
    return data.sources[:PAIRS], data.predictions[:PAIRS]


def build_encoder(
    folder: Path, texts: Sequence[str], *, hidden: int = 256, layers: int = 4, heads: int = 4
) -> Path:
    """Writes an untrained BERT with a WordPiece vocabulary learnt from `texts`."""
    shape = {"hidden_size": hidden, "num_hidden_layers": layers, "num_attention_heads": heads}
    return _untrained(
        "Bert", folder, texts, intermediate_size=4 * hidden, max_position_embeddings=512, **shape
    )


def build_language_model(folder: Path, texts: Sequence[str]) -> Path:
    """Writes an untrained GPT-2 of two layers."""
    return _untrained("GPT2LMHead", folder, texts, n_embd=128, n_layer=2, n_head=4, n_positions=256)


def _untrained(kind: str, folder: Path, texts: Sequence[str], **shape: int) -> Path:
    import torch
    import transformers

    transformers.utils.logging.disable_progress_bar()
    tokenizer = _wordpiece(texts)
    torch.manual_seed(0)
    start = tokenizer.cls_token_id
    # Trained encoders tell tokens apart; with the usual 0.02 untrained vectors would lie close
    # together.
    common = {"initializer_range": 0.2, "pad_token_id": tokenizer.pad_token_id}
    config = getattr(transformers, f"{kind.removesuffix('LMHead')}Config")(
        vocab_size=len(tokenizer), bos_token_id=start, eos_token_id=start, **common, **shape
    )
    getattr(transformers, f"{kind}Model")(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def _wordpiece(texts: Sequence[str]) -> Any:
    import transformers
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(
        vocab_size=8000, special_tokens=special, show_progress=False
    )
    tokenizer.train_from_iterator(texts, trainer)
    ends = [(token, tokenizer.token_to_id(token)) for token in ("[CLS]", "[SEP]")]
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=ends
    )
    names = dict(zip(("pad_token", "unk_token", "cls_token", "sep_token"), special, strict=True))
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, model_max_length=512, **names
    )
