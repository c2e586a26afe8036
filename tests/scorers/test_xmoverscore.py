"""XMoverScore as a whole: composition, floors, invariances, signature, presets."""

import re
from pathlib import Path

import numpy as np
import ot
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mtmetrics.checks import InputReport
from mtmetrics.errors import ArtifactError, InputError
from mtmetrics.matching.remapping import Remapping
from mtmetrics.matching.remapping_files import map_file_name, map_meta
from mtmetrics.models.language_model import LanguageModel
from mtmetrics.models.pool import ModelPool
from mtmetrics.models.token_encoder import TokenEncoder
from mtmetrics.models.token_weights import TokenWeights
from mtmetrics.scorers.registry import load_scorer
from mtmetrics.scorers.xmoverscore import VARIANTS, XMoverScore

SOURCES = [
    "Das Haus ist klein.",
    "ich sehe die Katze",
    "der Hund schläft nicht!",
    "das Haus ist klein.",
]
PREDICTIONS = ["the house is small.", "i see the cat", "the dog sleeps not!", "the house is small."]


@pytest.fixture(scope="module")
def language_model(tiny_lm: Path) -> LanguageModel:
    return LanguageModel(tiny_lm)


@pytest.fixture
def preset(tmp_path: Path, encoder: TokenEncoder, tiny_encoder: Path, tiny_lm: Path) -> Path:
    """A preset folder on tiny models with a fitted map for de-en."""
    vectors = np.random.default_rng(0).normal(size=(2, 50, 16))
    for kind in ("clp", "umd"):
        fitted = Remapping.fit(kind, *vectors, map_meta(encoder, "de-en"))
        fitted.save(tmp_path / map_file_name("de-en", kind))
    (tmp_path / "preset.toml").write_text(
        f'metric = "xmoverscore"\nlanguages = ["de", "en", "ru"]\n[encoder]\nmodel = "{tiny_encoder}"\n'
        "[score]\nngram = 2\n"
        f'[maps]\nartifact = "."\nkind = "clp"\n[language_models.en]\nmodel = "{tiny_lm}"\nweight = 0.2\n'
    )
    return tmp_path


def naive(encoder: TokenEncoder, source: str, prediction: str, ngram: int) -> float:
    """The first published form, written down once more with plain loops and POT's public solver."""
    sides = []
    for text in (source, prediction):
        tokens = encoder.encode([text])
        rows = [
            v
            for v, number in zip(tokens.vectors, tokens.token_ids, strict=True)
            if encoder.word_table[number]
        ]
        size = min(ngram, len(rows))
        means = [np.mean(rows[i : i + size], axis=0) for i in range(len(rows) - size + 1)]
        sides.append([vector / np.linalg.norm(vector) for vector in means])
    cost = np.array([[((x - y) ** 2).sum() for y in sides[1]] for x in sides[0]], dtype=np.float64)
    return 1 - ot.emd2(
        np.full(len(cost), 1 / len(cost)), np.full(cost.shape[1], 1 / cost.shape[1]), cost
    )


@pytest.mark.parametrize("ngram", [1, 2, 3])
def test_equals_a_naive_form(encoder: TokenEncoder, ngram: int) -> None:
    result = XMoverScore(encoder, ngram=ngram).score(PREDICTIONS, sources=SOURCES)
    expected = [naive(encoder, *pair, ngram) for pair in zip(SOURCES, PREDICTIONS, strict=True)]
    assert result.segments == pytest.approx(expected, abs=1e-5)
    assert result.system == pytest.approx(result.segments.mean())


def test_variants_turn_one_distance_into_their_scores(encoder: TokenEncoder) -> None:
    acl20 = XMoverScore(encoder, ngram=1).score(PREDICTIONS, sources=SOURCES).segments
    uscore = XMoverScore(encoder, variant="uscore").score(PREDICTIONS, sources=SOURCES).segments
    assert uscore == pytest.approx(acl20 - 1)
    sources = ["ich sehe die Katze", *SOURCES]
    predictions = ["i see the small cat and a tree stands there", *PREDICTIONS]
    release = (
        XMoverScore(encoder, variant="release", drop_rate=0.0)
        .score(predictions, sources=sources)
        .segments
    )
    assert ((release > 1 / 3) & (release <= 1)).all()
    dropped = XMoverScore(encoder, variant="release").score(predictions, sources=sources).segments
    assert (dropped >= release - 1e-5).all()
    assert dropped[0] > release[0] + 1e-4


