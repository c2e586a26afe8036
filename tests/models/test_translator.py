"""Translation by tiny MBart models with random weights: what starts the decoder, batches, the
cache, and errors."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from layouts import mbart_tokenizer

from mtmetrics.errors import ArtifactError, InputError
from mtmetrics.models.translator import (
    DecoderPrefix,
    Translator,
    require_mbart,
    set_languages,
    target_prefix,
)

WORDS = [
    "das",
    "haus",
    "ist",
    "klein",
    "ich",
    "sehe",
    "die",
    "katze",
    "the",
    "house",
    "is",
    "small",
    "i",
    "see",
    "cat",
]
TEXTS = [
    "das haus ist klein",
    "ich sehe die katze",
    "haus",
    "die katze ist klein das haus ist klein ich sehe das haus",
]
END = 2


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Makes a tiny MBart with the tokenizer of a class."""
    made: dict[str, Path] = {}

    def make(tokenizer_class: str) -> Path:
        if tokenizer_class not in made:
            folder = tmp_path_factory.mktemp("models") / tokenizer_class
            special = [(token, 0.0) for token in ("<s>", "<pad>", "</s>", "<unk>")]
            vocabulary = [*special, *((f"▁{word}", -1.0) for word in WORDS), ("▁", -5.0)]
            tokenizer = mbart_tokenizer(tokenizer_class, vocabulary)
            tokenizer.model_max_length = 16
            torch.manual_seed(1)
            sizes = {f"{side}_layers": 1 for side in ("encoder", "decoder")}
            heads = {f"{side}_attention_heads": 2 for side in ("encoder", "decoder")}
            fixed = {
                "d_model": 16,
                "encoder_ffn_dim": 32,
                "decoder_ffn_dim": 32,
                "max_position_embeddings": 32,
            }
            config = transformers.MBartConfig(
                vocab_size=len(tokenizer), init_std=0.5, **fixed, **sizes, **heads
            )
            transformers.MBartForConditionalGeneration(config).save_pretrained(folder)
            tokenizer.save_pretrained(folder)
            made[tokenizer_class] = folder
        return made[tokenizer_class]

    return make


def greedy(folder: Path, tokenizer: Any, text: str, begin: list[int], most: int) -> str:
    """The translation token by token, without `generate`."""
    network = transformers.MBartForConditionalGeneration.from_pretrained(folder).eval()
    source, target = torch.tensor([tokenizer(text)["input_ids"]]), list(begin)
    with torch.no_grad():
        while (target[-1] != END and len(target) < most) or len(target) == len(begin):
            logits = network(input_ids=source, decoder_input_ids=torch.tensor([target])).logits
            target.append(int(logits[0, -1].argmax()))
    if len(target) == most:
        target[-1] = END
    return tokenizer.decode(target, skip_special_tokens=True).strip()


@pytest.mark.parametrize("kind", ["MBartTokenizer", "MBart50Tokenizer"])
def test_what_frames_sources_and_targets(models: Callable[[str], Path], kind: str) -> None:
    tokenizer = transformers.AutoTokenizer.from_pretrained(models(kind))
    set_languages(tokenizer, "de-en")
    german, english = tokenizer.convert_tokens_to_ids(["de_DE", "en_XX"])
    ids = tokenizer("das haus")["input_ids"]
    if kind == "MBartTokenizer":
        assert (ids[-2:], target_prefix(tokenizer, END)) == (
            [END, german],
            DecoderPrefix(english, None),
        )
    else:
        assert ([ids[0], ids[-1]], target_prefix(tokenizer, END)) == (
            [german, END],
            DecoderPrefix(END, english),
        )


@pytest.mark.parametrize("kind", ["MBartTokenizer", "MBart50Tokenizer"])
def test_translations_equal_those_token_by_token(models: Callable[[str], Path], kind: str) -> None:
    translator = Translator(models(kind), "de-en", max_length=12)
    prefix = target_prefix(translator.tokenizer, END)
    begin = [prefix.start] if prefix.forced is None else [prefix.start, prefix.forced]
    wanted = [greedy(models(kind), translator.tokenizer, text, begin, 12) for text in TEXTS]
    assert len(set(wanted)) > 1
    assert [translation.text for translation in translator.translate(TEXTS)] == wanted


