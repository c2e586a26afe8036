"""Texts that contradict the language pair."""

import sys
import warnings

import pytest

from mtmetrics.io.languages import with_language_warning

GERMAN = [
    "Das Haus am Ende der Straße ist klein und alt.",
    "Gestern haben wir lange auf den Bus gewartet.",
    "Der Hund schläft nicht, weil er Hunger hat.",
    "Ich sehe die Katze auf dem Dach des Nachbarn.",
    "Im Garten steht ein Baum mit roten Äpfeln.",
]
ENGLISH = [
    "The house at the end of the street is small and old.",
    "Yesterday we waited a long time for the bus.",
    "The dog does not sleep because it is hungry.",
    "I see the cat on the roof of the neighbour.",
    "In the garden there is a tree with red apples.",
]
RUSSIAN = [
    "Дом в конце улицы маленький.",
    "Мы долго ждали автобус.",
    "Собака не спит.",
    "Я вижу кошку.",
    "Там дерево.",
]


def warnings_of(pair: str | None, columns: list[str], rows: list[tuple[str, ...]]) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert list(with_language_warning(pair, columns, rows)) == rows
    return [str(warning.message) for warning in caught]


@pytest.mark.parametrize(
    ("pair", "sources", "predictions", "expected"),
    [
        ("de-en", GERMAN, ENGLISH, ""),
        (
            "de-en",
            ENGLISH,
            GERMAN,
            "sources are to be 'de', but 5 of 5 segments look like 'en'; is --lp de-en right",
        ),
        (
            "ru-en",
            RUSSIAN,
            GERMAN,
            "predictions are to be 'en', but 5 of 5 segments look like 'de'",
        ),
        (
            "ru-en",
            GERMAN,
            ENGLISH,
            "sources are to be 'ru', but 5 of 5 segments are in Latin letters",
        ),
        (
            "de-en",
            RUSSIAN,
            ENGLISH,
            "sources are to be 'de', but 5 of 5 segments are in Cyrillic letters",
        ),
        # Most of a file, not some segments of it; and no guess from a few.
        ("de-en", GERMAN[:3] + ENGLISH[:2], ENGLISH, ""),
        ("de-en", ENGLISH[:4], GERMAN[:4], ""),
        (None, ENGLISH, GERMAN, ""),
    ],
)
def test_one_warning_where_most_of_a_file_is_something_else(
    pair: str | None, sources: list[str], predictions: list[str], expected: str
) -> None:
    pytest.importorskip("py3langid", reason="needs the extra 'mining'")
    messages = warnings_of(
        pair, ["sources", "predictions"], list(zip(sources, predictions, strict=False))
    )
    assert len(messages) == bool(expected)
    assert "".join(messages).startswith(expected)


def test_a_warning_counts_the_texts_in_the_script_that_it_names() -> None:
    greek = ["Η γάτα κοιμάται."] * 4
    [message] = warnings_of("de-en", ["sources"], [(text,) for text in RUSSIAN + greek])
    assert "5 of 9 segments are in Cyrillic letters" in message


def test_without_py3langid_the_script_still_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "py3langid", None)
    for sources, count in ((ENGLISH, 0), (RUSSIAN, 1)):
        assert len(warnings_of("de-en", ["sources"], [(text,) for text in sources])) == count
