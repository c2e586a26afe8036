"""Judged data in every layout that is read: JSON Lines, tables, MLQE-PE, whole systems."""

import io
import json
import tarfile

import helpers
import numpy as np
import pytest

from mtmetrics.errors import InputError
from mtmetrics.evaluation.data import read_judged, read_judged_segments, read_judged_systems

ROW = {"lp": "de-en", "source": "Hallo", "translation": "hello", "translation_tok": "hel lo", "reference": "hi"}
ROW |= {"system": "A", "human": 0.5}


def write(path, *rows):
    lines = (row if isinstance(row, str) else json.dumps(row, ensure_ascii=False) for row in rows)
    return helpers.write(path, "".join(line + "\n" for line in lines))


def test_reads_the_columns_in_order(tmp_path):
    second = {"lp": "de-en", "source": "Grüß Gott\u2028!", "translation": "", "human": -2, "reference": None, "sid": 7}
    segments = read_judged_segments(write(tmp_path / "a.jsonl", ROW, second))
    assert (segments.file, segments.lang_pair, len(segments)) == (str(tmp_path / "a.jsonl"), "de-en", 2)
    assert segments.sources == ["Hallo", "Grüß Gott\u2028!"]
    assert segments.predictions == ["hello", ""]
    assert segments.references == ["hi", None]
    assert segments.rows["system"].tolist() == ["A", None]
    assert segments.human.tolist() == [0.5, -2.0]
    assert (segments.level, list(segments.outputs())) == ("segment", [""])


def test_reads_gzip_standard_input_and_another_field(tmp_path, monkeypatch):
    path = write(tmp_path / "a.jsonl.gz", ROW)
    assert read_judged_segments(path, prediction_field="translation_tok").predictions == ["hel lo"]
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(json.dumps(ROW).encode())))
    assert read_judged("-")[0].sources == ["Hallo"]


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


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        *(
            ([{name: ROW[name] for name in ROW if name != field}], rf"line 1: no field '{field}'.*has: '.*'system'")
            for field in ("lp", "source", "translation", "human")
        ),
        ([ROW | {"lp": "German"}], r"line 1, field 'lp': language pair 'German'"),
        ([], r"bad\.jsonl: holds no row"),
        (["", " "], r"bad\.jsonl: holds no row"),
        ([ROW, "{"], r"bad\.jsonl, line 2: not valid JSON"),
    ],
)
def test_files_that_cannot_be_used(tmp_path, rows, message):
    with pytest.raises(InputError, match=message):
        read_judged_segments(write(tmp_path / "bad.jsonl", *rows))
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
    assert segments.judgements["human"].tolist() == [0.5, 0.5]
    assert segments.take([10, 20, 30]) == [20, 30]
    assert segments.rows["item"].tolist() == ["7", "b", "7"]
    np.testing.assert_equal(segments.rows["raw"].to_numpy(), [60.0, np.nan, np.nan])
    np.testing.assert_equal(segments.column("sentbleu"), [0.5, np.nan, None])
    assert segments.column("late") == [None, None, 2]
    for name in ("domain", "kept", "hter", "mixed", "human"):
        with pytest.raises(InputError, match=rf"a\.jsonl: no column of numbers '{name}'; there are: sentbleu, late$"):
            segments.column(name)


def test_items_are_numbers_of_sources_where_a_row_has_none(tmp_path):
    rows = [ROW | {"sid": 7}, ROW | {"source": "Tag"}, ROW | {"sid": 9}]
    segments = read_judged_segments(write(tmp_path / "a.jsonl", *rows))
    assert segments.rows["item"].tolist() == ["1", "2", "1"]
    assert "raw" not in segments.rows
    with pytest.raises(InputError, match="there are: none"):
        segments.column("raw")


def test_names_of_common_training_files(tmp_path):
    row = {"lp": "de-en", "src": "Hallo", "mt": "hello", "ref": "hi", "sys": "A", "score": 0.5}
    path = write(tmp_path / "a.jsonl", row)
    segments = read_judged_segments(path)
    columns = ["source", "translation", "reference", "system", "human"]
    assert segments.rows[columns].to_numpy().tolist() == [["Hallo", "hello", "hi", "A", 0.5]]
    with pytest.raises(InputError, match="line 1: no field 'translation_tok'; the row has"):
        read_judged_segments(path, prediction_field="translation_tok")


