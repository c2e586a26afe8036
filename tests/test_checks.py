"""What is refused, with which message, and what is counted."""

import datasets
import numpy as np
import pytest

from mtmetrics.checks import InputReport, as_texts, check, choice, language_pair, positive
from mtmetrics.errors import InputError


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"sources": ["a"], "predictions": ["b", "c"]}, "predictions has 2 segments but sources has 1"),
        ({"sources": ["a", None], "predictions": ["b", "c"]}, r"sources\[1\]: a string is needed, got None"),
        ({"sources": ["a", "b"], "predictions": ["b", 3.5]}, r"predictions\[1\]: a string is needed, got 3.5"),
        ({"sources": [["a"]], "predictions": ["b"]}, r"sources\[0\]: a string is needed, got \['a'\]"),
        ({"sources": "a", "predictions": ["b"]}, "sources: a list of strings is needed, got the single string 'a'"),
        ({"sources": np.array("a"), "predictions": ["b"]}, "sources: a list of strings is needed, got array"),
        ({"sources": 7, "predictions": ["b"]}, "sources: a list of strings is needed, got 7"),
        ({"sources": {"a": 1}, "predictions": ["b"]}, "sources: a list of strings is needed"),
        ({"sources": {"a", "b"}, "predictions": ["b", "c"]}, "sources: a list of strings is needed"),
        ({"references": {"a", "b"}, "predictions": ["b", "c"]}, "references: a list of strings is needed"),
        ({"sources": [], "predictions": []}, "sources: empty"),
        ({"sources": ["\ud800"], "predictions": ["b"]}, r"sources\[0\]: holds a lone surrogate"),
    ],
)
def test_refuses(columns: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        check(**columns)


def test_accepts_arrays_and_datasets_columns() -> None:
    column = datasets.Dataset.from_dict({"text": ["a", "b"]})["text"]
    assert check(sources=column, predictions=np.array(["c", "d"])) == [["a", "b"], ["c", "d"]]
    assert {type(text) for text in as_texts("x", np.array(["c"]))} == {str}


def test_long_values_are_shortened() -> None:
    with pytest.raises(InputError) as error:
        check(sources=["a"], predictions=[list(range(1000))])
    assert len(str(error.value)) < 140


@pytest.mark.parametrize("value", ["de", "de_en", "deen", "DE-EN", "de-en-fr", None, 3])
def test_language_pair_refuses(value: object) -> None:
    with pytest.raises(InputError, match="such as 'de-en'"):
        language_pair(value)


def test_small_checks() -> None:
    assert language_pair("gsw-en") == ("gsw", "en")
    with pytest.raises(InputError, match="variant 'x': must be one of a, b"):
        choice("variant", "x", ["a", "b"])
    for value in (0, -1, 1.5, True, "2"):
        with pytest.raises(InputError, match="batch"):
            positive("batch", value)


def test_report_adds_up_and_warns_once(recwarn: pytest.WarningsRecorder) -> None:
    report = InputReport(2, blank=1)
    report.add(InputReport(3, identical=2))
    assert report == InputReport(5, blank=1, identical=2)
    report.warn()
    InputReport(4).warn()
    assert len(recwarn) == 1
    assert "of 5 segments: 1 blank" in str(recwarn[0].message)
