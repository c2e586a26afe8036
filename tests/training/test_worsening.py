"""Worsened copies of translations: one error of each kind, and none where it has no place."""

import pytest

from mtmetrics.training.worsening import Worsening, text_of, tokens_of

ENGLISH = [
    "In 1998, Angela Merkel said that the party would not win the election.",
    "He bought a small car near the river, and she bought a green bicycle.",
    "The old house stands in Berlin, where the people drink strong coffee.",
] + ["the the and and in in that that would would not not he she a a"] * 3
SOURCE = "Im Jahr 1998 sagte Angela Merkel, dass die Partei die Wahl nicht gewinnen werde."
CHINESE = ["他说这个房子很小。", "我们明天去北京。"]


@pytest.mark.parametrize(
    "text", [*ENGLISH[:3], *CHINESE, "„Ja!“, rief er.", "don't (really) 3,5 %"]
)
def test_words_and_marks_make_the_text_again(text: str) -> None:
    assert text_of(tokens_of(text)) == text


def test_every_kind_of_error_is_made_and_changes_the_text() -> None:
    worsening = Worsening(ENGLISH, seed=1)
    for kind in worsening.kinds:
        copies = {worsening.copy(ENGLISH[0], SOURCE, kind) for _ in range(30)} - {None}
        assert copies, kind
        assert ENGLISH[0] not in copies


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("capitals lost", ENGLISH[0].lower()),
        ("tokenised", "In 1998 , Angela Merkel said that the party would not win the election ."),
    ],
)
def test_errors_of_form(kind: str, expected: str) -> None:
    assert Worsening(ENGLISH).copy(ENGLISH[0], SOURCE, kind) == expected


def test_an_untranslated_word_comes_from_the_source() -> None:
    worsening = Worsening(ENGLISH, seed=2)
    copies = {worsening.copy(ENGLISH[0], SOURCE, "untranslated word") for _ in range(20)} - {None}
    new = {word.strip(".,") for copy in copies for word in copy.split()} - {
        w.strip(".,") for w in ENGLISH[0].split()
    }
    assert new
    assert new <= {word.strip(".,") for word in SOURCE.split()}


def test_scripts_without_spaces_are_worsened_by_character() -> None:
    worsening = Worsening(CHINESE, seed=1)
    assert len(worsening.copy(CHINESE[0], "", "word twice") or "") == len(CHINESE[0]) + 1
    assert " " not in (worsening.copy(CHINESE[0], "", "phrase twice") or "")


@pytest.mark.parametrize(
    ("kind", "text"),
    [("number replaced", "No digits here."), ("name lost", "nobody"), ("end lost", "Yes.")],
)
def test_an_error_without_a_place_is_not_made(kind: str, text: str) -> None:
    assert Worsening(ENGLISH).copy(text, SOURCE, kind) is None


def test_added_words_are_set_apart() -> None:
    worsening = Worsening(ENGLISH, seed=4)
    original = {word.strip(".,") for word in " ".join(ENGLISH).split()}
    for kind in ("addition", "phrase twice", "word twice"):
        for _ in range(60):
            copy = worsening.copy(ENGLISH[0], SOURCE, kind) or ""
            assert {word.strip(".,") for word in copy.split()} <= original


def test_copies_depend_on_the_seed_alone() -> None:
    first, second = (Worsening(ENGLISH, seed=5).any_copy(ENGLISH[0], SOURCE) for _ in range(2))
    assert first == second