def test_several_pairs_in_a_file_and_a_folder(tmp_path):
    finnish = ROW | {"lp": "fi-en"}
    mixed = write(tmp_path / "b.jsonl", ROW, finnish, ROW)
    assert [(pair.lang_pair, len(pair)) for pair in read_judged(mixed)] == [("de-en", 2), ("fi-en", 1)]
    write(tmp_path / "a.jsonl", finnish)
    (tmp_path / "README.md").write_text("no data\n")
    found = [(pair.file, pair.lang_pair) for pair in read_judged(tmp_path, prediction_field="translation_tok")]
    named = (("a.jsonl", "fi-en"), ("b.jsonl", "de-en"), ("b.jsonl", "fi-en"))
    assert found == [(str(tmp_path / name), pair) for name, pair in named]
    assert [pair.file for pair in read_judged(tmp_path, lang_pair="de-en")] == [str(mixed)]
    with pytest.raises(InputError, match="holds no row of the language pair ru-en"):
        read_judged(tmp_path, lang_pair="ru-en")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"empty: holds no judged data; files \*\.tar, .* are read"):
        read_judged(tmp_path / "empty")


# Tables with a header: tabs or commas, quotes, names of columns, missing values.


def test_wmt17_test_set(tmp_path):
    # As pandas wrote the published files: a field with quotes is quoted, all others are not.
    header = "LP\tsource\ttranslation\treference\tHUMAN_score\tsentBLEU"
    quoted = 'de-en\t"""Nur so"", sagt sie."\t&quot; only so &quot;\tonly so\t-0.5\t0.25'
    path = write(tmp_path / "testset_de-en.tsv", header, quoted, 'de-en\t"Ja"\t"yes" he said, "\tyes\t1\t0.5')
    [segments] = read_judged(path)
    assert (segments.file, segments.lang_pair) == (str(path), "de-en")
    assert segments.sources == ['"Nur so", sagt sie.', '"Ja"']
    assert segments.predictions == ["&quot; only so &quot;", '"yes" he said, "']
    assert segments.references == ["only so", "yes"]
    assert segments.human.tolist() == [-0.5, 1.0]
    assert segments.column("sentBLEU") == [0.25, 0.5]


def test_collection_of_wmt_judgements(tmp_path):
    path = write(
        tmp_path / "train.csv",
        "lp,src,mt,ref,score,raw,system,annotators,domain,year",
        "de-en,Haus,house,house,0.5,75,A,2,news,2020",
        'fi-en,"Talo, iso","a ""big""',
        'house",,-1.0,,A,1,news,2021',
        "de-en,Haus,horse,house,,,B,2,news,2020",
    )
    german, finnish = read_judged(path)
    assert (german.lang_pair, finnish.lang_pair) == ("de-en", "fi-en")
    assert german.rows["system"].tolist() == ["A", "B"]
    assert np.isnan(german.human).tolist() == [False, True]
    assert german.rows["item"].tolist() == ["1", "1"]
    np.testing.assert_equal(german.rows["raw"].to_numpy(), [75.0, np.nan])
    assert (german.column("annotators"), german.column("year")) == ([2.0, 2.0], [2020.0, 2020.0])
    assert (finnish.sources, finnish.predictions, finnish.references) == (["Talo, iso"], ['a "big"\nhouse'], [None])
    assert "raw" not in finnish.rows


@pytest.mark.parametrize("name", ["blank.tsv", "blank.csv", "dev.deen.df.short.tsv"])
def test_a_table_of_blank_lines_has_no_rows(tmp_path, name):
    with pytest.raises(InputError, match="holds no row"):
        read_judged(write(tmp_path / name, "", "", ""))


def test_a_pair_that_is_given(tmp_path):
    path = write(tmp_path / "mine.tsv", "human\tsource\ttranslation\titem", "1\tHaus\thouse\tx", "", "0\tHaus\tNone\tx")
    with pytest.raises(InputError, match=r"mine\.tsv, line 2: no field 'lp' or 'LP'; the row has: 'human', 'source'"):
        read_judged(path)
    with pytest.raises(InputError, match=r"mine\.tsv, line 2, field 'lp': language pair 'german'"):
        read_judged(path, lang_pair="german")
    [segments] = read_judged(path, lang_pair="de-en")
    assert (segments.lang_pair, segments.predictions) == ("de-en", ["house", "None"])
    assert segments.rows["item"].tolist() == ["x", "x"]
    head = "lp\thuman\tsource\ttranslation"
    two = write(tmp_path / "two.tsv", head, "de-en\t1\tHaus\thouse", "fi-en\t0\tTalo\thouse")
    assert [pair.lang_pair for pair in read_judged(two, lang_pair="fi-en")] == ["fi-en"]
    with pytest.raises(InputError, match=r"two\.tsv: holds no row of the language pair ru-en"):
        read_judged(two, lang_pair="ru-en")


