"""UScore's pseudo-references, and its word level with them."""

import numpy as np
import pytest
from goldens import Case, cases, encoder, language_model, run

from mtmetrics.matching.remapping import Remapping
from mtmetrics.models.translator import DecoderPrefix, Translator, generation_config, target_prefix
from mtmetrics.scorers.uscore import UScore
from mtmetrics.scorers.xmoverscore import XMoverScore

TOLERANCE = 2e-5


@pytest.mark.parametrize("case", cases("uscore_nmt"))
def test_uscore_translation_as_published(case: Case) -> None:
    run(case, check_translation if case.params["function"] == "translate" else check_score)


def translator(case: Case) -> Translator:
    """One that starts with the language code at once, as the published code asks of mBART-50
    too."""
    params = case.params
    beams, length = params["num_beams"], params["max_length"]
    model = Translator(
        case.model("translation"), "de-en", beams=beams, max_length=length, device="cpu"
    )
    [(network, _)] = model._runner.replicas
    prefix = target_prefix(model.tokenizer, network.config.eos_token_id)
    started = DecoderPrefix(prefix.start if prefix.forced is None else prefix.forced, None)
    network.generation_config = generation_config(
        network.config, started, beams=beams, max_length=length
    )
    return model


def check_translation(case: Case) -> None:
    model = translator(case)
    [sources] = case.texts("source")
    assert [translation.text for translation in model.translate(sources)] == case.outputs["text"]
    assert model.tokenizer(sources)["input_ids"] == case.outputs["source_ids"]


def check_score(case: Case) -> None:
    params = case.params
    words = XMoverScore(
        encoder(case.model("encoder"), None),
        variant="uscore",
        ngram=params["n_gram"],
        remapping=Remapping(params["mapping"].lower(), (np.load(case.path(params["projection"])),)),
        language_model=language_model(case.model("language_model")),
    )
    scorer = UScore(words, translator=translator(case), combine="wrd", weights="tuned")
    # The published code multiplies the first two by 1, the first of its weights of the language
    # model.
    assert list(scorer.word_weights.values()) == pytest.approx(
        [*params["nmt_weights"], params["lm_weights"][1]]
    )
    sources, hypotheses = case.texts("source", "hypothesis")
    result = scorer.score(hypotheses, sources=sources)
    assert result.parts["wmd"] == pytest.approx(case.array("wmd_source_hypothesis"), abs=TOLERANCE)
    assert result.parts["pseudo"] == pytest.approx(
        case.array("wmd_translation_hypothesis"), abs=TOLERANCE
    )
    assert result.segments == pytest.approx(case.array("score"), abs=TOLERANCE)
