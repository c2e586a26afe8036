"""Training an encoder: it learns, goes on after an interruption, and its folder is whole and loadable."""

import contextlib
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
from toys import equal_weights, precisions, record_of, rows_file
from transformers import AutoModel, AutoTokenizer, BertConfig, BertModel

from mtmetrics.errors import InputError, MTMetricsError
from mtmetrics.training import vocabulary
from mtmetrics.training.corpus import Pair
from mtmetrics.training.encoder import batches, objective, start
from mtmetrics.training.encoder.batches import worsen
from mtmetrics.training.encoder.train import train_encoder
from mtmetrics.training.run import Run
from mtmetrics.training.settings import EncoderConfig

_SIZES = {"vocabulary": 120, "english_pieces": 40, "layer": 1, "max_pieces": 24, "pairs_per_step": 32, "candidates": 16}
_STEPS = {"steps": 60, "warmup_steps": 3, "decay_steps": 20, "checkpoint_every": 30, "evaluate_every": 30}
_HELD = {"held_back_per_mille": 150, "held_back_per_pair": 60, "characters": 20_000}
TINY = EncoderConfig(vector_lr=1e-2, body_lr=1e-3, english=0.2, **_SIZES, **_STEPS, **_HELD)
SHORT = dataclasses.replace(TINY, steps=6, warmup_steps=1, decay_steps=1)


