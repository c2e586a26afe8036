"""The encoder against plain `transformers` calls, and its invariances."""

import functools
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers import TEXTS
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import processors
from transformers import (
    AutoModel,
    AutoTokenizer,
    BertConfig,
    CanineTokenizer,
    Data2VecTextConfig,
    EsmConfig,
    IBertConfig,
    LayoutLMv3Config,
    LiltConfig,
    LongformerConfig,
    LukeConfig,
    MarkupLMConfig,
    RobertaConfig,
    T5Config,
    XmodConfig,
)

from mtmetrics.errors import ArtifactError, InputError, MTMetricsError
from mtmetrics.models.token_encoder import TokenEncoder, _max_length


@pytest.mark.parametrize("layer", [0, 1, 3])
def test_equals_the_hidden_state_of_the_whole_model(tiny_encoder: Path, layer: int) -> None:
    tokenizer = AutoTokenizer.from_pretrained(tiny_encoder)
    model = AutoModel.from_pretrained(tiny_encoder, dtype=torch.float32).eval()
    packed = TokenEncoder(tiny_encoder, layer=layer).encode(TEXTS)
    for number, text in enumerate(TEXTS):
        inputs = tokenizer([text], truncation=True, max_length=64, return_tensors="pt")
        with torch.no_grad():
            state = model(**inputs, output_hidden_states=True).hidden_states[layer][0].numpy()
        rows = packed.rows(packed.index[number])
        assert packed.vectors[rows] == pytest.approx(state, abs=2e-6)
        assert packed.token_ids[rows].tolist() == inputs["input_ids"][0].tolist()


def test_last_layer_is_the_default_and_upper_layers_do_not_run(tiny_encoder: Path) -> None:
    assert TokenEncoder(tiny_encoder).layer == 3
    cut = TokenEncoder(tiny_encoder, layer=1)
    cut.encode(["the dog"])
    assert len(cut._network._runner.replicas[0][0]._network.blocks) == 1


def test_each_text_is_computed_once(tiny_encoder: Path) -> None:
    encoder = TokenEncoder(tiny_encoder)
    packed = encoder.encode(TEXTS)
    assert len(packed.lengths) == 6
    assert packed.index.tolist() == [0, 1, 2, 3, 1, 4, 5]
    encoder.encode(["the dog", "new"])
    assert (encoder.counts.requested, encoder.counts.computed) == (9, 7)
    forgetful = TokenEncoder(tiny_encoder, cache_bytes=0)
    forgetful.encode(["the dog"])
    forgetful.encode(["the dog"])
    assert forgetful.counts.computed == 2
    bounded = TokenEncoder(tiny_encoder, cache_bytes=2000)
    bounded.encode([f"the dog {number} sleeps" for number in range(50)])
    assert 0 < bounded._network._cache.size <= 2000


def test_long_texts_are_cut_and_marked(tiny_encoder: Path) -> None:
    packed = TokenEncoder(tiny_encoder).encode(TEXTS)
    assert packed.truncated.tolist() == [False, False, False, False, True, False]
    assert packed.lengths[4] == 64
    assert packed.token_ids[packed.rows(4)][-1] == 3  # [SEP] stays


@given(st.permutations(range(len(TEXTS))), st.sampled_from([1, 40, 100, 4096]))
@settings(max_examples=15, deadline=None)
def test_batches_order_and_neighbours_change_nothing(
    tiny_encoder: Path, order: list[int], batch_tokens: int
) -> None:
    alone = {text: one_by_one(tiny_encoder).encode([text]).vectors for text in TEXTS}
    encoder = TokenEncoder(tiny_encoder, batch_tokens=batch_tokens, cache_bytes=0)
    packed = encoder.encode([TEXTS[number] for number in order])
    for position, number in enumerate(order):
        assert packed.vectors[packed.rows(packed.index[position])] == pytest.approx(
            alone[TEXTS[number]], abs=5e-6
        )


