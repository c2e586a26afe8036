"""UScore: its two equations by hand, what is left out, its preset folder, and errors."""

import shutil
from pathlib import Path

import evaluate
import numpy as np
import pytest

import mtmetrics
from mtmetrics.artifacts.presets import load_preset
from mtmetrics.errors import ArtifactError, InputError
from mtmetrics.matching.pairs import cosines
from mtmetrics.matching.remapping import Remapping
from mtmetrics.matching.remapping_files import map_file_name, map_meta
from mtmetrics.models.language_model import LanguageModel
from mtmetrics.models.pool import ModelPool
from mtmetrics.models.token_encoder import TokenEncoder
from mtmetrics.models.translator import Translation
from mtmetrics.scorers.registry import load_scorer
from mtmetrics.scorers.uscore import WEIGHTS, UScore, part_weights
from mtmetrics.scorers.xmoverscore import XMoverScore

SOURCES = ["Das Haus ist klein.", "ich sehe die Katze", "der Hund schläft nicht!"]
PREDICTIONS = ["the house is small.", "i see the dog", "a tree stands there"]
PSEUDO = {
    "Das Haus ist klein.": "the house is small",
    "ich sehe die Katze": "i see the cat",
    "der Hund schläft nicht!": "dog sleeps not",
}


class FixedTranslator:
    """Translates by a table, and counts."""

    label, fingerprint, beams, max_length = "fixed", "0" * 8, 1, 200

    def __init__(self) -> None:
        self.texts: list[str] = []

    def translate(self, texts: list[str]) -> list[Translation]:
        self.texts += texts
        return [
            Translation(PSEUDO.get(text, ""), is_truncated=text == SOURCES[1]) for text in texts
        ]


@pytest.fixture(scope="module")
def remapping() -> Remapping:
    return Remapping.fit("umd", *np.random.default_rng(0).normal(size=(2, 50, 16)))


@pytest.fixture
def words(encoder: TokenEncoder, remapping: Remapping, tiny_lm: Path) -> XMoverScore:
    return XMoverScore(
        encoder, variant="uscore", remapping=remapping, language_model=LanguageModel(tiny_lm)
    )


@pytest.fixture
def folder(
    tmp_path: Path, encoder: TokenEncoder, tiny_encoder: Path, tiny_lm: Path, remapping: Remapping
) -> Path:
    """A preset folder as `mtmetrics train uscore` leaves it, for de-en."""
    import torch
    from transformers import MBartConfig, MBartForConditionalGeneration

    Remapping(remapping.kind, remapping.source, meta=map_meta(encoder, "de-en")).save(
        tmp_path / map_file_name("de-en", "umd")
    )
    shutil.copytree(tiny_lm, tmp_path / "lm")
    for name in ("encoder", "sentences", "translation"):
        shutil.copytree(tiny_encoder, tmp_path / name)
    torch.manual_seed(0)
    options = {
        "d_model": 16,
        "init_std": 0.5,
        "pad_token_id": 0,
        "bos_token_id": 2,
        "eos_token_id": 3,
    }
    for side in ("encoder", "decoder"):
        options |= {f"{side}_layers": 1, f"{side}_attention_heads": 2}
    config = MBartConfig(vocab_size=encoder.vocabulary_size, max_position_embeddings=64, **options)
    MBartForConditionalGeneration(config).save_pretrained(tmp_path / "translation")
    (tmp_path / "preset.toml").write_text(
        'metric = "uscore"\nlang_pair = "de-en"\n[encoder]\nmodel = "encoder"\n[maps]\nkind = '
        '"umd"\n'
        '[sentences]\nmodel = "sentences"\n[translation]\nmodel = "translation"\nmax_length = '
        "12\n"
        '[language_models.en]\nmodel = "lm"\n[score]\nweights = "+"\n'
    )
    return tmp_path


