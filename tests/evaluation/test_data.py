import gzip
import json

import pytest

from mtmetrics.errors import InputError
from mtmetrics.evaluation.data import read_judged_segments

ROW = {
    "lp": "de-en",
    "source": "Hallo",
    "translation": "hello",
    "translation_tok": "hel lo",
    "reference": "hi",
    "system": "A",
    "human": 0.5,
}


def write(path, *rows):
    path.write_text(
        "".join((row if isinstance(row, str) else json.dumps(row, ensure_ascii=False)) + "\n" for row in rows), encoding="utf-8"
    )
    return path


def test_reads_the_columns_in_order(tmp_path):
    second = {"lp": "de-en", "source": "Grüß Gott\u2028!", "translation": "", "human": -2, "reference": None, "sid": 7}
    segments = read_judged_segments(write(tmp_path / "a.jsonl", ROW, second))
    assert len(segments) == 2
    assert segments.lang_pair == "de-en"
    assert segments.file == str(tmp_path / "a.jsonl")
    assert segments.sources == ["Hallo", "Grüß Gott\u2028!"]
    assert segments.predictions == ["hello", ""]
    assert segments.references == ["hi", None]
    assert segments.systems == ["A", None]
    assert segments.human.tolist() == [0.5, -2.0]


def test_reads_gzip_and_another_field(tmp_path):
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(gzip.compress(json.dumps(ROW).encode()))
    assert read_judged_segments(path, prediction_field="translation_tok").predictions == ["hel lo"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"human": float("nan")}, "field 'human': a finite number is needed, got nan"),
        ({"human": float("-inf")}, "field 'human': a finite number is needed, got -inf"),
        ({"human": 10**400}, "field 'human': a finite number is needed, got 1000"),
        ({"human": "0.5"}, "field 'human': a finite number is needed, got '0.5'"),
        ({"human": True}, "field 'human': a finite number is needed, got True"),
        ({"source": None}, "field 'source': a string is needed, got null"),
        ({"translation": ["a", "b"]}, r"field 'translation': a string is needed, got \['a', 'b'\]"),
        ({"reference": 3}, "field 'reference': a string is needed, got 3"),
        ({"lp": "fi-en"}, "field 'lp': 'fi-en', but the lines before have 'de-en'"),
    ],
)
def test_a_bad_value_names_file_line_and_field(tmp_path, change, message):
    # The blank line is no row but counts as a line, so that an editor finds the place.
    path = write(tmp_path / "bad.jsonl", ROW, "", ROW | change)
    with pytest.raises(InputError, match=rf"bad\.jsonl, line 3, {message}"):
        read_judged_segments(path)


@pytest.mark.parametrize("field", ["lp", "source", "translation", "human"])
def test_a_missing_field_is_named_beside_those_that_are_there(tmp_path, field):
    path = write(tmp_path / "bad.jsonl", {name: value for name, value in ROW.items() if name != field})
    with pytest.raises(InputError, match=rf"line 1: no field '{field}'.*; the row has: '.*'system'"):
        read_judged_segments(path)


def test_a_language_pair_that_is_none(tmp_path):
    with pytest.raises(InputError, match=r"line 1, field 'lp': language pair 'German'"):
        read_judged_segments(write(tmp_path / "bad.jsonl", ROW | {"lp": "German"}))


@pytest.mark.parametrize("text", ["", "\n \n"])
def test_a_file_without_rows(tmp_path, text):
    path = tmp_path / "empty.jsonl"
    path.write_text(text)
    with pytest.raises(InputError, match=r"empty\.jsonl: holds no row"):
        read_judged_segments(path)


def test_a_line_that_is_no_json(tmp_path):
    with pytest.raises(InputError, match=r"bad\.jsonl, line 2: not valid JSON"):
        read_judged_segments(write(tmp_path / "bad.jsonl", ROW, "{"))


def test_a_missing_file(tmp_path):
    with pytest.raises(InputError, match=r"none\.jsonl: no such file"):
        read_judged_segments(tmp_path / "none.jsonl")