HEAD = "lp\tsource\ttranslation\thuman"


@pytest.mark.parametrize(
    ("name", "lines", "message"),
    [
        ("a.tsv", [], "holds no row"),
        ("a.tsv", [HEAD], "holds no row"),
        ("a.tsv", [HEAD, "de-en\ta\tb"], r"line 2: 3 field\(s\), but the header has 4: lp, source, trans"),
        ("a.tsv", [HEAD, "de-en\ta\tb\tgood"], "line 2, field 'human': a finite number is needed, got 'good'"),
        ("a.tsv", [HEAD, "de-en\ta\tb\tnan"], "line 2, field 'human': a finite number is needed, got nan"),
        ("a.tsv", ["lp\tsource\ttranslation", "de-en\ta\tb"], "line 2: no field 'human' or 'score'"),
        ("a.tsv", ["lp\tsource\tsource\thuman"], "line 1: the column 'source' stands there twice"),
        ("a.csv", ["lp,src,mt,score", 'de-en,a,"b'], "line 2: not valid CSV"),
        (
            "a.csv",
            ["LP DATA SID HUMAN", "de-en wmt A 1"],
            "line 1: a header with .* known by their names",
        ),
    ],
)
def test_tables_that_cannot_be_used(tmp_path, name, lines, message):
    with pytest.raises(InputError, match=rf"{name.replace('.', '[.]')}.*{message}"):
        read_judged(write(tmp_path / name, *lines))


# MLQE-PE: the published archives, and what is in them.

MLQE = (
    "index\toriginal\ttranslation\tscores\tmean\tz_scores\tz_mean\tmodel_scores\n"
    '0\tSee "it\tSieh "es\t[71, 62, 80]\t71.0\t[0.2, -0.1, 0.5]\t0.2\t-0.4\n'
    "1\tGo\tGeh\t[10, 20, 30]\t20.0\t[-1, -1, -1]\t-1\t-0.5\n"
)


def archive(path, *names):
    with tarfile.open(path, "w:gz") as tar:
        for name in names:
            member = tarfile.TarInfo(name)
            member.size = len(MLQE)
            tar.addfile(member, io.BytesIO(MLQE.encode()))
    return path


def test_mlqe_files_and_archives(tmp_path):
    plain = tmp_path / "dev.ende.df.short.tsv"
    plain.write_text(MLQE)
    names = ("en-de-dev/word-probas/mt.dev.ende", "en-de-dev/dev.ende.df.short.tsv")
    packed = archive(tmp_path / "en-de-dev.tar.gz", *names)
    for path in (plain, packed):
        [segments] = read_judged(path)
        assert (segments.file, segments.lang_pair, len(segments)) == (str(path), "en-de", 2)
        assert segments.sources == ['See "it', "Go"]
        assert segments.predictions == ['Sieh "es', "Geh"]
        assert segments.references == [None, None]
        assert segments.human.tolist() == [0.2, -1.0]
        assert segments.rows["raw"].tolist() == [71.0, 20.0]
        assert segments.column("model_scores") == [-0.4, -0.5]
        with pytest.raises(InputError, match="no column of numbers 'scores'; there are: index, model_scores"):
            segments.column("scores")


def test_a_folder_of_archives(tmp_path):
    for split in ("dev", "test"):
        archive(tmp_path / f"et-en-{split}.tar.gz", f"et-en-{split}/{split}.eten.df.short.tsv")
    archive(tmp_path / "en-de-dev.tar.gz", "en-de-dev/dev.ende.df.short.tsv")
    (tmp_path / "SHA256SUMS").write_text("not judged data\n")
    found = [(pair.file, pair.lang_pair) for pair in read_judged(tmp_path)]
    names = ("en-de-dev", "et-en-dev", "et-en-test")
    assert found == [(str(tmp_path / f"{name}.tar.gz"), name[:5]) for name in names]
    assert [pair.file for pair in read_judged(tmp_path, lang_pair="en-de")] == [str(tmp_path / "en-de-dev.tar.gz")]


