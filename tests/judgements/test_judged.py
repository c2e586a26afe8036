"""Judged data: our own layouts of segments and of whole systems, several pairs in a file, running
text."""

import io
import json
import tempfile
from pathlib import Path

import numpy as np
import pytest
from helpers import columns, write_rows
from hypothesis import given, settings
from hypothesis import strategies as st

from mtmetrics.errors import InputError
from mtmetrics.io import row_writer
from mtmetrics.judgements.judged import (
    Judged,
    read_judged,
    read_judged_segments,
    read_judged_systems,
)

ROW = {
    "lp": "de-en",
    "source": "Hallo",
    "translation": "hello",
    "translation_tok": "hel lo",
    "reference": "hi",
}
ROW |= {"system": "A", "human": 0.5}

# Texts that are values in every layout: empty cells of a table and `None` are none.
TEXTS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=12).filter(
    lambda text: text.strip() not in ("", "None")
)
JUDGED_ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "lp": st.just("de-en"),
            "source": TEXTS,
            "translation": TEXTS,
            "reference": st.none() | TEXTS,
            "system": st.none() | TEXTS,
            "human": st.none() | st.floats(-1e6, 1e6),
            "length": st.none() | st.floats(0, 1e6),
        }
    ),
    min_size=1,
    max_size=4,
)


@pytest.mark.parametrize("form", ["jsonl", "csv", "tsv"])
@settings(deadline=None, max_examples=50)
@given(rows=JUDGED_ROWS)
def test_judged_rows_that_are_written_are_read_back(form: str, rows: list[dict]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"judged.{form}")
        row_writer.write_rows(path, rows, form)
        [judged] = read_judged(path)
    for name in ("source", "translation", "reference", "system"):
        assert judged.rows[name].tolist() == [row[name] for row in rows], name
    human = [np.nan if row["human"] is None else row["human"] for row in rows]
    assert np.array_equal(judged.human, human, equal_nan=True)
    lengths = [row["length"] for row in rows]
    if set(lengths) != {None}:
        assert judged.column("length") == lengths


def test_reads_the_columns_in_order(tmp_path, monkeypatch):
    second = {
        "lp": "de-en",
        "source": "Grüß Gott\u2028!",
        "translation": "",
        "human": -2,
        "reference": None,
        "sid": 7,
    }
    segments = read_judged_segments(write_rows(tmp_path / "a.jsonl", ROW, second))
    assert (segments.file, segments.lang_pair, len(segments)) == (
        str(tmp_path / "a.jsonl"),
        "de-en",
        2,
    )
    assert (segments.sources, segments.predictions) == (
        ["Hallo", "Grüß Gott\u2028!"],
        ["hello", ""],
    )
    assert (segments.references, segments.human.tolist()) == (["hi", None], [0.5, -2.0])
    assert segments.rows["system"].tolist() == ["A", None]
    assert (segments.level, list(segments.outputs())) == ("segment", [""])
    path = write_rows(tmp_path / "a.jsonl.gz", ROW)
    assert read_judged_segments(path, prediction_field="translation_tok").predictions == ["hel lo"]
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(json.dumps(ROW).encode())))
    assert read_judged("-")[0].sources == ["Hallo"]


# The blank line is no row but counts as a line, so that an editor finds the place.
@pytest.mark.parametrize(
    ("rows", "message"),
    [
        *(
            ([ROW, "", ROW | change], f"line 3, field '{next(iter(change))}': {message}")
            for change, message in (
                ({"human": float("nan")}, "a finite number is needed, got nan"),
                ({"human": float("-inf")}, "a finite number is needed, got -inf"),
                ({"human": 10**400}, "a finite number is needed, got 1000"),
                ({"human": "0.5"}, "a finite number is needed, got '0.5'"),
                ({"human": True}, "a finite number is needed, got True"),
                ({"source": None}, "a string is needed, got null"),
                ({"translation": ["a", "b"]}, r"a string is needed, got \['a', 'b'\]"),
                ({"reference": 3}, "a string is needed, got 3"),
                ({"lp": "fi-en"}, "'fi-en', but the lines before have 'de-en'"),
            )
        ),
        *(
            (
                [{name: ROW[name] for name in ROW if name != field}],
                rf"line 1: no field '{field}'.*has: '.*'system'",
            )
            for field in ("lp", "source", "translation", "human")
        ),
        ([ROW | {"lp": "German"}], r"line 1, field 'lp': language pair 'German'"),
        (["", " "], "holds no row"),
        ([ROW, "{"], "line 2: not valid JSON"),
        (None, "no such file"),
    ],
)
def test_files_that_cannot_be_used(tmp_path, rows, message):
    if rows is not None:
        write_rows(tmp_path / "bad.jsonl", *rows)
    with pytest.raises(InputError, match=rf"bad\.jsonl.*{message}"):
        read_judged_segments(tmp_path / "bad.jsonl")


