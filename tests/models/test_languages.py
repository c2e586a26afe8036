"""Encoders that read some languages with a tokenizer of their own."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tokenizers import models, processors
from transformers import AutoModel, AutoTokenizer

from mtmetrics.artifacts.models import sentence_model
from mtmetrics.errors import ArtifactError, InputError
from mtmetrics.models.token_encoder import TokenEncoder
from mtmetrics.scorers.bertr import BERTR
from mtmetrics.scorers.distilscore import DistilScore
from mtmetrics.scorers.sentsim import SentSim
from mtmetrics.scorers.xmoverscore import XMoverScore


@pytest.fixture(scope="module")
def folder(tiny_encoder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Knows "house" as an English word alone: elsewhere it falls into letters."""
    made = tmp_path_factory.mktemp("languages") / "encoder"
    shutil.copytree(tiny_encoder, made)
    tokenizer = AutoTokenizer.from_pretrained(made)
    tokenizer.save_pretrained(made / "languages" / "en")
    pieces = {
        ("~ house" if piece == "house" else piece): number
        for piece, number in tokenizer.get_vocab().items()
    }
    tokenizer.backend_tokenizer.model = models.WordPiece(pieces, unk_token="[UNK]")
    tokenizer.save_pretrained(made)
    return made


def test_a_word_is_read_by_the_language_of_its_text(folder: Path, tiny_encoder: Path) -> None:
    encoder, usual = TokenEncoder(folder), TokenEncoder(tiny_encoder)
    both = encoder.encode(["house", "house", "house"], ["en", "de", "en"])
    assert both.index.tolist() == [0, 1, 0]
    assert both.lengths.tolist() == [3, 7]  # with the special tokens
    assert both.vectors[both.rows(0)] == pytest.approx(
        usual.encode(["house"], "en").vectors, abs=1e-6
    )
    assert encoder.encode(["house"], "fr").vectors == pytest.approx(
        both.vectors[both.rows(1)], abs=1e-6
    )
    words, spans, positions = encoder.text_words("the house", "en")
    assert (words, positions.tolist()) == (["[CLS]", "the", "house", "[SEP]"], [0, 1, 2, 3])
    assert spans.tolist() == [[0, 0], [0, 3], [4, 9], [0, 0]]
    assert encoder.text_words("house", "de", pieces=True).words == ["[CLS]", *"house", "[SEP]"]
    words = encoder.encode_words([["the", "house"]], "en")
    assert words.word_positions.tolist() == [-1, 0, 1, -1]


def test_the_tokens_of_a_language_may_have_a_type_of_their_own(
    tiny_encoder: Path, tmp_path: Path
) -> None:
    made = tmp_path / "encoder"
    shutil.copytree(tiny_encoder, made)
    tokenizer = AutoTokenizer.from_pretrained(made)
    tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS]:1 $A:1 [SEP]:1",
        special_tokens=[(token, tokenizer.vocab[token]) for token in ("[CLS]", "[SEP]")],
    )
    tokenizer.save_pretrained(made / "languages" / "en")
    network = AutoModel.from_pretrained(made).eval()
    packed = TokenEncoder(made).encode(["the house", "the house"], ["en", "de"])
    for text, token_type in enumerate((1, 0)):
        inputs = tokenizer(["the house"], return_tensors="pt")
        inputs["token_type_ids"] = torch.full_like(inputs["input_ids"], token_type)
        with torch.no_grad():
            [expected] = network(**inputs).last_hidden_state.numpy()
        assert packed.vectors[packed.rows(text)] == pytest.approx(expected, abs=1e-5)


def test_such_an_encoder_has_to_know_the_language(folder: Path) -> None:
    encoder = TokenEncoder(folder)
    message = "lang_pair is missing; encoder .* reads en with a vocabulary of its own"
    for call in (
        lambda: encoder.encode(["a"]),
        lambda: BERTR(encoder, against="source").score(["a"], sources=["a"]),
    ):
        with pytest.raises(InputError, match=message):
            call()


def test_what_is_kept_is_kept_by_language(folder: Path) -> None:
    encoder = TokenEncoder(folder)
    first = encoder.encode(["house", "house"], ["en", "de"])
    computed = encoder.counts.computed
    again = encoder.encode(["house", "house"], ["en", "de"])
    assert encoder.counts.computed == computed == 2
    assert np.array_equal(first.vectors, again.vectors)
    assert (
        encoder.encode_words([["house", "en"]], "en").lengths.tolist() != again.lengths.tolist()[:1]
    )
    assert encoder.counts.computed == 3


@pytest.mark.parametrize("against", ["source", "reference"])
def test_scorers_read_each_side_in_its_language(folder: Path, against: str) -> None:
    encoder = TokenEncoder(folder)
    sentences = encoder.means()
    pair: Any = {"lang_pair": "de-en"}
    found = [
        BERTR(encoder, against=against, **pair)
        .score(["house"], sources=["house"], references=["house"])
        .segments,
        DistilScore(sentences, against=against, **pair)
        .score(["house"], sources=["house"], references=["house"])
        .segments,
        SentSim(encoder, sentences, against=against, **pair)
        .score(["house"], sources=["house"], references=["house"])
        .parts["sss"],
    ]
    if against == "source":
        found.append(
            XMoverScore(encoder, **pair)
            .score(["house"], sources=["house"], references=["house"])
            .segments
        )
    # Only an English word is the same as an English one.
    assert [bool(values[0] > 0.999) for values in found] == [against == "reference"] * len(found)


def test_a_broken_tokenizer_is_named(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "encoder")
    (tmp_path / "encoder" / "languages" / "en" / "tokenizer.json").write_text("{")
    with pytest.raises(ArtifactError, match="languages/en"):
        TokenEncoder(tmp_path / "encoder")


def test_such_an_encoder_is_no_sentence_transformers_model(folder: Path) -> None:
    with pytest.raises(
        ArtifactError, match="reads some languages with a vocabulary of its own, which"
    ):
        sentence_model(folder, "cpu")
