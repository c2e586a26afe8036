"""``mtmetrics evaluate`` in process: one metric, tables of several, layers, and what is refused."""

import functools
import json
import os
from pathlib import Path

import pytest
from helpers import HUMAN, PREDICTIONS, SOURCES, note_loads, refused, write_jsonl

import mtmetrics.scorers.spec
from mtmetrics.cli.main import main
from mtmetrics.judgements.plain_pickles import convert
from mtmetrics.scorers.registry import load_scorer
from mtmetrics.statistics.correlation import pearson


@pytest.fixture
def evaluate(preset, mtmetrics):
    return functools.partial(
        mtmetrics, "evaluate", "--metric", "xmoverscore", "--preset", preset, "--device", "cpu"
    )


def test_prints_what_the_scores_of_the_package_give(evaluate, preset, data, monkeypatch):
    loaded = note_loads(monkeypatch)
    code, out, err = evaluate("--data", data(), data("other.jsonl", "fi-en"), "--parts")
    assert (code, err) == (0, "")
    assert sorted(loaded) == ["EncoderNetwork", "LanguageModel"]  # once for all files
    shown = json.loads(out)
    result = load_scorer("xmoverscore", preset=str(preset), lang_pair="de-en").score(
        PREDICTIONS, sources=SOURCES
    )
    expected = {
        name: pearson(values, HUMAN).value
        for name, values in {"score": result.segments, **result.parts}.items()
    }
    first, second = shown["files"]
    assert first["pearson"] == pytest.approx(expected, abs=1e-6)
    assert list(first["pearson"]) == ["score", "mover", "lm"]
    assert first["signature"] == result.signature
    assert [(file["lp"], file["n"]) for file in (first, second)] == [("de-en", 5), ("fi-en", 5)]
    assert "lp:fi-en" in second["signature"]
    assert shown["mean"]["pearson"]["score"] == pytest.approx(expected["score"], abs=1e-6)


def test_options_override_the_preset_and_an_undefined_part_says_so(evaluate, data):
    path = data(translation_tok="")
    signature = json.loads(evaluate("--data", path, "--ngram", "1", "--lm-weight", "0.25")[1])[
        "files"
    ][0]["signature"]
    assert "|ngram:1|" in signature
    assert "*0.25|" in signature
    code, out, err = evaluate("--data", path, "--lm", "none", "--parts")
    assert (code, json.loads(out)["files"][0]["undefined"]) == (
        0,
        {"lm": "the scores are constant"},
    )
    assert (
        err
        == f"mtmetrics: warning: {path} (de-en): no correlation for lm: the scores are constant\n"
    )
    shown = json.loads(evaluate("--data", path, "--field", "translation_tok")[1])
    assert (shown["field"], shown["files"][0]["report"]["blank"]) == ("translation_tok", 1)


def test_detokenised_texts_are_scored_and_signed(evaluate, preset, data):
    tokenised = data(translation="the house is red , red .")
    plain, running = (
        json.loads(evaluate("--data", tokenised, *more)[1])["files"][0]
        for more in ([], ["--detokenize"])
    )
    assert running["signature"].replace("|detok:moses|v:", "|v:") == plain["signature"]
    scorer = load_scorer("xmoverscore", preset=str(preset), lang_pair="de-en")
    expected = scorer.score([*PREDICTIONS[:-1], "the house is red, red."], sources=SOURCES).segments
    assert running["pearson"]["score"] == pytest.approx(pearson(expected, HUMAN).value, abs=1e-6)


def test_a_table_has_the_numbers_of_the_document(evaluate, data):
    path = data()
    value = json.loads(evaluate("--data", path)[1])["files"][0]["pearson"]["score"]
    rows = [
        line.split("\t") for line in evaluate("--data", path, "--format", "tsv")[1].splitlines()
    ]
    assert f"{value:.3f}" in rows[-2]
    assert rows[-1][0] == "mean"
    assert {len(row) for row in rows} == {5}


def test_layers(evaluate, preset, data, tmp_path):
    drawn = tmp_path / "layers.svg"
    code, out, _ = evaluate("--data", data(), "--layers", "1,3", "--parts", "--plot", drawn)
    rows = {
        (row["measure"], row["layer"]): row["pearson"]["mean"] for row in json.loads(out)["layers"]
    }
    assert (code, list(rows)) == (
        0,
        [(name, layer) for name in ("score", "mover", "lm") for layer in (1, 3)],
    )
    scorer = load_scorer("xmoverscore", preset=str(preset), lang_pair="de-en", layer=1)
    expected = pearson(scorer.score(PREDICTIONS, sources=SOURCES).segments, HUMAN).value
    assert rows["score", 1] == pytest.approx(expected, abs=1e-5)
    assert "<svg" in drawn.read_text()


