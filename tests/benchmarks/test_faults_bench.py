"""Words that the measurement of words at fault takes for wrong."""

import faults_bench
import numpy as np
import pytest
from helpers import write_jsonl

from mtmetrics.io.tables import jsonl_rows


@pytest.mark.parametrize(
    ("translation", "post_edit", "wrong"),
    [
        ("a b c", "a b c", [0, 0, 0]),
        ("a b c", "a x c d", [0, 1, 0]),
        ("a b b c", "b c", [1, 1, 0, 0]),
        ("a b", "", [1, 1]),
    ],
)
def test_words_that_fewest_edits_do_not_keep(translation, post_edit, wrong):
    assert faults_bench.edited(translation.split(), post_edit.split()).tolist() == [
        bool(flag) for flag in wrong
    ]


def test_one_word_of_a_reference_is_replaced_by_another(tmp_path):
    references = ["The house is small.", "Every tree sleeps!", "He is."]
    rows = [
        {"lp": "de-en", "source": "s", "reference": text, "translation": "t", "human": 0}
        for text in references
    ]
    found = faults_bench.by_replacement(
        list(jsonl_rows(write_jsonl(tmp_path / "rows.jsonl", rows)))
    )
    assert len(found) == 2  # the last has no word that may be replaced
    for text, row in zip(references, found, strict=False):
        before, after = faults_bench.words(text), faults_bench.words(row.translation)
        assert [
            one != other for one, other in zip(before, after, strict=True)
        ] == row.wrong.tolist()
        assert row.wrong.sum() == 1


def test_figures_by_hand():
    severities = [np.array([0.1, 0.8]), np.array([0.6, 0.2, 0.3])]
    wrong = [np.array([False, True]), np.array([False, False, True])]
    # Of 2 x 3 pairs of a wrong and a right word 5 are in order; above 0.5 one of two is wrong,
    # above 0.7 the only one.
    assert faults_bench.judge(severities, wrong) == pytest.approx(
        [5 / 6, 1 / 2, (1 / 2 + 1 / 3) / 2, 1 / 2, 1.0]
    )
