"""Training a language model: it learns, packed texts do not see each other, and its folder is whole and loadable."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from toys import equal_weights, precisions, record_of

from mtmetrics.errors import InputError
from mtmetrics.training.lm import pack, train_lm
from mtmetrics.training.run import Run
from mtmetrics.training.settings import LMConfig

_SIZES = {"vocabulary": 320, "width": 16, "layers": 2, "heads": 2, "context": 48, "rows_per_step": 8, "held_back": 40}
_STEPS = {"steps": 60, "warmup_steps": 3, "decay_steps": 20, "checkpoint_every": 30}
TINY = LMConfig(matrix_lr=1e-2, other_lr=1e-2, **_SIZES, **_STEPS)


@pytest.fixture(scope="module")
def trained(toy_lines: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train_lm(Run(tmp_path_factory.mktemp("out") / "toy", seed=2), [str(toy_lines)], config=TINY)


def load(folder: Path) -> tuple:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    model = AutoModelForCausalLM.from_pretrained(folder, local_files_only=True, dtype=torch.float32).eval()
    return AutoTokenizer.from_pretrained(folder, local_files_only=True), model


def mean_log_likelihood(tokenizer: object, model: torch.nn.Module, text: str) -> float:
    ids = torch.tensor([[model.config.bos_token_id, *tokenizer(text)["input_ids"]]])
    with torch.no_grad():
        return -model(input_ids=ids, labels=ids).loss.item()


def test_the_model_prefers_sentences_like_those_it_saw(trained: Path) -> None:
    tokenizer, model = load(trained)
    good = mean_log_likelihood(tokenizer, model, "The old river needs the tree.")
    assert good > mean_log_likelihood(tokenizer, model, "River the tree old the needs.") + 0.5
    record = record_of(trained)
    assert record["result"]["perplexity"] < 8
    assert record["sentences"]["held_back"] == 40


def test_the_folder_loads_offline_and_holds_half_precision_and_a_start_token(trained: Path) -> None:
    tokenizer, model = load(trained)
    assert tokenizer.bos_token == "<s>"
    assert tokenizer.bos_token_id == model.config.bos_token_id
    assert tokenizer("The House")["input_ids"] == tokenizer("the house")["input_ids"]
    assert tokenizer.decode(tokenizer("Žluťoučký 猫")["input_ids"]).strip() == "žluťoučký 猫"
    assert precisions(trained) == {"torch.float16"}
    assert model.get_output_embeddings().weight is model.get_input_embeddings().weight
    assert {path.name for path in trained.parent.iterdir()} == {"toy", "toy.work"}


def test_texts_in_a_row_do_not_see_each_other(trained: Path) -> None:
    tokenizer, model = load(trained)
    texts = ["the old dog", "a book", "the new river likes the tree ."]
    packed = pack(tokenizer, texts, 48)
    assert len(packed) == 1
    row = packed[0]
    with torch.no_grad():
        together = model(row["input_ids"][None], position_ids=row["position_ids"][None], use_cache=False).logits[0]
        place = 0
        for text in texts:
            ids = [tokenizer.bos_token_id, *tokenizer(text)["input_ids"], tokenizer.eos_token_id]
            alone = model(torch.tensor([ids])).logits[0]
            torch.testing.assert_close(together[place : place + len(ids)], alone, atol=1e-4, rtol=0)
            assert row["labels"][place : place + len(ids)].tolist() == [-100, *ids[1:]]
            place += len(ids)
    assert (row["labels"][place:] == -100).all()


def test_long_texts_are_cut_and_counted(trained: Path) -> None:
    tokenizer, _ = load(trained)
    packed = pack(tokenizer, ["tree " * 200, "tree"], 48)
    assert packed.cut == 1
    assert len(packed) == 2


def test_a_resumed_run_ends_with_the_same_weights(
    trained: Path, toy_lines: Path, tmp_path: Path, interrupt_at: Callable[[int | None], None]
) -> None:
    interrupt_at(40)
    with pytest.raises(KeyboardInterrupt):
        train_lm(Run(tmp_path / "toy", seed=2), [str(toy_lines)], config=TINY)
    assert [path.name for path in tmp_path.iterdir()] == ["toy.work"]
    (tmp_path / "toy.work" / "checkpoints" / "checkpoint-39").mkdir()  # cut off while it was written
    interrupt_at(None)
    resumed = train_lm(Run(tmp_path / "toy", seed=2), [str(toy_lines)], config=TINY)
    assert equal_weights(trained, resumed)


def test_weights_repeat_an_origin_in_training_only(toy_lines: Path, tmp_path: Path) -> None:
    spec = f"{toy_lines}:1-100=news,101-200=talk"
    config = LMConfig(**{**vars(TINY), "steps": 2, "warmup_steps": 1, "decay_steps": 1})
    folder = train_lm(Run(tmp_path / "toy"), [spec], weights={"news": 3}, config=config)
    record = record_of(folder)
    assert record["sentences"]["train"] == 160
    assert 160 < record["sentences"]["train_with_weights"] < 480
    assert record["mono"] == ["en.txt:1-100=news,101-200=talk"]


def test_nothing_to_train_on_is_refused(toy_lines: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--mono or --parallel"):
        train_lm(Run(tmp_path / "toy"), config=TINY)
    with pytest.raises(InputError, match="no sentence"):
        train_lm(Run(tmp_path / "toy"), [f"{toy_lines}:1-9=x"], exclude=["x"], config=TINY)
    with pytest.raises(InputError, match="--held-back"):
        train_lm(Run(tmp_path / "toy"), [f"{toy_lines}:1-9=x"], config=TINY)
    assert not (tmp_path / "toy").exists()
