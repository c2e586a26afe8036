"""The bundled preset: it loads offline, knows its languages, and tells translations from other sentences."""

import numpy as np
import pytest

from mtmetrics.errors import ArtifactError, InputError
from mtmetrics.layout import bundled_artifacts
from mtmetrics.maps.remapping import Remapping
from mtmetrics.scorers.pool import ModelPool
from mtmetrics.scorers.registry import load_scorer
from mtmetrics.scorers.xmoverscore import XMoverScore

LANGUAGES = ["cs", "de", "es", "et", "fi", "fr", "lv", "ne", "ro", "ru", "si", "tr", "zh"]
TRIPLES = {
    "de-en": ("Das Haus ist klein.", "The house is small.", "The weather was good yesterday."),
    "cs-en": ("Ten dům je malý.", "The house is small.", "The weather was good yesterday."),
    "fr-en": (
        "Le chien dort dans la cuisine.",
        "The dog sleeps in the kitchen.",
        "The meeting starts at nine in the morning.",
    ),
    "ru-en": (
        "Президент встретился с министром в Москве.",
        "The president met the minister in Moscow.",
        "My sister likes to read old books.",
    ),
    "zh-en": ("我们需要更多的时间。", "We need more time.", "The cat is under the table."),
}


@pytest.fixture(scope="module")
def pool() -> ModelPool:
    return ModelPool(local_files_only=True)


@pytest.mark.parametrize("lang_pair", TRIPLES)
def test_translations_score_higher_than_other_sentences(pool: ModelPool, lang_pair: str) -> None:
    source, good, bad = TRIPLES[lang_pair]
    for metric, preset in (("xmoverscore", "mini"), ("esim", "esim-mini-qe")):
        scorer = load_scorer(metric, preset=preset, lang_pair=lang_pair, pool=pool)
        assert scorer.compares == "sources"
        result = scorer.score([source, source], [good, bad])
        assert result.segments[0] > result.segments[1]
        if metric == "xmoverscore":
            assert result.parts["mover"][0] > result.parts["mover"][1] + 0.05


def test_fluent_english_is_likelier_than_shuffled_words(pool: ModelPool) -> None:
    source, good = "Das Haus ist klein.", "The house at the end of the street is very small."
    shuffled = "Street the small very the of house end at is the."
    scorer = XMoverScore.from_preset("mini", lang_pair="de-en", pool=pool)
    lm = scorer.score([source, source], [good, shuffled]).parts["lm"]
    assert lm[0] > lm[1] + 1


@pytest.mark.parametrize("language", LANGUAGES)
def test_maps_into_english(pool: ModelPool, language: str) -> None:
    for kind in ("clp", "umd"):
        scorer = XMoverScore.from_preset("mini", lang_pair=f"{language}-en", pool=pool, map=kind)
        assert f"map:{kind}#" in scorer.signature
        remapping = Remapping.load(bundled_artifacts() / "xmoverscore-mini-maps" / f"{language}-en.{kind}.safetensors")
        assert int(remapping.meta["sentences"]) == 2000
        assert int(remapping.meta["pairs"]) > 2000
        array = remapping.source[0].astype(np.float64)
        assert np.abs(array @ array.T - (np.eye(256) if kind == "clp" else 1.0)).max() < 1e-4


def test_what_it_does_not_know(pool: ModelPool) -> None:
    with pytest.raises(InputError, match="knows the languages .* not 'ja'"):
        XMoverScore.from_preset("mini", lang_pair="ja-en", pool=pool)
    with pytest.raises(ArtifactError, match=r"no clp map for language pair en-de .* it has clp for: cs-en, de-en"):
        XMoverScore.from_preset("mini", lang_pair="en-de", pool=pool, map="clp")
    assert "lm:none" in XMoverScore.from_preset("mini", lang_pair="en-de", pool=pool, map="none").signature
