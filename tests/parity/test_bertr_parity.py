"""BERTR by its definition, with and without special tokens."""

import pytest
from goldens import Case, cases, encoder, run

from mtmetrics.matching.greedy import bertr

TOLERANCE = 1e-5


@pytest.mark.parametrize("case", cases("bertr"))
def test_case(case: Case) -> None:
    run(case, check)


def check(case: Case) -> None:
    model = encoder(case.model("encoder"), case.params["layer"])
    predictions, references = (
        model.encode([row[side] for row in case.inputs]).normalized() for side in ("hypothesis", "reference")
    )
    found = bertr(predictions, references, special_tokens=case.params["special_tokens_included"])
    assert found == pytest.approx(case.array("score"), abs=TOLERANCE)