def test_pseudo_sources_are_compared_with_the_sources(
    words: XMoverScore, encoder: TokenEncoder
) -> None:
    class Back(FixedTranslator):
        label = "back"

        def translate(self, texts: list[str]) -> list[Translation]:
            self.texts += texts
            back = {"the house is small.": "das Haus klein", "i see the dog": "ich sehe den Hund"}
            return [Translation(back.get(text, ""), is_truncated=False) for text in texts]

    options = {"combine": "wrd", "weights": "wmd=0.5+back=0.5"}
    translator = Back()
    scorer = UScore(words, back_translator=translator, lang_pair="de-en", **options)
    result = scorer.score(PREDICTIONS, sources=SOURCES)
    assert translator.texts == PREDICTIONS
    assert set(result.parts) == {"wmd", "back", "wrd"}
    plain = XMoverScore(encoder, variant="uscore")
    expected = plain.score(["das Haus klein", "ich sehe den Hund"], sources=SOURCES[:2]).parts[
        "mover"
    ]
    assert result.parts["back"][:2] == pytest.approx(expected, abs=1e-6)
    assert (
        result.parts["back"][2] == scorer.floor_with_parts()[1]["back"]
    )  # its translation came out blank
    assert result.segments == pytest.approx((result.parts["wmd"] + result.parts["back"]) / 2)
    assert "|bt:back#00000000|btbeams:1|btlen:200|" in result.signature
    two = scorer.score_systems({"a": PREDICTIONS, "b": PREDICTIONS[::-1]}, sources=SOURCES)
    assert two["a"].parts["back"] == pytest.approx(result.parts["back"])
    alone = scorer.score(PREDICTIONS[::-1], sources=SOURCES)
    assert two["b"].segments == pytest.approx(alone.segments)
    with pytest.raises(InputError, match="the model of the part 'back' is missing"):
        UScore(words, lang_pair="de-en", **options)


@pytest.mark.parametrize("name", list(WEIGHTS))
def test_weights_of_the_paper(name: str) -> None:
    words, levels = part_weights(name, "wrd+snt")
    assert sum(words.values()) == pytest.approx(1)
    assert sum(levels.values()) == pytest.approx(1)
    expected = {
        "tuned": [0.5, 0.4, 0.1, 0.6, 0.4],
        "+": [0.45, 0.45, 0.1, 0.5, 0.5],
        "++": [1 / 3, 1 / 3, 1 / 3, 0.5, 0.5],
    }
    assert [*words.values(), *levels.values()] == pytest.approx(expected[name])
    assert [*words, *levels] == ["wmd", "pseudo", "lm", "wrd", "snt"]


def test_weights_of_what_remains() -> None:
    assert part_weights("tuned", "wrd+snt", ["translation"])[0] == pytest.approx(
        {"wmd": 5 / 6, "lm": 1 / 6}
    )
    assert part_weights("tuned", "wrd", ["language_model"]) == (
        pytest.approx({"wmd": 5 / 9, "pseudo": 4 / 9}),
        {"wrd": 1.0},
    )
    assert part_weights("+", "wrd+snt", ["sentences"])[1] == {"wrd": 1.0}
    assert part_weights("++", "snt") == ({}, {"snt": 1.0})
    for arguments, message in [
        (("best", "wrd"), "weights 'best': must be one of tuned, \\+, \\+\\+"),
        (("tuned", "wrd+wmd"), "combine 'wrd\\+wmd': must be one of wrd, snt, wrd\\+snt"),
        (
            ("tuned", "wrd", ["wmd"]),
            "without 'wmd': must be one of translation, language_model, sentences, back_tr",
        ),
        (("tuned", "snt", ["sentences"]), "combine 'snt': nothing is left without sentences"),
        (("wmd=1+lm=no", "wrd"), "weights 'wmd=1\\+lm=no': 'lm=no' cannot be used"),
        (("wmd=-1", "wrd"), "'wmd=-1' cannot be used; PART=NUMBER is needed, at least 0"),
        (("mover=1", "wrd"), "weights 'mover': must be one of wmd, pseudo, back, lm, wrd, snt"),
        (("lm=1+wrd=1", "wrd", ["language_model"]), "weights: none for wmd or pseudo or back"),
    ]:
        with pytest.raises(InputError, match=message):
            part_weights(*arguments)


def test_weights_by_the_names_of_the_parts() -> None:
    # What is not named has none, and is not computed.
    assert part_weights("wmd=3+lm=1+wrd=1+snt=1", "wrd+snt") == (
        {"wmd": 0.75, "lm": 0.25},
        {"wrd": 0.5, "snt": 0.5},
    )
    assert part_weights("wmd=1+snt=2", "wrd+snt") == ({}, {"snt": 1.0})


