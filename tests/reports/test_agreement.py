"""Several metrics side by side: averages, the best of each column, and who is not significantly
worse."""

import numpy as np
import pytest
from helpers import judged

from mtmetrics.errors import InputError
from mtmetrics.judgements.judged import Judged
from mtmetrics.reports.agreement import PEARSON, Measure, metric_table, remarks, usual_test
from mtmetrics.reports.metric_runs import Entry, RowScores
from mtmetrics.statistics.correlation import pearson
from mtmetrics.statistics.significance import bootstrap_correlation, perm_both, williams_test

N = 60
GENERATOR = np.random.default_rng(2)
HUMAN = [GENERATOR.normal(size=N) for _ in range(2)]
NOISE = GENERATOR.normal(size=(3, 2, N))


def random_file(number: int, lang_pair: str) -> Judged:
    return judged(HUMAN[number], f"{number}.jsonl", lang_pair, item=[str(i // 2) for i in range(N)])


COLUMNS = [random_file(0, "de-en"), random_file(1, "fi-en")]


def scored(title: str, noise: float, number: int) -> RowScores:
    scores = [(human + noise * NOISE[number, file]).tolist() for file, human in enumerate(HUMAN)]
    return RowScores(Entry(title, column=title), scores)


ROWS = [scored("good", 0.5, 0), scored("close", 0.6, 1), scored("bad", 5.0, 2)]


def test_correlations_averages_the_best_and_marks() -> None:
    table = metric_table(ROWS, COLUMNS, PEARSON, test="williams")
    for row, given in zip(table.rows, ROWS, strict=True):
        values = [
            pearson(scores, human).value for scores, human in zip(given.scores, HUMAN, strict=True)
        ]
        assert [cell.correlation.value for cell in row.cells] == values
        assert row.average.value == pytest.approx(np.mean(values))
    for number in range(2):
        values = [row.cells[number].correlation.value for row in table.rows]
        assert [row.cells[number].best for row in table.rows] == [
            value == max(values) for value in values
        ]
    assert [row.best for row in table.rows] == [True, False, False]
    assert table.labels == ["de-en", "fi-en"]
    good, close, bad = (row.cells[0] for row in table.rows)
    assert good.p_value is None
    assert close.p_value == williams_test(ROWS[0].scores[0], ROWS[1].scores[0], HUMAN[0])
    assert (close.tied, bad.tied) == (True, False)
    # Without a test there are no p-values; a single metric is not the best of anything; files of
    # one pair are named.
    table = metric_table(ROWS[:1], [COLUMNS[0], random_file(1, "de-en")], PEARSON)
    assert table.labels == ["0.jsonl (de-en)", "1.jsonl (de-en)"]
    assert [(cell.p_value, cell.best) for cell in table.rows[0].cells] == [(None, False)] * 2
    assert not table.rows[0].best


def test_permutations_know_groups() -> None:
    measure = Measure("spearman", "item")
    table = metric_table(ROWS, COLUMNS, measure, test="perm-both")
    best = next(number for number, row in enumerate(table.rows) if row.cells[0].best)
    other = (best + 1) % 3
    a, b, groups = ROWS[best].scores[0], ROWS[other].scores[0], measure.groups(COLUMNS[0])
    expected = perm_both(a, b, HUMAN[0], coefficient="spearman", groups=groups)
    assert table.rows[other].cells[0].p_value == expected


def test_intervals_of_metrics_that_score_different_segments() -> None:
    gaps = RowScores(Entry("gaps"), [[None, *ROWS[0].scores[0][1:]], ROWS[0].scores[1]])
    table = metric_table([*ROWS, gaps], COLUMNS, PEARSON, intervals=True)
    for row in table.rows:
        assert row.cells[0].interval == bootstrap_correlation(row.scored.scores[0], HUMAN[0])
    assert (
        table.rows[3].cells[0].interval.left_out == table.rows[3].cells[0].correlation.left_out == 1
    )


def test_rows_without_scores_and_without_a_correlation() -> None:
    flat = RowScores(Entry("flat"), [[1.0] * N, [2.0] * N])
    missing = RowScores(Entry("missing"), [], problem="no such model")
    table = metric_table(
        [missing, flat, ROWS[0]], COLUMNS, PEARSON, test="williams", intervals=True
    )
    assert table.rows[0].cells == []
    assert table.rows[1].average.reason == "undefined for de-en (file 1), fi-en (file 2)"
    assert not any(cell.best or cell.tied for cell in table.rows[1].cells)
    assert remarks(table) == [
        f"{i}.jsonl ({pair}): no correlation for flat: the scores are constant"
        for i, pair in enumerate(("de-en", "fi-en"))
    ]


def test_scores_that_are_left_out_and_tests_that_are_not_defined_are_named() -> None:
    column = judged([1.0, 2.0, 3.0], "few.jsonl")
    rows = [
        RowScores(Entry("good"), [[1.0, 2.0, 3.5]]),
        RowScores(Entry("gap"), [[2.0, 1.0, None]]),
    ]
    table = metric_table(rows, [column], PEARSON, test="williams")
    assert table.rows[1].cells[0].tied  # nothing shows that it is worse
    assert remarks(table) == [
        "few.jsonl (de-en): gap: 1 of 3 judgements have no score and are left out",
        (
            "few.jsonl (de-en): no test of gap against the best: Williams' test needs at least 4 "
            "segments, there are 2"
        ),
    ]


def test_accuracy_pools_the_pairs_of_systems_of_all_files() -> None:
    columns = [judged([1.0, 2.0, 3.0][:k], level="system", system=list("abc")[:k]) for k in (3, 2)]
    row = RowScores(Entry("m"), [[1.0, 3.0, 2.0], [2.0, 1.0]])
    [row] = metric_table([row], columns, PEARSON).rows
    assert row.accuracy.value == pytest.approx(2 / 4)  # 2 of 3 pairs, and 0 of 1


def test_tests_and_intervals_that_do_not_go_with_the_measure() -> None:
    assert [usual_test(Measure(name)) for name in ("pearson", "spearman", "acc23")] == [
        "williams",
        "none",
        "none",
    ]
    assert usual_test(Measure("pearson", "item")) == "none"
    for measure, options, message in (
        (
            Measure("pearson", "item"),
            {"test": "williams"},
            "is for pearson without groups, not for pearson by item",
        ),
        (Measure("acc23"), {"test": "perm-both"}, "perm-both.*not acc23"),
        (Measure("darr"), {"intervals": True}, "--ci"),
    ):
        with pytest.raises(InputError, match=message):
            metric_table(ROWS, COLUMNS, measure, **options)


# Which number says how scores agree with judgements.

PAIRS = ["a", "a", "b", "b"]


def test_rows_without_a_judgement_are_left_out() -> None:
    file = judged([1.0, None, 3.0, 2.0], item=PAIRS, raw=[10.0, 20.0, None, 40.0])
    assert file.take([0, 10, 20, 30]) == [0, 20, 30]
    assert Measure().of(file.take([1.0, -99.0, 3.0, 2.0]), file).value == pytest.approx(1.0)
    assert (
        Measure("darr")
        .of([1.0, 2.0, 3.0], file)
        .reason.startswith("no two translations of one item")
    )


def test_groups() -> None:
    judgements = judged([1, 2, 11, 12], item=PAIRS, system=["s", "t", "s", "t"])
    scores = [5.0, 6.0, 1.0, 2.0]
    assert Measure("pearson").of(scores, judgements).value < 0
    assert Measure("pearson", "item").of(scores, judgements).value == pytest.approx(1.0)
    assert Measure("pearson", "system").of(scores, judgements).value == pytest.approx(-1.0)
    assert Measure("spearman", "item").label == "spearman by item"


def test_pairs_of_translations_of_one_source() -> None:
    judgements = judged([1, 2, 1, 1], item=PAIRS, raw=[10.0, 90.0, 10.0, 30.0])
    assert (
        Measure("darr").of([1.0, 2.0, 9.0, 8.0], judgements).value == 1.0
    )  # the second pair is closer than 25 points
    assert Measure("acc23").of([1.0, 2.0, 8.0, 8.0], judgements).value == 1.0
    assert Measure("darr").of([1.0, 2.0], judged([1, 2])).reason is not None


def test_soft_pairwise_accuracy_needs_systems() -> None:
    human = [1, 2, 11, 12]
    judgements = judged(human, item=PAIRS, system=["s", "t", "s", "t"])
    # By people and by the metric, t is better on both items.
    assert Measure("spa").of([5.0, 6.0, 1.0, 2.0], judgements).value == 1.0
    assert Measure("spa").of([6.0, 5.0, 2.0, 1.0], judgements).value < 0.5
    assert "name of its system" in str(
        Measure("spa").of([5.0, 6.0, 1.0, 2.0], judged(human, item=PAIRS)).reason
    )
    whole = judged([1.0, 2.0, 3.0], level="system", system=["s", "t", "u"])
    assert Measure().of([1.0, 2.0, 3.0], whole).value == pytest.approx(1.0)
    assert Measure("acc23").of([1.0, 2.0, 3.0], whole).reason is not None
    with pytest.raises(InputError, match="whole systems"):
        Measure("pearson", "item").of([1.0, 2.0, 3.0], whole)


def test_unknown_names_and_groups_that_say_nothing() -> None:
    for names, message in {
        ("tau",): "coefficient 'tau'",
        ("pearson", "file"): "group 'file'",
        ("acc23", "item"): "group 'item': must be one of none",
    }.items():
        with pytest.raises(InputError, match=message):
            Measure(*names)
