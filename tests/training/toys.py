"""Tiny settings for trainings, what their tests read from artifacts, and how they interrupt
runs."""

import contextlib
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import transformers
from safetensors.torch import load_file
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from mtmetrics.models.token_encoder import TokenEncoder
from mtmetrics.training import configs, vocabulary
from mtmetrics.training.run import Run

_WORDS = [
    "house",
    "dog",
    "cat",
    "tree",
    "the",
    "a",
    "is",
    "not",
    "small",
    "large",
    "i",
    "see",
    "there",
]
_ENGLISH = (
    "the house dog cat tree garden bread water book street river child mother evening winter "
    "bridge sees needs likes small old new"
)
_GERMAN = (
    "das haus hund katze baum garten brot wasser buch strasse fluss kind mutter abend winter "
    "bruecke sieht braucht mag klein alt neu"
)
WORDS = dict(zip(_ENGLISH.split(), _GERMAN.split(), strict=True))
_STEPS = {"steps": 60, "warmup_steps": 3, "decay_steps": 20, "checkpoint_every": 30}
_JUDGED = _STEPS | {
    "evaluate_every": 30,
    "pairs_per_step": 32,
    "held_back_per_mille": 150,
    "held_back_per_pair": 40,
}
_PIECES = {"vocabulary": 100, "characters": 20_000, "max_pieces": 24}
_LM = {
    "vocabulary": 320,
    "width": 16,
    "layers": 2,
    "heads": 2,
    "context": 48,
    "rows_per_step": 8,
    "held_back": 40,
}
_SMALL = {"encoder_layers": 1, "decoder_layers": 1, "heads": 2, "inner": 64, "rows_per_step": 16}
CONFIGS = {
    "encoder": configs.EncoderConfig(
        learning_rate=1e-3,
        vector_lr=1e-2,
        english=0.2,
        layers=1,
        target_layer=2,
        negatives=16,
        **_PIECES,
        **_JUDGED,
    ),
    "lm": configs.LMConfig(matrix_lr=1e-2, other_lr=1e-2, **_LM, **_STEPS),
    "distil": configs.DistilConfig(learning_rate=1e-2, max_pieces=32, **_JUDGED),
    "contrastive": configs.ContrastiveConfig(
        epochs=4, pairs_per_step=32, learning_rate=1e-2, max_pieces=32, checkpoint_every=15
    ),
    "translation": configs.TranslationConfig(epochs=5, pairs_per_step=4, checkpoint_every=7),
    "denoising": configs.DenoisingConfig(matrix_lr=1e-2, other_lr=1e-2, **_SMALL, **_STEPS),
}


def record_of(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "training.json").read_text(encoding="utf-8"))


def precision(folder: Path, toy_pairs: Path) -> float:
    """Share of the first 100 sources whose nearest target is their translation."""
    rows = [json.loads(line) for line in toy_pairs.read_text(encoding="utf-8").splitlines()[:100]]
    encoder = TokenEncoder(folder).means()
    sides = [encoder.encode([row[side] for row in rows]).vectors for side in ("source", "target")]
    x, y = (side / np.linalg.norm(side, axis=1, keepdims=True) for side in sides)
    return float(((x @ y.T).argmax(1) == np.arange(100)).mean())


def word_pieces(*words: str) -> Any:
    """A tokenizer that knows these words."""
    pieces = [*vocabulary.WORDPIECE_SPECIAL, *words]
    return vocabulary.as_pretrained(
        vocabulary.wordpiece({piece: n for n, piece in enumerate(pieces)}), 64
    )


def unigram_pieces(*words: str) -> Any:
    """A Unigram tokenizer as XLM-R's, that knows these words, and letters and marks for all
    others."""
    letters = [*"abcdefghijklmnopqrstuvwxyzäöü123.,!?"]
    pieces = dict.fromkeys(
        [
            "<s>",
            "<pad>",
            "</s>",
            "<unk>",
            "▁",
            *(f"▁{word}" for word in words),
            *letters,
            "▁(",
            "<mask>",
        ]
    )
    scores = [
        (piece, 0.0 if piece.startswith("<") else -float(1 + len(words) * (len(piece) == 1)))
        for piece in pieces
    ]
    tokenizer = Tokenizer(models.Unigram(scores, unk_id=3, byte_fallback=False))
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()]
    )
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> $B </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    named = {
        "bos": "<s>",
        "cls": "<s>",
        "pad": "<pad>",
        "eos": "</s>",
        "sep": "</s>",
        "unk": "<unk>",
        "mask": "<mask>",
    }
    special = {f"{name}_token": token for name, token in named.items()}
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, model_max_length=64, **special
    )


def kept_words(count: int) -> Iterator[tuple[str, str, float]]:
    """Texts of five words, translations that keep the first of them, and the share that they
    keep."""
    rng = random.Random(3)
    for _ in range(count):
        words, kept = rng.sample(_WORDS, 5), rng.randint(0, 5)
        others = rng.sample(["1", "2", "3", ".", "!", "stands"], 5 - kept)
        yield " ".join(words), " ".join(words[:kept] + others), kept / 5


def equal_weights(first: Path, second: Path) -> bool:
    """Whether two artifacts hold the same tensors."""
    for path in first.rglob("*.safetensors"):
        one, other = load_file(path), load_file(second / path.relative_to(first))
        if one.keys() != other.keys() or not all(
            bool((one[key] == other[key]).all()) for key in one
        ):
            return False
    return True


class AtStep(transformers.TrainerCallback):
    """Calls a function after a step."""

    def __init__(self, step: int, act: Any) -> None:
        self.step, self.act = step, act

    def on_step_end(
        self, args: object, state: transformers.TrainerState, *_: object, **__: object
    ) -> None:
        if state.global_step == self.step:
            self.act()


@contextlib.contextmanager
def acting_at(step: int, act: Any) -> Iterator[None]:
    """Trainings call a function after a step."""
    train = Run.train
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(
            Run, "train", lambda run, made: made.add_callback(AtStep(step, act)) or train(run, made)
        )
        yield


@contextlib.contextmanager
def interrupted(step: int) -> Iterator[None]:
    """A training stops with KeyboardInterrupt after a step."""

    def stop() -> None:
        raise KeyboardInterrupt

    with acting_at(step, stop), pytest.raises(KeyboardInterrupt):
        yield
