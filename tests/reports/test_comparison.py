"""Comparison of systems by one metric."""

import csv
import itertools
import re
from collections.abc import Callable, Iterable, Iterator

import numpy as np
import pytest

from mtmetrics.checks import InputReport
from mtmetrics.errors import InputError
from mtmetrics.reports.comparison import clusters, compare_systems, holm, report_comparison
from mtmetrics.scorers.results import MetricResult
from mtmetrics.statistics.significance import (
    SEED,
    bootstrap_interval,
    bootstrap_p_values,
    permutation_p_values,
)


def differ(k: int, *pairs: tuple[int, int]) -> np.ndarray:
    matrix = np.zeros((k, k), dtype=bool)
    for i, j in pairs:
        matrix[i, j] = matrix[j, i] = True
    return matrix


@pytest.mark.parametrize(
    ("significant", "expected"),
    [
        (differ(3), [1, 1, 1]),
        (differ(3, (0, 1), (0, 2), (1, 2)), [1, 2, 3]),
        (differ(3, (0, 1), (0, 2)), [1, 2, 2]),
        (differ(3, (0, 2), (1, 2)), [1, 1, 2]),
        # The first is better than the last, but nothing separates the second from either.
        (differ(3, (0, 2)), [1, 1, 1]),
        # Neighbours differ, but the third cannot be told from the first: no boundary between them.
        (differ(4, (0, 1), (1, 2), (0, 3), (1, 3), (2, 3)), [1, 1, 1, 2]),
        (differ(4, (0, 2), (0, 3), (1, 2), (1, 3)), [1, 1, 2, 2]),
    ],
)
def test_a_cluster_ends_where_all_above_beat_all_below(
    significant: np.ndarray, expected: list[int]
) -> None:
    assert clusters(significant) == expected


def test_holm_by_hand() -> None:
    # 4 * 0.005, then 3 * 0.01, 2 * 0.03, and 0.04, which may not be smaller than the one before.
    assert holm(np.array([0.03, 0.005, 0.04, 0.01])) == pytest.approx([0.06, 0.02, 0.06, 0.03])
    assert holm(np.array([0.9, 0.6])) == pytest.approx([1.0, 1.0])


@pytest.fixture
def scores() -> dict[str, np.ndarray]:
    """Two systems that can hardly be told apart, and a third that is better than both."""
    generator = np.random.default_rng(0)
    difficulty = generator.normal(size=80)
    noise = generator.normal(scale=0.2, size=(3, 80))
    return dict(
        zip(["low", "high", "low too"], difficulty + noise + [[0.0], [0.5], [0.01]], strict=True)
    )


@pytest.mark.parametrize(
    ("test", "function"), [("permutation", permutation_p_values), ("bootstrap", bootstrap_p_values)]
)
def test_order_ranks_clusters_and_p_values(
    scores: dict[str, np.ndarray], test: str, function: Callable
) -> None:
    settings = {"resamples": 200, "seed": 5}
    found = compare_systems(scores, test=test, **settings)
    names = [system.name for system in found.systems]
    assert (names[0], {*names[1:]}, found.segments) == ("high", {"low", "low too"}, 80)
    assert [(system.rank, system.cluster) for system in found.systems] == [(1, 1), (2, 2), (3, 2)]
    for system in found.systems:
        assert system.mean == scores[system.name].mean()
        assert system.interval == bootstrap_interval(scores[system.name], **settings)
    for i, j in itertools.combinations(range(3), 2):
        pair = np.array([scores[names[i]], scores[names[j]]])
        [one_sided] = function(pair, [(0, 1)], **settings)
        assert found.p_values[i, j] == found.p_values[j, i] == min(1.0, 2 * one_sided)
    assert found.p_values.diagonal().tolist() == [1.0, 1.0, 1.0]
    # Equal systems share rank and cluster.
    found = compare_systems(
        {"a": scores["low"], "b": scores["high"], "c": scores["low"].copy()}, test=test
    )
    places = [(system.name, system.rank, system.cluster) for system in found.systems]
    assert places == [("b", 1, 1), ("a", 2, 2), ("c", 2, 2)]
    assert found.p_values[1, 2] == 1.0


def test_holm_makes_p_values_larger(scores: dict[str, np.ndarray]) -> None:
    found = (compare_systems(scores, correction=name).p_values for name in ("none", "holm"))
    plain, corrected = (p_values[np.triu_indices(3, 1)] for p_values in found)
    assert corrected == pytest.approx(holm(plain))
    assert corrected.min() == pytest.approx(3 * plain.min())


@pytest.mark.parametrize(
    ("changes", "options", "message"),
    [
        ({"b": None}, {}, "systems: 1 given .a.; at least two"),
        (
            {"b": [1.0, 2.0, np.nan]},
            {},
            "b: 1 scores are not finite, the first is that of segment 3",
        ),
        (
            {"a": [np.inf, 2.0, 3.0]},
            {},
            "a: 1 scores are not finite, the first is that of segment 1",
        ),
        ({"b": [1.0, 2.0]}, {}, "a and b must be vectors of one length"),
        ({"a": [1.0], "b": [2.0]}, {}, "segments: 1 given"),
        ({}, {"test": "t"}, "test 't'"),
        ({}, {"correction": "bonferroni"}, "correction 'bonferroni'"),
        ({}, {"resamples": 0}, "resamples 0"),
        ({}, {"resamples": 39}, "at least 40 are needed"),
        (
            {"c": [0.0, 1.0, 2.0]},
            {"resamples": 100, "correction": "holm"},
            "3 pairs of systems .* at least 120 are",
        ),
    ],
)
def test_refusals(changes: dict, options: dict, message: str) -> None:
    scores = {"a": [1.0, 2.0, 3.0], "b": [1.0, 2.0, 2.5]} | changes
    with pytest.raises(InputError, match=message):
        compare_systems(
            {name: values for name, values in scores.items() if values is not None}, **options
        )