def test_missing_judgements_and_other_columns(tmp_path):
    rows = [
        ROW | {"human": None, "sid": 7, "da_mean": 60, "sentbleu": 0.5, "hter": None, "kept": True},
        ROW | {"sid": "b", "sentbleu": float("nan"), "domain": "news", "mixed": 1},
        ROW | {"sid": 7, "da_mean": None, "late": 2, "mixed": "two"},
    ]
    segments = read_judged_segments(write_rows(tmp_path / "a.jsonl", *rows))
    np.testing.assert_equal(segments.human, [np.nan, 0.5, 0.5])
    assert segments.judgements["human"].tolist() == [0.5, 0.5]
    assert segments.take([10, 20, 30]) == [20, 30]
    assert segments.rows["item"].tolist() == ["7", "b", "7"]
    np.testing.assert_equal(segments.rows["raw"].to_numpy(), [60.0, np.nan, np.nan])
    np.testing.assert_equal(segments.column("sentbleu"), [0.5, np.nan, None])
    assert segments.column("late") == [None, None, 2]
    for name in ("domain", "kept", "hter", "mixed", "human"):
        with pytest.raises(
            InputError,
            match=rf"a\.jsonl: no column of numbers '{name}'; there are: sentbleu, late$",
        ):
            segments.column(name)
    # Where a row has no item, all are numbers of sources.
    segments = read_judged_segments(
        write_rows(tmp_path / "b.jsonl", ROW | {"sid": 7}, ROW | {"source": "Tag"}, ROW)
    )
    assert segments.rows["item"].tolist() == ["1", "2", "1"]
    with pytest.raises(InputError, match="there are: none"):
        segments.column("raw")


def test_names_of_common_training_files(tmp_path):
    path = write_rows(
        tmp_path / "a.jsonl",
        {"lp": "de-en", "src": "x", "mt": "y", "ref": "z", "sys": "A", "score": 0.5},
    )
    segments = read_judged_segments(path)
    assert columns(segments, "source", "translation", "reference", "system", "human") == [
        ["x", "y", "z", "A", 0.5]
    ]
    with pytest.raises(InputError, match="line 1: no field 'translation_tok'; the row has"):
        read_judged_segments(path, prediction_field="translation_tok")


def test_several_pairs_in_a_file_and_a_folder(tmp_path):
    finnish = ROW | {"lp": "fi-en"}
    mixed = write_rows(tmp_path / "b.jsonl", ROW, finnish, ROW)
    assert [(pair.lang_pair, len(pair)) for pair in read_judged(mixed)] == [
        ("de-en", 2),
        ("fi-en", 1),
    ]
    write_rows(tmp_path / "a.jsonl", finnish)
    (tmp_path / "README.md").write_text("no data\n")
    found = [(Path(pair.file).name, pair.lang_pair) for pair in read_judged(tmp_path)]
    assert found == [("a.jsonl", "fi-en"), ("b.jsonl", "de-en"), ("b.jsonl", "fi-en")]
    assert [pair.file for pair in read_judged(tmp_path, lang_pair="de-en")] == [str(mixed)]
    with pytest.raises(InputError, match="holds no row of the language pair ru-en"):
        read_judged(tmp_path, lang_pair="ru-en")
    (tmp_path / "empty").mkdir()
    with pytest.raises(
        InputError, match=r"empty: holds no judged data; files \*\.tar, .* are read"
    ):
        read_judged(tmp_path / "empty")


# Judged systems in our own layout.

HUMAN = [
    {"lp": "de-en", "system": "A.1", "human": 0.5},
    {"lp": "de-en", "system": "B", "human": -1},
]
OUTPUTS = [
    {"lp": "de-en", "sid": 1, "source": "Haus", "reference": "House", "reference_tok": "house"}
    | {"outputs": {"B": "b", "A.1": "a", "C": "c"}},
    {"lp": "de-en", "sid": 2, "source": "Hund", "outputs": {"B": "d", "A.1": ""}},
]


def write_systems(folder, human=HUMAN, outputs=OUTPUTS, name="de-en"):
    write_rows(folder / f"{name}.outputs.jsonl.gz", *outputs)
    return write_rows(folder / f"{name}.jsonl", *human)


