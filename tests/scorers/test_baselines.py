"""Baselines: values by hand, signs, floors, signatures, and how they are loaded."""

import hashlib
import importlib.util
from pathlib import Path

import numpy as np
import pytest

from mtmetrics.errors import InputError, MTMetricsError
from mtmetrics.models.language_model import LanguageModel
from mtmetrics.models.pool import ModelPool
from mtmetrics.scorers.baselines import corpus_bleu
from mtmetrics.scorers.registry import load_scorer

SOURCES = ["das haus", "ich sehe die katze", "nein"]
PREDICTIONS = ["the house", "i see a cat", "no"]
BASELINES = ["source_length", "prediction_length", "random", "sentbleu", "chrf", "chrfpp", "ter"]


def test_lengths_are_characters_with_a_minus_and_a_blank_side_is_as_bad_as_a_very_long_text() -> (
    None
):
    sources, predictions = [*SOURCES, "", "x"], [*PREDICTIONS, "x", " "]
    assert load_scorer("source_length").score(predictions, sources=sources).segments.tolist() == [
        -8,
        -18,
        -4,
        -1000,
        -1000,
    ]
    assert load_scorer("prediction_length").score(
        predictions, sources=sources
    ).segments.tolist() == [
        -9,
        -11,
        -2,
        -1000,
        -1000,
    ]


def test_random_is_the_hash_of_seed_and_texts() -> None:
    digest = hashlib.sha256(b"12345\0das haus\0the house").digest()
    expected = int.from_bytes(digest[:8]) / 2**64
    assert load_scorer("random").score(PREDICTIONS, sources=SOURCES).segments[0] == pytest.approx(
        expected, abs=1e-15
    )


def test_random_depends_on_nothing_but_texts_and_seed_and_is_uniform() -> None:
    scorer = load_scorer("random")
    texts = [f"text {number}" for number in range(4000)]
    drawn = scorer.score(texts[::-1], sources=texts).segments
    np.testing.assert_array_equal(scorer.score(texts, sources=texts[::-1]).segments, drawn[::-1])
    assert not np.any(
        load_scorer("random", seed=1).score(texts[::-1], sources=texts).segments == drawn
    )
    counts, _ = np.histogram(drawn, bins=10, range=(0.0, 1.0))
    assert abs(counts - 400).max() < 100  # five standard deviations
    assert abs(np.corrcoef(drawn, np.arange(4000))[0, 1]) < 0.08


def test_ter_by_hand() -> None:
    """One of four words is replaced; a missing word of three; identical; nothing in common, twice
    as long."""
    references = ["the house is small", "a b c", "yes", "a b"]
    predictions = ["the house is big", "a b", "yes", "w x y z"]
    segments = load_scorer("ter").score(predictions, references=references).segments
    np.testing.assert_allclose(segments, [-1 / 4, -1 / 3, 0.0, -2.0])


def test_chrf_by_hand() -> None:
    """Unigrams: 2 of 3 on both sides; bigrams: 1 of 2; trigrams: 0 of 1; F2 equals P where P equals
    R."""
    assert load_scorer("chrf").score(["abd"], references=["abc"]).system == pytest.approx(
        (2 / 3 + 1 / 2 + 0) / 3
    )
    # chrF++ adds word unigrams, 0 of 1; there is no word bigram.
    assert load_scorer("chrfpp").score(["abd"], references=["abc"]).system == pytest.approx(
        (2 / 3 + 1 / 2 + 0 + 0) / 4
    )


def test_sentence_bleu_by_hand() -> None:
    """4 of 5 unigrams, 3 of 4 bigrams, 2 of 3 trigrams, 1 of 2 four-grams; no brevity penalty."""
    expected = (4 / 5 * 3 / 4 * 2 / 3 * 1 / 2) ** (1 / 4)
    assert load_scorer("sentbleu").score(
        ["a b c d x"], references=["a b c d e"]
    ).system == pytest.approx(expected)
    # Effective order: a text of two words has no trigrams, and is not 0 for it.
    assert load_scorer("sentbleu").score(["a b"], references=["a b"]).system == pytest.approx(1.0)


def test_bleu_without_effective_order_is_scored_without_advice(
    caplog: pytest.LogCaptureFixture,
) -> None:
    scorer = load_scorer("sentbleu", effective_order=False)
    # Fewer than four tokens: there are no four-grams.
    segments = scorer.score(["a b c", "a b c d"], references=["a b c", "a b c d"]).segments
    assert segments == pytest.approx([0.0, 1.0])
    corpus_bleu(["a b c d"], ["a b c d"], "de-en")
    assert "effective_order" not in caplog.text


