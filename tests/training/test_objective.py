"""The objective of an encoder: similarity, loss, teacher, worsened translations."""

from pathlib import Path

import numpy as np
import pytest
import torch
from toys import unigram_pieces
from transformers import BertModel

from mtmetrics.training import objective
from mtmetrics.training.configs import EncoderConfig
from mtmetrics.training.corpus import Pair
from mtmetrics.training.labels import Output

CONFIG = EncoderConfig(negatives=8)
PAIRS = [Pair("das haus", "the house", "x", "de-en"), Pair("der hund", "dog sees", "x", "de-en")]


@pytest.fixture
def batches_of() -> object:
    words = sorted(
        {word for pair in PAIRS for side in (pair.source, pair.target) for word in side.split()}
    )
    tokenizer = unigram_pieces(*words)

    def make(**options: float) -> objective.SentenceBatches:
        plan = [np.array([0, 1])] * 40
        return objective.SentenceBatches(
            plan, PAIRS, {"english": tokenizer, "others": tokenizer}, 16, 1, **options
        )

    return make


def test_token_similarity_by_hand() -> None:
    source = torch.tensor([[[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]]]).repeat(2, 1, 1)
    target = torch.tensor([[[1.0, 0.0], [0.8, 0.6]], [[0.0, 1.0], [1.0, 0.0]]])
    source_mask = torch.tensor([[True, True, False]]).repeat(2, 1)
    target_mask = torch.tensor([[True, True], [True, False]])
    # First target: its tokens offer the source 1 and 0.6, and get 1 and 0.8; second: they offer 0
    # and 1, and get 1.
    similarities = objective.token_similarity(
        objective.Tokens(source, source_mask), objective.Tokens(target, target_mask)
    )
    assert similarities.tolist() == pytest.approx([(0.8 + 0.9) / 2, (0.5 + 1.0) / 2])


def test_pairs_that_share_a_side_are_no_negatives() -> None:
    similarities = torch.tensor([[2.0, 9.0], [9.0, 2.0]])
    same = torch.tensor([[False, True], [True, False]])
    assert objective.symmetric_loss(similarities, same).item() == pytest.approx(0.0, abs=1e-6)
    assert objective.symmetric_loss(similarities, ~same & same).item() == pytest.approx(
        7.0, abs=1e-2
    )


@pytest.fixture
def distillation(multilingual: Path) -> objective.Distillation:
    student, teacher = (
        BertModel.from_pretrained(multilingual, add_pooling_layer=False) for _ in range(2)
    )
    return objective.Distillation(student, teacher, CONFIG)


def texts(ids: list[list[int]]) -> dict[str, torch.Tensor]:
    """Tokens of texts without padding, the first and the last of which are special ones."""
    numbers = torch.tensor(ids)
    is_special = torch.zeros_like(numbers)
    is_special[:, [0, -1]] = 1
    return {
        "input_ids": numbers,
        "attention_mask": torch.ones_like(numbers),
        "special_tokens_mask": is_special,
    }


def test_the_teacher_is_frozen_and_no_part_of_the_state(
    distillation: objective.Distillation,
) -> None:
    names = set(distillation.state_dict()) - {"target_mean", "batches"}
    assert all(name.startswith("student.") for name in names)
    target = texts([[0, 7, 9, 2], [0, 8, 10, 2]])
    ids = target["input_ids"]
    source = {**target, "input_ids": ids.flip(0)}
    shares_text = torch.zeros(2, 2, dtype=torch.bool)
    batch = {
        "target": target,
        "teacher_ids": ids,
        "source": source,
        "shares_text": shares_text,
    }
    distillation.train()(**batch)["loss"].backward()
    [teacher] = distillation._teacher
    assert all(parameter.grad is None for parameter in teacher.parameters())
    assert distillation.student.embeddings.word_embeddings.weight.grad.abs().sum() > 0
    # The mean of the first batch is the running mean, and an evaluation does not move it.
    before = distillation.target_mean.clone()
    states = objective.encode(teacher, target).vectors
    assert before.tolist() == pytest.approx(states.flatten(0, 1).mean(0).tolist(), abs=1e-5)
    distillation.eval()(**batch)
    assert torch.equal(distillation.target_mean, before)


def test_the_right_translation_costs_less_than_another_one(
    distillation: objective.Distillation,
) -> None:
    target = texts([[0, 7, 9, 2], [0, 8, 10, 2]])
    both = {"target": target, "teacher_ids": target["input_ids"]}
    shares_text = torch.zeros(2, 2, dtype=torch.bool)
    other = {**target, "input_ids": target["input_ids"].flip(0)}
    distillation.train()(**both)  # the running mean
    distillation.eval()
    right = distillation(**both, source=target, shares_text=shares_text)["loss"].item()
    wrong = distillation(**both, source=other, shares_text=shares_text)["loss"].item()
    assert right + 1 < wrong