def test_scores_are_what_their_parts_combine_to(words: XMoverScore, encoder: TokenEncoder) -> None:
    models = {"translator": FixedTranslator(), "sentence_encoder": encoder.means()}
    plain = UScore(words, **models, lang_pair="de-en").score(PREDICTIONS, sources=SOURCES)
    other = UScore(words, **models, lang_pair="de-en", weights="wmd=0.2+lm=0.3+wrd=0.9+snt=0.1")
    assert other.combine_parts(plain.parts) == pytest.approx(
        other.score(PREDICTIONS, sources=SOURCES).segments
    )
    assert "|weights:wmd=0.2+lm=0.3+wrd=0.9+snt=0.1|" in other.signature


def test_both_equations(words: XMoverScore, encoder: TokenEncoder) -> None:
    scorer = UScore(
        words, translator=FixedTranslator(), sentence_encoder=encoder.means(), lang_pair="de-en"
    )
    result = scorer.score(PREDICTIONS, sources=SOURCES)
    parts = result.parts
    assert list(parts) == ["wmd", "pseudo", "lm", "wrd", "snt"]
    assert parts["wmd"] == pytest.approx(words.score(PREDICTIONS, sources=SOURCES).parts["mover"])
    unmapped = XMoverScore(encoder, variant="uscore")
    assert parts["pseudo"] == pytest.approx(
        unmapped.score(PREDICTIONS, sources=list(PSEUDO.values())).parts["mover"]
    )
    assert parts["lm"] == pytest.approx(words.lm_part(PREDICTIONS)[0])
    x, y = (encoder.encode(texts).means() for texts in (SOURCES, PREDICTIONS))
    assert parts["snt"] == pytest.approx(cosines(x, y))
    assert parts["wrd"] == pytest.approx(
        0.5 * parts["wmd"] + 0.4 * parts["pseudo"] + 0.1 * parts["lm"]
    )
    assert result.segments == pytest.approx(0.6 * parts["wrd"] + 0.4 * parts["snt"])
    assert result.report.truncated == 1  # the source that the translator cut
    assert "|lp:de-en|parts:wrd+snt|weights:tuned|enc:tiny-encoder#" in result.signature
    assert "|mt:fixed#00000000|beams:1|mtlen:200|lm:tiny-lm#" in result.signature


def test_every_text_is_encoded_once(tiny_encoder: Path) -> None:
    translator, encoder = FixedTranslator(), TokenEncoder(tiny_encoder)
    words, without = XMoverScore(encoder, variant="uscore"), "language_model"
    scorer = UScore(words, translator=translator, sentence_encoder=encoder.means(), without=without)
    results = scorer.score_systems({"a": PREDICTIONS, "b": SOURCES}, sources=SOURCES)
    assert encoder.counts.computed == len({*SOURCES, *PREDICTIONS, *PSEUDO.values()})
    assert translator.texts == SOURCES
    assert results["a"].segments == pytest.approx(
        scorer.score(PREDICTIONS, sources=SOURCES).segments
    )
    assert results["b"].report.identical == 3


def test_a_blank_side_has_the_lowest_parts(words: XMoverScore, encoder: TokenEncoder) -> None:
    scorer = UScore(words, translator=FixedTranslator(), sentence_encoder=encoder.means())
    result = scorer.score([*PREDICTIONS, " "], sources=[*SOURCES, "das haus"])
    floors = {name: values[3] for name, values in result.parts.items()}
    lm = words.language_model.floor
    assert floors == pytest.approx(
        {"wmd": -4, "pseudo": -4, "lm": lm, "wrd": -3.6 + 0.1 * lm, "snt": -1}
    )
    assert result.segments[3] == pytest.approx(0.6 * (-3.6 + 0.1 * lm) - 0.4)
    assert result.segments[3] < result.segments[:3].min()
    assert result.report.blank == 1


def test_a_blank_pseudo_reference_has_its_own_floor(
    words: XMoverScore, encoder: TokenEncoder
) -> None:
    options = {"sentence_encoder": encoder.means()}
    result = UScore(words, translator=FixedTranslator(), **options).score(
        ["the house"], sources=["das haus"]
    )
    without = UScore(words, without=["translation"], **options).score(
        ["the house"], sources=["das haus"]
    )
    assert result.parts["pseudo"] == pytest.approx([-4])
    for name in ("wmd", "lm", "snt"):
        assert result.parts[name] == pytest.approx(without.parts[name])
    assert result.report.blank == 0


