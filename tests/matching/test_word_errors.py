"""Words at fault: where words stand, and how evidence on tokens becomes theirs."""

import numpy as np
import pytest

from mtmetrics.matching.plan import Alignment
from mtmetrics.matching.word_errors import (
    LEVELS,
    Evidence,
    Fault,
    level,
    loss_evidence,
    match_evidence,
    word_faults,
    word_spans,
)
from mtmetrics.models.text_units import spans_of


def alignment(mass, values, cells, spans, unrelated=1.0):
    n, m = np.shape(mass)
    sides = ["x"] * n, ["y"] * m, np.array(mass), np.array(values)
    return Alignment(*sides, cells, spans_of([(0, 1)] * n), spans_of(spans), unrelated)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("It's well-known, isn't it?!", ["It's", "well-known", ",", "isn't", "it", "?!"]),
        ("3.5 % (U.S.) A--B", ["3.5", "%", "(", "U.S", ".)", "A", "--", "B"]),
        ("我们去Berlin。 ok", ["我", "们", "去", "Berlin", "。", "ok"]),
        (" \n", []),
        ("किताब पढ़ना है।", ["किताब", "पढ़ना", "है", "।"]),
        ("क्\u200dषमा हिंदी\u200cमें", ["क्\u200dषमा", "हिंदी\u200cमें"]),
        ("මම පොතක් කියවමි. ශ්\u200dරී", ["මම", "පොතක්", "කියවමි", ".", "ශ්\u200dරී"]),
        ("می\u200cخواهم کتاب\u200cها", ["می\u200cخواهم", "کتاب\u200cها"]),
        ("Cliche\u0301, u\u0308ber", ["Cliche\u0301", ",", "u\u0308ber"]),
        ("com\u00admittee l’e\u0301te\u0301", ["com\u00admittee", "l’e\u0301te\u0301"]),
        ("\u200bfoo\u200bbar\u2060 \u200b", ["foo\u200bbar"]),
        ("\u202bצה״ל\u202c", ["צה״ל"]),
        ("ที่นี่ Berlin", ["ที่", "นี่", "Berlin"]),
        ("မြန်မာ", ["မြ", "န်", "မာ"]),
        ("col·lecció m² a_b", ["col·lecció", "m²", "a_b"]),
        (
            "\U0001f469\u200d\U0001f467 \u2764\ufe0f 1\ufe0f\u20e3",
            ["\U0001f469\u200d\U0001f467", "\u2764\ufe0f", "1\ufe0f\u20e3"],
        ),
    ],
)
def test_words(text, words):
    assert [text[begin:end] for begin, end in word_spans(text)] == words


def test_many_joiners_take_no_time():
    text = "a" + "\u200d\u200b" * 20_000 + "b" + "\u200b" * 20_000
    assert len(word_spans(text)) <= 2


def test_transport_blames_words_for_the_cost_of_what_they_receive():
    # [CLS], "a", "b": the special token belongs to no word.
    mass = [[0.2, 0.1, 0.0], [0.0, 0.3, 0.4]]
    values = [[0.5, 1.0, 0.0], [0.9, 0.2, 1.5]]
    found = match_evidence(
        alignment(mass, values, "cost", [(0, 0), (0, 1), (2, 3)], unrelated=2.0), lack=0.86
    )
    assert found.lack == pytest.approx([0.1, 0.16, 0.6])
    assert found.severity == pytest.approx([0.25, 0.4 / 2, 0.75])
    first, second = word_faults("a b", [found])
    assert first == pytest.approx(Fault(0, 1, 0.2, 0.16 / 0.76))
    assert second == pytest.approx(Fault(2, 3, 0.75, 0.6 / 0.76))


def test_greedy_matching_blames_a_word_that_nothing_is_like_whoever_was_matched():
    # All of recall goes to the first piece, which is right.
    found = match_evidence(
        alignment([[0.5, 0.0], [0.5, 0.0]], [[0.9, 0.1], [0.7, 0.2]], "cosine", [(0, 1), (2, 3)])
    )
    assert [fault.severity for fault in word_faults("a b", [found])] == pytest.approx([0.1, 0.8])
    assert [fault.share for fault in word_faults("a b", [found])] == pytest.approx([1 / 9, 8 / 9])


def test_several_kinds_of_evidence_and_pieces_of_words():
    match = Evidence(spans_of([(0, 4), (5, 6)]), np.array([1.0, 2.0]), np.array([0.2, 0.6]))
    # Two pieces of the first word; the full stop has a loss alone.
    losses = loss_evidence(
        spans_of([(0, 2), (2, 4), (5, 6), (6, 7)]), np.array([8.0, 2.0, 5.0, 1.0]), 4.0, lack=1.6
    )
    assert losses.lack == pytest.approx([0.8, 0.2, 0.5, 0.1])
    assert losses.severity == pytest.approx([1.0, 0.5, 1.0, 0.25])
    words = word_faults("abcd e.", [match, losses])
    assert [(word.start, word.end) for word in words] == [(0, 4), (5, 6), (6, 7)]
    assert [word.severity for word in words] == pytest.approx(
        [(0.2 + 0.75) / 2, (0.6 + 1) / 2, 0.125]
    )
    assert [word.share for word in words] == pytest.approx(np.array([2.0, 2.5, 0.1]) / 4.6)


def test_nothing_is_wrong_and_nothing_is_there():
    perfect = match_evidence(alignment([[1.0]], [[0.0]], "cost", [(0, 1)]))
    assert word_faults("a", [perfect]) == [Fault(0, 1, 0.0, 0.0)]
    assert word_faults("", [match_evidence(Alignment.nothing("cosine"))]) == []
    assert word_faults("a", [match_evidence(Alignment.nothing("cost"))]) == [Fault(0, 1, 0.0, 0.0)]


def test_levels():
    assert [level(severity) for severity in (0.0, LEVELS[0], LEVELS[1] - 1e-9, 1.0)] == [0, 1, 1, 2]