@functools.cache
def one_by_one(folder: Path) -> TokenEncoder:
    return TokenEncoder(folder)


def test_padding_stays_low_on_mixed_lengths(tiny_encoder: Path) -> None:
    generator = np.random.default_rng(0)
    texts = [
        " ".join(generator.choice(["dog", "cat", "tree", "house"], n))
        for n in generator.integers(8, 50, 2000)
    ]
    encoder = TokenEncoder(tiny_encoder, batch_tokens=1024)
    encoder.encode(texts)
    assert encoder.counts.padded_tokens / encoder.counts.tokens <= 1.05


def test_words_given_as_lists(tiny_encoder: Path) -> None:
    packed = TokenEncoder(tiny_encoder).encode_words([["the", "xyz"], []])
    assert packed.word_positions[packed.rows(0)].tolist() == [-1, 0, 1, 1, 1, -1]
    assert packed.word_positions[packed.rows(1)].tolist() == [-1, -1]


def changed(tiny_encoder: Path, folder: Path, change: Callable[[Any], Any]) -> Path:
    """A copy of the encoder whose network was changed."""
    change(AutoModel.from_pretrained(tiny_encoder, dtype=torch.float32)).save_pretrained(folder)
    AutoTokenizer.from_pretrained(tiny_encoder).save_pretrained(folder)
    return folder


def test_stored_half_precision_is_computed_in_single(tiny_encoder: Path, tmp_path: Path) -> None:
    encoder = TokenEncoder(changed(tiny_encoder, tmp_path, lambda model: model.half()))
    assert (
        next(encoder._network._runner.replicas[0][0]._network.parameters()).dtype == torch.float32
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"layer": 4}, r"layer 4: .* has the layers 0 \(embeddings\) to 3"),
        ({"layer": "x"}, "layer 'x'"),
        ({"batch_tokens": 0}, "batch_tokens 0: must be a whole number of at least 1"),
        ({"dtype": "int8"}, "dtype 'int8': must be one of float32"),
    ],
)
def test_bad_options(tiny_encoder: Path, options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        TokenEncoder(tiny_encoder, **options)


def test_a_tokenizer_without_positions_is_refused(tiny_encoder: Path, tmp_path: Path) -> None:
    folder = changed(tiny_encoder, tmp_path, lambda model: model)
    for file in folder.glob("tokenizer*"):
        file.unlink()
    CanineTokenizer().save_pretrained(folder)
    message = "encoder .*: CanineTokenizer does not tell where its tokens stand"
    with pytest.raises(ArtifactError, match=message):
        TokenEncoder(folder)


def test_overflow_is_an_error(tiny_encoder: Path, tmp_path: Path) -> None:
    def broken(model: Any) -> Any:
        model.encoder.layer[0].output.LayerNorm.weight.data.fill_(float("nan"))
        return model

    folder = changed(tiny_encoder, tmp_path, broken)
    with pytest.raises(MTMetricsError, match="layer 3 overflows in bfloat16; use dtype='float32'"):
        TokenEncoder(folder, dtype="bfloat16").encode(["the dog"])
    with pytest.raises(MTMetricsError, match="layer 3 overflows in float32; its weights may be"):
        TokenEncoder(folder).encode(["the dog"])
    with pytest.raises(MTMetricsError, match=r"layer 1 \+ 2 overflows"):
        TokenEncoder(folder, mix=np.array([[1.0, 1.0, 0.0]])).encode(["the dog"])


def test_missing_and_damaged_models(tiny_encoder: Path, tmp_path: Path) -> None:
    places = "was not found as a folder, as a bundled artifact, in the cache or on the Hub"
    (tmp_path / "empty").mkdir()
    for model, message in (
        ("no/such-model", rf"'no/such-model' {places}: .*no/such-model \(revision main\)"),
        ("no such model", "no valid name of a repository"),
        (tmp_path / "empty", r"holds no config\.json"),
    ):
        with pytest.raises(ArtifactError, match=message):
            TokenEncoder(model, local_files_only=True)
    broken = tmp_path / "broken"
    shutil.copytree(tiny_encoder, broken)
    weights = broken / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    with pytest.raises(ArtifactError, match="damaged or incomplete"):
        TokenEncoder(broken)
    weights.unlink()
    (broken / "pytorch_model.bin").write_bytes(b"pickle")
    with pytest.raises(ArtifactError, match=r"no \*\.safetensors weights"):
        TokenEncoder(broken)


def test_fingerprint_follows_content_not_place(tiny_encoder: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(tiny_encoder, copy)
    assert TokenEncoder(copy).fingerprint == TokenEncoder(tiny_encoder).fingerprint
    config = copy / "config.json"
    config.write_text(config.read_text().replace('"hidden_act": "gelu"', '"hidden_act": "relu"'))
    assert TokenEncoder(copy).fingerprint != TokenEncoder(tiny_encoder).fingerprint


def test_a_mix_is_the_weighted_sum_of_the_layers(tiny_encoder: Path) -> None:
    texts = ["the house is small", "a dog", "the house is small"]
    layers = [TokenEncoder(tiny_encoder, layer=layer).encode(texts) for layer in (1, 2, 3)]
    mix = np.array([[0.0, 0.0, 1.0], [0.5, -1.0, 2.0]])
    mixed = TokenEncoder(tiny_encoder, mix=mix)
    found = mixed.encode(texts)
    sums = [sum(w * tokens.vectors for w, tokens in zip(row, layers, strict=True)) for row in mix]
    expected = np.concatenate(sums, axis=1)
    assert mixed.dim == 32
    assert found.vectors == pytest.approx(expected, abs=1e-5)
    assert mixed.encode(texts).vectors.tobytes() == found.vectors.tobytes()
    with pytest.raises(InputError, match=r"needs rows of 3 weights"):
        TokenEncoder(tiny_encoder, mix=np.ones((1, 2)))
    with pytest.raises(InputError, match="and layer 2"):
        TokenEncoder(tiny_encoder, mix=np.eye(3), layer=2)
    with pytest.raises(InputError, match="each row needs a weight that is not 0"):
        TokenEncoder(tiny_encoder, mix=np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 0.0]]))


