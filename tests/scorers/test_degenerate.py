"""Output that is no translation is counted, by every metric."""

import numpy as np
import pytest

from mtmetrics.io.languages import tells_languages
from mtmetrics.scorers.degenerate import degenerate, is_looping, is_out_of_proportion
from mtmetrics.scorers.registry import load_scorer

needs_langid = pytest.mark.skipif(not tells_languages(), reason="needs the extra 'filter'")
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


@needs_langid
def test_what_is_found():
    found = degenerate(SOURCES, BAD, "en")
    assert {name: values.tolist() for name, values in found.items()} == {
        "identical": [False, False, False, False],
        "looping": [True, False, False, False],
        "script": [False, True, False, False],
        "language": [False, False, False, False],
        "length": [False, False, True, False],
    }
    assert not degenerate(SOURCES, BAD, None)["script"].any()
    assert not degenerate(["a"], ["你好"], "zh")["script"].any()


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
        ("дом очень маленький, и собака не спит хорошо ночью", "en", False),  # another script already
        ("Huset er lite, og hunden sover ikke godt om natten her.", "da", False),  # Norwegian, too near
        (GERMAN, "xyz", False),  # which nothing is known of
    ],
)
def test_other_languages_of_the_same_script(text, language, found):
    assert degenerate(["x"], [text], language)["language"].tolist() == [found]


@needs_langid
def test_an_answer_in_the_wrong_language_is_counted_and_said(monkeypatch):
    answers = {"answer": [GERMAN, "No."]}
    sources = ["Das Haus ist klein, und der Hund schläft nicht so gut.", "Nein."]
    scorer = load_scorer("source_length", lang_pair="de-en")
    with pytest.warns(UserWarning, match="1 in another language .than the target language; segment 1.") as caught:
        found = scorer.score_systems(sources, answers)["answer"]
    assert len(caught) == 1
    assert (found.report.language, found.unusual_names()) == (1, ["language", ""])
    # Where it is not installed, nothing is said, and the signature of floored scores is another one.
    monkeypatch.setattr("mtmetrics.scorers.degenerate.tells_languages", lambda: False)
    scorer.floor_degenerate = True
    plain = scorer.score(sources, answers["answer"])
    assert plain.segments.tolist() == found.segments.tolist()
    assert (plain.report.language, "|degenerate:floor|" in plain.signature) == (0, True)


def test_a_system_that_does_not_translate_does_not_win_unseen():
    scorer = load_scorer("chrf", lang_pair="de-en")
    references = [["The house is small."], ["He comes."], ["I see the cat.", "The cat, I see it."], ["No."]]
    with pytest.warns(UserWarning, match="1 looping .the same words again and again; segment 1.") as caught:
        report = scorer.score(references, BAD).report
    assert (report.looping, report.script, report.length, report.segments) == (1, 1, 1, 4)
    assert "1 in another script" in str(caught[0].message)
    assert "1 out of proportion" in str(caught[0].message)


@needs_langid
def test_it_may_get_the_floor_score():
    references = ["The house is small.", "He comes.", "I see the cat.", "No."]
    kept, floored = (load_scorer("chrf", lang_pair="de-en") for _ in range(2))
    floored.floor_degenerate = True
    with pytest.warns(UserWarning, match="1 in another script"):
        plain, result = kept.score(references, BAD), floored.score(references, BAD)
    assert result.segments[:3].tolist() == [0.0, 0.0, 0.0]
    assert result.segments[3] == plain.segments[3] > 0
    assert "|degenerate:floor+language|" in result.signature
    assert result.report == plain.report
    assert result.unusual_names() == ["looping", "script", "length", ""]
    out = plain.without_degenerate()
    assert (out.system, np.isnan(out.segments).tolist()) == (plain.segments[3], [True, True, True, False])
    assert "|degenerate:null+language|" in out.signature


def test_of_several_references_each_translation_counts_once():
    references = [["The house is small.", "A small house."], ["He comes."]]
    result = load_scorer("chrf", lang_pair="de-en").score(references, ["The house is small.", "ha ha ha ha ha ha"])
    assert result.unusual["looping"].tolist() == [False, True]
