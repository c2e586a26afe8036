"""Tables with a header: tabs or commas, quotes, names of columns, missing values."""

import numpy as np
import pytest

from mtmetrics.errors import InputError
from mtmetrics.evaluation.data import read_judged


def write(path, *lines):
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return path


def test_wmt17_test_set(tmp_path):
    # As pandas wrote the published files: a field with quotes is quoted, all others are not.
    header = "LP\tsource\ttranslation\treference\tHUMAN_score\tsentBLEU"
    quoted = '"""Nur so"", sagt sie."\t&quot; only so &quot;\tonly so\t-0.5\t0.25'
    path = write(
        tmp_path / "testset_de-en.tsv", header, f"de-en\t{quoted}", 'de-en\t"Ja"\t"yes" he said, "\tyes\t1\t0.5'
    )
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
    assert german.systems == ["A", "B"]
    assert german.judged.tolist() == [True, False]
    assert german.items == ["1", "1"]
    np.testing.assert_equal(german.raw_human, [75.0, np.nan])
    assert german.columns == {"annotators": [2.0, 2.0], "year": [2020.0, 2020.0]}
    assert (finnish.sources, finnish.predictions, finnish.references) == (["Talo, iso"], ['a "big"\nhouse'], [None])
    assert finnish.raw_human is None


def test_a_pair_that_is_given(tmp_path):
    path = write(tmp_path / "mine.tsv", "human\tsource\ttranslation\titem", "1\tHaus\thouse\tx", "", "0\tHaus\tNone\tx")
    with pytest.raises(InputError, match=r"mine\.tsv, line 2: no field 'lp' or 'LP'; the row has: 'human', 'source'"):
        read_judged(path)
    [segments] = read_judged(path, lang_pair="de-en")
    assert (segments.lang_pair, segments.items, segments.predictions) == ("de-en", ["x", "x"], ["house", "None"])
    two = write(
        tmp_path / "two.tsv", "lp\thuman\tsource\ttranslation", "de-en\t1\tHaus\thouse", "fi-en\t0\tTalo\thouse"
    )
    assert [pair.lang_pair for pair in read_judged(two, lang_pair="fi-en")] == ["fi-en"]
    with pytest.raises(InputError, match=r"two\.tsv: holds no row of the language pair ru-en"):
        read_judged(two, lang_pair="ru-en")


@pytest.mark.parametrize(
    ("name", "lines", "message"),
    [
        ("a.tsv", [], "holds no row"),
        ("a.tsv", ["lp\tsource\ttranslation\thuman"], "holds no row"),
        (
            "a.tsv",
            ["lp\tsource\ttranslation\thuman", "de-en\ta\tb"],
            r"line 2: 3 field\(s\), but the header has 4: lp, source, trans",
        ),
        (
            "a.tsv",
            ["lp\tsource\ttranslation\thuman", "de-en\ta\tb\tgood"],
            "line 2, field 'human': a finite number is needed, got 'good'",
        ),
        (
            "a.tsv",
            ["lp\tsource\ttranslation\thuman", "de-en\ta\tb\tnan"],
            "line 2, field 'human': a finite number is needed, got nan",
        ),
        ("a.tsv", ["lp\tsource\ttranslation", "de-en\ta\tb"], "line 2: no field 'human' or 'score'"),
        ("a.tsv", ["lp\tsource\tsource\thuman"], "line 1: the column 'source' stands there twice"),
        ("a.csv", ["lp,src,mt,score", 'de-en,a,"b'], "line 2: not valid CSV"),
        (
            "a.csv",
            ["LP DATA SYSTEM SID HUMAN", "de-en newstest2017 A 1 0.5"],
            "line 1: a header with the columns source, .* hold no text",
        ),
    ],
)
def test_errors_name_the_place(tmp_path, name, lines, message):
    with pytest.raises(InputError, match=rf"{name.replace('.', '[.]')}.*{message}"):
        read_judged(write(tmp_path / name, *lines))