@pytest.mark.parametrize("beams", [1, 3])
def test_batches_change_nothing(models: Callable[[str], Path], beams: int) -> None:
    together = Translator(models("MBartTokenizer"), "de-en", max_length=12, beams=beams).translate(
        TEXTS
    )
    alone = Translator(
        models("MBartTokenizer"), "de-en", max_length=12, beams=beams, batch_tokens=1
    )
    assert [alone.translate([text])[0] for text in TEXTS] == together


def test_beams_are_the_models_own_and_disclosed(
    models: Callable[[str], Path], tmp_path: Path
) -> None:
    wanted = {
        beams: Translator(models("MBartTokenizer"), "de-en", max_length=12, beams=beams)
        for beams in (1, 5)
    }
    texts = {beams: translator.translate(TEXTS) for beams, translator in wanted.items()}
    assert texts[1] != texts[5]
    # mBART-cc25 says it in config.json, and has no generation_config.json; mBART-50 says it there.
    for name, other in (
        ("config.json", "generation_config.json"),
        ("generation_config.json", None),
    ):
        folder = shutil.copytree(models("MBartTokenizer"), tmp_path / name)
        settings = json.loads((folder / name).read_text(encoding="utf-8"))
        (folder / name).write_text(json.dumps(settings | {"num_beams": 5}), encoding="utf-8")
        if other:
            (folder / other).unlink()
        translator = Translator(folder, "de-en", max_length=12)
        assert (translator.beams, translator.translate(TEXTS)) == (5, texts[5])
        assert Translator(folder, "de-en", max_length=12, beams=1).translate(TEXTS) == texts[1]
    assert Translator(models("MBartTokenizer"), "de-en").beams == 1


def test_blank_long_and_repeated_texts(
    models: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    translator = Translator(models("MBartTokenizer"), "de-en", max_length=12)
    computed: list[int] = []
    run = translator._runner.run
    monkeypatch.setattr(
        translator._runner,
        "run",
        lambda rows, compute: computed.append(sum(map(bool, rows))) or run(rows, compute),
    )
    long = " ".join(["haus"] * 30)
    first = translator.translate([" ", "haus", long, "haus"])
    assert [translation.is_truncated for translation in first] == [False, False, True, False]
    assert first[0].text == ""
    assert first[1] == first[3]
    assert computed == [2]
    assert translator.translate([]) == []
    translator._cache.limit = 2
    translator.translate(["haus", "katze"])
    translator.translate(["haus", long])  # the longer one went when the cache was full
    translator.translate(["haus", long])
    assert computed == [2, 1, 1]


def test_what_cannot_be_used_is_refused(
    models: Callable[[str], Path], tiny_encoder: Path, tmp_path: Path
) -> None:
    folder = models("MBartTokenizer")
    with pytest.raises(InputError, match="no language code for 'tlh'; it has: ar cs de en"):
        Translator(folder, "tlh-en")
    with pytest.raises(InputError, match="beams 0: must be a whole number"):
        Translator(folder, "de-en", beams=0)
    with pytest.raises(ArtifactError, match="cannot be loaded as AutoModelForSeq2SeqLM"):
        Translator(tiny_encoder, "de-en")
    sizes = {
        f"{side}_{size}": 1 for side in ("encoder", "decoder") for size in ("layers", "ffn_dim")
    }
    config = transformers.BartConfig(vocab_size=40, d_model=16, **sizes)
    transformers.BartForConditionalGeneration(config).save_pretrained(tmp_path)
    transformers.AutoTokenizer.from_pretrained(folder).save_pretrained(tmp_path)
    for refuses in (Translator, require_mbart):
        with pytest.raises(ArtifactError, match="a model of the kind 'bart'; an MBart is needed"):
            refuses(tmp_path, "de-en")
    with pytest.raises(InputError, match="no language code for 'tlh'"):
        require_mbart(folder, "tlh-en")
    require_mbart(folder, "de-en")