def test_in_english_steps_there_are_english_texts_alone(batches_of: object) -> None:
    batches = batches_of(english_only_share=0.5, worsened_share=0.0)
    is_english = ["source" not in batches[step] for step in range(40)]
    assert 8 < sum(is_english) < 32
    batch = batches[is_english.index(True)]
    assert torch.equal(batch["target"]["input_ids"], batch["teacher_ids"])


def test_the_teacher_does_not_read_untranslated_words(batches_of: object) -> None:
    batches = batches_of(english_only_share=1.0, worsened_share=1.0)
    tokenizer = batches.tokenizers["english"]
    german = set(tokenizer.convert_tokens_to_ids(["▁das", "▁haus", "▁der", "▁hund"]))
    unread = 0
    for step in range(40):
        batch = batches[step]
        is_hidden = batch["teacher_ids"] != batch["target"]["input_ids"]
        assert set(batch["teacher_ids"][is_hidden].tolist()) <= {tokenizer.unk_token_id}
        assert set(batch["target"]["input_ids"][is_hidden].tolist()) <= german
        assert not german & set(batch["teacher_ids"].flatten().tolist())
        unread += int(is_hidden.sum())
    assert unread > 10


def test_untranslated_words_are_marked_and_names_are_not() -> None:
    rng = np.random.default_rng(0)
    source, translation = "Merkel besucht heute Paris", "Merkel visits Paris today"
    texts = [objective.leave_untranslated(source, translation, rng) for _ in range(200)]
    copies = [text for text in texts if text.words == source.split()]
    assert 60 < len(copies) < 140
    assert all(text.is_untranslated == [False, True, True, False] for text in copies)
    mixed = [text for text in texts if text.words != source.split()]
    marked = {
        word
        for text in mixed
        for word, is_marked in zip(text.words, text.is_untranslated, strict=True)
        if is_marked
    }
    assert marked == {"besucht", "heute"}


def test_a_copy_costs_more_the_more_it_is_like_its_source() -> None:
    source = torch.nn.functional.one_hot(torch.tensor([[0, 1]]), 4).float()
    unlike = torch.nn.functional.one_hot(torch.tensor([[2, 3]]), 4).float()
    mask = torch.ones(1, 2, dtype=torch.bool)
    sources = objective.Tokens(source, mask)
    losses = [
        objective.copy_loss(sources, objective.Tokens(copies, mask), mask)
        for copies in (source, source + 2 * unlike, unlike)
    ]
    assert losses[0] > losses[1] > losses[2] == 0
    nothing = torch.zeros(1, 2, dtype=torch.bool)
    assert objective.copy_loss(sources, sources, nothing) == 0


@pytest.mark.parametrize("share", [0.01, 1.0])
def test_a_worsened_translation_differs_and_is_made_of_known_words(share: float) -> None:
    rng = np.random.default_rng(0)
    source, target, other = "das Haus ist alt", "the house is old", "a new bridge"
    worsened = [objective.worsen(source, target, other, share, rng) for _ in range(300)]
    words = {word for text in worsened for word in text.words}
    assert words <= {*source.split(), *target.split(), *other.split()}
    untranslated = {
        w
        for text in worsened
        for w, marked in zip(text.words, text.is_untranslated, strict=True)
        if marked
    }
    assert untranslated == {*source.split()}
    # Only a word that was moved to its own place changes nothing.
    assert sum(text.words == target.split() for text in worsened) < 15


def test_words_that_both_sides_share_are_never_called_untranslated() -> None:
    rng = np.random.default_rng(1)
    worsened = [
        objective.worsen("Berlin schläft", "berlin sleeps", "berlin sleeps", 0.5, rng)
        for _ in range(200)
    ]
    texts = {" ".join(text.words) for text in worsened}
    assert any("schläft" in text for text in texts)
    assert not any("Berlin" in text for text in texts)
    assert objective.worsen("das", "", "a", 0.5, rng).words == []


def test_outputs_of_one_pair_meet_in_a_step(batches_of) -> None:
    outputs = {
        pair: [
            [Output(pair, "rot", "red", text, None, None) for text in ("red", "blue", "red red")]
            for _ in range(9)
        ]
        for pair in ("de-en", "en-de")
    }
    batches = batches_of(outputs=outputs, outputs_share=1.0)
    batches.plan = [np.arange(4)] * 8
    for step in range(8):
        batch = batches[step]
        assert {len(batch[side]["input_ids"]) for side in ("source", "target", "reference")} == {4}
        assert "shares_text" not in batch


def test_pearson_is_that_of_numpy_and_zero_where_nothing_varies() -> None:
    values, labels = torch.tensor([1.0, 2.0, 4.0]), torch.tensor([0.5, 0.1, 3.0])
    assert objective.pearson(values, labels).item() == pytest.approx(
        np.corrcoef(values, labels)[0, 1]
    )
    assert objective.pearson(torch.ones(3), labels).item() == 0