@pytest.mark.parametrize("changes", [{"human": float("nan")}, {"source": 3}, {"lp": "german"}])
def test_a_bad_row_in_the_last_file_stops_before_anything_is_scored(
    evaluate, data, monkeypatch, changes
):
    monkeypatch.setattr(
        mtmetrics.scorers.spec, "load_scorer", lambda *_, **__: pytest.fail("scoring began")
    )
    result = evaluate("--data", data(), data("bad.jsonl", **changes))
    refused(result, f"bad.jsonl, line 5, field '{next(iter(changes))}'")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--field", "nothing"], "no field 'nothing'"),
        (["--layer", "99"], "layer 99"),
        (["--map", "xyz"], "map 'xyz'"),
        (["none.jsonl"], "none.jsonl: no such file"),
        (["--draw", "bars"], "--draw and --weigh say what --plot draws"),
        (["--plot", "x.svg", "--weigh", "a,b"], "--weigh has no effect without --draw weights"),
        (["--layers", "1", "--plot", "x.svg", "--draw", "bars"], "leave out further metrics"),
        (["--layers", "1", "--plot", "x.gif"], "must end in .png, .svg, .pdf"),
    ],
)
def test_bad_options_end_in_one_line(evaluate, data, arguments, message):
    refused(evaluate("--data", data(), *arguments), message)


def test_several_metrics_and_columns_in_one_table(table):
    metrics = ("--metric", "chrf", "--metric", "prediction_length", "--column", "sentbleu")
    code, out, err = table(*metrics, "--format", "markdown")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == "| metric | de-en | fi-en | average |"
    assert [line.split(" | ")[0] for line in lines[2:5]] == [
        "| chrf",
        "| prediction_length",
        "| sentbleu (column)",
    ]
    assert lines[4] == "| sentbleu (column) | **1.000** | **1.000** | **1.000** |"
    chrf = load_scorer("chrf").score(PREDICTIONS, references=[text[:9] for text in PREDICTIONS])
    assert lines[2].split(" | ")[1].rstrip(" †") == f"{pearson(chrf.segments, HUMAN).value:.3f}"
    assert any(line.startswith("chrf: chrf|") for line in lines)


def test_one_language_pair_of_a_file_with_several(mtmetrics, tmp_path):
    row = {"source": "x", "translation": "y"}
    rows = [
        row | {"lp": pair, "human": i, "given": i} for pair in ("de-en", "fi-en") for i in range(3)
    ]
    path = write_jsonl(tmp_path / "both.jsonl", rows)
    for arguments, pairs in ([], ["de-en", "fi-en"]), (["--lp", "fi-en"], ["fi-en"]):
        code, out, _ = mtmetrics("evaluate", "--column", "given", *arguments, "--data", path)
        assert (code, [column["lp"] for column in json.loads(out)["columns"]]) == (0, pairs)


def test_presets_and_options_of_metrics_in_a_table(preset, table):
    named = [f"xmoverscore:{preset}:lm=none", f"xmoverscore:{preset}:ngram=1"]
    code, out, _ = table(
        "--metric", named[0], "--metric", "xmoverscore::ngram=1", "--preset", preset
    )
    rows = json.loads(out)["rows"]
    assert (code, [row["metric"] for row in rows]) == (0, named)
    assert "|lm:none|" in rows[0]["signatures"][0]
    assert "|ngram:1|" in rows[1]["signatures"][1]
    code, out, _ = table(
        "--metric", "xmoverscore", "--preset", preset, "--ngram", "1", "--ci", "--parts"
    )
    rows = json.loads(out)["rows"]
    assert (code, [row.get("part") for row in rows]) == (0, ["score", "mover", "lm"])
    assert "|ngram:1|" in rows[0]["signatures"][0]
    assert (
        rows[0]["values"][0]["ci"]["low"]
        <= rows[0]["values"][0]["value"]
        <= rows[0]["values"][0]["ci"]["high"]
    )


def test_other_coefficients_and_groups(table):
    shown = json.loads(table("--column", "sentbleu", "--coefficient", "kendall-b")[1])
    assert (shown["coefficient"], shown["significance"]) == ("kendall-b", "none")
    assert shown["rows"][0]["average"] == pytest.approx(1.0)
    shown = json.loads(table("--column", "sentbleu", "--group", "item")[1])
    assert (
        shown["rows"][0]["values"][0]["undefined_groups"] == 1
    )  # the fifth segment is the only one of its source
    one = json.loads(table("--metric", "chrf", "--coefficient", "spearman")[1])
    assert list(one["mean"]) == ["spearman"]
    assert "preset" not in one


