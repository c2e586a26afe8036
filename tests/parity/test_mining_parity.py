"""Mining in UScore's library: nearest neighbours, ratio margin, alignment by Word Mover's Distance,
copy filter."""

import numpy as np
import pytest
from goldens import Case, cases, encoder, run_named

from mtmetrics.mining import word_level
from mtmetrics.mining.kept_pairs import is_copy
from mtmetrics.mining.neighbours import Index, Neighbours, VectorDistance
from mtmetrics.mining.sentences import Margins, ratio_margins
from mtmetrics.mining.word_level import closest

DISTANCES, SCORES, CLOSE = 1e-4, 1e-4, 1e-5


@pytest.mark.parametrize("case", cases("mining"))
def test_mining_as_published(case: Case) -> None:
    run_named(case, CHECKS)


def vectors(case: Case) -> tuple[np.ndarray, np.ndarray]:
    with np.load(case.path(case.document["model"]["embeddings"]), allow_pickle=False) as stored:
        return stored["src"], stored["tgt"]


def values_of(case: Case, rows: np.ndarray, measure: VectorDistance) -> np.ndarray:
    """Distances or cosines of the targets that a case names."""
    x, y = (side.astype(np.float64) for side in vectors(case))
    if measure == "euclidean":
        return np.linalg.norm(x[:, None] - y[rows], axis=2)
    x, y = (side / np.linalg.norm(side, axis=1, keepdims=True) for side in (x, y))
    return np.einsum("id,ikd->ik", x, y[rows])


def published_neighbours(
    x: np.ndarray, y: np.ndarray, k: int, measure: VectorDistance, shard: int
) -> Neighbours:
    """The published code ranks by distances, not by cosines: lists are farthest first, and
    of the neighbours that several shards offer the farthest are kept."""
    if measure == "cosine":
        return Index(y, measure=measure, shard=shard).nearest(x, k)
    found = []
    for rows in np.array_split(np.arange(len(y)), -(-len(y) // shard)):
        part = Index(y[rows]).nearest(x, k)
        found.append((part.rows + rows[0], part.values))
    rows, values = (np.concatenate(parts, axis=1) for parts in zip(*found, strict=True))
    order = np.argsort(-values, axis=1, kind="stable")[:, :k]
    return Neighbours(
        np.take_along_axis(rows, order, axis=1), np.take_along_axis(values, order, axis=1)
    )


def published_margins(x: np.ndarray, y: np.ndarray, k: int) -> Margins:
    """The margins of the published code, which are backwards: it takes the mean squared Euclidean
    distance of unit vectors in place of the mean cosine."""
    forward, backward = (
        Index(base, measure="cosine").nearest(queries, k) for queries, base in ((x, y), (y, x))
    )
    around = (2.0 - 2.0 * backward.values).mean(axis=1)
    margins = 2.0 * forward.values / (forward.values.mean(axis=1)[:, None] + around[forward.rows])
    best = np.arange(len(margins)), margins.argmax(axis=1)
    return Margins(forward.rows[best], margins[best])


def check_neighbours(case: Case, measure: VectorDistance, key: str) -> None:
    k, shard, expected = (
        case.params["k"],
        case.params["knn_batch_size"],
        np.array(case.outputs["indices"]),
    )
    found = published_neighbours(*vectors(case), k, measure, shard)
    assert found.values == pytest.approx(case.array(key), rel=DISTANCES)
    # Not the rows themselves: two of them may be too close to tell.
    assert found.values == pytest.approx(values_of(case, expected, measure), abs=CLOSE)
    queries, base = vectors(case)
    plain, whole = (
        Index(base, measure=measure, **option).nearest(queries, k)
        for option in ({"shard": shard}, {})
    )
    assert plain.rows.tolist() == whole.rows.tolist()


def check_centroids(case: Case) -> None:
    check_neighbours(case, "euclidean", "distances")


def check_cosines(case: Case) -> None:
    check_neighbours(case, "cosine", "similarities")


def check_margins(case: Case) -> None:
    margins = ratio_margins if "derived" in case.params else published_margins
    found = margins(*vectors(case), case.params["k"])
    assert found.margins == pytest.approx(case.array("scores"), abs=SCORES)
    assert list(enumerate(found.targets.tolist())) == [
        tuple(pair) for pair in case.outputs["pairs"]
    ]


def check_alignment(case: Case) -> None:
    params, inputs = case.params, case.document["inputs"]
    count = len(case.outputs["pairs"])
    texts = inputs["source"][:count], inputs["target"]
    model = encoder(case.path(case.document["model"]["encoder"].split()[0]), None)
    tokens = [model.encode(side) for side in texts]
    means = [side.means()[side.index] for side in tokens]
    measure: VectorDistance = "cosine" if params["use_cosine"] else "euclidean"
    candidates = Index(means[1], measure=measure).nearest(means[0], params["k"]).rows
    words = [
        side.select(model.word_table[side.token_ids]).ngrams(params["n_gram"]).normalized()
        for side in tokens
    ]
    found = closest(*words, candidates)
    assert -found.distances == pytest.approx(case.array("scores"), abs=SCORES)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            word_level,
            "relaxed_distances",
            lambda cost, source, target, starts: np.zeros(len(starts)),
        )
        unpruned = closest(*words, candidates)
    assert found.targets.tolist() == unpruned.targets.tolist()
    assert list(enumerate(found.targets.tolist())) == [
        tuple(pair) for pair in case.outputs["pairs"]
    ]


def check_copies(case: Case) -> None:
    rows = case.outputs
    assert [not is_copy(row["source"], row["target"]) for row in rows] == [
        row["kept"] for row in rows
    ]


CHECKS = {
    "wcd_align": check_centroids,
    "cosine_align": check_cosines,
    "ratio": check_margins,
    "XMoverAlign.align": check_alignment,
    "copy filter": check_copies,
}