def test_what_is_no_mlqe(tmp_path):
    path = tmp_path / "dev.df.short.tsv"
    path.write_text(MLQE)
    two = archive(tmp_path / "two.tar.gz", "dev.ende.df.short.tsv", "test.ende.df.short.tsv")
    cut = tmp_path / "cut.tar.gz"
    cut.write_bytes(two.read_bytes()[:50])
    assert [len(split) for split in read_judged(two)] == [4]
    for file, message in {
        path: r"dev\.df\.short\.tsv: a name such as dev\.ende\.df\.short\.tsv is needed",
        archive(tmp_path / "none.tar.gz", "README"): r"none\.tar\.gz: holds no judged data; .* tables of MLQE-PE",
        cut: r"cut\.tar\.gz: cannot be read as a tar archive",
        tmp_path / "gone.tar": r"gone\.tar: cannot be read as a tar archive",
    }.items():
        with pytest.raises(InputError, match=message):
            read_judged(file)


# Judged systems.

HUMAN = [{"lp": "de-en", "system": "A.1", "human": 0.5}, {"lp": "de-en", "system": "B", "human": -1}]
OUTPUTS = [
    {"lp": "de-en", "sid": 1, "source": "Haus", "reference": "House", "reference_tok": "house"}
    | {"outputs": {"B": "b", "A.1": "a", "C": "c"}},
    {"lp": "de-en", "sid": 2, "source": "Hund", "outputs": {"B": "d", "A.1": ""}},
]


def write_systems(folder, human=HUMAN, outputs=OUTPUTS, name="de-en"):
    write(folder / f"{name}.outputs.jsonl.gz", *outputs)
    return write(folder / f"{name}.jsonl", *human)


def test_judgements_and_outputs_are_joined_by_name(tmp_path):
    path = write_systems(tmp_path)
    [systems] = read_judged_systems(path)
    assert (systems.file, systems.lang_pair, systems.level) == (str(path), "de-en", "system")
    assert systems.judgements[["system", "human"]].to_numpy().tolist() == [["A.1", 0.5], ["B", -1.0]]
    outputs = {name: rows["translation"].tolist() for name, rows in systems.outputs().items()}
    assert outputs == {"A.1": ["a", ""], "B": ["b", "d"]}
    assert (systems.sources, systems.references) == (["Haus", "Hund"] * 2, ["House", None] * 2)
    assert systems.take([10.0, 20.0]) == [10.0, 20.0]
    with pytest.raises(InputError, match="column 'x': judgements of whole systems have no columns"):
        systems.column("x")


def test_a_folder_of_systems(tmp_path):
    write_systems(tmp_path)
    finnish = [row | {"lp": "fi-en"} for row in HUMAN], [row | {"lp": "fi-en"} for row in OUTPUTS]
    write_systems(tmp_path, *finnish, name="fi-en")
    write(tmp_path / "ru-en.jsonl", HUMAN[0])
    assert [pair.lang_pair for pair in read_judged_systems(tmp_path)] == ["de-en", "fi-en"]
    assert [pair.lang_pair for pair in read_judged_systems(tmp_path, lang_pair="fi-en")] == ["fi-en"]
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
        ([*HUMAN, HUMAN[0]], OUTPUTS, r"de-en\.jsonl, line 3, field 'system': 'A\.1' has a judgement already"),
        ([HUMAN[0] | {"human": None}], OUTPUTS, r"line 1, field 'human': a finite number is needed, got null"),
        ([*HUMAN, HUMAN[0] | {"lp": "fi-en"}], OUTPUTS, r"line 3, field 'lp': 'fi-en', but the lines before"),
        (HUMAN, [OUTPUTS[0] | {"lp": "fi-en"}], r"jsonl\.gz, line 1, field 'lp': 'fi-en', but .*jsonl is of de-en"),
        (HUMAN, [OUTPUTS[0] | {"outputs": {"A.1": "a"}}], r"'outputs': no translation of the judged system 'B'"),
        (
            HUMAN,
            [OUTPUTS[0] | {"outputs": {"A.1": "a", "B": 3}}],
            "field 'outputs', field 'B': a string is needed, got 3",
        ),
        (HUMAN, [OUTPUTS[0] | {"outputs": ["a"]}], r"'outputs': an object, system name -> translation, is needed"),
    ],
)
def test_errors_of_systems_name_the_place(tmp_path, human, outputs, message):
    with pytest.raises(InputError, match=message):
        read_judged_systems(write_systems(tmp_path, human, outputs))