def test_systems(mtmetrics, tmp_path):
    human, outputs = {"a": 1.0, "b": 2.0, "c": 3.0}, {"a": "x", "b": "x y", "c": "x y z"}
    row = {"lp": "de-en", "source": "s", "reference": "x y z", "outputs": outputs}
    judgements = [{"lp": "de-en", "system": name, "human": value} for name, value in human.items()]
    files = {"de-en.jsonl": judgements, "de-en.outputs.jsonl": [row] * 3}
    paths = [write_jsonl(tmp_path / name, rows) for name, rows in files.items()]
    code, out, _ = mtmetrics("evaluate", "--metric", "chrf", "--level", "system", "--data", *paths)
    shown = json.loads(out)
    assert (code, [column["n"] for column in shown["columns"]]) == (0, [3])
    assert shown["rows"][0]["accuracy"] == 1.0
    assert shown["rows"][0]["average"] > 0.9


def test_all_tables_of_the_papers_are_listed_without_data(capsys):
    assert main(["evaluate", "--recipes"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["NAME", "TABLE", "OR", "FIGURE", "DATA"]
    assert any(
        line.startswith("zhao2020-table1 ") and line.endswith("pulled: wmt17-cased")
        for line in lines
    )
    assert any(
        line.startswith("mathur2019-table4 ") and "DA-syslevel.csv of the WMT17" in line
        for line in lines
    )
    assert any(
        line.startswith("zhao2020-table3 ") and "; --text: dictionaries" in line for line in lines
    )
    assert any(
        line.startswith("zhao2020-figure3 ") and "; --text: a dictionary of de-en" in line
        for line in lines
    )
    assert any(
        line.startswith("zhao2020-figure2 ") and line.endswith(" as zhao2020-table8")
        for line in lines
    )


def test_only_rows_of_a_value_are_judged(mtmetrics, data):
    whole = data("de-en.jsonl")
    code, out, _ = mtmetrics("evaluate", "--metric", "chrf", "--data", whole, "--where", "item=1")
    assert (code, json.loads(out)["files"][0]["n"]) == (0, 2)
    refused(
        mtmetrics("evaluate", "--metric", "chrf", "--data", whole, "--where", "item=7"),
        "item=7: holds for no row",
    )
    refused(
        mtmetrics("evaluate", "--metric", "chrf", "--data", whole, "--where", "year=1"),
        "no file has a field 'year'",
    )
    refused(
        mtmetrics("evaluate", "--metric", "chrf", "--data", whole, "--where", "sid"),
        "--where sid: FIELD=VALUE or",
    )


def judged_folder(name):
    folder = (
        Path(os.environ.get("MTMETRICS_DATA", Path(__file__).parents[2].parent / "shared" / "data"))
        / name
    )
    if not folder.is_dir():
        pytest.skip(f"{folder} is not there; MTMETRICS_DATA names another folder of data")
    return folder


def test_chrf_and_bleu_are_the_published_ones_on_the_texts_of_the_authors(capsys, tmp_path):
    """chrF of Table 1 of Mathur et al. (2019), BLEU of Table 5 of Belouadi and Eger (2023)."""
    folder, pairs = judged_folder("wmt17_cased"), ("de", "fi", "ru", "tr")
    files = [str(tmp_path / f"{source}-en.jsonl") for source in pairs]
    for source, file in zip(pairs, files, strict=True):
        convert(folder / f"{source}en.pkl", Path(file))
    metrics = ("--metric", "chrf", "--metric", "sentbleu::effective_order=false")
    assert main(["evaluate", *metrics, "--format", "json", "--data", *files]) == 0
    chrf, bleu = json.loads(capsys.readouterr().out)["rows"]
    assert [cell["value"] for cell in chrf["values"]] == pytest.approx(
        [0.531, 0.671, 0.599, 0.607], abs=0.00051
    )
    assert [cell["value"] for cell in bleu["values"]] == pytest.approx(
        [0.4136, 0.5648, 0.4599, 0.5310], abs=0.0001
    )


def test_the_published_sentence_bleu(capsys):
    folder = judged_folder("wmt17_seg")
    files = [str(folder / f"{pair}-en.jsonl.gz") for pair in ("de", "fi", "ru", "tr")]
    assert main(["evaluate", "--column", "sentbleu", "--data", *files]) == 0
    values = [value["value"] for value in json.loads(capsys.readouterr().out)["rows"][0]["values"]]
    assert values == pytest.approx([0.432, 0.571, 0.484, 0.538], abs=0.0005)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--metric", "chrf", "--metric", "bleurt"], "metric 'bleurt'"),
        (
            ["--column", "sentbleu", "--coefficient", "tau"],
            "coefficient 'tau': must be one of pearson, spearman",
        ),
        (
            ["--column", "sentbleu", "--significance", "t"],
            "significance 't': must be one of williams, perm-both, none",
        ),
        (
            ["--column", "sentbleu", "--coefficient", "spearman", "--significance", "williams"],
            "--significance 'williams': Williams' test is for pearson",
        ),
        (
            ["--recipe", "zhao2020-table1", "--coefficient", "spearman"],
            "numbers are pearson of each segment",
        ),
        (
            ["--column", "sentbleu", "--level", "system", "--field", "mt"],
            "--field mt: is of judged segments",
        ),
        (["--column", "nothing"], "no column of numbers 'nothing'; there are: sentbleu"),
        (["--recipe", "nothing"], "recipe 'nothing': must be one of"),
        (["--recipe", "zhao2020-table1", "--column", "sentbleu"], "--recipe names its own rows"),
        (
            ["--recipe", "zhao2020-table1", "--plot", "x.svg"],
            "leave out --plot, --draw and --weigh",
        ),
        (["--recipe", "zhao2020-table1", "--tune", "x"], "--recipe writes no preset"),
        (
            [
                "--recipe",
                "zhao2020-table1",
                "--metric",
                "xmoverscore:mini",
                "--metric",
                "xmoverscore:paper",
            ],
            "--metric xmoverscore:paper: xmoverscore:mini replaces the rows of xmoverscore already",
        ),
        (
            ["--recipe", "song2021-figure1"],
            "draws a picture, or several tables; say with --report DIR where",
        ),
        (["--recipe", "belouadi2023-table7"], "the data holds de-en fi-en, the table en-de zh-en"),
        (
            ["--metric", "chrf", "--vectors", "a=b"],
            "--vectors are for rows of a table of a paper; pass --recipe too",
        ),
        (
            ["--metric", "chrf", "--text", "x"],
            "--text is what a figure of a paper learns from; pass --recipe too",
        ),
        (
            ["--recipe", "zhao2020-table1", "--text", "x"],
            "--recipe zhao2020-table1: leave out --text, it reads none",
        ),
        (
            ["--metric", "chrf", "--report", "x"],
            "--report is written of a table of a paper; pass --recipe too",
        ),
        (
            ["--recipe", "zhao2020-table3"],
            "--recipe zhao2020-table3: pass --text: dictionaries",
        ),
        (["--column", "sentbleu", "--coefficient", "acc23", "--ci"], "--ci"),
        (
            ["--metric", "chrf", "--group", "item", "--significance", "williams"],
            "Williams' test is for pearson",
        ),
        (["--column", "sentbleu", "--layers", "all"], "--layers compares the layers of one metric"),
        (["--metric", "chrf", "--group", "system"], "de-en.jsonl: a segment has no system"),
    ],
)
def test_tables_that_cannot_be_made(table, arguments, message):
    refused(table(*arguments), message)


