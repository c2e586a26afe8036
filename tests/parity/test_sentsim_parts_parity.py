"""What SentSim is combined from: cosine of sentence vectors, Word Mover's Distance, F1 of BERTScore, Sentence Mover's
Distance."""

from collections.abc import Callable

import numpy as np
import pytest
from goldens import Case, cases, encoder, run

from mtmetrics.matching.greedy import bertscore
from mtmetrics.matching.sentences import cosines, sentence_mover_distances
from mtmetrics.matching.transport import euclidean_distances, word_mover_distances
from mtmetrics.models.packed import PackedTokens

TOLERANCE = 1e-5


@pytest.mark.parametrize("case", cases("sentsim"))
def test_case(case: Case) -> None:
    run(case, check)


def check(case: Case) -> None:
    if "raises" in case.outputs:
        # Published: the normalisation divides 0 by 0. The parts themselves are defined.
        for part in PARTS.values():
            assert np.isfinite(part(case)).all()
        return
    checked = [name for name in PARTS if name in case.outputs]
    assert checked
    for name in checked:
        assert PARTS[name](case) == pytest.approx(case.array(name), abs=TOLERANCE)
    if "raw_wmd_exact_lp" in case.outputs:
        assert mover(case) == pytest.approx(case.array("raw_wmd_exact_lp"), abs=2e-6)


def texts(case: Case) -> list[list[str]]:
    return [[row[side] for row in case.inputs] for side in (case.params.get("first_argument", "source"), "hypothesis")]


def sentence_similarity(case: Case) -> np.ndarray:
    tokens = [encoder(case.model("sentence"), None).encode(side) for side in texts(case)]
    return cosines(*(side.means()[side.index] for side in tokens))


def words(case: Case) -> list[PackedTokens]:
    """Tokens of the fourth hidden state from the end, or the static vectors of the tokens; no special ones."""
    depth = encoder(case.model("word"), None).layer
    tokens = [encoder(case.model("word"), depth - 3).encode(side) for side in texts(case)]
    if "static" in case.params.get("variant", ""):
        table = word_embeddings(case)
        tokens = [side.with_vectors(lambda _, ids=side.token_ids: table[ids]) for side in tokens]
    return [side.select(side.words >= 0) for side in tokens]


def word_embeddings(case: Case) -> np.ndarray:
    from transformers import AutoModel

    return (
        AutoModel.from_pretrained(case.model("word"), local_files_only=True)
        .get_input_embeddings()
        .weight.detach()
        .numpy()
    )


def mover(case: Case) -> np.ndarray:
    return word_mover_distances(*words(case), euclidean_distances)


def greedy(case: Case) -> np.ndarray:
    layer = case.params.get("bertscore_num_layers", 4)
    return bertscore(*(encoder(case.model("word"), layer).encode(side).normalized() for side in texts(case))).f1


PARTS: dict[str, Callable[[Case], np.ndarray]] = {
    "raw_cosine": sentence_similarity,
    "raw_wmd": mover,
    "raw_bertscore_f1": greedy,
    "raw_smd": lambda case: sentence_mover_distances(*words(case)),
}
