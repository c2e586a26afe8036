"""Fine-tuning for translation: it learns, goes on after an interruption, and its translations become pairs."""

import itertools
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from safetensors.torch import load_file

from mtmetrics.errors import ArtifactError, InputError
from mtmetrics.models.translator import Translation, Translator
from mtmetrics.training.run import Run
from mtmetrics.training.settings import DenoisingConfig, TranslationConfig
from mtmetrics.training.translation import small_mbart, synthetic_pairs, train_translation

WORDS = {"buch": "book", "brot": "bread", "katze": "cat", "kind": "child", "hund": "dog"}
TINY = TranslationConfig(epochs=250, pairs_per_step=32, learning_rate=5e-3, warmup=0.1, checkpoint_every=100)


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All sentences of two of five words and their translation word by word."""
    path = tmp_path_factory.mktemp("pairs") / "mined.tsv"
    sentences = itertools.permutations(WORDS, 2)
    path.write_text(
        "".join(f"{' '.join(words)}\t{' '.join(WORDS[word] for word in words)}\n" for words in sentences),
        encoding="utf-8",
    )
    return path


@pytest.fixture(scope="module")
def start(toy_encoder: Callable[[Path, int, int], Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small MBart that learnt nothing yet."""
    import torch

    folder = tmp_path_factory.mktemp("models") / "start"
    encoder = toy_encoder(folder.with_name("encoder"), 32, 1)
    torch.manual_seed(0)
    tokenizer, network = small_mbart(encoder, DenoisingConfig(layers=1, heads=2, inner=64, dropout=0.0))
    network.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def trained(pairs: Path, start: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train_translation(Run(tmp_path_factory.mktemp("out") / "toy", seed=3), [pairs], start, "de-en", config=TINY)


def test_it_learns_to_translate(trained: Path, start: Path) -> None:
    sources = ["hund buch", "buch hund", "kind katze", "katze brot"]
    wanted = ["dog book", "book dog", "child cat", "cat bread"]
    assert [translation.text for translation in Translator(trained, "de-en").translate(sources)] == wanted
    assert [translation.text for translation in Translator(start, "de-en").translate(sources)] != wanted


def test_the_folder_and_its_record(trained: Path, pairs: Path) -> None:
    record = json.loads((trained / "training.json").read_text(encoding="utf-8"))
    assert (record["pairs"], record["steps"], record["lp"], record["seed"]) == (20, 250, "de-en", 3)
    assert record["model"].startswith("start#")
    assert str(pairs.parent.parent) not in json.dumps(record)
    assert {str(tensor.dtype) for tensor in load_file(trained / "model.safetensors").values()} == {"torch.float16"}
    # What other programs generate with: [SEP] starts the decoder, and [CLS] is its answer.
    generation = json.loads((trained / "generation_config.json").read_text(encoding="utf-8"))
    assert (generation["decoder_start_token_id"], generation["forced_bos_token_id"], generation["eos_token_id"]) == (
        3,
        2,
        3,
    )


def test_a_resumed_run_ends_with_the_same_weights(
    pairs: Path, start: Path, tmp_path: Path, interrupt_at: Callable[[int | None], None]
) -> None:
    def train(name: str) -> Path:
        config = TranslationConfig(epochs=5, pairs_per_step=4, checkpoint_every=7)
        return train_translation(Run(tmp_path / name, seed=3), [pairs], start, "de-en", config=config)

    interrupt_at(16)
    with pytest.raises(KeyboardInterrupt):
        train("cut")
    assert not (tmp_path / "cut").exists()
    interrupt_at(None)
    assert (train("cut") / "model.safetensors").read_bytes() == (train("whole") / "model.safetensors").read_bytes()


def test_synthetic_pairs() -> None:
    class Fixed:
        def translate(self, texts: list[str]) -> list[Translation]:
            return [Translation({"a": "x", "b": "b", "c": ""}[text], False) for text in texts]

    assert synthetic_pairs(Fixed(), ["a", "b", "c"]) == [("a", "x")]


def test_what_cannot_be_used_is_refused(pairs: Path, start: Path, student: Path, tiny_lm: Path, tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match="cannot be loaded as AutoModelForSeq2SeqLM"):
        train_translation(Run(tmp_path / "a"), [pairs], student, "de-en", config=TINY)
    with pytest.raises(InputError, match="language pair 'deen'"):
        train_translation(Run(tmp_path / "b"), [pairs], start, "deen", config=TINY)
    with pytest.raises(InputError, match=r"none\.tsv: no such file"):
        train_translation(Run(tmp_path / "c"), [tmp_path / "none.tsv"], start, "de-en", config=TINY)
    with pytest.raises(ArtifactError, match="its tokenizer has no"):
        small_mbart(tiny_lm, DenoisingConfig())
    assert not any((tmp_path / name).exists() for name in "abc")
