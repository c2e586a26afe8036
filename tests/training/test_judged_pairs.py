"""Judged pairs: how they are read, standardised, divided, and how a network agrees with them."""

from pathlib import Path

import numpy as np
import pytest
from helpers import write_jsonl

from mtmetrics.errors import InputError
from mtmetrics.judgements.readers import Condition
from mtmetrics.training.judged_pairs import (
    JudgedPair,
    agreement,
    pair_texts,
    read_judged_pairs,
    split,
    without,
)


def test_training_and_validation_share_no_text_to_compare_with() -> None:
    pairs = [JudgedPair(f"Text {number // 3}.", f"t {number}", 0.0, "f") for number in range(90)]
    train, valid = split(pairs, 300)
    assert sorted(train + valid) == sorted(pairs)
    others = [pair.other for pair in valid]
    assert not {pair.other for pair in train} & set(others)
    assert all(others.count(text) == 3 for text in others)
    assert without(pairs, valid) == train
    with pytest.raises(
        InputError, match="90 judged translations are too few to train on and to hold some back"
    ):
        split(pairs, 0)
    with pytest.raises(InputError, match="all rows compare with a text of --valid"):
        without(valid, pairs)


def test_judgements_are_standardised_file_by_file(tmp_path: Path) -> None:
    scores = {"a": (1, 2, 3), "b": (100, 200, 300), "equal": (5, 5)}
    paths = [
        write_jsonl(
            tmp_path / f"{name}.jsonl",
            ({"ref": "r", "mt": "t", "score": value} for value in values),
        )
        for name, values in scores.items()
    ]
    human = np.array(
        [pair.human for pair in read_judged_pairs(paths[:2], "reference", standardise=True)]
    )
    assert human[:3] == pytest.approx(human[3:])
    assert (human[:3].mean(), human[:3].std()) == pytest.approx((0, 1))
    with pytest.raises(InputError, match=r"equal\.jsonl: all judgements are equal"):
        read_judged_pairs(paths, "reference", standardise=True)


def test_blank_rows_are_left_out_and_there_must_be_others(tmp_path: Path) -> None:
    rows = [{"ref": "r", "mt": " ", "score": 1}, {"ref": "", "mt": "t", "score": 1}]
    blank = write_jsonl(tmp_path / "blank.jsonl", rows)
    with pytest.raises(InputError, match=r"blank\.jsonl: holds no judged translation"):
        read_judged_pairs([blank], "reference")
    some = write_jsonl(tmp_path / "some.jsonl", [*rows, {"ref": "r", "mt": "t", "score": 2}])
    assert read_judged_pairs([some], "reference") == [
        JudgedPair("r", "t", 2.0, f"{tmp_path.name}/some.jsonl")
    ]
    with pytest.raises(InputError, match="pass at least one file with --judged"):
        read_judged_pairs([], "reference")


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"mt": "t", "score": 1}, "no field 'reference' or 'ref'"),
        (
            {"ref": "r", "mt": "t", "score": float("nan")},
            "field 'score': a finite number is needed, got nan",
        ),
    ],
)
def test_bad_rows_are_named(row: dict, message: str, tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "bad.jsonl", [{"ref": "r", "mt": "t", "score": 1}, row])
    with pytest.raises(InputError, match=f"bad.jsonl, line 2.*{message}"):
        read_judged_pairs([path], "reference")


def test_rows_for_which_a_condition_holds(tmp_path: Path) -> None:
    rows = [
        {"ref": "r", "mt": "t", "score": n, "judgements": n, "system": f"s{n}"} for n in (1, 2, 3)
    ]
    paths = [
        write_jsonl(tmp_path / "with.jsonl", rows),
        write_jsonl(tmp_path / "without.jsonl", [dict(rows[0])]),
    ]
    del rows[0]["judgements"]
    write_jsonl(paths[1], rows[:1])
    for where, human in (
        ("judgements>=2", [2, 3, 1]),
        ("judgements=3", [3, 1]),
        ("system=s1", [1, 1]),
    ):
        assert [
            pair.human
            for pair in read_judged_pairs(paths, "reference", where=Condition.parse(where))
        ] == human
    with pytest.raises(InputError, match="--where year=2020: no row has a field 'year'"):
        read_judged_pairs(paths, "reference", where=Condition.parse("year=2020"))
    with pytest.raises(
        InputError, match=r"with\.jsonl: holds no judged translation with judgements>=4"
    ):
        read_judged_pairs(paths, "reference", where=Condition.parse("judgements>=4"))


