import csv
import functools
import io
import json
import os
from pathlib import Path

import pytest
from helpers import note_loads, write, write_jsonl

import mtmetrics.evaluation.run
from mtmetrics.cli.main import main
from mtmetrics.evaluation.correlation import pearson
from mtmetrics.scorers.registry import load_scorer

SOURCES = ["Das Haus ist klein.", "Der Hund schläft.", "Ich sehe zwei rote Autos.", "Wer hat das gesagt?", "Nein."]
PREDICTIONS = ["the house is small.", "the dog sleeps.", "i see red cars.", "who said that?", "the house is red."]
HUMAN = [1.0, 0.7, 0.1, 0.9, -1.5]


@pytest.fixture
def preset(tmp_path, tiny_encoder, tiny_lm):
    models = f'[encoder]\nmodel = "{tiny_encoder}"\n[language_models.en]\nmodel = "{tiny_lm}"\nweight = 0.5\n'
    return write(tmp_path / "preset" / "preset.toml", f'metric = "xmoverscore"\n{models}').parent


@pytest.fixture
def data(tmp_path):
    def judged(name="set.jsonl", lang_pair="de-en", **changes):
        rows = [
            {"lp": lang_pair, "source": source, "translation": text, "translation_tok": text.upper(), "human": human}
            for source, text, human in zip(SOURCES, PREDICTIONS, HUMAN, strict=True)
        ]
        rows[-1] |= changes
        return str(write_jsonl(tmp_path / name, rows))

    return judged


@pytest.fixture
def evaluate(preset, mtmetrics):
    return functools.partial(mtmetrics, "evaluate", "--metric", "xmoverscore", "--preset", preset, "--device", "cpu")


def test_prints_what_the_scores_of_the_package_give(evaluate, preset, data):
    code, out, err = evaluate("--data", data(), data("other.jsonl", "fi-en"), "--parts")
    assert (code, err) == (0, "")
    shown = json.loads(out)
    result = load_scorer("xmoverscore", preset=str(preset), lang_pair="de-en").score(SOURCES, PREDICTIONS)
    expected = {
        name: pearson(values, HUMAN).value for name, values in {"score": result.segments, **result.parts}.items()
    }
    assert shown["files"][0]["pearson"] == pytest.approx(expected, abs=1e-6)
    assert list(shown["files"][0]["pearson"]) == ["score", "mover", "lm"]
    assert shown["files"][0]["signature"] == result.signature
    assert [file["lp"] for file in shown["files"]] == ["de-en", "fi-en"]
    assert [file["n"] for file in shown["files"]] == [5, 5]
    assert "lp:fi-en" in shown["files"][1]["signature"]
    assert shown["mean"]["pearson"]["score"] == pytest.approx(expected["score"], abs=1e-6)
    assert evaluate("--data", data(), data("other.jsonl", "fi-en"), "--parts") == (code, out, err)


def test_models_are_loaded_once_for_all_files(evaluate, data, monkeypatch):
    loaded = note_loads(monkeypatch)
    code, _, _ = evaluate("--data", data(), data("b.jsonl"), data("c.jsonl", "fi-en"))
    assert code == 0
    assert sorted(loaded) == ["LanguageModel", "TokenEncoder"]


def test_options_override_the_preset(evaluate, data):
    path = data()
    _, out, _ = evaluate("--data", path, "--ngram", "1", "--lm-weight", "0.25")
    assert "|ngram:1|" in out
    assert "*0.25|" in out


def test_without_a_language_model_its_part_is_undefined_and_says_so(evaluate, data):
    path = data()
    code, out, err = evaluate("--data", path, "--lm", "none", "--parts")
    assert code == 0
    assert json.loads(out)["files"][0]["undefined"] == {"lm": "the scores are constant"}
    assert err == f"mtmetrics: warning: {path} (de-en): no correlation for lm: the scores are constant\n"


def test_another_field(evaluate, data):
    path = data(translation_tok="")
    shown = json.loads(evaluate("--data", path, "--field", "translation_tok")[1])
    assert shown["field"] == "translation_tok"
    assert shown["files"][0]["report"]["blank"] == 1