def test_judgements_and_outputs_are_joined_by_name(tmp_path):
    path = write_systems(tmp_path)
    [systems] = read_judged_systems(path)
    assert (systems.file, systems.lang_pair, systems.level) == (str(path), "de-en", "system")
    assert systems.judgements[["system", "human"]].to_numpy().tolist() == [
        ["A.1", 0.5],
        ["B", -1.0],
    ]
    outputs = {name: rows["translation"].tolist() for name, rows in systems.outputs().items()}
    assert outputs == {"A.1": ["a", ""], "B": ["b", "d"]}
    assert (systems.sources, systems.references) == (["Haus", "Hund"] * 2, ["House", None] * 2)
    assert systems.take([10.0, 20.0]) == [10.0, 20.0]
    with pytest.raises(InputError, match="column 'x': judgements of whole systems have no columns"):
        systems.column("x")


def test_a_folder_of_systems(tmp_path):
    write_systems(tmp_path)
    write_systems(
        tmp_path,
        *([row | {"lp": "fi-en"} for row in rows] for rows in (HUMAN, OUTPUTS)),
        name="fi-en",
    )
    write_rows(tmp_path / "ru-en.jsonl", HUMAN[0])
    assert [pair.lang_pair for pair in read_judged_systems(tmp_path)] == ["de-en", "fi-en"]
    assert [pair.lang_pair for pair in read_judged_systems(tmp_path, lang_pair="fi-en")] == [
        "fi-en"
    ]
    with pytest.raises(InputError, match="no language pair tr-en; there are: de-en, fi-en"):
        read_judged_systems(tmp_path, lang_pair="tr-en")
    (tmp_path / "empty").mkdir()
    for name, message in {
        "ru-en.jsonl": r"ru-en\.jsonl: no ru-en\.outputs\.jsonl or \.gz beside it",
        "none.jsonl": r"none\.jsonl: no such file",
        "empty": r"empty: holds no XX-YY\.jsonl with XX-YY\.outputs\.jsonl",
    }.items():
        with pytest.raises(InputError, match=message):
            read_judged_systems(tmp_path / name)


@pytest.mark.parametrize(
    ("human", "outputs", "message"),
    [
        ([], OUTPUTS, r"de-en\.jsonl: holds no row"),
        (HUMAN, [], r"de-en\.outputs\.jsonl\.gz: holds no row"),
        (
            [*HUMAN, HUMAN[0]],
            OUTPUTS,
            r"de-en\.jsonl, line 3, field 'system': 'A\.1' has a judgement already",
        ),
        (
            [HUMAN[0] | {"human": None}],
            OUTPUTS,
            r"line 1, field 'human': a finite number is needed, got null",
        ),
        (
            [*HUMAN, HUMAN[0] | {"lp": "fi-en"}],
            OUTPUTS,
            r"line 3, field 'lp': 'fi-en', but the lines before",
        ),
        (
            HUMAN,
            [OUTPUTS[0] | {"lp": "fi-en"}],
            r"jsonl\.gz, line 1, field 'lp': 'fi-en', but .*jsonl is of de-en",
        ),
        (
            HUMAN,
            [OUTPUTS[0] | {"outputs": {"A.1": "a"}}],
            r"'outputs': no translation of the judged system 'B'",
        ),
        (
            HUMAN,
            [OUTPUTS[0] | {"outputs": {"A.1": "a", "B": 3}}],
            "'outputs', field 'B': a string is needed, got 3",
        ),
        (
            HUMAN,
            [OUTPUTS[0] | {"outputs": ["a"]}],
            r"'outputs': an object, system name -> translation, is needed",
        ),
    ],
)
def test_errors_of_systems_name_the_place(tmp_path, human, outputs, message):
    with pytest.raises(InputError, match=message):
        read_judged_systems(write_systems(tmp_path, human, outputs))


def test_running_text_of_tokenised_text():
    columns = {
        "source": ["das haus , das ich sah , ist &quot; klein &quot; .", "你好 吗 ？"],
        "translation": ["don &apos;t go , he said ( twice ) .", "well @-@ known ."],
        "reference": [None, "a well-known one ."],
        "human": [1.0, 2.0],
    }
    tokenised = Judged.of("f", "de-en", columns)
    running = tokenised.detokenised()
    assert running.sources[0] == 'das haus, das ich sah, ist "klein".'
    assert running.predictions == ["don't go, he said (twice).", "well-known."]
    assert running.references == [None, "a well-known one."]
    assert (running.prepared, tokenised.prepared) == ("detok:moses", None)
    assert tokenised.predictions == columns["translation"]
    other = Judged.of("f", "xx-zh", {**columns, "reference": [None, "你好 吗 ？"]}).detokenised()
    assert other.sources == columns["source"]
