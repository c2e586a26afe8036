"""Output that is no translation is counted, by every metric."""

import numpy as np
import pytest

from mtmetrics.io.languages import has_py3langid
from mtmetrics.scorers.degenerate import find_degenerate, is_copy, is_looping, is_out_of_proportion
from mtmetrics.scorers.registry import load_scorer

needs_langid = pytest.mark.skipif(not has_py3langid(), reason="needs the extra 'filter'")
SOURCES = ["Das Haus ist klein.", "Er kommt.", "Ich sehe die Katze.", "Nein."]
BAD = [
    "the the the the the",
    "дом очень маленький",
    "I see the cat. " + "I am a helpful assistant and I will do it. " * 3,
    "No.",
]


@pytest.mark.parametrize(
    ("text", "looping"),
    [
        ("", False),
        ("no no no", False),
        ("no no no no", True),
        ("a b c a b c a b c a b c", True),
        ("it is what it is and what it is not is what it is not", False),
        ("one two three four five six seven eight nine ha ha ha ha", False),
        ("1 2 3 4 5", False),
        ("哈哈哈哈", False),
        ("哈" * 12, True),
        ("hahaha", False),
        ("-" * 30, True),
    ],
)
def test_loops(text, looping):
    assert is_looping(text) is looping


def test_lengths():
    assert not is_out_of_proportion("", "x" * 500)  # which is blank already
    assert not is_out_of_proportion("Ja.", "Yes, of course, gladly so.")
    assert is_out_of_proportion("Ja.", "x" * 100)
    assert is_out_of_proportion("x" * 100, "Ja.")
    assert not is_out_of_proportion("x" * 100, "y" * 20)


@pytest.mark.parametrize(
    ("source", "translation"),
    [
        ("2019", "2019"),
        ("(1)", "(1)"),
        ("1.000.000", "1000000"),
        ("1.000.000.000.000", "1000000000000"),
        ("12.03.2020", "12.03.2020"),
        ("US$ 5,00", "US$ 5.00"),
        ("5 kg", "5 kg"),
        ("100 km/h", "100 km/h"),
        ("0 0 0 0 0 0", "0 0 0 0 0 0"),
        ("IBAN DE89 0000 0000 0000 0000", "IBAN DE89 0000 0000 0000 0000"),
        ("Angela Merkel", "Angela Merkel"),
        ("Ursula von der Leyen", "Ursula von der Leyen"),
        ("Marks and Spencer", "Marks and Spencer"),
        ("Martin Luther King Jr.", "Martin Luther King Jr."),
        ("Москва", "Москва"),
        ("Владимир Путин", "Владимир Путин"),
        ("თბილისი", "თბილისი"),
        ("北京", "北京"),
        ("दिल्ली", "दिल्ली"),
        ("ANGELA MERKEL", "Angela Merkel"),
        ("NATO", "NATO"),
        ("EINLEITUNG", "INTRODUCTION"),
        ("Star Wars", "Star Wars"),
        ("iPhone 15 Pro", "iPhone 15 Pro"),
        ("XJ-4711/b", "XJ-4711/b"),
        ("ISO 9001:2015", "ISO 9001:2015"),
        ("https://example.org/a", "https://example.org/a"),
        ("www.example.org", "www.example.org"),
        ("info@example.org", "info@example.org"),
        ("/usr/local/bin/python3", "/usr/local/bin/python3"),
        ("C:\\Windows\\System32", "C:\\Windows\\System32"),
        ("x = y + z", "x = y + z"),
        ("@user #metoo", "@user #metoo"),
        ("Einleitung . . . . 5", "Introduction . . . . 5"),
        ("Inhalt .................... 5", "Contents . . . . . . . . . . . . . . . . . 5"),
        ("Tor! Tor! Tor!", "Goal! Goal! Goal!"),
        ("Tor! Tor! Tor! Tor!", "Goal! Goal! Goal! Goal!"),
        ("加油加油加油加油", "Go! Go! Go! Go!"),
        ("----", "----"),
        ("-" * 30, "-" * 30),
        ("\U0001f602" * 13, "\U0001f602" * 13),
        ("| | | | | |", "| | | | | |"),
        ("Привет, мир, как твои дела?", "Hello"),
    ],
)
def test_what_is_right_is_not_unusual(source, translation):
    for column in ("sources", "references"):
        other, code = (source, "de") if column == "sources" else (translation, "en")
        found = find_degenerate(
            [other],
            [translation],
            None,
            compares_sources=column == "sources",
            compared_language=code,
        )
        assert not any(values.any() for values in found.values())


