"""SentSim: its parts, their normalisation and weights, presets, alignments."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import REFERENCES, TRANSLATIONS, write_preset

from mtmetrics.errors import ArtifactError, InputError
from mtmetrics.matching.greedy import bertscore
from mtmetrics.models.token_encoder import TokenEncoder
from mtmetrics.scorers.batch import Batch
from mtmetrics.scorers.registry import load_scorer
from mtmetrics.scorers.sentsim import SentSim


def test_sentsim_by_hand(encoder: TokenEncoder) -> None:
    sentences = encoder.means()
    batch = SentSim(encoder, sentences, against="reference", combine="sss+wmd").score(
        TRANSLATIONS, references=REFERENCES
    )
    sss, wmd = batch.parts["sss"][:3], batch.parts["wmd"][:3]
    a, b = ((values - values.min()) / (values.max() - values.min()) for values in (sss, wmd))
    assert batch.segments[:3] == pytest.approx((np.exp(a) + np.exp(1 - b)) / 2)
    assert batch.segments[3] == 1.0
    bounds = {"sss": (0.0, 1.0), "wmd": (0.0, 40.0)}
    fixed = SentSim(
        encoder, sentences, against="reference", combine="sss+wmd", normalize="fixed", bounds=bounds
    )
    result = fixed.score(TRANSLATIONS, references=REFERENCES)
    assert result.segments[:3] == pytest.approx(
        (np.exp(np.clip(sss, 0, 1)) + np.exp(1 - wmd / 40)) / 2
    )
    assert result.parts["wmd"][3] == 40.0
    alone = fixed.score(TRANSLATIONS[:1], references=REFERENCES[:1])
    assert alone.segments[0] == pytest.approx(result.segments[0])
    assert "norm:fixed(0:1,0:40)" in fixed.signature


def test_batch_normalisation_over_chunks_systems_and_one_segment(encoder: TokenEncoder) -> None:
    scorer = SentSim(encoder, encoder.means(), against="source")
    whole = scorer.score(TRANSLATIONS, sources=REFERENCES)
    batches = Batch({"": TRANSLATIONS}, sources=REFERENCES).slices(1)
    [[streamed]] = scorer.score_batches(batches)
    assert streamed.segments == pytest.approx(whole.segments)
    both = scorer.score_systems({"a": TRANSLATIONS, "b": REFERENCES[::-1]}, sources=REFERENCES)
    assert both["a"].segments == pytest.approx(whole.segments)
    assert scorer.score(TRANSLATIONS[:1], sources=REFERENCES[:1]).segments == pytest.approx(
        [np.exp(0.5)]
    )
    assert scorer.score(["x"], sources=[" "]).segments.tolist() == [1.0]
    scorer = SentSim(encoder, encoder.means(), against="reference")
    several = scorer.score(["the house", "dog"], references=[["x", "the house"], ["cat"]])
    assert several.parts["sss"][0] == pytest.approx(1.0)
    assert several.segments == pytest.approx([np.e, 1.0])


def test_sentsim_settings(encoder: TokenEncoder) -> None:
    sentences = encoder.means()
    with pytest.raises(InputError, match="combine 'sss\\+bleu'"):
        SentSim(encoder, sentences, against="source", combine="sss+bleu")
    with pytest.raises(InputError, match="no bounds for sss"):
        SentSim(
            encoder, sentences, against="source", normalize="fixed", bounds={"bertscore": (0, 1)}
        )
    unit = SentSim(encoder, sentences, against="source", combine="wmd", normalize_vectors=True)
    assert unit.score(TRANSLATIONS, sources=REFERENCES).parts["wmd"][:3].max() <= 2.0
    assert "|vectors:unit|" in unit.signature


def test_weights_of_the_two_parts(encoder: TokenEncoder) -> None:
    sentences = encoder.means()
    scores = {}
    for weights in ({}, {"w1": 1, "w2": 0}, {"w1": 0.3, "w2": 0.9}):
        result = SentSim(encoder, sentences, against="reference", **weights).score(
            TRANSLATIONS, references=REFERENCES
        )
        scores[tuple(weights.values())] = result.segments
        assert ("|weights:" in result.signature) == bool(weights)
    alone = (
        SentSim(encoder, sentences, against="reference", combine="sss")
        .score(TRANSLATIONS, references=REFERENCES)
        .segments
    )
    assert scores[1, 0] == pytest.approx(alone)
    assert scores[0.3, 0.9] == pytest.approx(0.3 * alone + 0.9 * (2 * scores[()] - alone))
    assert "|weights:0.3,0.9|norm:" in result.signature
    blank = SentSim(encoder, sentences, against="reference", w1=0.3, w2=0.9).score(
        [*TRANSLATIONS, "x"], references=[*REFERENCES, " "]
    )
    assert blank.segments[-1] == pytest.approx(1.2)
    for parts, weights, message in (
        ("sss+wmd", {"w1": -1}, "w1 -1: must be at least 0"),
        ("sss+wmd", {"w1": 0, "w2": 0}, "both 0"),
        ("sss+wmd+bertscore", {"w2": 0.7}, "weigh two parts, not sss"),
    ):
        with pytest.raises(InputError, match=message):
            SentSim(encoder, sentences, against="reference", combine=parts, **weights)


@pytest.mark.parametrize("normalize", ["batch", "fixed"])
def test_weights_belong_to_the_names_of_precomputed_parts(
    encoder: TokenEncoder, normalize: str
) -> None:
    scorer = SentSim(
        encoder,
        encoder.means(),
        {"sss": (0.0, 1.0), "bertscore": (0.0, 1.0)},
        against="source",
        normalize=normalize,
        w1=0.2,
        w2=0.8,
    )
    parts = {"sss": np.array([0.1, 0.9, 0.5]), "bertscore": np.array([0.8, 0.3, 0.4])}
    turned = dict(reversed(parts.items()))
    assert scorer.combine_parts(turned) == pytest.approx(scorer.combine_parts(parts))


def test_sentsim_chooses_its_models_by_language(tmp_path: Path, tiny_encoder: Path) -> None:
    models = f'words = "{tiny_encoder}"\nsentences = "{tiny_encoder}"\n'
    tables = f"[src-mt]\n{models}[mt-refs.en]\n{models}layer = 2\n[mt-ref]\n{models}layer = 1\n"
    preset = write_preset(
        tmp_path, f"{tables}[bounds.mt-ref]\nsss = [0.0, 1.0]\nbertscore = [0.0, 1.0]\n"
    )
    references = {"preset": preset, "setting": "mt-ref"}
    assert "|layer:2|" in load_scorer("sentsim", lang_pair="de-en", **references).signature
    assert "|layer:1|" in load_scorer("sentsim", lang_pair="en-de", **references).signature
    assert "|layer:3|" in load_scorer("sentsim", preset=preset, setting="src-mt").signature
    own = {"words": f"{tiny_encoder}/../{tiny_encoder.name}", "lang_pair": "de-en"}
    assert "|layer:3|" in load_scorer("sentsim", **own, **references).signature
    for layer in (1, 2):
        assert (
            f"|layer:{layer}|" in load_scorer("sentsim", layer=layer, **own, **references).signature
        )
    with pytest.raises(
        InputError,
        match="lang_pair is missing; preset .* chooses its models by the target language",
    ):
        load_scorer("sentsim", **references)
    fixed = {"normalize": "fixed", **references}
    assert "|norm:fixed(0:1,0:1)|" in load_scorer("sentsim", lang_pair="en-de", **fixed).signature
    with pytest.raises(InputError, match="no bounds for sss, bertscore"):
        load_scorer("sentsim", lang_pair="de-en", **fixed)
    only = write_preset(tmp_path, f"[mt-refs.en]\n{models}")
    assert load_scorer("sentsim", preset=only, lang_pair="de-en").side == "reference"
    with pytest.raises(ArtifactError, match=r"names no model 'words' in its \[mt-ref\] table"):
        load_scorer("sentsim", preset=only, lang_pair="en-de")


def test_bounds_of_a_language_that_a_preset_names_by_another_code(
    tmp_path: Path, tiny_encoder: Path
) -> None:
    models = f'words = "{tiny_encoder}"\nsentences = "{tiny_encoder}"\n'
    bounds = '[bounds."mt-refs.eng"]\nsss = [0.0, 1.0]\nbertscore = [0.0, 0.5]\n'
    preset = write_preset(tmp_path, f"[mt-refs.eng]\n{models}{bounds}")
    scorer = load_scorer("sentsim", preset=preset, lang_pair="de-en", normalize="fixed")
    assert "|norm:fixed(0:1,0:0.5)|" in scorer.signature


def test_sentsim_presets(tmp_path: Path, tiny_encoder: Path) -> None:
    table = f'words = "{tiny_encoder}"\nlayer = 2\nsentences = "{tiny_encoder}"\n'
    bounds = "[bounds.src-mt]\nsss = [0.0, 1.0]\nbertscore = [0.0, 1.0]\n"
    both = write_preset(tmp_path, f"[src-mt]\n{table}[mt-ref]\n{table}{bounds}")
    with pytest.raises(InputError, match="pass against=.source. or against=.reference."):
        load_scorer("sentsim", preset=both)
    assert (
        "|norm:fixed(0:1,0:1)|"
        in load_scorer("sentsim", preset=both, setting="src-mt", normalize="fixed").signature
    )
    for option in ({"layer": 1}, {"normalize_vectors": True}, {"words": "other"}):
        with pytest.raises(InputError, match="pass normalize='batch' too"):
            load_scorer("sentsim", preset=both, setting="src-mt", normalize="fixed", **option)
    for option in (
        {"layer": 1},
        {"normalize_vectors": True},
        {"words": f"{tiny_encoder}/../{tiny_encoder.name}"},
    ):
        assert load_scorer("sentsim", preset=both, setting="src-mt", **option).normalize == "batch"
    assert (
        "|parts:sss+wmd|"
        in load_scorer("sentsim", preset=both, setting="mt-ref", variant="wmd").signature
    )
    with pytest.raises(InputError, match="both say what is combined"):
        load_scorer("sentsim", preset=both, setting="mt-ref", variant="wmd", combine="sss")
    one = write_preset(tmp_path, f"[mt-ref]\n{table}")
    assert load_scorer("sentsim", preset=one).side == "reference"
    with pytest.raises(InputError, match="compares with the reference only"):
        load_scorer("sentsim", preset=one, setting="src-mt")
    with pytest.raises(ArtifactError, match=r"neither a \[src-mt\] nor an \[mt-ref\] table"):
        load_scorer("sentsim", preset=write_preset(tmp_path, 'metric = "sentsim"\n'))


def test_alignments_of_sentsim(encoder: TokenEncoder) -> None:
    given: Any = {"against": "reference"}
    scorer = SentSim(encoder, encoder.means(), **given)
    assert scorer.cells == "cosine"
    units = [encoder.encode(texts).normalized() for texts in (TRANSLATIONS[:3], REFERENCES[:3])]
    precision, recall, _ = bertscore(*units)
    found = scorer.align(TRANSLATIONS[:3], references=REFERENCES[:3])
    assert [alignment.total for alignment in found] == pytest.approx(
        ((precision + recall) / 2).tolist(), abs=1e-6
    )
    for unit in (False, True):
        scorer = SentSim(
            encoder, encoder.means(), **given, combine="sss+wmd", normalize_vectors=unit
        )
        found = scorer.align(TRANSLATIONS[:3], references=REFERENCES[:3])
        wmd = scorer.score(TRANSLATIONS[:3], references=REFERENCES[:3]).parts["wmd"]
        assert [alignment.total for alignment in found] == pytest.approx(wmd.tolist(), abs=1e-5)
        assert (found[0].cells, found[0].source) == ("cost", ["the", "house", "is", "small", "."])
        assert (found[0].unrelated == pytest.approx(2**0.5, abs=1e-6)) == unit
    with pytest.raises(InputError, match="nothing to align"):
        SentSim(encoder, encoder.means(), **given, combine="sss").align(
            TRANSLATIONS, references=REFERENCES
        )


@pytest.mark.parametrize(
    ("options", "weights"),
    [
        ({}, [0.1, 0.5]),
        ({"variant": "bertscore"}, [0.1, 0.5]),
        ({"w1": 0.3}, [0.3, 0.5]),
        ({"variant": "wmd"}, [0.5, 0.5]),
        ({"variant": "wmd", "w1": 0.3}, [0.3, 0.5]),
        ({"combine": "bertscore"}, [1.0]),
    ],
)
def test_the_weights_of_a_preset_are_those_of_its_own_parts(
    options: dict, weights: list[float]
) -> None:
    assert (
        load_scorer("sentsim", "mini", lang_pair="de-en", against="source", **options).weights
        == weights
    )