def test_data_that_cannot_be_pulled_is_asked_for(mtmetrics):
    refused(mtmetrics("evaluate", "--metric", "chrf"), "--data is missing: which judgements?")
    needed = "its data cannot be pulled; pass --data: DA-syslevel.csv of the WMT17 metrics task"
    refused(mtmetrics("evaluate", "--recipe", "mathur2019-table4"), needed)


def test_no_significance_is_no_other_layout(table):
    assert table("--metric", "chrf", "--significance", "none")[1] == table("--metric", "chrf")[1]


@pytest.mark.parametrize("count", [2, 3])
def test_two_segments_have_no_interval(mtmetrics, tmp_path: Path, count: int) -> None:
    rows = [
        ("Ja.", "Yes.", 1.0),
        ("Nein, nein.", "No, no, no.", 0.2),
        ("Das Haus.", "The house.", 0.4),
    ]
    path = write_jsonl(
        tmp_path / "judged.jsonl",
        [
            dict(zip(("source", "translation", "human"), row, strict=True), lp="de-en")
            for row in rows[:count]
        ],
    )
    call = ("evaluate", "--metric", "prediction_length", "--ci", "--data", path, "--format")
    value = json.loads(mtmetrics(*call, "json")[1])["rows"][0]["values"][0]
    table = mtmetrics(*call, "table")[1]
    if count == 2:
        assert (value["ci"], value["ci_undefined"]) == (
            None,
            "no interval of fewer than 3 segments",
        )
        assert "[none]" in table
        assert "no interval of fewer than 3 segments" in table
    else:
        assert value["ci"]["low"] <= value["value"] <= value["ci"]["high"]
        assert "none" not in table
