"""Preparation of monolingual text: every filter on its own line, and texts that are no use at
all."""

import gzip
from pathlib import Path

import pytest

from mtmetrics.errors import InputError
from mtmetrics.io.languages import tokeniser, words_and_symbols
from mtmetrics.io.lines import iter_lines
from mtmetrics.mining.clean_text import draw, prepare

CLEAN = "Der Hund schläft heute Nacht nicht in seinem Haus."
REMOVED = {
    "blank": "  \t ",
    "over 1000 characters": "Das ist sehr lang " * 60,
    "with a URL": "Mehr dazu steht auf der Seite https://example.org/seite zu lesen.",
    "with a date": "Die Nachricht kam am 3. Mai 2011, 14:05 bei allen Leuten an.",
    "of several sentences": "Der Hund schläft heute nicht. Die Katze schläft.",
    "repeated": CLEAN,
    "too few tokens": "Guten Tag",
    "too many tokens": "Das ist ein Satz " * 8,
    "of another language": "The dog is not sleeping in its house tonight.",
}


def test_every_filter_removes_its_line() -> None:
    second = "Die Katze   sitzt\tauf dem Baum und schaut."
    found = prepare([CLEAN, *REMOVED.values(), second], "de", name="de.txt")
    assert found.sentences == [CLEAN, "Die Katze sitzt auf dem Baum und schaut."]
    assert found.counts == {"lines": 11, **dict.fromkeys(REMOVED, 1), "kept": 2}


@pytest.mark.parametrize(
    "sentence",
    [
        "Dr. Maier wohnt in der Nähe von St. Gallen.",
        "Am 3. Oktober wird in ganz Deutschland gefeiert.",
        "Das kostet z. B. Zeit und auch sehr viel Geld.",
        "»Kommst du?« fragte sie ihn am späten Abend.",
        "Der Präsident sagte: „Wir müssen jetzt handeln.“",
        "Sie wartete... und wartete, bis der Zug kam.",
    ],
)
def test_one_sentence(sentence: str) -> None:
    assert prepare([sentence], "de", name="de.txt", identify=False).sentences == [sentence]


@pytest.mark.parametrize(
    ("language", "line"),
    [
        ("de", "„Kommst du mit?“ „Ja, sehr gern.“"),
        ("en", "He left early! Nobody knew why he did it."),
        ("zh", "她有一只猫。那只猫是白色的。"),
        ("ne", "यो मेरो घर हो । त्यो तिम्रो घर हो ।"),
    ],
)
def test_several_sentences(language: str, line: str) -> None:
    with pytest.raises(
        InputError, match=r"none of its 1 lines can be used \(1 of several sentences\)"
    ):
        prepare([line], language, name="text", identify=False)


def test_tokenisers() -> None:
    assert tokeniser("en")("It's a dog, isn't it?") == [
        "It",
        "'s",
        "a",
        "dog",
        ",",
        "isn",
        "'t",
        "it",
        "?",
    ]
    assert len(tokeniser("zh")("我们在中国学习语言。")) < 8
    # Vowel signs and joiners stay in their words; Moses' rules would take "ශ්‍රී" apart.
    assert tokeniser("si")("ශ්‍රී ලංකාවේ අගනුවර කොළඹ ය.") == ["ශ්‍රී", "ලංකාවේ", "අගනුවර", "කොළඹ", "ය", "."]
    assert tokeniser("ne")("नेपालको राजधानी काठमाडौं हो।") == [
        "नेपालको",
        "राजधानी",
        "काठमाडौं",
        "हो",
        "।",
    ]
    assert words_and_symbols("東京は大きい!") == [*"東京は大きい!"]
    assert words_and_symbols("(a b1)--c") == ["(", "a", "b1", ")", "-", "-", "c"]


@pytest.mark.parametrize(
    ("language", "sentence"),
    [
        ("ne", "नेपालको राजधानी काठमाडौं एक ठूलो सहर हो ।"),
        ("si", "ශ්‍රී ලංකාවේ අගනුවර ශ්‍රී ජයවර්ධනපුර කෝට්ටේ වේ."),
    ],
)
def test_languages_without_a_tokeniser_of_their_own(language: str, sentence: str) -> None:
    assert prepare([sentence], language, name="text").sentences == [sentence]


def test_token_bounds_are_inclusive() -> None:
    lines = [" ".join(map(str, range(count))) for count in (2, 3, 30, 31)]
    assert prepare(lines, "de", name="x", identify=False).sentences == lines[1:3]


def test_draw_keeps_the_order_and_depends_on_the_seed() -> None:
    sentences = [str(number) for number in range(100)]
    one = draw(sentences, 10, seed=1)
    assert len(set(one)) == 10
    assert one == sorted(one, key=int) == draw(sentences, 10, seed=1)
    assert one != draw(sentences, 10, seed=2)
    assert draw(sentences, 1000) == sentences


def test_a_file_in_another_language_is_refused() -> None:
    english = [f"The dog number {number} sleeps in the old house." for number in range(9)]
    message = r"de.txt: 9 of 10 sentences are 'en' according to py3langid, not 'de'; check the file"
    with pytest.raises(InputError, match=message):
        prepare([*english, CLEAN], "de", name="de.txt")
    assert len(prepare([*english, CLEAN], "de", name="de.txt", identify=False).sentences) == 10


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "text: empty; there are no sentences"),
        (
            gzip.compress(b"Der Hund " * 40000, mtime=0),
            r"of its 1 lines can be used \(1 over 1000 characters\)",
        ),
        (
            f"{CLEAN}\nDer ".encode() + b"B\xe4r",
            r"text, line 2: byte 6 \(0xe4\) is not valid UTF-8",
        ),
    ],
)
def test_texts_without_sentences_are_refused(tmp_path: Path, content: bytes, message: str) -> None:
    file = tmp_path / ("text.gz" if content.startswith(b"\x1f\x8b") else "text")
    file.write_bytes(content)
    with pytest.raises(InputError, match=message):
        prepare(iter_lines(file), "de", name="text")


def test_a_language_that_cannot_be_identified() -> None:
    message = (
        "language 'tlh': py3langid does not know it, so do without the language filter; it "
        "knows: .* de "
    )
    with pytest.raises(InputError, match=message):
        prepare(["tlhIngan maH je maH"], "tlh", name="x")
    assert prepare(["tlhIngan maH je maH"], "tlh", name="x", identify=False).counts["kept"] == 1