def test_identical_sentences_are_perfect(encoder: TokenEncoder) -> None:
    for variant, best in (("acl20", 1), ("release", 1), ("uscore", 0)):
        with pytest.warns(UserWarning, match="1 identical to the source"):
            score = (
                XMoverScore(encoder, variant=variant).score(["the dog"], sources=["the dog"]).system
            )
        assert score == pytest.approx(best, abs=1e-6)


def test_blank_segments_get_the_floor_and_are_counted(
    encoder: TokenEncoder, language_model: LanguageModel
) -> None:
    sources, texts = ["the dog", "", "\u3000 ", "the dog"], ["the cat", "the cat", "", " "]
    for variant, floor in (("acl20", -3.0), ("uscore", -4.0), ("release", 1 / 3)):
        scorer = XMoverScore(encoder, variant=variant, language_model=language_model, lm_weight=0.5)
        with pytest.warns(UserWarning, match="of 4 segments: 3 blank"):
            result = scorer.score(texts, sources=sources)
        lm = 0.0 if VARIANTS[variant].normalise_lm else language_model.floor
        assert result.segments[1:] == pytest.approx([floor + 0.5 * lm] * 3)
        assert result.parts["mover"][1:] == pytest.approx([floor] * 3)
        assert result.segments[0] > result.segments[1]
        assert result.report == InputReport(4, blank=3)


@pytest.mark.parametrize("variant", VARIANTS)
def test_blank_segments_have_no_lm_part_without_a_language_model(
    encoder: TokenEncoder, variant: str
) -> None:
    with pytest.warns(UserWarning, match="of 2 segments: 1 blank"):
        result = XMoverScore(encoder, variant=variant).score(
            ["the cat", ""], sources=["the dog"] * 2
        )
    assert result.parts["lm"].tolist() == [0.0, 0.0]
    assert result.segments[1] == result.parts["mover"][1]


def test_punctuation_and_continuation_pieces_count_where_all_tokens_do(
    encoder: TokenEncoder,
) -> None:
    texts = ["the house !", "housedog"]
    words, whole = (XMoverScore(encoder, ngram=1, pieces=pieces) for pieces in ("words", "all"))
    tokens = encoder.encode(texts)
    all_ngrams = whole.build_ngrams(tokens, "source")
    assert all_ngrams.lengths.tolist() == tokens.lengths.tolist()
    assert (words.build_ngrams(tokens, "source").lengths < all_ngrams.lengths).all()
    assert "|pieces:all|" in whole.signature
    assert "pieces" not in words.signature
    assert "pieces" not in XMoverScore(encoder, variant="release").signature


def test_map_moves_the_source_side_or_both(encoder: TokenEncoder) -> None:
    direction = np.linalg.qr(np.random.default_rng(1).normal(size=(16, 16)))[0][0]
    remapping = Remapping("umd", (direction,))
    source = XMoverScore(encoder, remapping=remapping).score(PREDICTIONS, sources=SOURCES).segments
    both = (
        XMoverScore(encoder, remapping=remapping, sides="both")
        .score(PREDICTIONS, sources=SOURCES)
        .segments
    )
    none = XMoverScore(encoder).score(PREDICTIONS, sources=SOURCES).segments
    assert abs(source - none).max() > 1e-4
    assert abs(source - both).max() > 1e-4
    scorer = XMoverScore(encoder, remapping=remapping, sides="both")
    for side in ("source", "target"):
        ngrams = scorer.build_ngrams(encoder.encode(SOURCES), side)
        assert abs(ngrams.vectors @ direction).max() < 1e-5


