"""`mtmetrics.generate` with a tiny model of `transformers`."""

from pathlib import Path
from typing import Any

import pytest

import mtmetrics
from mtmetrics.errors import InputError
from mtmetrics.scorers.registry import load_scorer


@pytest.fixture(scope="module")
def models(tiny_encoder: Path, tiny_lm: Path) -> dict[str, tuple[Any, Any]]:
    """An encoder and decoder, and a decoder alone, of random weights."""
    import torch
    from transformers import (
        AutoModelForCausalLM,
        AutoTokenizer,
        BartConfig,
        BartForConditionalGeneration,
    )

    tokenizer = AutoTokenizer.from_pretrained(tiny_encoder)
    torch.manual_seed(0)
    sides = {
        f"{side}_{name}": 2
        for side in ("encoder", "decoder")
        for name in ("layers", "attention_heads")
    }
    special = {"bos_token_id": 2, "eos_token_id": 3, "pad_token_id": 0, "decoder_start_token_id": 2}
    sizes = {
        "d_model": 16,
        "encoder_ffn_dim": 32,
        "decoder_ffn_dim": 32,
        "max_position_embeddings": 64,
    }
    config = BartConfig(
        vocab_size=len(tokenizer), init_std=0.5, forced_eos_token_id=3, **sides, **special, **sizes
    )
    alone = AutoTokenizer.from_pretrained(tiny_lm, padding_side="left", pad_token="<s>")
    return {
        "encoder and decoder": (BartForConditionalGeneration(config).eval(), tokenizer),
        "decoder": (AutoModelForCausalLM.from_pretrained(tiny_lm).eval(), alone),
    }


@pytest.mark.parametrize("kind", ["encoder and decoder", "decoder"])
def test_the_shortest_of_the_beams_is_taken(models: dict[str, tuple[Any, Any]], kind: str) -> None:
    model, tokenizer = models[kind]
    sources = ["das haus ist klein", "der hund", "ich sehe die katze"]
    seen = []
    reranker = mtmetrics.Reranker({"length": load_scorer("prediction_length")})

    def noting(
        candidates: list[list[str]], texts: list[str], *, scores: dict[str, Any]
    ) -> list[Any]:
        seen.append((candidates, texts, scores))
        return reranker(candidates, texts)

    made = mtmetrics.generate(
        model, tokenizer, sources, rerank=noting, batch=2, num_beams=4, max_new_tokens=6
    )
    assert [texts for _, texts, _ in seen] == [sources[:2], sources[2:]]
    candidates = [texts for block, _, _ in seen for texts in block]
    assert [len(texts) for texts in candidates] == [4] * 3
    assert len({text for texts in candidates for text in texts}) > 3
    for source, texts, chosen in zip(sources, candidates, made, strict=True):
        assert chosen == min(filter(str.strip, texts), key=len)
        assert not any(text.startswith(source) for text in texts)
    # Beams come with the model's scores, best first.
    for _, _, scores in seen:
        assert all(row == sorted(row, reverse=True) and len(row) == 4 for row in scores["model"])


def test_one_output_is_no_choice(models: dict[str, tuple[Any, Any]]) -> None:
    with pytest.raises(InputError, match="at least 2 are needed to choose from"):
        mtmetrics.generate(*models["decoder"], ["x"], rerank=mtmetrics.Reranker)
