"""Checks of values: refusals with their messages, and counts."""

import datasets
import numpy as np
import pytest

from mtmetrics.checks import (
    InputReport,
    as_texts,
    check,
    choice,
    for_language,
    language_of,
    language_pair,
    names_of_pair,
    positive,
    script_of_code,
    split_pair,
)
from mtmetrics.errors import InputError


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (
            {"sources": ["a"], "predictions": ["b", "c"]},
            "predictions has 2 segments but sources has 1",
        ),
        (
            {"sources": ["a", None], "predictions": ["b", "c"]},
            r"sources\[1\]: a string is needed, got None",
        ),
        (
            {"sources": ["a", "b"], "predictions": ["b", 3.5]},
            r"predictions\[1\]: a string is needed, got 3.5",
        ),
        (
            {"sources": [["a"]], "predictions": ["b"]},
            r"sources\[0\]: a string is needed, got \['a'\]",
        ),
        (
            {"sources": "a", "predictions": ["b"]},
            "sources: a list of strings is needed, got the single string 'a'",
        ),
        (
            {"sources": np.array("a"), "predictions": ["b"]},
            "sources: a list of strings is needed, got array",
        ),
        ({"sources": 7, "predictions": ["b"]}, "sources: a list of strings is needed, got 7"),
        ({"sources": {"a": 1}, "predictions": ["b"]}, "sources: a list of strings is needed"),
        (
            {"sources": {"a", "b"}, "predictions": ["b", "c"]},
            "sources: a list of strings is needed",
        ),
        (
            {"references": {"a", "b"}, "predictions": ["b", "c"]},
            "references: a list of strings is needed",
        ),
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


@pytest.mark.parametrize(
    "value",
    ["de", "de_en", "deen", "de-en-fr", "zh-CN", "sr-Latn", "German-English", "de-", None, 3],
)
def test_language_pair_refuses(value: object) -> None:
    with pytest.raises(InputError, match="such as 'de-en'"):
        language_pair(value)


@pytest.mark.parametrize(
    ("pair", "halves", "languages"),
    [
        ("deu-eng", ("deu", "eng"), ("de", "en")),
        ("deu_Latn-eng_Latn", ("deu_Latn", "eng_Latn"), ("de", "en")),
        ("DE-EN", ("DE", "EN"), ("de", "en")),
        ("zh-CN-en", ("zh-CN", "en"), ("zh", "en")),
        ("en-zh-CN", ("en", "zh-CN"), ("en", "zh")),
        ("pt-BR-en-US", ("pt-BR", "en-US"), ("pt", "en")),
        ("en-pt-BR", ("en", "pt-BR"), ("en", "pt")),
        ("fr-CA-es", ("fr-CA", "es"), ("fr", "es")),
        ("zh-Hant-TW-en", ("zh-Hant-TW", "en"), ("zh", "en")),
        ("en-es-419", ("en", "es-419"), ("en", "es")),
        ("en-ko_KR", ("en", "ko_KR"), ("en", "ko")),
        ("cs-de_DE", ("cs", "de_DE"), ("cs", "de")),
        ("en-sr_Cyrl_RS", ("en", "sr_Cyrl_RS"), ("en", "sr")),
        ("en-fil_PH", ("en", "fil_PH"), ("en", "tl")),
        ("en-mas_KE", ("en", "mas_KE"), ("en", "mas")),
        ("xx-yy", ("xx", "yy"), ("xx", "yy")),  # codes that nobody knows stay what they are
    ],
)
def test_language_pairs_in_other_codes(
    pair: str, halves: tuple[str, str], languages: tuple[str, str]
) -> None:
    assert split_pair(pair) == halves
    assert language_pair(pair) == languages


@pytest.mark.parametrize(
    ("pair", "readings"),
    [
        ("fr-ca-es", ["fr and ca-es", "fr-ca and es"]),
        ("en-pt-br", ["en and pt-br", "en-pt and br"]),
        ("de-en-fr", ["de and en-fr", "three languages"]),
        ("pt-BR", ["one language, pt_BR"]),
    ],
)
def test_language_pairs_that_can_be_read_in_two_ways(pair: str, readings: list[str]) -> None:
    with pytest.raises(InputError) as refused:
        split_pair(pair)
    assert all(reading in str(refused.value) for reading in readings)


def test_languages_by_their_codes() -> None:
    by_language = {
        "de": ["deu", "ger", "de_AT", "DEU_Latn"],
        "zh": ["zho_Hans", "cmn", "zh-TW", "chi"],
        "sr": ["sr-Latn", "srp_Cyrl_RS"],
        "fa": ["pes_Arab", "prs_Arab"],
        "tl": ["tgl", "fil", "tl"],
        **{
            language: [code]
            for language, code in {"lv": "lvs_Latn", "nb": "nob_Latn", "he": "iw"}.items()
        },
        **{code: [code] for code in ("no", "gsw", "yue")},
    }
    assert {
        language: {language_of(code) for code in codes} for language, codes in by_language.items()
    } == {language: {language} for language in by_language}
    assert (script_of_code("sr-Latn"), script_of_code("zho_Hans"), script_of_code("pt_BR")) == (
        "Latn",
        "Hans",
        None,
    )
    for value in ("German", "deutsch", "", "d", "de-EN", "x-mine", 3):
        with pytest.raises(InputError, match="language "):
            language_of(value)


def test_tables_and_names_by_language() -> None:
    assert for_language({"deu_Latn": 1, "en": 2}, "de") == 1
    assert for_language({"model": 1}, "de") is None
    assert names_of_pair("deu-eng", ["de-en", "de-fr", "readme"]) == ["de-en"]
    assert names_of_pair("en-pt_BR", ["en-pt_PT", "en-pt_BR"]) == ["en-pt_BR"]
    assert names_of_pair("en-pt", ["en-pt_PT", "en-pt_BR"]) == ["en-pt_PT", "en-pt_BR"]


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