def test_sentence_bleu_takes_the_tokeniser_of_the_target_language() -> None:
    reference, prediction = ["我看见一只猫"], ["我看见一条狗"]
    by_character, plain = load_scorer("sentbleu", lang_pair="en-zh"), load_scorer("sentbleu")
    assert "|tok:zh|" in by_character.signature
    assert "|tok:13a|" in load_scorer("sentbleu", lang_pair="zh-en").signature
    assert (
        by_character.score(prediction, references=reference).system
        > 0.3
        > plain.score(prediction, references=reference).system
    )


@pytest.mark.parametrize("metric", ["sentbleu", "chrf", "chrfpp", "ter"])
def test_overlap_is_sacrebleu_on_single_segments(metric: str) -> None:
    import sacrebleu

    scorer = load_scorer(metric)
    result = scorer.score(
        ["the home is little", "no"],
        references=[["the house is small", "the home is small"], ["no way"]],
    )
    single = scorer.score(
        ["the home is little"] * 2, references=["the house is small", "the home is small"]
    ).segments
    assert result.segments[0] == single.max() == single[1] > single[0]
    assert result.system == result.segments.mean()
    assert scorer.signature.startswith(f"{metric}|nrefs:1|case:")
    assert f"|sacrebleu:{sacrebleu.__version__}|system:mean-of-segments|v:" in scorer.signature


@pytest.mark.parametrize(
    ("metric", "floor"),
    [("sentbleu", 0.0), ("chrf", 0.0), ("chrfpp", 0.0), ("ter", -1.0), ("random", 0.0)],
)
def test_floors(metric: str, floor: float) -> None:
    result = load_scorer(metric).score(["", "a b"], sources=["a b", " "], references=["a b", " "])
    assert result.segments.tolist() == [floor, floor]
    assert result.report.blank == 2


@pytest.mark.parametrize("metric", BASELINES)
def test_presets_pools_and_languages_are_nothing_to_a_baseline(metric: str) -> None:
    plain = load_scorer(metric)
    other = load_scorer(metric, preset="paper", lang_pair="de-en", pool=ModelPool(), layer=None)
    assert plain.signature == other.signature
    assert "paper" not in plain.signature
    assert "de-en" not in plain.signature


def test_unknown_options_and_language_pairs_are_refused() -> None:
    for metric, takes in (
        ("random", "lang_pair, seed"),
        ("ter", "lang_pair"),
        ("fluency", "preset, lang_pair, lm"),
    ):
        with pytest.raises(InputError, match=f"{metric} has no option 'layer'; it takes: {takes}$"):
            load_scorer(metric, preset="mini", layer=3)
    with pytest.raises(InputError, match="language pair 'deen'"):
        load_scorer("chrf", lang_pair="deen")


def test_without_sacrebleu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MTMetricsError, match=r"chrf needs sacrebleu; pip install .*\[baselines\]'"):
        load_scorer("chrf")


def test_what_sacrebleu_needs_for_a_language(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sacrebleu.tokenizers.tokenizer_ja_mecab.MeCab", None)
    with pytest.raises(
        MTMetricsError, match=r"sentbleu for en-ja: Japanese .* pip install sacrebleu\[ja\]"
    ):
        load_scorer("sentbleu", lang_pair="en-ja")


def test_fluency_is_the_language_model_of_the_preset(tiny_preset: Path, tiny_lm: Path) -> None:
    model = LanguageModel(tiny_lm)
    scorer = load_scorer("fluency", preset=str(tiny_preset), lang_pair="de-en")
    systems = {"a": ["the house", "no", "b"], "b": ["i see", "", "the house"]}
    first, second = scorer.score_systems(systems, sources=["x", "y", " "]).values()
    expected, _, _ = model.score(["the house", "no", "i see"])
    np.testing.assert_allclose(first.segments, [expected[0], expected[1], model.floor], atol=1e-6)
    np.testing.assert_allclose(second.segments, [expected[2], model.floor, model.floor], atol=1e-6)
    xmoverscore = load_scorer("xmoverscore", preset=str(tiny_preset), lang_pair="de-en")
    np.testing.assert_allclose(
        xmoverscore.score(["the house"], sources=["x"]).parts["lm"], expected[:1], atol=1e-6
    )
    assert scorer.signature.startswith(f"fluency|lp:de-en|lm:{model.label}#{model.fingerprint}|v:")


def test_fluency_counts_what_is_cut(tiny_preset: Path) -> None:
    result = load_scorer("fluency", preset=str(tiny_preset), lang_pair="de-en").score(
        ["a" * 200, "a"], sources=["x", "y"]
    )
    assert result.report.truncated == 1


def test_fluency_without_a_language_model(tiny_preset: Path) -> None:
    with pytest.raises(
        InputError, match="fluency needs a language model for 'de', and preset .* names none"
    ):
        load_scorer("fluency", preset=str(tiny_preset), lang_pair="en-de")
    with pytest.raises(InputError, match="language pair None"):
        load_scorer("fluency", preset=str(tiny_preset))
