"""Training a language model: it learns, packed texts do not see each other, and its folder is
loadable."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from toys import CONFIGS, record_of

from mtmetrics.errors import InputError
from mtmetrics.training.lm import pack, train_lm
from mtmetrics.training.run import Run

TINY = CONFIGS["lm"]


@pytest.fixture(scope="module")
def loaded(trained: Callable[[str], Path]) -> tuple[Any, Any]:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    options = {"local_files_only": True}
    model = AutoModelForCausalLM.from_pretrained(
        trained("lm"), **options, dtype=torch.float32
    ).eval()
    return AutoTokenizer.from_pretrained(trained("lm"), **options), model


def test_the_model_prefers_sentences_like_those_it_saw(
    loaded: tuple[Any, Any], trained: Callable[[str], Path]
) -> None:
    tokenizer, model = loaded

    def mean_log_likelihood(text: str) -> float:
        ids = torch.tensor([[model.config.bos_token_id, *tokenizer(text)["input_ids"]]])
        with torch.no_grad():
            return -model(input_ids=ids, labels=ids).loss.item()

    good = mean_log_likelihood("The old river needs the tree.")
    assert good > mean_log_likelihood("River the tree old the needs.") + 0.5
    record = record_of(trained("lm"))
    assert record["result"]["perplexity"] < 8
    assert record["sentences"]["held_back"] == 40


def test_the_folder_loads_offline_and_holds_a_start_token(loaded: tuple[Any, Any]) -> None:
    tokenizer, model = loaded
    assert tokenizer.bos_token == "<s>"
    assert tokenizer.bos_token_id == model.config.bos_token_id
    assert tokenizer("The House")["input_ids"] == tokenizer("the house")["input_ids"]
    assert tokenizer.decode(tokenizer("Žluťoučký 猫")["input_ids"]).strip() == "žluťoučký 猫"
    assert model.get_output_embeddings().weight is model.get_input_embeddings().weight


def test_texts_in_a_row_do_not_see_each_other_and_long_ones_are_cut(
    loaded: tuple[Any, Any],
) -> None:
    tokenizer, model = loaded
    texts = ["the old dog", "a book", "the new river likes the tree ."]
    packed = pack(tokenizer, texts, 48)
    assert len(packed.rows) == 1
    row = packed.rows[0]
    with torch.no_grad():
        together = model(
            row["input_ids"][None], position_ids=row["position_ids"][None], use_cache=False
        ).logits[0]
        place = 0
        for text in texts:
            ids = [tokenizer.bos_token_id, *tokenizer(text)["input_ids"], tokenizer.eos_token_id]
            alone = model(torch.tensor([ids])).logits[0]
            torch.testing.assert_close(together[place : place + len(ids)], alone, atol=1e-4, rtol=0)
            assert row["labels"][place : place + len(ids)].tolist() == [-100, *ids[1:]]
            place += len(ids)
    assert (row["labels"][place:] == -100).all()
    packed = pack(tokenizer, ["tree " * 200, "tree"], 48)
    assert (packed.cut, len(packed.rows)) == (1, 2)


def test_weights_repeat_an_origin_in_training_only(toy_lines: Path, tmp_path: Path) -> None:
    spec = f"{toy_lines}:1-100=news,101-200=talk"
    config = TINY.__class__(**{**vars(TINY), "steps": 2, "warmup_steps": 1, "decay_steps": 1})
    record = record_of(train_lm(Run(tmp_path / "toy"), [spec], weights={"news": 3}, config=config))
    assert record["sentences"]["train"] == 160
    assert 160 < record["sentences"]["train_with_weights"] < 480
    assert record["mono"] == ["en.txt:1-100=news,101-200=talk"]


@pytest.mark.parametrize(
    ("lines", "options", "message"),
    [
        ([], {}, "--mono or --parallel"),
        (["1-9=x"], {"exclude": ["x"]}, "no sentence"),
        (["1-9=x"], {}, "--held-back"),
        (["1-9"], {"side": "both"}, "side 'both': must be one of source, target"),
    ],
)
def test_what_cannot_be_used_is_refused(
    lines: list[str], options: dict[str, Any], message: str, toy_lines: Path, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=message):
        train_lm(
            Run(tmp_path / "toy"), [f"{toy_lines}:{spec}" for spec in lines], config=TINY, **options
        )
    assert not (tmp_path / "toy").exists()


def test_sentences_that_differ_in_case_alone_are_one_that_is_held_back(tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("the tree\nThe tree\nTHE TREE\na book\n", "utf-8")
    config = dataclasses.replace(TINY, held_back=2)
    with pytest.raises(InputError, match="^2 sentences are too few to hold back 2"):
        train_lm(Run(tmp_path / "toy"), [str(text)], config=config)