@pytest.mark.parametrize(("style", "columns"), [("tsv", 5), ("markdown", 7)])
def test_tables(evaluate, data, style, columns):
    path = data()
    value = json.loads(evaluate("--data", path)[1])["files"][0]["pearson"]["score"]
    _, out, _ = evaluate("--data", path, "--format", style)
    lines = out.splitlines()
    assert f"{value:.3f}" in lines[-2]
    assert lines[-1].lstrip("| ").startswith("mean")
    assert {len(line.replace("\\|", "").split("\t" if style == "tsv" else "|")) for line in lines} == {columns}


@pytest.mark.parametrize("changes", [{"human": float("nan")}, {"source": 3}, {"lp": "german"}])
def test_a_bad_row_in_the_last_file_stops_before_anything_is_scored(evaluate, data, monkeypatch, changes):
    monkeypatch.setattr(mtmetrics.evaluation.run, "load_scorer", lambda *_, **__: pytest.fail("scoring began"))
    code, out, err = evaluate("--data", data(), data("bad.jsonl", **changes))
    assert (code, out) == (2, "")
    assert f"bad.jsonl, line 5, field '{next(iter(changes))}'" in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--field", "nothing"], "no field 'nothing'"),
        (["--metric", "bleurt"], "metric 'bleurt'"),
        (["--preset", "nothing"], "unknown preset 'nothing'"),
        (["--layer", "99"], "layer 99"),
        (["--batch-tokens", "0"], "--batch-tokens 0"),
        (["--map", "xyz"], "map 'xyz'"),
        (["none.jsonl"], "none.jsonl: no such file"),
    ],
)
def test_bad_options_end_in_one_line(evaluate, data, arguments, message):
    code, out, err = evaluate("--data", data(), *arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


# Tables of several metrics: with baselines, which need no model.


@pytest.fixture
def table(mtmetrics, tmp_path):
    """Runs the command on judged files of several pairs, with a reference and a column of scores."""
    paths = []
    for pair in ("de-en", "fi-en"):
        segments = enumerate(zip(SOURCES, PREDICTIONS, HUMAN, strict=True))
        rows = [
            {"source": source, "translation": text, "reference": text[:9], "sid": i // 2}
            | {"lp": pair, "human": human, "sentbleu": human / 2}
            for i, (source, text, human) in segments
        ]
        paths.append(write_jsonl(tmp_path / f"{pair}.jsonl", rows))
    return lambda *arguments: mtmetrics("evaluate", *arguments, "--data", *paths)


def test_several_metrics_and_columns_in_one_table(table):
    metrics = ("--metric", "chrf", "--metric", "prediction_length", "--column", "sentbleu")
    code, out, err = table(*metrics, "--format", "markdown")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == "| metric | de-en | fi-en | average |"
    assert [line.split(" | ")[0] for line in lines[2:5]] == ["| chrf", "| prediction_length", "| sentbleu (column)"]
    assert lines[4] == "| sentbleu (column) | **1.000** | **1.000** | **1.000** |"
    chrf = load_scorer("chrf").score([text[:9] for text in PREDICTIONS], PREDICTIONS)
    assert lines[2].split(" | ")[1].rstrip(" †") == f"{pearson(chrf.segments, HUMAN).value:.3f}"
    assert any(line.startswith("chrf: chrf|") for line in lines)


def test_one_language_pair_of_a_file_with_several(mtmetrics, tmp_path):
    row = {"source": "x", "translation": "y"}
    rows = [row | {"lp": pair, "human": i, "given": i} for pair in ("de-en", "fi-en") for i in range(3)]
    path = write_jsonl(tmp_path / "both.jsonl", rows)
    for arguments, pairs in ([], ["de-en", "fi-en"]), (["--lp", "fi-en"], ["fi-en"]):
        code, out, _ = mtmetrics("evaluate", "--column", "given", *arguments, "--data", path)
        assert (code, [column["lp"] for column in json.loads(out)["columns"]]) == (0, pairs)


def test_preset_counts_for_metrics_that_name_none(preset, table):
    code, out, _ = table(
        "--metric", f"xmoverscore:{preset}:lm=none", "--metric", "xmoverscore::ngram=1", "--preset", str(preset)
    )
    assert code == 0
    rows = json.loads(out)["rows"]
    assert [row["metric"] for row in rows] == [f"xmoverscore:{preset}:lm=none", f"xmoverscore:{preset}:ngram=1"]
    assert "|lm:none|" in rows[0]["signatures"][0]
    assert "|ngram:1|" in rows[1]["signatures"][1]


def test_options_of_a_single_metric_count_in_a_table_too(preset, table):
    code, out, _ = table("--metric", "xmoverscore", "--preset", str(preset), "--ngram", "1", "--ci", "--parts")
    assert code == 0
    rows = json.loads(out)["rows"]
    assert [row.get("part") for row in rows] == ["score", "mover", "lm"]
    assert "|ngram:1|" in rows[0]["signatures"][0]
    assert rows[0]["values"][0]["ci"]["low"] <= rows[0]["values"][0]["value"] <= rows[0]["values"][0]["ci"]["high"]


def test_other_coefficients_and_groups(table):
    shown = json.loads(table("--column", "sentbleu", "--coefficient", "kendall-b")[1])
    assert (shown["coefficient"], shown["significance"]) == ("kendall-b", "none")
    assert shown["rows"][0]["average"] == pytest.approx(1.0)
    shown = json.loads(table("--column", "sentbleu", "--group", "item")[1])
    assert shown["rows"][0]["values"][0]["undefined_groups"] == 1  # the fifth segment is the only one of its source
    one = json.loads(table("--metric", "chrf", "--coefficient", "spearman")[1])
    assert list(one["mean"]) == ["spearman"]
    assert "preset" not in one


def test_systems(mtmetrics, tmp_path):
    human, outputs = {"a": 1.0, "b": 2.0, "c": 3.0}, {"a": "x", "b": "x y", "c": "x y z"}
    row = {"lp": "de-en", "source": "s", "reference": "x y z", "outputs": outputs}
    judgements = [{"lp": "de-en", "system": name, "human": value} for name, value in human.items()]
    paths = [
        write_jsonl(tmp_path / "de-en.jsonl", judgements),
        write_jsonl(tmp_path / "de-en.outputs.jsonl", [row] * 3),
    ]
    code, out, _ = mtmetrics("evaluate", "--metric", "chrf", "--level", "system", "--data", *paths)
    shown = json.loads(out)
    assert (code, [column["n"] for column in shown["columns"]]) == (0, [3])
    assert shown["rows"][0]["accuracy"] == 1.0
    assert shown["rows"][0]["average"] > 0.9


def test_a_recipe_prints_the_papers_numbers_and_says_what_was_not_run(table):
    code, out, _ = table("--recipe", "mathur2019-table1", "--preset", "nothing", "--format", "csv")
    assert code == 0
    lines = [line.split(",") for line in out.splitlines()]
    assert lines[0][:5] == ["metric", "de-en", "de-en published", "fi-en", "fi-en published"]
    rows = {line[0]: line for line in lines[1:]}
    assert len(rows) == 11
    assert rows["SentBLEU"][1:5] == ["1.000", "0.432", "1.000", "0.571"]
    assert rows["chrF"][2] == "0.531"
    assert rows["chrF"][1] != ""
    assert rows["BERTR"][1:5] == ["", "0.650", "", "0.777"]
    assert "unknown preset 'nothing'" in out
    assert "RUSE is not part of this package" in out


def test_all_tables_of_the_papers_are_listed_without_data(capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["evaluate", "--recipes"])
    assert stopped.value.code in (0, None)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["NAME", "TABLE", "DATA"]
    assert any(line.startswith("zhao2020-table6 ") and line.endswith("--data WMT18") for line in lines)
    assert any(line.startswith("zhao2020-table4 ") and "not run: the multilingual USE" in line for line in lines)


def test_a_recipe_takes_a_preset_for_each_language_pair(mtmetrics, preset, tmp_path):
    for pair in ("de-en", "fi-en"):
        folder = tmp_path / "made" / pair
        write(
            folder / "preset.toml", (preset / "preset.toml").read_text() + f"[score]\nngram = {1 + (pair == 'de-en')}\n"
        )
        rows = [
            {"lp": pair, "source": source, "translation": text, "reference": source, "human": human}
            for source, text, human in zip(SOURCES, PREDICTIONS, HUMAN, strict=True)
        ]
        write_jsonl(tmp_path / f"{pair}.jsonl", rows)
    made = f"{tmp_path}/made/{{lp}}"
    arguments = ("--recipe", "zhao2020-table1", "--metric", f"xmoverscore:{made}:map=none", "--format", "csv")
    paths = [tmp_path / f"{pair}.jsonl" for pair in ("de-en", "fi-en")]
    code, out, _ = mtmetrics("evaluate", *arguments, "--device", "cpu", "--data", *paths)
    assert code == 0
    rows = {row[0]: row for row in csv.reader(io.StringIO(out))}
    # The map is not that of the paper, the language model is one.
    row = rows[f"Mover-2 + CLP(M-BERT) + LM [{made}, map=none]"]
    assert "" not in row[1:6]
    assert "lp:de-en,fi-en" in row[-2]
    assert f"Mover-1 + M-BERT [{made}]" in rows


def test_the_published_sentence_bleu(capsys):
    folder = Path(os.environ.get("MTMETRICS_DATA", Path(__file__).parents[2].parent / "shared" / "data")) / "wmt17_seg"
    if not folder.is_dir():
        pytest.skip(f"{folder} is not there; MTMETRICS_DATA names another folder of data")
    files = [str(folder / f"{pair}-en.jsonl.gz") for pair in ("de", "fi", "ru", "tr")]
    assert main(["evaluate", "--column", "sentbleu", "--data", *files]) == 0
    values = [value["value"] for value in json.loads(capsys.readouterr().out)["rows"][0]["values"]]
    assert values == pytest.approx([0.432, 0.571, 0.484, 0.538], abs=0.0005)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--metric", "chrf", "--metric", "bleurt"], "metric 'bleurt'"),
        (["--metric", "chrf", "--metric", "bertr:mini:layer"], "NAME:PRESET:option=value"),
        (["--metric", "chrf", "--metric", "ter", "--layer", "2"], "--layer: for which metric?"),
        (["--column", "sentbleu", "--coefficient", "tau"], "coefficient 'tau': must be one of pearson, spearman"),
        (["--column", "sentbleu", "--significance", "t"], "significance 't': must be one of williams, perm-both, none"),
        (["--recipe", "zhao2020-table1", "--coefficient", "spearman"], "numbers are pearson of each segment"),
        (["--recipe", "zhao2020-table1", "--level", "system"], "the paper's numbers are pearson of each segment"),
        (["--column", "sentbleu", "--level", "system", "--field", "mt"], "--field mt: is of judged segments"),
        (["--column", "nothing"], "no column of numbers 'nothing'; there are: sentbleu"),
        (["--recipe", "nothing"], "recipe 'nothing': must be one of"),
        (["--recipe", "zhao2020-table1", "--column", "sentbleu"], "--recipe names its own rows"),
        (
            ["--recipe", "zhao2020-table1", "--metric", "bertr"],
            "--metric bertr: recipe zhao2020-table1 has rows of chrfpp",
        ),
        (["--recipe", "zhao2020-table6", "--group", "item"], "group 'item'"),
        (["--recipe", "zhao2020-table3"], "recipe zhao2020-table3: cannot be run: its word-by-word translations"),
        (["--column", "sentbleu", "--coefficient", "acc23", "--ci"], "--ci"),
        (["--metric", "chrf", "--group", "item", "--significance", "williams"], "Williams' test is for pearson"),
        (["--column", "sentbleu", "--layers", "all"], "--layers compares the layers of one metric"),
        (["--metric", "chrf", "--group", "system"], "de-en.jsonl: a segment has no system"),
    ],
)
def test_tables_that_cannot_be_made(table, arguments, message):
    code, out, err = table(*arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("arguments", [[], ["--data"], ["--data", "x", "--format", "html"]])
def test_bad_usage(arguments, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["evaluate", *arguments])
    assert stopped.value.code == 2
    assert capsys.readouterr().out == ""
