"""The language-model term against single texts without padding."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    BloomConfig,
    BloomForCausalLM,
    CanineTokenizer,
    GPT2Config,
    GPT2LMHeadModel,
    GraniteConfig,
    GraniteForCausalLM,
)

from mtmetrics.errors import ArtifactError, InputError, MTMetricsError
from mtmetrics.models.language_model import LanguageModel, length_normalised

TEXTS = ["the house is small", "x", "", "the dog sleeps and sleeps and sleeps", "x", "ab" * 200]


def loss_of(folder: Path, text: str, start: bool, end: bool = False) -> float:
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    ids = [0] * start + tokenizer(text, add_special_tokens=False)["input_ids"][:128] + [1] * end
    with torch.no_grad():
        batch = torch.tensor([ids[:128]])
        return -model(input_ids=batch, labels=batch).loss.item()


def test_where_a_start_token_goes(tiny_lm: Path) -> None:
    model = LanguageModel(tiny_lm)
    means, lengths, cut = model.score(TEXTS)
    assert means[0] == pytest.approx(loss_of(tiny_lm, TEXTS[0], start=False), abs=1e-5)
    assert means[1] == pytest.approx(loss_of(tiny_lm, "x", start=True), abs=1e-5)
    assert means[2] == model.floor == pytest.approx(-np.log(258))
    assert means[4] == means[1]
    assert lengths.tolist() == [18, 1, 0, 36, 1, 128]
    assert cut.tolist() == [False, False, False, False, False, True]
    always = LanguageModel(tiny_lm, start_token="always").score(TEXTS)[0]
    assert always[0] == pytest.approx(loss_of(tiny_lm, TEXTS[0], start=True), abs=1e-5)
    never = LanguageModel(tiny_lm, start_token="never").score(TEXTS)[0]
    assert never[[1, 2]].tolist() == [0, 0]
    assert never[0] == pytest.approx(loss_of(tiny_lm, TEXTS[0], start=False), abs=1e-5)


def test_a_model_with_the_vocabulary_of_bert(tmp_path: Path) -> None:
    """A model laid out as uer/gpt2-chinese-cluecorpussmall on the Hub: vocab.txt, and a start token that the
    vocabulary lacks."""
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"今天气很好"]
    (tmp_path / "vocab.txt").write_text("\n".join(pieces), encoding="utf-8")
    settings = {
        "tokenizer_class": "BertTokenizer",
        "do_lower_case": False,
        "model_max_length": 1024,
    }
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings))
    sizes = {"vocab_size": len(pieces), "n_positions": 32, "n_embd": 16, "n_layer": 1, "n_head": 2}
    network = GPT2LMHeadModel(GPT2Config(**sizes, initializer_range=0.3)).eval()
    network.save_pretrained(tmp_path)
    assert json.loads((tmp_path / "config.json").read_text())["bos_token_id"] == 50256
    means, lengths, _ = LanguageModel(tmp_path, end_token=True).score(["好", "今天天气很好"])
    assert lengths.tolist() == [1, 6]
    batch = torch.tensor([[2, 9, 3]])
    assert means[0] == pytest.approx(-network(input_ids=batch, labels=batch).loss.item(), abs=1e-5)


def test_a_model_that_scales_its_logits(tiny_lm: Path, tmp_path: Path) -> None:
    shutil.copytree(tiny_lm, tmp_path, dirs_exist_ok=True)
    sizes = {
        "hidden_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 16,
    }
    config = GraniteConfig(
        vocab_size=258, **sizes, logits_scaling=0.05, bos_token_id=0, max_position_embeddings=128
    )
    GraniteForCausalLM(config).save_pretrained(tmp_path)
    mean = LanguageModel(tmp_path).score(TEXTS)[0][0]
    assert mean == pytest.approx(loss_of(tmp_path, TEXTS[0], start=False), abs=1e-5)


def test_logits_come_in_parts(tiny_lm: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [f"{text} {number}" for number in range(20) for text in TEXTS if len(text) < 60]
    plain = [LanguageModel(tiny_lm).score([text])[0][0] for text in texts]
    model = LanguageModel(tiny_lm)
    [(network, _)] = model._runner.replicas
    sizes: list[int] = []
    network.lm_head.register_forward_hook(lambda _, given, logits: sizes.append(logits.numel()))
    assert model.score(texts)[0] == pytest.approx(plain, abs=1e-5)
    assert max(sizes) == 256 * 258


def test_the_number_format_is_that_of_the_network(
    tiny_lm: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = LanguageModel(tiny_lm).score(TEXTS)[0]
    model = LanguageModel(tiny_lm, dtype="bfloat16")
    found = model.score(TEXTS)[0]
    assert found == pytest.approx(plain, abs=0.1)
    assert found[0] != plain[0]
    assert model.signature_fields["lmdtype"] == "bf16"
    [(network, _)] = model._runner.replicas
    monkeypatch.setattr(
        network.lm_head, "forward", lambda states: torch.full((len(states), 258), torch.inf)
    )
    with pytest.raises(
        MTMetricsError, match=r"tiny-lm: overflows in bfloat16; use dtype='float32'"
    ):
        model.score(["a new text"])


def test_the_end_of_a_text_is_scored_where_it_fits(tiny_lm: Path) -> None:
    plain, ended = (
        LanguageModel(tiny_lm, start_token="always", end_token=end) for end in (False, True)
    )
    means = ended.score(TEXTS)[0]
    assert means[0] == pytest.approx(loss_of(tiny_lm, TEXTS[0], start=True, end=True), abs=1e-5)
    assert means[0] != pytest.approx(plain.score(TEXTS)[0][0], abs=1e-4)
    assert means[2] == ended.floor
    assert means[5] == plain.score(TEXTS)[0][5]  # cut, so nobody knows that it ends there


def test_length_power_divides_the_sum(tiny_lm: Path) -> None:
    mean, lengths, _ = LanguageModel(tiny_lm, start_token="always").score(TEXTS)
    scaled = LanguageModel(tiny_lm, start_token="always", length_power=0.8).score(TEXTS)[0]
    # A blank text keeps the floor; the start takes one of 128 places.
    scored = np.where(lengths == 0, 1, np.minimum(lengths, 127)).astype(float)
    assert scaled == pytest.approx(mean * scored**0.2, rel=1e-5)


def test_signature_fields_name_what_is_not_as_published(tiny_lm: Path) -> None:
    assert set(LanguageModel(tiny_lm).signature_fields.values()) == {None}
    changed = LanguageModel(tiny_lm, start_token="always", end_token=True, length_power=0.9)
    named = {"lmstart": "always", "lmend": "yes", "lmlen": "0.9", "lmdtype": None}
    assert changed.signature_fields == named


@pytest.mark.parametrize("batch_tokens", [1, 64, 4096])
def test_batches_and_padding_change_nothing(tiny_lm: Path, batch_tokens: int) -> None:
    together = LanguageModel(tiny_lm, batch_tokens=batch_tokens).score(TEXTS)[0]
    single = LanguageModel(tiny_lm)
    assert together == pytest.approx([single.score([text])[0][0] for text in TEXTS], abs=1e-5)


def test_a_text_that_comes_again_is_not_scored_again(
    tiny_lm: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = LanguageModel(tiny_lm)
    read: list[str] = []
    tokenizer = model.tokenizer
    monkeypatch.setattr(
        model,
        "tokenizer",
        lambda texts, **options: read.extend(texts) or tokenizer(texts, **options),
    )
    first = model.score(TEXTS)
    again = model.score([*TEXTS[::-1], "the cat"])
    assert read == [*dict.fromkeys(TEXTS), "the cat"]
    for before, after in zip(first, again, strict=True):
        assert after[:-1].tolist() == before[::-1].tolist()


@pytest.mark.parametrize("start_token", ["short", "always"])
@pytest.mark.parametrize("end_token", [False, True])
def test_losses_of_tokens_add_up(tiny_lm: Path, start_token: str, end_token: bool) -> None:
    model = LanguageModel(tiny_lm, start_token=start_token, batch_tokens=64)
    means, lengths, _ = model.score(TEXTS)
    ends = LanguageModel(tiny_lm, start_token=start_token, end_token=end_token, batch_tokens=64)
    for text, mean, length, (spans, losses) in zip(
        TEXTS, means, lengths, ends.token_losses(TEXTS), strict=True
    ):
        assert "".join(text[begin:end] for begin, end in spans) == text[:128]
        # At the limit a start token leaves no room for the last token.
        scored = min(length, 127) - (start_token == "short" and 1 < length < 128)
        assert losses.sum() == pytest.approx(-mean * scored if length else 0, abs=1e-3)


def test_length_normalised_form() -> None:
    values = length_normalised(np.array([-8.0, -8.0, -3.0]), np.array([2, 8, 1]))
    assert values == pytest.approx([np.exp(-4), np.exp(-1), 0])


def test_neither_model_nor_tokenizer_has_a_limit(tiny_lm: Path, tmp_path: Path) -> None:
    AutoTokenizer.from_pretrained(tiny_lm, model_max_length=int(1e30)).save_pretrained(tmp_path)
    sizes = {"vocab_size": 258, "hidden_size": 16, "n_layer": 1, "n_head": 2}
    BloomForCausalLM(BloomConfig(**sizes, bos_token_id=0)).save_pretrained(tmp_path)
    _, lengths, cut = LanguageModel(tmp_path).score(["ab" * 200])
    assert (lengths[0], cut[0]) == (400, False)


def test_of_several_end_tokens_the_first_ends_a_text(tiny_lm: Path, tmp_path: Path) -> None:
    shutil.copytree(tiny_lm, tmp_path, dirs_exist_ok=True)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {"eos_token_id": [1, 5]}))
    several, one = (LanguageModel(folder, end_token=True) for folder in (tmp_path, tiny_lm))
    assert several.score(TEXTS)[0].tolist() == one.score(TEXTS)[0].tolist()


def test_a_text_that_gives_way_to_a_start_token_is_truncated(tiny_lm: Path) -> None:
    texts = ["a" * 127, "a" * 128, "a" * 129]
    short, always = (
        LanguageModel(tiny_lm, start_token=start_token) for start_token in ("short", "always")
    )
    assert short.score(texts)[2].tolist() == [False, False, True]
    assert always.score(texts)[2].tolist() == [False, True, True]


def test_without_start_tokens_an_end_token_makes_one_token_enough(tiny_lm: Path) -> None:
    model = LanguageModel(tiny_lm, start_token="never", end_token=True)
    scores = model.score(["x", ""])[0]
    assert scores[0] == pytest.approx(loss_of(tiny_lm, "x", start=False, end=True), abs=1e-5)
    assert scores[1] == 0


def test_a_tokenizer_without_positions_is_refused(tiny_lm: Path, tmp_path: Path) -> None:
    for name in ("config.json", "model.safetensors"):
        shutil.copy(tiny_lm / name, tmp_path)
    CanineTokenizer().save_pretrained(tmp_path)
    message = "language model .*: CanineTokenizer does not tell where its tokens stand"
    with pytest.raises(ArtifactError, match=message):
        LanguageModel(tmp_path)


def test_bad_options(tiny_lm: Path, tmp_path: Path) -> None:
    for name, value in (("start_token", "maybe"), ("length_power", 1.5), ("length_power", "0.9")):
        with pytest.raises(InputError, match=f"{name} {value!r}"):
            LanguageModel(tiny_lm, **{name: value})
    copy = tmp_path / "lm"
    shutil.copytree(tiny_lm, copy)
    config = json.loads((copy / "config.json").read_text())
    (copy / "config.json").write_text(json.dumps(config | {"bos_token_id": None}))
    with pytest.raises(ArtifactError, match="names no bos_token_id"):
        LanguageModel(copy)
    LanguageModel(copy, start_token="never").score(["the dog"])
    (copy / "config.json").write_text(json.dumps(config | {"eos_token_id": None}))
    with pytest.raises(ArtifactError, match="names no eos_token_id"):
        LanguageModel(copy, end_token=True)
