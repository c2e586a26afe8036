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
from torch.nn import functional

from mtmetrics.errors import InputError
from mtmetrics.training import factorize, pair_batches, pair_model
from mtmetrics.training.encoder import build_encoder, train_encoder
from mtmetrics.training.run import Run


@pytest.fixture(scope="module")
def trained(toy_pairs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train_encoder(Run(tmp_path_factory.mktemp("out") / "toy", seed=3), [toy_pairs], config=TINY)


def test_counted_vectors_match_translations_before_any_training(trained: Path) -> None:
    record = json.loads((trained / "training.json").read_text(encoding="utf-8"))
    assert record["before_training"]["token_p1"] > 0.9
    assert record["result"]["token_p1"] > 0.9


def test_training_improves_the_matching_of_held_back_pairs(
    toy_pairs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def random_vectors(table: object, width: int, seed: int) -> np.ndarray:
        return np.random.default_rng(seed).standard_normal((table.shape[0], width)).astype(np.float32)

    monkeypatch.setattr(factorize, "subword_vectors", random_vectors)
    folder = train_encoder(Run(tmp_path / "toy", seed=3), [toy_pairs], config=TINY)
    record = json.loads((folder / "training.json").read_text(encoding="utf-8"))
    for kind in ("pooled_p1", "token_p1"):
        assert record["before_training"][kind] < 0.3
        assert record["result"][kind] > record["before_training"][kind] + 0.4


def test_the_record_says_what_was_used_but_not_where_it_lay(trained: Path, toy_pairs: Path) -> None:
    text = (trained / "training.json").read_text(encoding="utf-8")
    record = json.loads(text)
    assert record["seed"] == 3
    assert record["config"]["steps"] == 60
    assert record["data"]["used"] == {f"{toy_pairs.parent.name}/de-en.jsonl": {"toy-news": 400}}
    assert record["pairs"]["train"] + record["pairs"]["held_back"] <= 400
    assert {"python", "torch", "transformers"} <= set(record["versions"])
    assert str(toy_pairs.parent.parent) not in text
    table = (trained / "training_log.csv").read_text(encoding="utf-8").splitlines()
    assert table[0].startswith("step,")
    assert "eval_token_p1_de-en" in table[0]


def test_the_folder_loads_offline_and_holds_half_precision(trained: Path) -> None:
    from transformers import AutoModel, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(trained, local_files_only=True)
    model = AutoModel.from_pretrained(trained, local_files_only=True, dtype=torch.float32).eval()
    ids = tokenizer("Das HAUS", return_tensors="pt")
    assert "token_type_ids" not in ids
    assert tokenizer.convert_ids_to_tokens(ids["input_ids"][0]) == ["[CLS]", *tokenizer.tokenize("das haus"), "[SEP]"]
    assert model(**ids).last_hidden_state.shape == (1, ids["input_ids"].shape[1], 16)
    weights = load_file(trained / "model.safetensors")
    assert {tensor.dtype for tensor in weights.values()} == {torch.float16}
    assert not any(name.startswith("pooler") for name in weights)
    assert {path.name for path in trained.parent.iterdir()} == {"toy", "toy.work"}


def test_a_resumed_run_ends_with_the_same_weights(
    trained: Path, toy_pairs: Path, tmp_path: Path, interrupt_at: Callable[[int | None], None]
) -> None:
    # The vocabulary of a repeated run may differ where counts are equal, see `train_wordpiece`; a resumed run keeps its
    # own.
    shutil.copytree(trained.parent / "toy.work" / "tokenizer", tmp_path / "toy.work" / "tokenizer")
    interrupt_at(40)
    with pytest.raises(KeyboardInterrupt):
        train_encoder(Run(tmp_path / "toy", seed=3), [toy_pairs], config=TINY)
    assert [path.name for path in tmp_path.iterdir()] == ["toy.work"]
    interrupt_at(None)
    resumed = train_encoder(Run(tmp_path / "toy", seed=3), [toy_pairs], config=TINY)
    first, second = (load_file(folder / "model.safetensors") for folder in (trained, resumed))
    for name, tensor in first.items():
        assert torch.equal(tensor, second[name]), name


def test_settings_and_places_that_do_not_fit_are_refused(trained: Path, toy_pairs: Path) -> None:
    with pytest.raises(InputError, match="exists already"):
        train_encoder(Run(trained, seed=3), [toy_pairs], config=TINY)
    with pytest.raises(InputError, match="other settings"):
        train_encoder(Run(trained, seed=4, overwrite=True), [toy_pairs], config=TINY)
    with pytest.raises(InputError, match="no such file"):
        train_encoder(Run(trained.parent / "new"), [toy_pairs.parent / "none.jsonl"], config=TINY)
    assert not (trained.parent / "new").exists()


def test_a_new_encoder_passes_the_vectors_through() -> None:
    vectors = np.random.default_rng(0).standard_normal((50, 16)).astype(np.float32)
    model = build_encoder(TINY, 50, vectors).eval()
    states = model(input_ids=torch.tensor([[5, 6, 7]])).last_hidden_state[0]
    expected = functional.layer_norm(torch.from_numpy(vectors[[5, 6, 7]]), (16,))
    torch.testing.assert_close(states, expected, atol=1e-4, rtol=0)


def test_token_similarity_by_hand() -> None:
    source = torch.tensor([[[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]]])
    target = torch.tensor([[[1.0, 0.0], [0.8, 0.6]], [[0.0, 1.0], [1.0, 0.0]]])
    source_mask = torch.tensor([[True, True, False]])
    target_mask = torch.tensor([[True, True], [True, False]])
    found = pair_model.token_similarity(source, source_mask, target, target_mask)
    # First target: its tokens offer the source 1 and 0.6, and get 1 and 0.8; second: they offer 0 and 1, and get 1.
    assert found.tolist()[0] == pytest.approx([(0.8 + 0.9) / 2, (0.5 + 1.0) / 2])


def test_pairs_that_share_a_side_are_no_negatives() -> None:
    similarities = torch.tensor([[2.0, 9.0], [9.0, 2.0]])
    same = torch.tensor([[False, True], [True, False]])
    assert pair_model.symmetric_loss(similarities, same).item() == pytest.approx(0.0, abs=1e-6)
    assert pair_model.symmetric_loss(similarities, ~same & same).item() == pytest.approx(7.0, abs=1e-2)


def test_the_plan_keeps_language_pairs_apart_and_a_shorter_one_is_its_beginning() -> None:
    groups = {"a-en": np.arange(100), "b-en": np.arange(100, 150), "b-en.words": np.arange(150, 158)}
    lengths = np.random.default_rng(0).integers(5, 40, 158)
    plan = pair_batches.plan_batches(groups, lengths, 10, 60, seed=1)
    assert {len(batch) for batch in plan} <= {10, 8}
    for batch in plan:
        assert len(set(batch.tolist())) == len(batch)
        assert sum(np.isin(batch, members).all() for members in groups.values()) == 1
    shorter = pair_batches.plan_batches(groups, lengths, 10, 25, seed=1)
    assert all(np.array_equal(a, b) for a, b in zip(shorter, plan, strict=False))
    first_pass = [batch for batch in plan if batch[0] < 100][:10]
    assert sorted(np.concatenate(first_pass).tolist()) == list(range(100))


def test_training_goes_on_from_an_earlier_encoder_with_worsened_translations(
    trained: Path, toy_pairs: Path, tmp_path: Path
) -> None:
    config = dataclasses.replace(TINY, corrupted=0.3, steps=40, decay_steps=20)
    folder = train_encoder(Run(tmp_path / "second", seed=3), [toy_pairs], start=trained, config=config)
    record = json.loads((folder / "training.json").read_text(encoding="utf-8"))
    assert record["start"] == "toy"
    first = json.loads((trained / "training.json").read_text(encoding="utf-8"))
    assert record["before_training"] == pytest.approx(first["result"], abs=0.02)
    assert (folder / "tokenizer.json").read_bytes() == (trained / "tokenizer.json").read_bytes()
    with pytest.raises(InputError, match="another size"):
        train_encoder(
            Run(tmp_path / "third", seed=3), [toy_pairs], start=trained, config=dataclasses.replace(config, heads=4)
        )
    with pytest.raises(InputError, match="no encoder folder"):
        train_encoder(Run(tmp_path / "fourth", seed=3), [toy_pairs], start=tmp_path, config=config)
