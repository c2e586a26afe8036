"""BERTR by its definition, and BERTScore of its authors' package, uniform and with inverse document
frequencies."""

import numpy as np
import pytest
from goldens import Case, cases, encoder, run
from tally import LISTED

from mtmetrics.matching.greedy import bertr, bertscore
from mtmetrics.models.token_weights import TokenWeights

TOLERANCE = 1e-5


@pytest.mark.parametrize("case", [*cases("bertr"), *cases("bertscore")])
def test_greedy_as_published(case: Case) -> None:
    run(case, check_bertr if case.file.startswith("bertr.") else check_bertscore)


def check_bertr(case: Case) -> None:
    model = encoder(case.model("encoder"), case.params["layer"])
    predictions, references = (
        model.encode(side).normalized() for side in case.texts("hypothesis", "reference")
    )
    found = bertr(predictions, references, special_tokens=case.params["special_tokens_included"])
    assert found == pytest.approx(case.array("score"), abs=TOLERANCE)


def check_bertscore(case: Case) -> None:
    params = case.params
    model = encoder(case.path(params["model"]), params["num_layers"])
    # The package strips texts, and counts documents among the references of the call.
    sides = params.get("candidates", "hypothesis"), params.get("references", "reference")
    predictions, references = ([text.strip() for text in side] for side in case.texts(*sides))
    tokens = [model.encode(side) for side in (predictions, references)]
    if params["idf"]:
        weights = TokenWeights.fit(model, references, offset=0.0)
        tokens = [weights.apply(side) for side in tokens]
    found = bertscore(*(side.normalized() for side in tokens))._asdict()
    alone = case.extra.get("outputs_batch_size_1", case.outputs)
    for name, values in found.items():
        expected, expected_alone = case.array(name), np.array(alone[name], dtype=np.float64)
        padded = np.abs(expected - expected_alone) > TOLERANCE
        for number in np.flatnonzero(padded):
            reason = (
                "matched with padding in a batch of 64; compared with the value of batch size 1"
            )
            LISTED[f"{case.name} {case.inputs[number]['id']}"] = reason
        # The package gives 0 where a side is empty.
        filled = np.nan_to_num(values, nan=0.0)
        assert filled == pytest.approx(expected_alone, abs=TOLERANCE)
        assert filled[~padded] == pytest.approx(expected[~padded], abs=TOLERANCE)