def test_one_level_alone(words: XMoverScore, encoder: TokenEncoder) -> None:
    sentences = UScore(sentence_encoder=encoder.means(), combine="snt").score(
        PREDICTIONS, sources=SOURCES
    )
    assert list(sentences.parts) == ["snt"]
    assert sentences.segments == pytest.approx(sentences.parts["snt"])
    assert sentences.signature.startswith("uscore|parts:snt|weights:tuned|sent:tiny-encoder#")
    scorer = UScore(words, combine="wrd", without=["translation"])
    result = scorer.score(PREDICTIONS, sources=SOURCES)
    assert list(result.parts) == ["wmd", "lm", "wrd"]
    assert result.segments == pytest.approx((5 * result.parts["wmd"] + result.parts["lm"]) / 6)
    assert "|parts:wrd|weights:tuned|without:translation|" in result.signature
    assert scorer.align(PREDICTIONS, sources=SOURCES)[0].total == pytest.approx(
        -result.parts["wmd"][0], abs=1e-6
    )
    alignments = scorer.align(PREDICTIONS, sources=SOURCES)
    for number, evidence in enumerate(scorer.evidence(PREDICTIONS, alignments)):
        lacks = [
            -weight * result.parts[part][number] for part, weight in scorer.word_weights.items()
        ]
        assert [found.lack.sum() for found in evidence] == pytest.approx(lacks, abs=1e-5)
    with pytest.raises(InputError, match="nothing to align"):
        UScore(sentence_encoder=encoder.means(), combine="snt").align(PREDICTIONS, sources=SOURCES)


def test_a_missing_model_is_an_error(words: XMoverScore, encoder: TokenEncoder) -> None:
    plain = XMoverScore(encoder, variant="uscore")
    for arguments, part in [
        ((words, None, "wrd"), "pseudo"),
        ((plain, FixedTranslator(), "wrd"), "lm"),
        ((None, None, "snt"), "snt"),
    ]:
        with pytest.raises(InputError, match=f"the model of the part '{part}' is missing"):
            UScore(arguments[0], translator=arguments[1], combine=arguments[2])
    with pytest.raises(InputError, match=r"'wmd' is missing; .* the word level \(combine='snt'\)"):
        UScore(sentence_encoder=encoder.means())
    with pytest.raises(InputError, match="variant 'uscore' is needed, not 'acl20'"):
        UScore(XMoverScore(encoder), combine="wrd", without=["translation", "language_model"])


def test_a_preset_folder(folder: Path) -> None:
    scorer = load_scorer("uscore", preset=str(folder))
    result = scorer.score(PREDICTIONS, sources=SOURCES)
    assert list(result.parts) == ["wmd", "pseudo", "lm", "wrd", "snt"]
    assert "|lp:de-en|parts:wrd+snt|weights:+|enc:encoder#" in result.signature
    assert "|map:umd#" in result.signature
    assert "|mt:translation#" in result.signature
    options = {"without": "translation+language_model", "map": "none", "weights": "tuned"}
    reduced = load_scorer("uscore", preset=str(folder), **options).score(
        PREDICTIONS, sources=SOURCES
    )
    assert reduced.parts["wrd"] == pytest.approx(reduced.parts["wmd"])
    assert "|weights:tuned|without:language_model+translation|" in reduced.signature
    assert "|map:none|" in reduced.signature
    with pytest.raises(InputError, match="language pair en-de: preset .* was made for de-en only"):
        load_scorer("uscore", preset=str(folder), lang_pair="en-de")


def test_a_translation_model_of_the_other_direction_is_of_the_preset_or_an_option(
    folder: Path,
) -> None:
    weights = {"weights": "wmd=0.4+back=0.6+wrd=1", "without": "sentences"}
    with pytest.raises(ArtifactError, match="names no model for back_translation"):
        load_scorer("uscore", preset=str(folder), **weights)
    chosen = load_scorer("uscore", preset=str(folder), back=str(folder / "translation"), **weights)
    assert chosen.back_translator.lang_pair == "en-de"
    record = folder / "translation" / "training.json"
    record.write_text('{"kind": "translation model", "lp": "de-en"}')
    with pytest.raises(InputError, match="translates de-en, but en-de is needed"):
        load_scorer("uscore", preset=str(folder), back=str(folder / "translation"), **weights)
    record.unlink()
    path = folder / "preset.toml"
    path.write_text(
        path.read_text() + '[back_translation]\nmodel = "translation"\nmax_length = 9\n'
    )
    named = load_scorer("uscore", preset=str(folder), **weights)
    assert named.back_translator.max_length == 9
    result = named.score(PREDICTIONS, sources=SOURCES)
    assert list(result.parts) == ["wmd", "back", "wrd"]
    assert "|btlen:9|" in result.signature