def test_weights_come_from_a_stored_table(encoder: TokenEncoder, tmp_path: Path) -> None:
    TokenWeights.fit(encoder, [*SOURCES, *PREDICTIONS, "the the the"]).save(
        tmp_path / "idf.safetensors"
    )
    table = TokenWeights.load(tmp_path / "idf.safetensors")
    vocabulary = encoder.tokenizer.get_vocab()
    assert table.table[vocabulary["house"]] == pytest.approx(np.log(10 / 3) + 1)
    assert table.table[vocabulary["the"]] == pytest.approx(np.log(10 / 6) + 1)
    weighted = XMoverScore(encoder, ngram=1, weights=table).score(PREDICTIONS, sources=SOURCES)
    assert (
        abs(
            weighted.segments
            - XMoverScore(encoder, ngram=1).score(PREDICTIONS, sources=SOURCES).segments
        ).max()
        > 1e-4
    )
    assert f"weights:idf#{table.fingerprint}" in weighted.signature
    with pytest.raises(InputError, match="covers 3 tokens"):
        XMoverScore(encoder, weights=TokenWeights(np.ones(3, dtype=np.float32)))
    (tmp_path / "idf.safetensors").write_bytes(b"x")
    with pytest.raises(ArtifactError, match="missing, damaged or no idf table"):
        TokenWeights.load(tmp_path / "idf.safetensors")


def test_weights_by_length_are_those_of_word_rotators_distance(encoder: TokenEncoder) -> None:
    texts = [SOURCES[0], PREDICTIONS[1]]
    x, y = (encoder.encode([text]).vectors.astype(np.float64) for text in texts)
    masses = [np.linalg.norm(vectors, axis=1) for vectors in (x, y)]
    cosines = (x / masses[0][:, None]) @ (y / masses[1][:, None]).T
    distance = ot.emd2(*(mass / mass.sum() for mass in masses), 1.0 - cosines)
    scorer = XMoverScore(encoder, pieces="all", ngram=1, distance="cosine", weights="norm")
    assert scorer.score([texts[1]], sources=[texts[0]]).parts["mover"] == pytest.approx(
        [1.0 - distance], abs=1e-5
    )
    assert "|weights:norm|" in scorer.signature
    [alignment] = scorer.align([texts[1]], sources=[texts[0]])
    assert alignment.mass.sum(1) == pytest.approx(masses[0] / masses[0].sum(), abs=1e-6)


@given(st.lists(st.sampled_from([*range(4), 0, 0]), min_size=1, max_size=12), st.integers(1, 3))
@settings(max_examples=15, deadline=None)
def test_order_duplicates_and_neighbours_change_nothing(
    encoder: TokenEncoder, order: list[int], workers: int
) -> None:
    scorer = XMoverScore(encoder, workers=workers)
    alone = [scorer.score([PREDICTIONS[i]], sources=[SOURCES[i]]).segments[0] for i in order]
    together = scorer.score(
        [PREDICTIONS[i] for i in order], sources=[SOURCES[i] for i in order]
    ).segments
    assert together == pytest.approx(alone, abs=1e-5)


