"""The visible characters of texts, and their places."""

import numpy as np
import pytest

from mtmetrics.io.visible_text import is_blank, spans_as_seen, spans_as_written, visible

FLAG = "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f"


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("Aus\u00adschuss", "Ausschuss"),
        ("\ufeffa\u200bb\u2060c", "abc"),
        ("\u202aone\u202c \u200etwo\u200f \u061c\u2067three\u2069", "one two three"),
        ("foo\u200cbar\u200d", "foobar"),
        ("e\u0301\u200dx", "e\u0301x"),
        ("a\U000e0041b", "ab"),
        ("ไทย\u200bแลนด์", "ไทยแลนด์"),
        ("مرد\u200c آمد", "مرد آمد"),
        ("\u3164\u200b \u00ad", ""),
        # What is meant stays.
        ("می\u200cخواهم", None),
        ("كِتَاب\u200cها", None),
        ("क्\u200dष क्\u200cष हिंदी\u200cमें क्\u200d", None),
        ("ශ්\u200dරී ලංකා", None),
        ("র\u200d্যাব", None),
        ("\U0001f469\u200d\U0001f467 \u2764\ufe0f\u200d\U0001f525", None),
        (FLAG, None),
        ("ᠮᠣᠩᠭᠣᠯ\u180eᠠ", None),
        ("plain text", None),
        ("Füße", None),
    ],
)
def test_visible(text, seen):
    assert visible(text) == (text if seen is None else seen)


@pytest.mark.parametrize(
    "text",
    ["", " \n", "\u200b", "\u00ad \u2060", "\u202a\u202c", "\u200d\u200c", "\ufe0f", "\u3164"],
)
def test_blank(text):
    assert is_blank(text)


def test_spans_go_there_and_back():
    text = "\u202aThe com\u00admittee\u200b\u202c."
    spans = np.array([[0, 3], [4, 13], [0, 0], [13, 14]])
    written = spans_as_written(text, spans)
    assert [text[begin:end] for begin, end in written] == ["The", "com\u00admittee", "", "."]
    assert spans_as_seen(text, written)[[0, 1, 3]].tolist() == spans[[0, 1, 3]].tolist()
    assert spans_as_written("plain", spans) is spans


def test_many_signs_take_no_time():
    assert visible("\u200d" * 100_000 + "a") == "a"
    assert len(visible("क" + "\u0301" * 100_000 + "\u200d")) > 100_000