def test_max_pieces_does_not_count_special_tokens(tiny_encoder: Path) -> None:
    tokens = TokenEncoder(tiny_encoder, max_pieces=3).encode(["the house is small", "the house is"])
    assert tokens.lengths.tolist() == [5, 5]
    assert tokens.truncated.tolist() == [True, False]


def test_a_text_without_tokens_has_the_mean_zero(tiny_encoder: Path, tmp_path: Path) -> None:
    folder = tmp_path / "no-special-tokens"
    shutil.copytree(tiny_encoder, folder)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    tokenizer.backend_tokenizer.post_processor = processors.Sequence([])
    tokenizer.save_pretrained(folder)
    packed = TokenEncoder(folder).means().encode(["the dog", ""])
    assert packed.vectors[0].any()
    assert packed.vectors[1].tolist() == [0.0] * 16


def test_neither_model_nor_tokenizer_has_a_limit(tiny_encoder: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(tiny_encoder, model_max_length=int(1e30))
    limit = _max_length(tokenizer, T5Config())
    ids = tokenizer(["the dog " * 400], truncation=True, max_length=limit)["input_ids"]
    assert len(ids[0]) == 802


def test_positions_before_the_first_one_are_not_counted(tiny_encoder: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(tiny_encoder, model_max_length=int(1e30))
    for config in (
        RobertaConfig,
        LongformerConfig,
        Data2VecTextConfig,
        XmodConfig,
        IBertConfig,
        LukeConfig,
        LiltConfig,
        LayoutLMv3Config,
        MarkupLMConfig,
        EsmConfig,
    ):
        assert _max_length(tokenizer, config(max_position_embeddings=66, pad_token_id=1)) == 64
    assert _max_length(tokenizer, BertConfig(max_position_embeddings=66, pad_token_id=1)) == 66