@pytest.mark.parametrize(
    ("source", "translation"),
    [
        ("Das Haus ist klein!", "DAS HAUS IST KLEIN!"),
        ("Das Haus ist klein!", "das haus ist klein"),
        ("DAS HAUS IST KLEIN!", "DAS HAUS IST KLEIN!"),
        ("das Haus", "das Haus"),
        ("Guten Morgen.", "Guten Morgen."),
        ("Er sagte: „Nein!“", 'Er sagte: "Nein!"'),
        ("Am 5. Mai 2019 fuhren wir nach Berlin.", "Am 5. Mai 2019 fuhren wir nach Berlin"),
        ("Siehe https://example.org/a für mehr", "Siehe https://example.org/a für mehr"),
        ("Angela Merkel besuchte Paris.", "Angela Merkel besuchte Paris."),
        ("u\u0308ber alles", "über alles"),
        ("我们需要更多的时间。", "我们需要更多的时间"),
        ("मेरो साथी स्कूल गयो।", "मेरो साथी स्कूल गयो"),
        ("Президент встретился с министром.", "ПРЕЗИДЕНТ ВСТРЕТИЛСЯ С МИНИСТРОМ"),
    ],
)
def test_copies_are_found_without_case_and_punctuation(source, translation):
    assert is_copy(source, translation)
    assert find_degenerate([source], [translation], None, compares_sources=True)[
        "identical"
    ].tolist() == [True]
    assert find_degenerate([source], [translation], None)["identical"].tolist() == [False]


@pytest.mark.parametrize(
    ("source", "translation"),
    [
        ("Tor!", "Goal! Goal! Goal! Goal! Goal! Goal!"),
        ("Tor! Tor! Tor!", "Goal! " * 20),
        ("Das ist sehr sehr gut.", "very very very very very very"),
        ("...", "the the the the the the"),
        ("Das Haus", "-" * 30),
        ("Einleitung . . . . . . . . 5", "the the the the the the the the"),
    ],
)
def test_a_translation_that_loops_more_than_its_source_is_unusual(source, translation):
    assert find_degenerate(
        [source], [translation], "en", compares_sources=True, compared_language="de"
    )["looping"].tolist() == [True]


@needs_langid
@pytest.mark.parametrize(
    ("pair", "source", "translation", "names"),
    [
        (("en", "ru"), "GitHub Copilot", "GitHub Copilot", []),
        (("en", "zh"), "iPhone 15 Pro Max released", "iPhone 15 Pro Max 发布", []),
        (("de", "ru"), "Microsoft GitHub sagt es.", "Так говорит Microsoft GitHub.", []),
        (("de", "ru"), "Microsoft sagt es.", "Microsoft says it.", ["script"]),
        (
            ("de", "en"),
            "Привет, мир!",
            "Привет, мир!",
            ["identical"],
        ),  # a Russian line of a German text
        (("ru", "en"), "Привет, мир!", "Привет, мир!", ["identical", "script"]),
        (("de", "en"), "https://example.org/das/ist/eine/lange/adresse/mit/wörtern", None, []),
    ],
)
def test_names_and_texts_that_the_source_has_in_another_script(pair, source, translation, names):
    found = find_degenerate(
        [source], [translation or source], pair[1], compares_sources=True, compared_language=pair[0]
    )
    assert [name for name, values in found.items() if values.any()] == names


@needs_langid
def test_what_is_found():
    found = find_degenerate(SOURCES, BAD, "en")
    assert {name: values.tolist() for name, values in found.items()} == {
        "identical": [False, False, False, False],
        "looping": [True, False, False, False],
        "script": [False, True, False, False],
        "language": [False, False, False, False],
        "length": [False, False, True, False],
    }
    assert not find_degenerate(SOURCES, BAD, None)["script"].any()
    assert not find_degenerate(["a"], ["你好"], "zh")["script"].any()