@pytest.mark.parametrize(("correction", "resamples"), [("none", 40), ("holm", 120)])
def test_the_fewest_resamples_that_are_allowed_can_be_significant(
    correction: str, resamples: int
) -> None:
    rows = {"a": np.full(60, 2.0), "b": np.full(60, 1.0), "c": np.zeros(60)}
    found = compare_systems(rows, correction=correction, resamples=resamples)
    assert [system.cluster for system in found.systems] == [1, 2, 3]


@pytest.fixture
def compared(scores: dict[str, np.ndarray]) -> tuple[dict, dict]:
    nothing = np.zeros(80, dtype=bool)
    metrics = {"first": scores, "second:mini": {name: -values for name, values in scores.items()}}
    results = {
        metric: {
            name: MetricResult(column, {}, nothing, InputReport(80), f"{metric}|v:1")
            for name, column in of.items()
        }
        for metric, of in metrics.items()
    }
    return {metric: compare_systems(columns) for metric, columns in metrics.items()}, results


def test_json_holds_everything(compared: tuple[dict, dict], scores: dict[str, np.ndarray]) -> None:
    shown = report_comparison(*compared).document
    settings = {
        "segments": 80,
        "test": "permutation",
        "correction": "none",
        "resamples": 1000,
        "seed": SEED,
    }
    assert shown == shown | settings | {"alpha": 0.05}
    first, second = shown["metrics"]
    assert first["signature"] == "first|v:1"
    assert [system["system"] for system in first["systems"]] == [
        system["system"] for system in second["systems"]
    ][::-1]
    assert first["systems"][0]["mean_score"] == scores["high"].mean()
    assert [(pair["better"], pair["significant"]) for pair in first["pairs"][:2]] == [
        ("high", True)
    ] * 2
    assert first["pairs"][2]["difference"] > 0
    assert first["pairs"][2]["p"] == compared[0]["first"].p_values[1, 2]


def test_markdown_has_a_column_group_per_metric_and_a_triangle_of_p_values(
    compared: tuple[dict, dict],
) -> None:
    blocks = report_comparison(*compared).render("markdown").split("\n\n")
    table = [[cell.strip() for cell in line.split("|")[1:-1]] for line in blocks[0].splitlines()]
    assert table[0] == ["system", "first", "rank", "cluster", "second:mini", "rank", "cluster"]
    assert [row[0] for row in table[2:]] == [system.name for system in compared[0]["first"].systems]
    assert table[2][2:4] == ["1", "1"]
    assert table[2][5:] == ["3", "2"]
    assert blocks[1] == "p-values of first:"
    assert [line.count(" 0.") + line.count(" 1.0") for line in blocks[2].splitlines()] == [
        0,
        0,
        2,
        1,
    ]
    assert blocks[-2:] == ["first: first|v:1", "second:mini: second:mini|v:1"]
    assert "80 segments" in blocks[-3]


def test_latex_has_its_notes_as_comments(compared: tuple[dict, dict]) -> None:
    text = report_comparison(*compared).render("latex")
    tabular = re.compile(r"\\begin\{tabular\}.*?\\end\{tabular\}", re.DOTALL)
    assert len(tabular.findall(text)) == 3
    outside = [line for line in tabular.sub("", text).splitlines() if line]
    assert len(outside) == 5
    assert all(line.startswith("% ") for line in outside)


def test_csv_has_a_row_per_metric_and_system_with_p_values_in_the_order_given(
    compared: tuple[dict, dict],
) -> None:
    rows = list(csv.DictReader(report_comparison(*compared).render("csv").splitlines()))
    assert [row["metric"] for row in rows] == ["first"] * 3 + ["second:mini"] * 3
    assert list(rows[0])[7:10] == ["p low", "p high", "p low too"]
    best = rows[0]
    assert (best["system"], best["rank"], best["cluster"], best["p high"]) == (
        "high",
        "1",
        "1",
        "1.0000",
    )
    assert float(best["low"]) < float(best["mean"]) < float(best["high"])
    assert report_comparison(*compared).render("tsv").splitlines()[0].split("\t") == list(rows[0])


@pytest.mark.parametrize(
    ("test", "function"), [("permutation", permutation_p_values), ("bootstrap", bootstrap_p_values)]
)
def test_many_systems_share_their_resamples_and_show_how_far_they_are(
    test: str, function: Callable
) -> None:
    generator = np.random.default_rng(3)
    scores = {f"s{number}": generator.normal(0.03 * number, size=40) for number in range(25)}
    shown: list[tuple[int, str]] = []

    def progress(
        portions: Iterable[np.ndarray], *, total: int, desc: str, unit: str
    ) -> Iterator[np.ndarray]:
        drawn = list(portions)
        assert len(drawn) == total
        shown.append((sum(map(len, drawn)), desc))
        yield from drawn

    found = compare_systems(scores, test=test, resamples=500, progress=progress)
    assert shown == [(500, "testing"), (500, "intervals")]
    names = [system.name for system in found.systems]
    for i, j in itertools.combinations(range(25), 2):
        pair = np.array([scores[names[i]], scores[names[j]]])
        [one_sided] = function(pair, [(0, 1)], resamples=500)
        assert found.p_values[i, j] == min(1.0, 2 * one_sided)
    assert [system.interval for system in found.systems] == [
        bootstrap_interval(scores[n], resamples=500) for n in names
    ]


def test_two_segments_have_no_interval() -> None:
    found = compare_systems({"a": [1.0, 2.0], "b": [0.0, 2.0]})
    assert [system.interval for system in found.systems] == [None, None]