def test_signature_pins_everything(encoder: TokenEncoder, language_model: LanguageModel) -> None:
    remapping = Remapping("clp", (np.eye(16),))
    line = XMoverScore(
        encoder, lang_pair="de-en", remapping=remapping, language_model=language_model
    ).signature
    pattern = (
        r"xmoverscore\|lp:de-en\|enc:tiny-encoder#[0-9a-f]{8}\|layer:3\|ngram:2\|map:clp#[0-9a-f]{8}\|lm:tiny-lm#[0-9a-f]{8}\*0\.1\|form:acl20"
        r"\|dtype:fp32\|v:\d+\.\d+\.\d+"
    )
    assert re.fullmatch(pattern, line)
    changed = {
        XMoverScore(encoder, **options).signature
        for options in (
            {},
            {"ngram": 1},
            {"distance": "euclidean"},
            {"variant": "uscore"},
            {"variant": "release"},
            {"variant": "release", "drop_rate": 0.1},
            {"remapping": remapping},
            {"remapping": Remapping("umd", (np.eye(16)[0],))},
            {"remapping": Remapping("umd", (np.eye(16)[0],)), "sides": "both"},
            {"language_model": language_model},
            {"language_model": language_model, "lm_weight": 0.2},
        )
    }
    assert len(changed) == 11
    assert "lm:none" in XMoverScore(encoder).signature


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"variant": "acl21"}, "variant 'acl21': must be one of acl20, release, uscore"),
        ({"ngram": 0}, "ngram 0"),
        ({"distance": "manhattan"}, "distance 'manhattan'"),
        ({"sides": "target"}, "sides 'target'"),
        ({"drop_rate": 1.5}, "drop_rate 1.5: must lie between 0 and 1"),
        ({"workers": 0}, "workers 0"),
        ({"lm_weight": "x"}, "lm_weight 'x': must be a finite number"),
        (
            {"remapping": Remapping("clp", (np.eye(8),))},
            "made for vectors of 8 numbers, the encoder gives 16",
        ),
        (
            {"remapping": Remapping("clp", (np.eye(16),)), "sides": "both"},
            "sides='both' cannot be used",
        ),
    ],
)
def test_bad_options(encoder: TokenEncoder, options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        XMoverScore(encoder, **options)


def test_preset_folder(preset: Path) -> None:
    pool = ModelPool()
    scorer = load_scorer("xmoverscore", preset=str(preset), lang_pair="de-en", pool=pool)
    result = scorer.score(PREDICTIONS, sources=SOURCES)
    assert "map:clp#" in result.signature
    assert "*0.2|" in result.signature
    options = {"map": "umd", "lm": "none", "ngram": 1, "variant": "uscore"}
    other = XMoverScore.load(str(preset), lang_pair="de-en", pool=pool, **options)
    assert other.encoder is scorer.encoder
    assert "ngram:1|map:umd#" in other.signature
    assert "lm:none|form:uscore" in other.signature
    assert (
        XMoverScore.load(str(preset), lang_pair="en-de", pool=pool, map="none").language_model
        is None
    )


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"lang_pair": None}, InputError, "language pair None"),
        ({"lang_pair": "xx-en"}, InputError, "knows the languages de en ru, not 'xx'"),
        ({"map": "bam"}, InputError, "map 'bam': must be one of none, clp"),
        (
            {"lang_pair": "ru-en"},
            ArtifactError,
            (
                "no clp map for language pair ru-en .* it has clp for: de-en; .* mtmetrics train maps "
                "--encoder"
            ),
        ),
        ({"layer": 2}, ArtifactError, "layer 3, but the encoder in use is .* layer 2"),
        ({"maps": "nowhere"}, ArtifactError, "no clp map for language pair de-en in nowhere"),
        ({"maps": 7}, InputError, "maps 7"),
        ({"weights": "none.safetensors"}, ArtifactError, r"weights none\.safetensors"),
        ({"lm": "no/such-lm"}, ArtifactError, "'no/such-lm' was not found"),
    ],
)
def test_what_a_preset_cannot_give(
    preset: Path, options: dict[str, str], error: type[Exception], message: str
) -> None:
    options = {"lang_pair": "de-en", "pool": ModelPool(local_files_only=True)} | options
    with pytest.raises(error, match=message):
        XMoverScore.load(str(preset), **options)


def test_the_paper_preset_says_what_is_missing_offline() -> None:
    message = r"bert-base-multilingual-cased' was not found .* 'hf download google-bert/bert-base"
    with pytest.raises(ArtifactError, match=message):
        XMoverScore.load("paper", lang_pair="de-en", pool=ModelPool(local_files_only=True))


def test_a_language_model_of_the_users_scores_as_the_preset_says(
    tiny_encoder: Path, tiny_lm: Path, tmp_path: Path
) -> None:
    models = (
        f'[encoder]\nmodel = "{tiny_encoder}"\n[language_models.en]\nmodel = '
        '"mini-lm-en"\nweight = 0.3\n'
    )
    (tmp_path / "preset.toml").write_text(
        f'{models}start_token = "always"\nend_token = true\nlength_power = 0.5\n'
    )
    scorer = load_scorer("xmoverscore", preset=str(tmp_path), lm=str(tiny_lm), lang_pair="de-en")
    assert "|lm:tiny-lm#" in scorer.signature
    assert "*0.3|lmstart:always|lmend:yes|lmlen:0.5|" in scorer.signature
