"""Random order and word-by-word translation by hand."""

import gzip
from pathlib import Path

import pytest

from mtmetrics.errors import InputError
from mtmetrics.evaluation.word_order import (
    Dictionary,
    Literal,
    bare_words,
    coverage,
    random_order,
    read_word_pairs,
    words,
)

PAIRS = [
    ("der", "of"),
    ("der", "the"),
    ("Hund", "dog"),
    ("Hund", "hound"),
    ("schläft", "sleeps"),
    ("nicht", "not"),
    ("ja", "yes"),
    ("3", "4"),
    ("-", "x"),
]


def test_words_keep_their_punctuation_and_characters_stand_alone_where_there_are_no_spaces() -> None:
    assert words("  Well, (yes)!\tGo ") == ["Well,", "(yes)!", "Go"]
    assert words("我用iPhone，好。") == ["我", "用", "iPhone", "，", "好", "。"]
    assert words(" ") == []


def test_random_order_keeps_the_words_and_depends_on_text_and_seed_alone() -> None:
    text = "one two three four five six seven, eight."
    shuffled = random_order(text, 1)
    assert sorted(shuffled.split()) == sorted(text.split())
    assert shuffled != text
    random_order("another text in between", 1)
    assert random_order(text, 1) == shuffled != random_order(text, 2)
    assert random_order("alone", 1) == "alone"
    assert random_order("", 1) == ""


def test_random_order_of_chinese_has_no_spaces() -> None:
    shuffled = random_order("我看见一只猫。", 3)
    assert sorted(shuffled) == sorted("我看见一只猫。")
    assert shuffled != "我看见一只猫。"


def test_word_by_word() -> None:
    dictionary = Dictionary(PAIRS, ["The dog barks.", "the cat, the end", "a hound"])
    assert dictionary.translate('Der "Hund" schläft 3 mal nicht.') == Literal('The "dog" sleeps 3 mal not.', 4, 5)
    assert dictionary.translate("ja!") == Literal("yes!", 1, 1)
    assert dictionary.translate("- 3 -") == Literal("- 3 -", 0, 0)
    assert dictionary.translate("") == Literal("", 0, 0)


def test_of_several_translations_the_listed_then_the_frequent_then_the_first_counts() -> None:
    assert Dictionary(PAIRS).translate("der").text == "of"
    assert Dictionary(PAIRS, ["The of THE"]).translate("der").text == "the"
    assert Dictionary([*PAIRS, ("der", "of")], ["The of the"]).translate("der").text == "of"
    # Of a phrase the rarest word decides.
    assert Dictionary([("ja", "yes indeed"), ("ja", "oh")], ["yes yes oh"]).translate("ja").text == "oh"


def test_a_word_is_looked_up_as_written_first() -> None:
    dictionary = Dictionary([("essen", "eat"), ("Essen", "food")])
    assert [dictionary.translate(text).text for text in ("essen", "Essen", "ESSEN")] == ["eat", "Food", "Eat"]


def test_entries_of_several_words_are_for_scripts_without_spaces() -> None:
    assert Dictionary([("im Haus", "indoors"), ("im", "in")]).translate("im Haus").text == "in Haus"
    chinese = Dictionary([("我", "I"), ("看", "look"), ("看见", "see"), ("猫", "cat")])
    assert chinese.translate("我看见黑猫。") == Literal("I see 黑 cat。", 4, 5)


def test_coverage() -> None:
    assert coverage([Literal("a", 1, 4), Literal("b", 2, 2)]) == 0.5
    assert coverage([Literal("", 0, 0)]) == 0.0


def test_bare_words() -> None:
    assert bare_words('To be, "or" - «not»。') == ["To", "be", "or", "not"]


def test_reading(tmp_path: Path) -> None:
    path = tmp_path / "de-en.tsv.gz"
    path.write_bytes(gzip.compress(b"Hund\tdog\twiktionary\nja \tyes\n"))
    assert read_word_pairs(path) == [("Hund", "dog"), ("ja", "yes")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "empty"),
        ("a\tb\nHund\n", "line 2: 1 column.*word TAB translation"),
        ("a\t \n", "line 1: a word and its translation"),
    ],
)
def test_bad_files(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "pairs.tsv"
    path.write_text(text)
    with pytest.raises(InputError, match=f"pairs.tsv.*{message}"):
        read_word_pairs(path)
