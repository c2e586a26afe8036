"""Mining in UScore's library: nearest neighbours, ratio margin, alignment by Word Mover's Distance, copy filter."""

import numpy as np
import pytest
from goldens import Case, cases, encoder, run

from mtmetrics.mining.candidates import Measure, nearest
from mtmetrics.mining.selection import is_copy
from mtmetrics.mining.sentence_level import ratio_margins
from mtmetrics.mining.word_level import closest

DISTANCES, SCORES, CLOSE = 1e-4, 1e-4, 1e-5


@pytest.mark.parametrize("case", cases("mining"))
def test_case(case: Case) -> None:
    name = case.params["function"]
    run(case, next(check for start, check in CHECKS.items() if name.startswith(start)))


def vectors(case: Case) -> tuple[np.ndarray, np.ndarray]:
    with np.load(case.path(case.document["model"]["embeddings"]), allow_pickle=False) as stored:
        return stored["src"], stored["tgt"]


def values_of(case: Case, rows: np.ndarray, measure: Measure) -> np.ndarray:
    """Distances or cosines of the targets that a case names."""
    x, y = (side.astype(np.float64) for side in vectors(case))
    if measure == "euclidean":
        return np.linalg.norm(x[:, None] - y[rows], axis=2)
    x, y = (side / np.linalg.norm(side, axis=1, keepdims=True) for side in (x, y))
    return np.einsum("id,ikd->ik", x, y[rows])


def check_neighbours(case: Case, measure: Measure, key: str) -> None:
    params, expected = case.params, np.array(case.outputs["indices"])
    found = nearest(*vectors(case), params["k"], measure=measure, shard=params["knn_batch_size"], legacy=True)
    assert found.values == pytest.approx(case.array(key), rel=DISTANCES)
    # Not the rows themselves: two of them may be too close to tell.
    assert found.values == pytest.approx(values_of(case, expected, measure), abs=CLOSE)
    plain = nearest(*vectors(case), params["k"], measure=measure, shard=params["knn_batch_size"])
    if measure == "cosine":
        assert plain.rows.tolist() == found.rows.tolist()
    else:
        whole = nearest(*vectors(case), params["k"], measure=measure)
        assert plain.rows.tolist() == whole.rows.tolist()


def check_centroids(case: Case) -> None:
    check_neighbours(case, "euclidean", "distances")


def check_cosines(case: Case) -> None:
    check_neighbours(case, "cosine", "similarities")


def check_margins(case: Case) -> None:
    found = ratio_margins(*vectors(case), case.params["k"], legacy="derived" not in case.params)
    assert found.margins == pytest.approx(case.array("scores"), abs=SCORES)
    assert list(enumerate(found.targets.tolist())) == [tuple(pair) for pair in case.outputs["pairs"]]


def check_alignment(case: Case) -> None:
    params, inputs = case.params, case.document["inputs"]
    count = len(case.outputs["pairs"])
    texts = inputs["source"][:count], inputs["target"]
    model = encoder(case.path(case.document["model"]["encoder"].split()[0]), None)
    tokens = [model.encode(side) for side in texts]
    means = [side.means()[side.index] for side in tokens]
    candidates = nearest(*means, params["k"], measure="cosine" if params["use_cosine"] else "euclidean").rows
    words = [side.select(model.word_table[side.token_ids]).ngrams(params["n_gram"]).normalized() for side in tokens]
    found = closest(*words, candidates)
    assert -found.distances == pytest.approx(case.array("scores"), abs=SCORES)
    unpruned = closest(*words, candidates, prune=False)
    assert found.targets.tolist() == unpruned.targets.tolist()
    assert list(enumerate(found.targets.tolist())) == [tuple(pair) for pair in case.outputs["pairs"]]


def check_copies(case: Case) -> None:
    rows = case.outputs
    assert [not is_copy(row["source"], row["target"]) for row in rows] == [row["kept"] for row in rows]


CHECKS = {
    "wcd_align": check_centroids,
    "cosine_align": check_cosines,
    "ratio": check_margins,
    "XMoverAlign.align": check_alignment,
    "copy filter": check_copies,
}
