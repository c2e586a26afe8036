"""Nearest neighbours: by hand, against plain sorting, and the same whatever the index and the
shards."""

from pathlib import Path

import numpy as np
import pytest

from mtmetrics.errors import InputError
from mtmetrics.mining.neighbours import Index
from mtmetrics.mining.sides import Rows


def points(rows: int, seed: int, dim: int = 8) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(rows, dim)).astype(np.float32)


def test_nearest_first_and_the_lower_number_of_equals() -> None:
    base = np.array([[5.0, 0], [1, 0], [3, 0], [1, 0]], dtype=np.float32)
    found = Index(base).nearest(np.zeros((1, 2), dtype=np.float32), 3)
    assert found.rows.tolist() == [[1, 3, 2]]
    assert found.values.tolist() == [[1.0, 1.0, 3.0]]


def test_cosines_do_not_depend_on_length() -> None:
    base = np.array([[0, 9.0], [0.1, 0.1], [-3, 0]], dtype=np.float32)
    found = Index(base, measure="cosine").nearest(np.array([[2.0, 0]], dtype=np.float32), 3)
    assert found.rows.tolist() == [[1, 0, 2]]
    assert found.values == pytest.approx(np.array([[0.5**0.5, 0, -1]]), abs=1e-6)


def test_agrees_with_sorting_all_distances() -> None:
    queries, base = points(700, 1), points(300, 2)
    distances = np.linalg.norm(queries[:, None].astype(np.float64) - base, axis=2)
    found = Index(base).nearest(queries, 7)
    assert found.values == pytest.approx(np.sort(distances, axis=1)[:, :7], abs=1e-6)
    assert found.rows.tolist() == np.argsort(distances, axis=1)[:, :7].tolist()


@pytest.mark.parametrize("measure", ["euclidean", "cosine"])
def test_shards_change_nothing(measure: str) -> None:
    queries, base = points(50, 1), points(90, 2)
    whole, parts = (
        Index(base, measure=measure, shard=shard).nearest(queries, 4) for shard in (1000, 40)
    )
    assert parts.rows.tolist() == whole.rows.tolist()
    assert parts.values == pytest.approx(whole.values, abs=1e-6)


@pytest.mark.filterwarnings("ignore")
def test_an_inverted_file_finds_most_neighbours_with_exact_values() -> None:
    # Clusters, as sentences have them; in uniform noise an inverted file would find few.
    centres = points(40, 5) * 5
    base = (np.repeat(centres, 50, axis=0) + points(2000, 3)).astype(np.float32)
    queries = (centres + points(40, 4)).astype(np.float32)
    exact, found = Index(base).nearest(queries, 5), Index(base, flat_limit=100).nearest(queries, 5)
    shared = [
        len(set(one) & set(two))
        for one, two in zip(exact.rows.tolist(), found.rows.tolist(), strict=True)
    ]
    assert np.mean(shared) > 4.7
    assert found.values == pytest.approx(
        np.linalg.norm(queries[:, None] - base[found.rows], axis=2), abs=1e-5
    )
    again = Index(base, flat_limit=100).nearest(queries, 5)
    assert again.rows.tolist() == found.rows.tolist()


def test_more_lists_are_searched_where_few_hold_too_little() -> None:
    base = np.concatenate([np.zeros((60, 4)), points(60, 1, 4)]).astype(
        np.float32
    )  # sixty equal points share a list
    found = Index(base, flat_limit=10).nearest(base[60:], 25)
    assert (found.rows >= 0).all()
    assert all(len(set(row)) == 25 for row in found.rows.tolist())


def test_few_rows_and_wrong_settings() -> None:
    assert Index(points(2, 2)).nearest(points(3, 1), 5).rows.shape == (3, 2)
    with pytest.raises(InputError, match="k 0"):
        Index(points(2, 2)).nearest(points(3, 1), 0)
    with pytest.raises(InputError, match="measure 'manhattan'"):
        Index(points(2, 2), measure="manhattan")


@pytest.mark.filterwarnings("ignore")
def test_inverted_files_lie_with_the_rows_and_are_made_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, queries = Rows([points(300, 1)], tmp_path), points(5, 2)
    found = Index(rows, flat_limit=10, shard=150).nearest(queries, 3)
    assert {path.name for path in tmp_path.iterdir()} == {
        "inverted-0-150.faiss",
        "inverted-150-300.faiss",
    }
    monkeypatch.setattr("faiss.index_factory", None)
    again = Index(rows, flat_limit=10, shard=150).nearest(queries, 3)
    assert again.rows.tolist() == found.rows.tolist()
    assert found.values == pytest.approx(
        np.linalg.norm(queries[:, None] - rows[:][found.rows], axis=2), abs=1e-6
    )
