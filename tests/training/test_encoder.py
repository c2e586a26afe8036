"""The encoder: it learns, what it begins with and reads in a step, and the loss."""

import dataclasses
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from toys import CONFIGS, record_of
from transformers import AutoModel, AutoTokenizer, BertConfig, BertModel

from mtmetrics.errors import InputError, MTMetricsError
from mtmetrics.training import objective, vocabulary
from mtmetrics.training.corpus import Pair, ParallelText
from mtmetrics.training.encoder import train_encoder
from mtmetrics.training.run import Run

TINY = CONFIGS["encoder"]
SHORT = {"steps": 4, "warmup_steps": 1, "decay_steps": 1}


@pytest.fixture
def original(models: Path) -> Any:
    return AutoTokenizer.from_pretrained(models / "teacher", local_files_only=True)


def word_pieces(*words: str) -> Any:
    pieces = [*vocabulary.WORDPIECE_SPECIAL, *words]
    return vocabulary.as_pretrained(vocabulary.wordpiece({piece: n for n, piece in enumerate(pieces)}), 64)


def test_training_brings_held_back_pairs_nearer_from_a_good_start(
    train: Callable[..., Path], trained: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = record_of(trained("encoder"))
    before, after = record["before_training"]["held_back_loss"], record["result"]["held_back_loss"]
    assert after < 0.8 * before
    assert -1 <= record["result"]["token_r"] <= 1
    assert record["result"]["token_r"] == record["result"][next(k for k in record["result"] if "token_r_" in k)]
    assert [*record["data"]["used"].values()] == [{"toy-news": 400}]
    assert record["pairs"]["train"] + record["pairs"]["held_back"] <= 400

    def random_vectors(pairs: object, tokenizer: list, *others: object) -> np.ndarray:
        return np.random.default_rng(0).standard_normal((len(tokenizer), 16)).astype(np.float32)

    monkeypatch.setattr(vocabulary, "counted_vectors", random_vectors)
    other = record_of(train("encoder", Run(tmp_path / "toy", seed=3), **SHORT))
    assert before < other["before_training"]["held_back_loss"] - 0.5


def test_the_folder_loads_offline(trained: Callable[[str], Path]) -> None:
    folder = trained("encoder")
    tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    model = AutoModel.from_pretrained(folder, local_files_only=True, dtype=torch.float32).eval()
    ids = tokenizer("Das HAUS", return_tensors="pt")
    assert tokenizer.convert_ids_to_tokens(ids["input_ids"][0]) == ["[CLS]", *tokenizer.tokenize("das haus"), "[SEP]"]
    assert model(**ids).last_hidden_state.shape == (1, ids["input_ids"].shape[1], 16)
    english = AutoTokenizer.from_pretrained(folder / "languages" / "en", local_files_only=True)
    assert english.tokenize("the house") == ["the", "house"]
    assert english.get_vocab()["house"] == tokenizer.get_vocab()["~ house"]


def test_layers_above_the_taught_one_are_kept(toy_pairs: Path, tmp_path: Path) -> None:
    words = sorted({word for line in toy_pairs.read_text().splitlines() for word in json.loads(line)["target"].split()})
    made = word_pieces(*words)
    made.save_pretrained(tmp_path / "deep")
    torch.manual_seed(4)
    sizes = {"hidden_size": 16, "num_hidden_layers": 3, "num_attention_heads": 2, "intermediate_size": 32}
    deep = BertModel(BertConfig(vocab_size=len(made), max_position_embeddings=64, **sizes), add_pooling_layer=False)
    deep.save_pretrained(tmp_path / "deep")
    config = dataclasses.replace(TINY, layer=2, **SHORT)
    out = train_encoder(Run(tmp_path / "out", seed=1), ParallelText([toy_pairs]), tmp_path / "deep", config=config)
    weights = load_file(out / "model.safetensors")
    names = [name for name, tensor in deep.state_dict().items() if name.startswith("encoder.layer.")]
    changed = {n.split(".")[2] for n in names if not torch.equal(weights[n], deep.state_dict()[n].half())}
    assert changed == {"0", "1"}


def test_settings_and_places_that_do_not_fit_are_refused(
    train: Callable[..., Path],
    trained: Callable[[str], Path],
    toy_pairs: Path,
    models: Path,
    tiny_lm: Path,
    tmp_path: Path,
) -> None:
    with pytest.raises(InputError, match="exists already"):
        train("encoder", Run(trained("encoder"), seed=3))
    with pytest.raises(InputError, match="other settings"):
        train("encoder", Run(trained("encoder"), seed=4, overwrite=True))
    with pytest.raises(InputError, match="teacher has the layers 1 to 1"):
        train("encoder", Run(tmp_path / "a"), layer=2)
    with pytest.raises(InputError, match="BERT architecture is needed, this is gpt2"):
        train_encoder(Run(tmp_path / "b"), ParallelText([toy_pairs]), tiny_lm, config=TINY)
    foreign = shutil.copy(toy_pairs, tmp_path / "de-fr.jsonl")
    with pytest.raises(InputError, match="de-fr: the teacher reads English"):
        train_encoder(Run(tmp_path / "c"), ParallelText([foreign]), models / "teacher", config=TINY)
    with pytest.raises(MTMetricsError, match="the loss is no longer finite; begin again with --restart and lower"):
        train("encoder", Run(tmp_path / "d"), vector_lr=1e30, **SHORT)
    assert not any((tmp_path / name).exists() for name in "abcd")


def test_texts_are_counted_whole(original: Any) -> None:
    original.backend_tokenizer.enable_truncation(3)
    original.backend_tokenizer.enable_padding(length=3)
    house, dog = original.convert_tokens_to_ids(["house", "dog"])
    counts = vocabulary.piece_counts(["house house house house", "dog"], original)
    assert (counts[house], counts[dog], counts.sum()) == (4, 1, 5)


def test_a_new_piece_begins_as_the_mean_of_what_it_is_translated_with(original: Any) -> None:
    vectors = np.random.default_rng(0).standard_normal((len(original), 4)).astype(np.float32)
    tokenizer = word_pieces("~ house", "haus", "river", "unseen")
    english = word_pieces("house", "~ haus", "~ river", "~ unseen")
    pairs = [Pair("haus", "house", "x", "de-en"), Pair("river", "dog", "x", "de-en")] * 2
    found = vocabulary.counted_vectors(pairs, tokenizer, english, original, vectors)
    found = {piece: found[number] for piece, number in tokenizer.get_vocab().items()}
    old = {piece: vectors[number] for piece, number in original.get_vocab().items()}
    assert found["haus"] == pytest.approx(old["house"])
    assert found["~ house"] == pytest.approx(old["house"])  # English alone: its own vector
    assert found["river"] == pytest.approx(old["dog"])  # of another language, though English has such a piece
    assert found["[CLS]"] == pytest.approx(old["[CLS]"])
    assert found["unseen"] == pytest.approx(vectors.mean(0))


def test_english_and_the_other_languages_share_no_piece_with_letters(original: Any) -> None:
    pairs = [Pair("das house , 1", "the house , 1", "x", "de-en")] * 5 + [Pair("der fluss", "river", "x", "de-en")]
    made = vocabulary.two_tokenizers(pairs, original, 80, 2, 1000, 1)
    english, others = made["english"], made["others"]
    assert len(english) == len(others) <= 80
    assert english.tokenize("the house") == ["the", "house"]  # the usual ones
    assert "river" not in english.tokenize("river")
    assert others.tokenize("das house")[-1] == "house"
    ids = [set(tokenizer("das house the fluss").input_ids) for tokenizer in (english, others)]
    assert ids[0] & ids[1] == set(english.all_special_ids) & ids[0]
    assert english(", 1").input_ids == others(", 1").input_ids


def test_token_similarity_by_hand() -> None:
    source = torch.tensor([[[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]]])
    target = torch.tensor([[[1.0, 0.0], [0.8, 0.6]], [[0.0, 1.0], [1.0, 0.0]]])
    source_mask = torch.tensor([[True, True, False]])
    target_mask = torch.tensor([[True, True], [True, False]])
    # First target: its tokens offer the source 1 and 0.6, and get 1 and 0.8; second: they offer 0 and 1, and get 1.
    expected = [(0.8 + 0.9) / 2, (0.5 + 1.0) / 2]
    found = objective.token_similarity(source, source_mask, target, target_mask)
    assert found.tolist()[0] == pytest.approx(expected)
    both = source.repeat(2, 1, 1), source_mask.repeat(2, 1)
    assert objective.paired_token_similarity(*both, target, target_mask).tolist() == pytest.approx(expected)


def test_pairs_that_share_a_side_are_no_negatives() -> None:
    similarities = torch.tensor([[2.0, 9.0], [9.0, 2.0]])
    same = torch.tensor([[False, True], [True, False]])
    assert objective.symmetric_loss(similarities, same).item() == pytest.approx(0.0, abs=1e-6)
    assert objective.symmetric_loss(similarities, ~same & same).item() == pytest.approx(7.0, abs=1e-2)


def test_the_teacher_is_frozen_and_no_part_of_the_state(models: Path) -> None:
    student, frozen = (BertModel.from_pretrained(models / "teacher", add_pooling_layer=False) for _ in range(2))
    model = objective.Distillation(student, frozen, 0.05, 4.0, 2)
    assert all(name.startswith("student.") for name in model.state_dict())
    ids, mask = torch.tensor([[2, 7, 3], [2, 8, 3]]), torch.ones(2, 3, dtype=torch.bool)
    model(ids, mask, ids, mask, torch.zeros(2, 2, dtype=torch.bool))["loss"].backward()
    assert all(parameter.grad is None for parameter in frozen.parameters())
    assert student.embeddings.word_embeddings.weight.grad.abs().sum() > 0


def test_in_english_steps_both_read_the_same_text(original: Any) -> None:
    pairs = [Pair("das haus", "the house", "x", "de-en"), Pair("der hund", "dog sees", "x", "de-en")]
    plan = [np.array([0, 1])] * 40
    words = sorted(set(" ".join(side for pair in pairs for side in (pair.source, pair.target)).split()))
    tokenizers = {"others": word_pieces("unseen", *words), "english": original, "teacher": original}
    data = objective.SentenceBatches(plan, pairs, tokenizers, 8, 1, english=0.5, worsened=0.0)
    english = [torch.equal(data[n]["source_ids"], data[n]["target_ids"]) for n in range(40)]
    assert 8 < sum(english) < 32
    lists = [dataclasses.replace(pair, group="de-en.words") for pair in pairs]
    data = objective.SentenceBatches(plan, lists, tokenizers, 8, 1, english=1.0, worsened=0.0)
    assert not torch.equal(data[0]["source_ids"], data[0]["target_ids"])


@pytest.mark.parametrize("share", [0.01, 1.0])
def test_a_worsened_translation_differs_and_is_made_of_known_words(share: float) -> None:
    rng = np.random.default_rng(0)
    source, target, other = "das Haus ist alt", "the house is old", "a new bridge"
    found = [objective.worsen(source, target, other, share, rng) for _ in range(300)]
    assert {word for text in found for word in text.split()} <= {*source.split(), *target.split(), *other.split()}
    # Only a word that was moved to its own place changes nothing.
    assert sum(text == target for text in found) < 15


def test_words_that_both_sides_share_are_never_called_untranslated() -> None:
    rng = np.random.default_rng(1)
    found = {objective.worsen("Berlin schläft", "berlin sleeps", "berlin sleeps", 0.5, rng) for _ in range(200)}
    assert any("schläft" in text for text in found)
    assert not any("Berlin" in text for text in found)
    assert objective.worsen("das", "", "a", 0.5, rng) == ""