def test_a_language_model_of_the_users_scores_as_the_preset_says(
    folder: Path, tiny_lm: Path
) -> None:
    path = folder / "preset.toml"
    table = (
        '[language_models.en]\nmodel = "lm"\nstart_token = "always"\nend_token = '
        "true\nlength_power = 0.5\n"
    )
    path.write_text(path.read_text().replace('[language_models.en]\nmodel = "lm"\n', table))
    scorer = load_scorer("uscore", preset=str(folder), lm=str(tiny_lm), without="translation")
    assert "|lm:tiny-lm#" in scorer.signature
    assert "|lmstart:always|lmend:yes|lmlen:0.5|" in scorer.signature


def test_a_preset_folder_in_evaluate(folder: Path, evaluate_cache: Path) -> None:
    metric = evaluate.load(mtmetrics.metric_path("uscore"), preset=str(folder))
    loaded = dict(metric.pool._loaded)
    result = metric.compute(sources=SOURCES, predictions=PREDICTIONS)
    assert result["signature"] == load_scorer("uscore", preset=str(folder)).signature
    assert metric.pool._loaded == loaded  # all models came with the metric


def test_another_map_than_the_pinned_one_is_refused(folder: Path, remapping: Remapping) -> None:
    path = folder / "preset.toml"
    text = path.read_text()
    path.write_text(
        text.replace('kind = "umd"\n', f'kind = "umd"\nfingerprint = "{remapping.fingerprint}"\n')
    )
    assert (
        f"|map:umd#{remapping.fingerprint}|" in load_scorer("uscore", preset=str(folder)).signature
    )
    path.write_text(text.replace('kind = "umd"\n', 'kind = "umd"\nfingerprint = "00000000"\n'))
    with pytest.raises(
        ArtifactError,
        match=f"its fingerprint is {remapping.fingerprint}, but the preset pins 00000000",
    ):
        load_scorer("uscore", preset=str(folder))
    assert "|map:none|" in load_scorer("uscore", preset=str(folder), map="none").signature


def test_what_a_preset_lacks(folder: Path) -> None:
    path = folder / "preset.toml"
    text = path.read_text()
    path.write_text(text.replace('[translation]\nmodel = "translation"\nmax_length = 12\n', ""))
    message = (
        "names no model for translation; 'mtmetrics train uscore' makes .* without='translation'"
    )
    with pytest.raises(ArtifactError, match=message):
        load_scorer("uscore", preset=str(folder))
    path.write_text(path.read_text() + 'without = ["translation"]\n')
    assert "|without:translation|" in load_scorer("uscore", preset=str(folder)).signature
    path.write_text(text.replace('lang_pair = "de-en"\n', ""))
    with pytest.raises(InputError, match="language pair None"):
        load_scorer("uscore", preset=str(folder))
    with pytest.raises(ArtifactError, match=r"names no model for language_model \(de\)"):
        load_scorer("uscore", preset=str(folder), lang_pair="en-de")
    path.write_text(text.replace("max_length", "max_lenght"))
    with pytest.raises(ArtifactError, match=r"unknown key 'max_lenght' in \[translation\]"):
        load_scorer("uscore", preset=str(folder))


def test_the_preset_of_the_paper_names_the_command() -> None:
    message = "preset paper: names no model for translation and sentences; 'mtmetrics train uscore'"
    with pytest.raises(ArtifactError, match=message):
        load_scorer(
            "uscore", preset="paper", lang_pair="de-en", pool=ModelPool(local_files_only=True)
        )


def test_a_preset_among_the_artifacts(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundled = tmp_path / "hub"
    shutil.copytree(folder, bundled / "uscore-tiny-de-en", ignore=shutil.ignore_patterns("hub"))
    (bundled / "catalog.toml").write_text("")
    for module in ("catalog", "places"):
        monkeypatch.setattr(f"mtmetrics.artifacts.{module}.bundled_artifacts", lambda: bundled)
    assert load_preset("uscore", "uscore-tiny-de-en").folder == bundled / "uscore-tiny-de-en"
    bundled, same = (
        load_scorer("uscore", preset=preset) for preset in ("uscore-tiny-de-en", str(folder))
    )
    assert bundled.signature == same.signature
