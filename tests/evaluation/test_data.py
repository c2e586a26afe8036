import gzip
import io
import json

import numpy as np
import pytest

from mtmetrics.errors import InputError
from mtmetrics.evaluation.data import read_judged, read_judged_segments

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
        "".join((row if isinstance(row, str) else json.dumps(row, ensure_ascii=False)) + "\n" for row in rows),
        encoding="utf-8",
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


def test_missing_judgements_and_other_columns(tmp_path):
    rows = [
        ROW | {"human": None, "sid": 7, "da_mean": 60, "sentbleu": 0.5, "hter": None, "kept": True},
        ROW | {"sid": "b", "sentbleu": float("nan"), "domain": "news", "mixed": 1},
        ROW | {"sid": 7, "da_mean": None, "late": 2, "mixed": "two"},
    ]
    segments = read_judged_segments(write(tmp_path / "a.jsonl", *rows))
    np.testing.assert_equal(segments.human, [np.nan, 0.5, 0.5])
    assert segments.judged.tolist() == [False, True, True]
    assert segments.items == ["7", "b", "7"]
    np.testing.assert_equal(segments.raw_human, [60.0, np.nan, np.nan])
    np.testing.assert_equal(segments.columns, {"sentbleu": [0.5, np.nan, None], "late": [None, None, 2]})
    assert segments.column("late") == [None, None, 2]
    for name in ("domain", "kept", "hter", "mixed", "human"):
        with pytest.raises(InputError, match=rf"a\.jsonl: no column of numbers '{name}'; there are: sentbleu, late"):
            segments.column(name)


def test_items_are_numbers_of_sources_where_a_row_has_none(tmp_path):
    rows = [ROW | {"sid": 7}, ROW | {"source": "Tag"}, ROW | {"sid": 9}]
    segments = read_judged_segments(write(tmp_path / "a.jsonl", *rows))
    assert segments.items == ["1", "2", "1"]
    assert (segments.raw_human, segments.columns) == (None, {})


def test_names_of_common_training_files(tmp_path):
    path = write(
        tmp_path / "a.jsonl", {"lp": "de-en", "src": "Hallo", "mt": "hello", "ref": "hi", "sys": "A", "score": 0.5}
    )
    segments = read_judged_segments(path)
    assert (segments.sources, segments.predictions, segments.references) == (["Hallo"], ["hello"], ["hi"])
    assert (segments.systems, segments.human.tolist()) == (["A"], [0.5])
    with pytest.raises(InputError, match="line 1: no field 'translation_tok'; the row has"):
        read_judged_segments(path, prediction_field="translation_tok")


def test_several_pairs_in_a_file_and_a_folder(tmp_path):
    finnish = ROW | {"lp": "fi-en"}
    mixed = write(tmp_path / "b.jsonl", ROW, finnish, ROW)
    assert [(pair.lang_pair, len(pair)) for pair in read_judged(mixed)] == [("de-en", 2), ("fi-en", 1)]
    write(tmp_path / "a.jsonl", finnish)
    (tmp_path / "README.md").write_text("no data\n")
    found = [(pair.file, pair.lang_pair) for pair in read_judged(tmp_path, prediction_field="translation_tok")]
    assert found == [
        (str(tmp_path / name), pair)
        for name, pair in (("a.jsonl", "fi-en"), ("b.jsonl", "de-en"), ("b.jsonl", "fi-en"))
    ]
    assert [pair.file for pair in read_judged(tmp_path, lang_pair="de-en")] == [str(mixed)]
    with pytest.raises(InputError, match="holds no row of the language pair ru-en"):
        read_judged(tmp_path, lang_pair="ru-en")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"empty: holds no judged data; files \*\.df\.short\.tsv, .* are read"):
        read_judged(tmp_path / "empty")


def test_standard_input(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(json.dumps(ROW).encode())))
    assert read_judged("-")[0].sources == ["Hallo"]