GERMAN = "Das Haus ist klein, und der Hund schläft nicht gut."


@needs_langid
@pytest.mark.parametrize(
    ("text", "language", "found"),
    [
        (GERMAN, "en", True),
        (GERMAN, "de", False),
        ("Das Haus ist klein.", "en", False),  # too short to be sure
        ("The house is small, and the dog does not sleep well.", "en", False),
        ("Perttu Puska and Tatu Väänänen nominated for the national team", "en", False),
        (
            "дом очень маленький, и собака не спит хорошо ночью",
            "en",
            False,
        ),  # another script already
        (
            "Huset er lite, og hunden sover ikke godt om natten her.",
            "da",
            False,
        ),  # Norwegian, too near
        (GERMAN, "xyz", False),  # which nothing is known of
    ],
)
def test_other_languages_of_the_same_script(text, language, found):
    assert find_degenerate(["x"], [text], language)["language"].tolist() == [found]


@needs_langid
def test_an_answer_in_the_wrong_language_is_counted_and_said(monkeypatch):
    answers = {"answer": [GERMAN, "No."]}
    sources = ["Das Haus ist klein, und der Hund schläft nicht so gut.", "Nein."]
    scorer = load_scorer("source_length", lang_pair="de-en")
    with pytest.warns(
        UserWarning, match="1 in another language .than the target language; segment 1."
    ) as caught:
        found = scorer.score_systems(answers, sources=sources)["answer"]
    assert len(caught) == 1
    assert (found.report.language, found.unusual_names()) == (1, ["language", ""])
    # Where it is not installed, nothing is said, and the signature of floored scores is another
    # one.
    monkeypatch.setattr("mtmetrics.scorers.degenerate.has_py3langid", lambda: False)
    scorer.floor_degenerate = True
    plain = scorer.score(answers["answer"], sources=sources)
    assert plain.segments.tolist() == found.segments.tolist()
    assert (plain.report.language, "|degenerate:floor|" in plain.signature) == (0, True)


def test_a_system_that_does_not_translate_does_not_win_unseen():
    scorer = load_scorer("chrf", lang_pair="de-en")
    references = [
        ["The house is small."],
        ["He comes."],
        ["I see the cat.", "The cat, I see it."],
        ["No."],
    ]
    with pytest.warns(
        UserWarning, match="1 looping .the same words again and again; segment 1."
    ) as caught:
        report = scorer.score(BAD, references=references).report
    assert (report.looping, report.script, report.length, report.segments) == (1, 1, 1, 4)
    assert "1 in another script" in str(caught[0].message)
    assert "1 out of proportion" in str(caught[0].message)


@needs_langid
def test_it_may_get_the_floor_score():
    references = ["The house is small.", "He comes.", "I see the cat.", "No."]
    kept, floored = (load_scorer("chrf", lang_pair="de-en") for _ in range(2))
    floored.floor_degenerate = True
    with pytest.warns(UserWarning, match="1 in another script"):
        plain, result = (
            kept.score(BAD, references=references),
            floored.score(BAD, references=references),
        )
    assert result.segments[:3].tolist() == [0.0, 0.0, 0.0]
    assert result.segments[3] == plain.segments[3] > 0
    assert "|degenerate:floor+language|" in result.signature
    assert result.report == plain.report
    assert result.unusual_names() == ["looping", "script", "length", ""]
    out = plain.with_degenerate_as_nan()
    assert (out.system, np.isnan(out.segments).tolist()) == (
        plain.segments[3],
        [True, True, True, False],
    )
    assert "|degenerate:null+language|" in out.signature


def test_of_several_references_each_translation_counts_once():
    references = [["The house is small.", "A small house."], ["He comes."]]
    result = load_scorer("chrf", lang_pair="de-en").score(
        ["The house is small.", "ha ha ha ha ha ha"], references=references
    )
    assert result.unusual["looping"].tolist() == [False, True]
