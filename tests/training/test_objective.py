"""What an encoder is taught by: similarity, loss, teacher, worsened translations."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from toys import word_pieces
from transformers import BertModel

from mtmetrics.training import objective
from mtmetrics.training.corpus import Pair


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
