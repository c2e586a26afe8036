"""SentSim scores: the published code gives the plain sum of the parts' exponentials, ours is their mean."""

import numpy as np
import pytest
from goldens import Case, cases, encoder, run

from mtmetrics.models.sentence_encoder import MeanPooledEncoder
from mtmetrics.scorers.sentsim import VARIANTS, SentSim

TOLERANCE = 1e-4
# Names of the published combinations.
COMBINATIONS = {
    "cos_bert": "sss+bertscore",
    "bert_wmd": "bertscore+wmd",
    "smd_wmd": "smd+wmd",
    "smd_bert": "smd+bertscore",
    "cos_bert_wmd": "sss+bertscore+wmd",
    "cos_bert_wmd_smd": "sss+bertscore+wmd+smd",
}


@pytest.mark.parametrize("case", cases("sentsim"))
def test_case(case: Case) -> None:
    run(case, check)


def scorer(case: Case, parts: str) -> SentSim:
    depth = encoder(case.model("word"), None).layer
    layer = case.params.get("bertscore_num_layers", 4) if "bertscore" in parts else depth - 3
    sentences = MeanPooledEncoder(encoder(case.model("sentence"), None))
    setting = "mt-ref" if case.params.get("first_argument") == "reference" else "src-mt"
    return SentSim(encoder(case.model("word"), layer), sentences, parts=parts, setting=setting)


def scores(case: Case, parts: str, inputs: list[dict[str, str]] | None = None) -> np.ndarray:
    first = case.params.get("first_argument", "source")
    others, predictions = ([row[side] for row in inputs or case.inputs] for side in (first, "hypothesis"))
    return scorer(case, parts).score(others, predictions).segments


def check(case: Case) -> None:
    variant = case.params["variant"]
    if "raises" in case.outputs:
        # Documented: equal values are in the middle, so that nothing is divided by zero. Which inputs the case has only
        # its note says.
        count = 2 if "two" in case.params["note"] else 1
        assert scores(case, "sss+bertscore", case.inputs[:1] * count) == pytest.approx(np.exp(0.5), abs=1e-9)
        return
    if variant in ("WMD", "BERTScore"):
        assert 2 * scores(case, VARIANTS[variant.lower()]) == pytest.approx(case.array("score"), abs=TOLERANCE)
    for name in COMBINATIONS.keys() & case.outputs.keys():
        # One part alone scores its exponential; the published combinations take BERTScore and the distances from
        # different layers.
        ours = np.sum([scores(case, part) for part in COMBINATIONS[name].split("+")], axis=0)
        assert ours == pytest.approx(case.array(name), abs=TOLERANCE), name