@pytest.fixture(scope="module")
def teacher(toy_encoder: Callable[[Path, int, int], Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return toy_encoder(tmp_path_factory.mktemp("models") / "teacher", 16, 1)


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    texts = [("das haus", "the house"), ("hund mag brot", "dog likes bread"), ("alt", "old"), ("neu buch", "the river")]
    rows = [{"lp": "de-en", "source": s, "translation": t, "human": 1.0 - n} for n, (s, t) in enumerate(texts)]
    return rows_file(tmp_path_factory.mktemp("judged") / "de-en.jsonl", rows)


@pytest.fixture(scope="module")
def trained(toy_pairs: Path, teacher: Path, judged: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = Run(tmp_path_factory.mktemp("out") / "toy", seed=3)
    return train_encoder(run, [toy_pairs], teacher, judged=[judged], config=TINY)


def word_pieces(*words: str) -> Any:
    pieces = [*vocabulary.WORDPIECE_SPECIAL, *words]
    return vocabulary.as_pretrained(vocabulary.wordpiece({piece: n for n, piece in enumerate(pieces)}), 64)


def test_training_brings_held_back_pairs_nearer(trained: Path) -> None:
    record = record_of(trained)
    assert record["result"]["held_back_loss"] < 0.8 * record["before_training"]["held_back_loss"]
    assert -1 <= record["result"]["token_r"] <= 1
    assert record["result"]["token_r"] == record["result"][next(k for k in record["result"] if "token_r_" in k)]


def test_counted_vectors_are_a_better_start_than_others(
    trained: Path, toy_pairs: Path, teacher: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def random_vectors(pairs: object, tokenizer: list, *others: object) -> np.ndarray:
        return np.random.default_rng(0).standard_normal((len(tokenizer), 16)).astype(np.float32)

    monkeypatch.setattr(start, "counted_vectors", random_vectors)
    other = record_of(train_encoder(Run(tmp_path / "toy", seed=3), [toy_pairs], teacher, config=SHORT))
    assert record_of(trained)["before_training"]["held_back_loss"] < other["before_training"]["held_back_loss"] - 0.5


def test_the_record_says_what_was_used_but_not_where_it_lay(trained: Path, toy_pairs: Path) -> None:
    record = record_of(trained)
    assert (record["seed"], record["config"]["steps"]) == (3, 60)
    assert record["data"]["used"] == {f"{toy_pairs.parent.name}/de-en.jsonl": {"toy-news": 400}}
    assert record["pairs"]["train"] + record["pairs"]["held_back"] <= 400
    assert {"python", "torch", "transformers"} <= set(record["versions"])
    assert str(toy_pairs.parent.parent) not in json.dumps(record["data"])
    table = (trained / "training_log.csv").read_text(encoding="utf-8").splitlines()
    assert table[0].startswith("step,")
    assert "eval_held_back_loss" in table[0]


def test_the_folder_loads_offline_and_holds_half_precision(trained: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(trained, local_files_only=True)
    model = AutoModel.from_pretrained(trained, local_files_only=True, dtype=torch.float32).eval()
    ids = tokenizer("Das HAUS", return_tensors="pt")
    assert tokenizer.convert_ids_to_tokens(ids["input_ids"][0]) == ["[CLS]", *tokenizer.tokenize("das haus"), "[SEP]"]
    assert model(**ids).last_hidden_state.shape == (1, ids["input_ids"].shape[1], 16)
    english = AutoTokenizer.from_pretrained(trained / "languages" / "en", local_files_only=True)
    assert english.tokenize("the house") == ["the", "house"]
    assert english.get_vocab()["house"] == tokenizer.get_vocab()["~ house"]
    assert precisions(trained) == {"torch.float16"}
    assert {path.name for path in trained.parent.iterdir()} == {"toy", "toy.work"}


def test_a_resumed_run_ends_with_the_same_weights(
    trained: Path, toy_pairs: Path, teacher: Path, judged: Path, tmp_path: Path, interrupt_at: Callable
) -> None:
    # The vocabulary of a repeated run may differ where counts are equal, see `train_wordpiece`; a resumed run keeps its
    # own.
    shutil.copytree(trained.parent / "toy.work" / "tokenizers", tmp_path / "toy.work" / "tokenizers")
    for step in (40, None):
        interrupt_at(step)
        with pytest.raises(KeyboardInterrupt) if step else contextlib.nullcontext():
            train_encoder(Run(tmp_path / "toy", seed=3), [toy_pairs], teacher, judged=[judged], config=TINY)
        assert (tmp_path / "toy").exists() is (step is None)
    assert equal_weights(trained, tmp_path / "toy")
    assert record_of(trained)["result"] == record_of(tmp_path / "toy")["result"]


def test_layers_above_the_taught_one_are_kept(toy_pairs: Path, tmp_path: Path) -> None:
    folder = tmp_path / "deep"
    words = sorted({word for line in toy_pairs.read_text().splitlines() for word in json.loads(line)["target"].split()})
    made = word_pieces(*words)
    made.save_pretrained(folder)
    torch.manual_seed(4)
    sizes = {"hidden_size": 16, "num_hidden_layers": 3, "num_attention_heads": 2, "intermediate_size": 32}
    deep = BertModel(BertConfig(vocab_size=len(made), max_position_embeddings=64, **sizes), add_pooling_layer=False)
    deep.save_pretrained(folder)
    config = dataclasses.replace(SHORT, layer=2)
    out = train_encoder(Run(tmp_path / "out", seed=1), [toy_pairs], folder, config=config)
    weights = load_file(out / "model.safetensors")
    names = [name for name, tensor in deep.state_dict().items() if name.startswith("encoder.layer.")]
    changed = {n.split(".")[2] for n in names if not torch.equal(weights[n], deep.state_dict()[n].half())}
    assert changed == {"0", "1"}


def test_settings_and_places_that_do_not_fit_are_refused(
    trained: Path, toy_pairs: Path, teacher: Path, tiny_lm: Path, tmp_path: Path
) -> None:
    foreign = tmp_path / "de-fr.jsonl"
    shutil.copy(toy_pairs, foreign)
    for run, files, model, config, message in (
        (Run(trained, seed=3), [toy_pairs], teacher, TINY, "exists already"),
        (Run(trained, seed=4, overwrite=True), [toy_pairs], teacher, TINY, "other settings"),
        (Run(tmp_path / "a"), [toy_pairs.parent / "none.jsonl"], teacher, TINY, "no such file"),
        (
            Run(tmp_path / "b"),
            [toy_pairs],
            teacher,
            dataclasses.replace(TINY, layer=2),
            "teacher has the layers 1 to 1",
        ),
        (Run(tmp_path / "c"), [toy_pairs], tiny_lm, TINY, "BERT architecture is needed, this is gpt2"),
        (Run(tmp_path / "d"), [foreign], teacher, TINY, "de-fr: the teacher reads English"),
    ):
        with pytest.raises(InputError, match=message):
            train_encoder(run, files, model, config=config)
    assert {path.name for path in tmp_path.iterdir()} <= {"de-fr.jsonl", "a.work", "b.work", "c.work", "d.work"}


def test_a_training_that_diverged_is_no_artifact(toy_pairs: Path, teacher: Path, tmp_path: Path) -> None:
    config = dataclasses.replace(SHORT, vector_lr=1e30)
    with pytest.raises(MTMetricsError, match="the loss is no longer finite; begin again with --restart and lower"):
        train_encoder(Run(tmp_path / "toy"), [toy_pairs], teacher, config=config)
    assert not (tmp_path / "toy").exists()


def test_texts_are_counted_whole(teacher: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(teacher, local_files_only=True)
    tokenizer.backend_tokenizer.enable_truncation(3)
    tokenizer.backend_tokenizer.enable_padding(length=3)
    house, dog = tokenizer.convert_tokens_to_ids(["house", "dog"])
    counts = start.piece_counts(["house house house house", "dog"], tokenizer)
    assert (counts[house], counts[dog], counts.sum()) == (4, 1, 5)


def test_a_new_piece_begins_as_the_mean_of_what_it_is_translated_with(teacher: Path) -> None:
    original = AutoTokenizer.from_pretrained(teacher, local_files_only=True)
    vectors = np.random.default_rng(0).standard_normal((len(original), 4)).astype(np.float32)
    tokenizer = word_pieces("~ house", "haus", "river", "unseen")
    english = word_pieces("house", "~ haus", "~ river", "~ unseen")
    pairs = [Pair("haus", "house", "x", "de-en"), Pair("river", "dog", "x", "de-en")] * 2
    found = start.counted_vectors(pairs, tokenizer, english, original, vectors)
    found = {piece: found[number] for piece, number in tokenizer.get_vocab().items()}
    old = {piece: vectors[number] for piece, number in original.get_vocab().items()}
    assert found["haus"] == pytest.approx(old["house"])
    assert found["~ house"] == pytest.approx(old["house"])  # English alone: its own vector
    assert found["river"] == pytest.approx(old["dog"])  # of another language, though English has such a piece
    assert found["[CLS]"] == pytest.approx(old["[CLS]"])
    assert found["unseen"] == pytest.approx(vectors.mean(0))


def test_english_and_the_other_languages_share_no_piece_with_letters(teacher: Path) -> None:
    original = AutoTokenizer.from_pretrained(teacher, local_files_only=True)
    pairs = [Pair("das house , 1", "the house , 1", "x", "de-en")] * 5 + [Pair("der fluss", "river", "x", "de-en")]
    english, others = start.two_tokenizers(pairs, original, 80, 2, 1000, 1)
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


def test_the_teacher_is_frozen_and_no_part_of_the_state(teacher: Path) -> None:
    student, frozen = (BertModel.from_pretrained(teacher, add_pooling_layer=False) for _ in range(2))
    model = objective.Distillation(student, frozen, 0.05, 4.0, 2)
    assert all(name.startswith("student.") for name in model.state_dict())
    ids, mask = torch.tensor([[2, 7, 3], [2, 8, 3]]), torch.ones(2, 3, dtype=torch.bool)
    found = model(ids, mask, ids, mask, torch.zeros(2, 2, dtype=torch.bool))
    found["loss"].backward()
    assert all(parameter.grad is None for parameter in frozen.parameters())
    assert student.embeddings.word_embeddings.weight.grad.abs().sum() > 0


def test_in_english_steps_both_read_the_same_text(teacher: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(teacher, local_files_only=True)
    pairs = [Pair("das haus", "the house", "x", "de-en"), Pair("der hund", "dog sees", "x", "de-en")]
    plan = [np.array([0, 1])] * 40
    words = sorted(set(" ".join(side for pair in pairs for side in (pair.source, pair.target)).split()))
    tokenizers = {"others": word_pieces("unseen", *words), "english": tokenizer, "teacher": tokenizer}
    data = batches.PairBatches(pairs, plan, tokenizers, 8, 1, english=0.5, worsened=0.0)
    english = [torch.equal(data[n]["source_ids"], data[n]["target_ids"]) for n in range(40)]
    assert 8 < sum(english) < 32
    lists = [dataclasses.replace(pair, group="de-en.words") for pair in pairs]
    data = batches.PairBatches(lists, plan, tokenizers, 8, 1, english=1.0, worsened=0.0)
    assert not torch.equal(data[0]["source_ids"], data[0]["target_ids"])


@pytest.mark.parametrize("share", [0.01, 0.3, 1.0])
def test_a_worsened_translation_differs_and_is_made_of_known_words(share: float) -> None:
    rng = np.random.default_rng(0)
    source, target, other = "das Haus ist alt", "the house is old", "a new bridge"
    known = {*source.split(), *target.split(), *other.split()}
    found = [worsen(source, target, other, share, rng) for _ in range(300)]
    assert all(set(text.split()) <= known for text in found)
    # Only a word that was moved to its own place changes nothing.
    assert sum(text == target for text in found) < 15


def test_words_that_both_sides_share_are_never_called_untranslated() -> None:
    rng = np.random.default_rng(1)
    found = {worsen("Berlin schläft", "berlin sleeps", "berlin sleeps", 0.5, rng) for _ in range(200)}
    assert any("schläft" in text for text in found)
    assert not any("Berlin" in text for text in found)
    assert worsen("das", "", "a", 0.5, rng) == ""
