"""Training an encoder: it learns, goes on after an interruption, and its folder is whole, half precision and
loadable."""

import dataclasses
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from tiny_settings import TINY
from transformers import AutoModel, AutoTokenizer, BertModel

from mtmetrics.errors import InputError
from mtmetrics.training.corpus import Counts, Pair, read_tests, without_judged
from mtmetrics.training.encoder import batches, objective, start
from mtmetrics.training.encoder.batches import worsen
from mtmetrics.training.encoder.train import train_encoder
from mtmetrics.training.run import Run


@pytest.fixture(scope="module")
def teacher(toy_encoder: Callable[[Path, int, int], Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return toy_encoder(tmp_path_factory.mktemp("models") / "teacher", 16, 1)


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    texts = [("das haus", "the house"), ("hund mag brot", "dog likes bread"), ("alt", "old"), ("neu buch", "the river")]
    path = tmp_path_factory.mktemp("judged") / "de-en.jsonl"
    rows = [{"lp": "de-en", "source": s, "translation": t, "human": 1.0 - n} for n, (s, t) in enumerate(texts)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def trained(toy_pairs: Path, teacher: Path, judged: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = Run(tmp_path_factory.mktemp("out") / "toy", seed=3)
    return train_encoder(run, [toy_pairs], teacher, judged=[judged], config=TINY)


def record_of(folder: Path) -> dict:
    return json.loads((folder / "training.json").read_text(encoding="utf-8"))


def test_training_brings_held_back_pairs_nearer(trained: Path) -> None:
    record = record_of(trained)
    assert record["result"]["held_back_loss"] < 0.8 * record["before_training"]["held_back_loss"]
    assert -1 <= record["result"]["token_r"] <= 1
    assert record["result"]["token_r"] == record["result"][next(k for k in record["result"] if "token_r_" in k)]


def test_counted_vectors_are_a_better_start_than_others(
    trained: Path, toy_pairs: Path, teacher: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def random_vectors(pairs: object, tokenizer: list, original: object, vectors: np.ndarray) -> np.ndarray:
        return np.random.default_rng(0).standard_normal((len(tokenizer), vectors.shape[1])).astype(np.float32)

    monkeypatch.setattr(start, "counted_vectors", random_vectors)
    shorter = dataclasses.replace(TINY, steps=5, warmup_steps=1, decay_steps=1)
    other = record_of(train_encoder(Run(tmp_path / "toy", seed=3), [toy_pairs], teacher, config=shorter))
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
    weights = load_file(trained / "model.safetensors")
    assert {tensor.dtype for tensor in weights.values()} == {torch.float16}
    assert not any(name.startswith("pooler") for name in weights)
    assert {path.name for path in trained.parent.iterdir()} == {"toy", "toy.work"}


def test_a_resumed_run_ends_with_the_same_weights(
    trained: Path, toy_pairs: Path, teacher: Path, judged: Path, tmp_path: Path, interrupt_at: Callable
) -> None:
    # The vocabulary of a repeated run may differ where counts are equal, see `train_wordpiece`; a resumed run keeps its
    # own.
    shutil.copytree(trained.parent / "toy.work" / "tokenizer", tmp_path / "toy.work" / "tokenizer")
    interrupt_at(40)
    with pytest.raises(KeyboardInterrupt):
        train_encoder(Run(tmp_path / "toy", seed=3), [toy_pairs], teacher, judged=[judged], config=TINY)
    assert [path.name for path in tmp_path.iterdir()] == ["toy.work"]
    interrupt_at(None)
    resumed = train_encoder(Run(tmp_path / "toy", seed=3), [toy_pairs], teacher, judged=[judged], config=TINY)
    first, second = (load_file(folder / "model.safetensors") for folder in (trained, resumed))
    for name, tensor in first.items():
        assert torch.equal(tensor, second[name]), name


def test_layers_above_the_taught_one_are_kept(toy_pairs: Path, tmp_path: Path) -> None:
    from transformers import BertConfig, PreTrainedTokenizerFast

    folder = tmp_path / "deep"
    words = sorted({word for line in toy_pairs.read_text().splitlines() for word in json.loads(line)["target"].split()})
    from mtmetrics.training import vocabulary

    pieces = [*vocabulary.WORDPIECE_SPECIAL, *words]
    made = vocabulary.wordpiece({piece: number for number, piece in enumerate(pieces)})
    tokenizer: PreTrainedTokenizerFast = vocabulary.as_pretrained(made, 64)
    tokenizer.save_pretrained(folder)
    torch.manual_seed(4)
    sizes = {"hidden_size": 16, "num_hidden_layers": 3, "num_attention_heads": 2, "intermediate_size": 32}
    deep = BertModel(BertConfig(vocab_size=len(pieces), max_position_embeddings=64, **sizes), add_pooling_layer=False)
    deep.save_pretrained(folder)
    config = dataclasses.replace(TINY, layer=2, steps=6, warmup_steps=1, decay_steps=1)
    out = train_encoder(Run(tmp_path / "out", seed=1), [toy_pairs], folder, config=config)
    weights = load_file(out / "model.safetensors")
    names = [name for name, tensor in deep.state_dict().items() if name.startswith("encoder.layer.")]
    changed = {n.split(".")[2] for n in names if not torch.equal(weights[n], deep.state_dict()[n].half())}
    assert changed == {"0", "1"}


def test_settings_and_places_that_do_not_fit_are_refused(
    trained: Path, toy_pairs: Path, teacher: Path, tiny_lm: Path, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match="exists already"):
        train_encoder(Run(trained, seed=3), [toy_pairs], teacher, config=TINY)
    with pytest.raises(InputError, match="other settings"):
        train_encoder(Run(trained, seed=4, overwrite=True), [toy_pairs], teacher, config=TINY)
    with pytest.raises(InputError, match="no such file"):
        train_encoder(Run(tmp_path / "a"), [toy_pairs.parent / "none.jsonl"], teacher, config=TINY)
    with pytest.raises(InputError, match="layer 2: the teacher has the layers 1 to 1"):
        train_encoder(Run(tmp_path / "b"), [toy_pairs], teacher, config=dataclasses.replace(TINY, layer=2))
    with pytest.raises(InputError, match="BERT architecture is needed, this is gpt2"):
        train_encoder(Run(tmp_path / "c"), [toy_pairs], tiny_lm, config=TINY)
    foreign = tmp_path / "de-fr.jsonl"
    shutil.copy(toy_pairs, foreign)
    with pytest.raises(InputError, match="de-fr: the teacher reads English"):
        train_encoder(Run(tmp_path / "d"), [foreign], teacher, config=TINY)
    assert {path.name for path in tmp_path.iterdir()} <= {"de-fr.jsonl", "a.work", "b.work", "c.work", "d.work"}


def test_pairs_with_a_judged_text_are_left_out(judged: Path) -> None:
    pairs = [Pair("Das Haus!", "a house", "x", "de-en"), Pair("ein hund", "a dog", "x", "de-en")]
    counts = Counts()
    kept = without_judged(pairs, read_tests([judged]), counts)
    assert [pair.source for pair in kept] == ["ein hund"]
    assert counts.left_out["judged"] == 1


def test_a_new_piece_begins_as_the_mean_of_what_it_is_translated_with(teacher: Path) -> None:
    original = AutoTokenizer.from_pretrained(teacher, local_files_only=True)
    vectors = np.random.default_rng(0).standard_normal((len(original), 4)).astype(np.float32)
    from mtmetrics.training import vocabulary

    pieces = [*vocabulary.WORDPIECE_SPECIAL, "haus", "house", "winter", "unseen"]
    made = vocabulary.wordpiece({piece: number for number, piece in enumerate(pieces)})
    tokenizer = vocabulary.as_pretrained(made, 64)
    pairs = [Pair("haus", "house", "x", "de-en"), Pair("winter", "river", "x", "de-en")] * 2
    found = dict(zip(pieces, start.counted_vectors(pairs, tokenizer, original, vectors), strict=True))
    old = {piece: vectors[number] for piece, number in original.get_vocab().items()}
    assert found["haus"] == pytest.approx(old["house"])
    assert found["house"] == pytest.approx(old["house"])  # English alone: its own vector
    assert found["winter"] == pytest.approx(old["river"])  # a foreign word alone, though English has the piece
    assert found["[CLS]"] == pytest.approx(old["[CLS]"])
    assert found["unseen"] == pytest.approx(vectors.mean(0))


def test_the_vocabulary_keeps_the_usual_english_pieces(teacher: Path) -> None:
    original = AutoTokenizer.from_pretrained(teacher, local_files_only=True)
    pairs = [Pair("das haus", "the house", "x", "de-en")] * 5 + [Pair("der fluss", "river", "x", "de-en")]
    found = start.multilingual_tokenizer(pairs, original, 80, 2, 1000, 1)
    assert len(found) <= 80
    assert {"house", "the"} <= set(found.get_vocab())
    assert "river" not in found.get_vocab()
    assert found.tokenize("the HOUSE") == ["the", "house"]


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
    data = batches.PairBatches(pairs, plan, tokenizer, tokenizer, 8, 1, english=0.5, worsened=0.0)
    english = [torch.equal(data[n]["source_ids"], data[n]["target_ids"]) for n in range(40)]
    assert 8 < sum(english) < 32
    words = [dataclasses.replace(pair, group="de-en.words") for pair in pairs]
    data = batches.PairBatches(words, plan, tokenizer, tokenizer, 8, 1, english=1.0, worsened=0.0)
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