def test_the_agreement_is_that_of_the_groups_where_it_is_defined(
    recwarn: pytest.WarningsRecorder,
) -> None:
    pairs = [
        JudgedPair("o", "t", value, group)
        for group, values in {"a": (1, 2, 3), "b": (5, 5)}.items()
        for value in values
    ]
    groups = [pair.group for pair in pairs]
    found = agreement(np.array([3.0, 2.0, 1.0, 0.0, 1.0]), pairs, groups)
    assert found == {"pearson_a": -1.0, "pearson": -1.0}
    assert agreement(np.zeros(5), pairs, groups) == {}
    assert not recwarn.list


def test_null_is_no_judgement(tmp_path: Path) -> None:
    rows = [{"ref": "r", "mt": "t", "score": 2}, {"ref": "r", "mt": "t", "score": None}]
    path = write_jsonl(tmp_path / "some.jsonl", rows)
    assert [pair.human for pair in read_judged_pairs([path], "reference")] == [2.0]


def test_judgements_are_read_as_the_shared_task_published_them(tmp_path):
    for name, line in {
        "source": "ein Haus",
        "mt-system": "a house",
        "reference": "the house",
        "human": "-0.25",
    }.items():
        (tmp_path / f"DAseg.newstest2016.{name}.de-en").write_text(f"{line}\n", encoding="utf-8")
    [pair] = read_judged_pairs([tmp_path / "DAseg.newstest2016.human.de-en"], "reference")
    assert (pair.other, pair.translation, pair.human, pair.languages) == (
        "the house",
        "a house",
        -0.25,
        ("en", "en"),
    )


def test_either_reads_a_row_for_each_text_that_it_has(tmp_path: Path) -> None:
    rows = [
        {"lp": "de-en", "source": "s", "reference": "r", "translation": "t", "human": 1},
        {"lp": "de-en", "source": "s", "reference": None, "translation": "t", "human": 2},
        {"lp": "de-en", "reference": "r", "translation": "t", "human": 3},
    ]
    pairs = read_judged_pairs([write_jsonl(tmp_path / "rows.jsonl", rows)], "either")
    assert [(pair.against, pair.human) for pair in pairs] == [
        ("source", 1.0),
        ("reference", 1.0),
        ("source", 2.0),
        ("reference", 3.0),
    ]
    assert [pair.languages for pair in pairs[:2]] == [("de", "en"), ("en", "en")]
    both = read_judged_pairs([tmp_path / "rows.jsonl"], "any")
    assert [pair.against for pair in both] == ["source", "reference", "both", "source", "reference"]
    assert (both[2].other, both[2].reference, both[2].human) == ("s", "r", 1.0)
    assert pair_texts(both[2]) == [("s", "de"), ("r", "en"), ("t", "en")]


def test_neither_source_nor_reference_is_on_both_sides() -> None:
    pairs = [
        JudgedPair(
            f"s {number}", f"t {number}", 0.0, "f", against="both", reference=f"r {number % 45}"
        )
        for number in range(90)
    ]
    train, valid = split(pairs, 300)
    assert train
    assert not {pair.other for pair in train} & {pair.other for pair in valid}
    assert not {pair.reference for pair in train} & {pair.reference for pair in valid}
    assert without(pairs[:50], pairs[85:]) == pairs[:40] + pairs[45:50]


def test_both_texts_must_be_there(tmp_path: Path) -> None:
    row = {"src": "s", "ref": "r", "mt": "t", "score": 1}
    path = write_jsonl(tmp_path / "rows.jsonl", [row, row | {"src": " "}, row | {"ref": ""}])
    [pair] = read_judged_pairs([path], "both")
    assert (pair.other, pair.reference, pair.against) == ("s", "r", "both")
    for missing, name in (("src", "source"), ("ref", "reference")):
        rows = [{key: value for key, value in row.items() if key != missing}]
        with pytest.raises(InputError, match=f"line 1: .*no field '{name}'"):
            read_judged_pairs([write_jsonl(tmp_path / "rows.jsonl", rows)], "both")
