"""The bundled presets: they load offline, know their languages, and rank what a person would
rank."""

import pytest

from mtmetrics.errors import ArtifactError, InputError
from mtmetrics.models.pool import ModelPool
from mtmetrics.models.token_encoder import TokenEncoder
from mtmetrics.scorers.registry import load_scorer
from mtmetrics.scorers.sentsim import SentSim
from mtmetrics.scorers.xmoverscore import XMoverScore

TRIPLES = {
    "cs-en": ("Ten dům je malý.", "The house is small.", "The weather was good yesterday."),
    "de-en": ("Das Haus ist klein.", "The house is small.", "The weather was good yesterday."),
    "es-en": (
        "El agua está muy fría hoy.",
        "The water is very cold today.",
        "My brother bought a new car.",
    ),
    "et-en": (
        "Minu ema töötab haiglas.",
        "My mother works in a hospital.",
        "The train leaves at seven.",
    ),
    "fi-en": ("Hän osti uuden auton.", "He bought a new car.", "The children are sleeping."),
    "fr-en": (
        "Le chien dort dans la cuisine.",
        "The dog sleeps in the kitchen.",
        "The meeting starts at nine.",
    ),
    "lv-en": ("Mums vajag vairāk naudas.", "We need more money.", "The cat is under the table."),
    "ne-en": ("मेरो साथी स्कूल गयो।", "My friend went to school.", "The water is cold."),
    "ro-en": (
        "Copiii se joacă în grădină.",
        "The children play in the garden.",
        "Prices rose last year.",
    ),
    "ru-en": (
        "Президент встретился с министром в Москве.",
        "The president met the minister in Moscow.",
        "I like books.",
    ),
    "si-en": ("මම පොතක් කියවමි.", "I read a book.", "The weather was good yesterday."),
    "tr-en": (
        "Yarın hastaneye gideceğim.",
        "I will go to the hospital tomorrow.",
        "The dog is black.",
    ),
    "zh-en": ("我们需要更多的时间。", "We need more time.", "The cat is under the table."),
}
AGAINST_SOURCES = {
    "xmoverscore": {},
    "uscore": {},
    "sentsim": {"setting": "src-mt"},
    "bertr": {"against": "source"},
    "distilscore": {"against": "source"},
    "esim": {"against": "source"},
}
REFERENCES = [
    "The council voted to close the old school.",
    "Prices rose by three percent last year.",
]
GOOD = ["The council decided to shut the old school.", "Last year prices went up by 3 percent."]
BAD = ["A dog ran across the green field.", "The singer opened the concert with a ballad."]


@pytest.fixture(scope="module")
def pool() -> ModelPool:
    return ModelPool(device="cpu", local_files_only=True)


@pytest.mark.parametrize("lang_pair", TRIPLES)
def test_translations_score_higher_than_other_sentences(pool: ModelPool, lang_pair: str) -> None:
    source, good, bad = TRIPLES[lang_pair]
    for metric, options in AGAINST_SOURCES.items():
        scorer = load_scorer(metric, preset="mini", lang_pair=lang_pair, pool=pool, **options)
        assert scorer.side == "source"
        result = scorer.score([good, bad], sources=[source, source])
        assert result.segments[0] > result.segments[1], metric
        assert "mini-encoder#" in result.signature


def test_pseudo_references_of_a_preset_for_one_pair(pool: ModelPool) -> None:
    scorer = load_scorer("uscore", preset="mini-de-en", pool=pool)
    sources = ["Ich habe keine Zeit.", "Das Haus ist klein.", "Er wohnt in Berlin."]
    translations = ["I have no time.", "The house is small.", "He lives in Berlin."]
    good, bad = (
        scorer.score(translations, sources=sources),
        scorer.score(translations[1:] + translations[:1], sources=sources),
    )
    assert "mini-mbart-de-en#" in good.signature
    assert "sent:mini-contrastive#" in good.signature
    assert "map:umd#" in good.signature
    assert "without" not in good.signature
    assert (good.parts["pseudo"] > bad.parts["pseudo"]).all()
    assert (good.segments > bad.segments).all()
    with pytest.raises(InputError, match="de-en"):
        load_scorer("uscore", preset="mini-de-en", lang_pair="fi-en", pool=pool)


@pytest.mark.parametrize(
    "metric", ["bertr", "distilscore", "sentsim", "esim", "bilstm_attention", "bilstm"]
)
def test_good_translations_score_higher_against_references(metric: str, pool: ModelPool) -> None:
    options = {"setting": "mt-ref"} if metric == "sentsim" else {"against": "reference"}
    scorer = load_scorer(metric, preset="mini", lang_pair="de-en", pool=pool, **options)
    assert scorer.side == "reference"
    systems = scorer.score_systems(
        {"same": REFERENCES, "good": GOOD, "bad": BAD}, references=REFERENCES
    )
    assert (systems["same"].segments > systems["good"].segments).all()
    assert (systems["good"].segments > systems["bad"].segments).all()


def test_words_and_sentences_come_from_one_pass(pool: ModelPool) -> None:
    scorer = load_scorer("sentsim", preset="mini", setting="mt-ref", lang_pair="de-en", pool=pool)
    words = TokenEncoder("mini-encoder", layer=6, device="cpu")
    sentences = TokenEncoder("mini-encoder", device="cpu").means()
    named = {
        "lang_pair": "de-en",
        "bounds": scorer.bounds,
        "normalize": "fixed",
        "normalize_vectors": True,
        "w1": 0.1,
    }
    apart = SentSim(words, sentences, against="reference", **named)
    assert scorer.signature == apart.signature
    references, good = (
        [f"Then: {text}" for text in texts] for texts in (REFERENCES, GOOD)
    )  # which nobody has read yet
    before = scorer.word_encoder.counts.tokens
    assert scorer.score(good, references=references).segments == pytest.approx(
        apart.score(good, references=references).segments, abs=1e-5
    )
    assert scorer.word_encoder.counts.tokens == before + len(
        words.encode([*references, *good], "en").token_ids
    )


def test_fluent_english_is_likelier_than_shuffled_words(pool: ModelPool) -> None:
    source, good = "Das Haus ist klein.", "The house at the end of the street is very small."
    shuffled = "Street the small very the of house end at is the."
    scorer = XMoverScore.load("mini", lang_pair="de-en", pool=pool)
    lm = scorer.score([good, shuffled], sources=[source, source]).parts["lm"]
    assert lm[0] > lm[1] + 1


def test_what_it_does_not_know(pool: ModelPool) -> None:
    with pytest.raises(InputError, match="knows the languages .* not 'ja'"):
        XMoverScore.load("mini", lang_pair="ja-en", pool=pool)
    with pytest.raises(ArtifactError, match="names no model for language_model"):
        load_scorer("uscore", preset="mini", lang_pair="en-de", pool=pool)
    assert "lm:none" in XMoverScore.load("mini", lang_pair="en-de", pool=pool).signature
