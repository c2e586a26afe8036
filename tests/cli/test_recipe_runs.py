"""``mtmetrics evaluate --recipe``: tables and figures of the papers."""

import csv
import importlib.util
import io
import json
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
import sacrebleu
from helpers import HUMAN, PREDICTIONS, SOURCES, refused, write, write_jsonl

from mtmetrics.reports.recipes import Recipe
from mtmetrics.scorers.registry import load_scorer
from mtmetrics.statistics.correlation import pearson

REFERENCES = ["the house is small", "the dog sleeps in the garden", "who said that today"]


OUTPUTS = {
    "a": REFERENCES,
    "b": ["the house is big", "the dog sleeps in it", "who said that"],
    "c": ["x", "y", "z"],
}


SYSTEMS = {"a": 1.0, "b": 0.5, "c": -1.0}


@pytest.fixture
def system_files(tmp_path):
    """Three judged systems of de-en."""
    rows = [
        {
            "lp": "de-en",
            "source": "s",
            "reference": text,
            "outputs": {name: texts[i] for name, texts in OUTPUTS.items()},
        }
        for i, text in enumerate(REFERENCES)
    ]
    write_jsonl(tmp_path / "de-en.outputs.jsonl", rows)
    judged = [{"lp": "de-en", "system": name, "human": value} for name, value in SYSTEMS.items()]
    return write_jsonl(tmp_path / "de-en.jsonl", judged)


def test_corpus_bleu_of_systems_stands_beside_the_published_one(mtmetrics, system_files):
    options = ("--preset", "none", "--format", "csv", "--data", system_files)
    code, out, _ = mtmetrics("evaluate", "--recipe", "zhao2020-table5", *options)
    assert code == 0
    row = next(row for row in csv.reader(io.StringIO(out)) if row[0] == "BLEU")
    bleu = [sacrebleu.corpus_bleu(texts, [REFERENCES]).score for texts in OUTPUTS.values()]
    assert bleu[0] > bleu[1] > bleu[2]
    assert float(row[1]) == pytest.approx(pearson(bleu, list(SYSTEMS.values())).value, abs=5e-4)
    assert row[2] == "0.923"
    assert any(cell.startswith("bleu|") and "system:corpus" in cell for cell in row)


def test_a_recipe_prints_the_papers_numbers_and_says_what_was_not_run(table):
    code, out, _ = table("--recipe", "mathur2019-table1", "--preset", "nothing", "--format", "csv")
    assert code == 0
    lines = [line.split(",") for line in out.splitlines()]
    assert lines[0][:5] == ["metric", "de-en", "de-en published", "fi-en", "fi-en published"]
    rows = {line[0]: line for line in lines[1:]}
    assert len(rows) == 11
    bleu = load_scorer("sentbleu").score(PREDICTIONS, references=[text[:9] for text in PREDICTIONS])
    measured = f"{pearson(bleu.segments, HUMAN).value:.3f}"
    assert rows["SentBLEU"][1:5] == [measured, "0.432", measured, "0.571"]
    assert rows["chrF"][2] == "0.531"
    assert rows["chrF"][1] != ""
    assert rows["BERTR"][1:5] == ["", "0.650", "", "0.777"]
    assert "unknown preset 'nothing'" in out
    assert "RUSE is not part of this package" in out


@pytest.fixture
def public(origin, data, tmp_path, monkeypatch):
    """A registry whose WMT17 has two language pairs, on loopback, and an empty cache."""
    pairs = ("de-en", "en-zh")
    files = "".join(f'"{pair}.jsonl" = {{ url = "{origin.url}/{pair}.jsonl" }}\n' for pair in pairs)
    origin.files = {
        f"/{pair}.jsonl": Path(data(f"{pair}.jsonl", pair)).read_bytes() for pair in pairs
    }
    text = f'[wmt17-cased]\nwhat = "two pairs"\nlicence = "CC0"\n[wmt17-cased.files]\n{files}'
    monkeypatch.setattr(
        "mtmetrics.judgements.public_sets.REGISTRY", write(tmp_path / "datasets.toml", text)
    )
    monkeypatch.setattr("huggingface_hub.utils._cache_assets.HF_ASSETS_CACHE", tmp_path / "assets")


def test_a_recipe_pulls_its_data_and_writes_a_report(mtmetrics, public, tmp_path):
    report = tmp_path / "report"
    argv = (
        "--recipe",
        "mathur2019-table1",
        "--preset",
        "nothing",
        "--format",
        "json",
        "--report",
        report,
    )
    code, out, err = mtmetrics("evaluate", *argv)
    assert code == 0
    assert [column["lp"] for column in json.loads(out)["columns"]] == ["de-en"]
    assert "wmt17-cased: fetching 2 files, " in err
    assert "mtmetrics: left out, since the table has no such column: en-zh" in err
    written = (report / "mathur2019-table1.md").read_text()
    assert written.startswith("# Table 1 of Mathur et al. (2019)")
    assert "| SentBLEU | " in written
    assert "![published numbers against those measured here](mathur2019-table1.svg)" in written
    assert (report / "mathur2019-table1.svg").stat().st_size > 1000


def test_a_figure_is_drawn_by_the_commands_of_its_recipe(mtmetrics, data, tmp_path):
    report = tmp_path / "report"
    argv = ("--recipe", "song2021-figure1", "--preset", "none", "--report", report)
    code, out, err = mtmetrics("evaluate", *argv, "--data", data("de-en.jsonl"))
    assert code == 1
    assert (
        "```bash\nmtmetrics evaluate --draw scatter --metric sentsim:none:against=source,combine="
        in out
    )
    assert "nothing could be run; the lines above say why" in err
    assert not report.joinpath("song2021-figure1.md").exists()


def test_a_figure_that_makes_something_takes_text_and_names_its_model(
    mtmetrics, data, tmp_path, monkeypatch
):
    runs = [
        "score --metric {model} {text[0]} --out {out}/scores.json",
        "evaluate --metric chrf --data {data} --plot {out}/f.svg",
    ]
    recipe = Recipe("f", "Figure", "Someone", runs=runs, text="rows", models={"paper": "chrf"})
    monkeypatch.setattr("mtmetrics.cli.recipe_runs.load_recipe", lambda _: recipe)
    rows = write(tmp_path / "rows.tsv", "reference\ttranslation\na house\ta house\n")
    argv = ("evaluate", "--recipe", "f", "--report", tmp_path / "r", "--data", data("de-en.jsonl"))
    code, out, _ = mtmetrics(*argv, "--text", rows, "--batch-tokens", "64")
    assert code == 0
    assert f"mtmetrics score --metric chrf {rows} --out" in out
    assert "chrf|" in (tmp_path / "r" / "scores.json").read_text()
    refused(mtmetrics(*argv), "--recipe f: pass --text: rows")
    refused(
        mtmetrics(*argv, "--text", rows, "--preset", "mini"), "--recipe f: runs with --preset paper"
    )
    refused(
        mtmetrics(*argv, "--text", rows, "--metric", "chrf"),
        "its calls name their metrics; leave out --metric",
    )


def test_averages_of_tables_take_the_metrics_and_sets_of_the_user(mtmetrics, data, tmp_path):
    """Only WMT17 is there; the other tables say so, and BLEU is averaged over its two pairs."""
    for pair in ("de-en", "fi-en", "en-zh"):
        path = tmp_path / "sets" / "wmt17-cased" / f"{pair}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(Path(data(f"{pair}.jsonl", pair)).read_bytes())
    argv = (
        "evaluate",
        "--recipe",
        "belouadi2023-table2",
        "--preset",
        "none",
        "--format",
        "csv",
        "--report",
        tmp_path,
    )
    code, out, err = mtmetrics(
        *argv, "--metric", "sentbleu::effective_order=true", "--data", tmp_path / "sets"
    )
    assert code == 0
    rows = {row[0]: row for row in csv.reader(io.StringIO(out))}
    assert rows["metric"][1:5] == ["WMT-16", "WMT-16 published", "WMT-17", "WMT-17 published"]
    bleu = load_scorer("sentbleu").score(PREDICTIONS, references=[text[:9] for text in PREDICTIONS])
    measured = f"{pearson(bleu.segments, HUMAN).value:.3f}"
    assert rows["BLEU [effective_order=True]"][1:5] == ["", "0.478", measured, "0.470"]
    assert rows["DistilScore"][1:5] == ["", "0.438", "", "0.512"]
    needed = "a folder with wmt16-da, as 'mtmetrics data pull --out' makes it, is needed"
    assert f"mtmetrics: belouadi2023-table4: not run: --data {tmp_path / 'sets'}: {needed}" in err
    written = (tmp_path / "belouadi2023-table2.md").read_text()
    assert "WMT-17: over de-en fi-en; the paper's average is over cs-en de-en fi-en" in written
    assert (
        "| BLEU [effective\\_order=True] |" in written
        or "| BLEU [effective_order=True] |" in written
    )
    assert (tmp_path / "belouadi2023-table2.svg").stat().st_size > 1000
    refused(
        mtmetrics(*argv, "--metric", "bertr"),
        "--metric bertr: recipe belouadi2023-table2 has rows of comet",
    )
    code, _, err = mtmetrics(*argv, "--data", tmp_path / "sets" / "wmt17-cased" / "de-en.jsonl")
    assert (code, "nothing could be run; the lines above say why" in err) == (1, True)


def test_a_figure_of_averages_is_drawn_from_files(mtmetrics, system_files, tmp_path):
    argv = (
        "evaluate",
        "--recipe",
        "zhao2020-figure2",
        "--preset",
        "none",
        "--format",
        "json",
        "--report",
        tmp_path,
    )
    code, out, _ = mtmetrics(*argv, "--data", system_files)
    rows = {row["title"]: row for row in json.loads(out)["rows"]}
    assert code == 0
    assert rows["BLEU"]["published"] == {"WMT19": 0.907}
    assert 0.9 < rows["BLEU"]["measured"]["WMT19"] <= 1
    assert rows["YiSi-2"]["measured"] == {}
    assert (tmp_path / "zhao2020-figure2.svg").stat().st_size > 1000


def test_pictures_of_a_figure_stand_in_its_report(mtmetrics, data, tmp_path, monkeypatch):
    recipe = Recipe(
        "f", "Figure", "Someone", runs=["evaluate --metric chrf --data {data} --plot {out}/f.svg"]
    )
    monkeypatch.setattr("mtmetrics.cli.recipe_runs.load_recipe", lambda _: recipe)
    code, out, _ = mtmetrics(
        "evaluate", "--recipe", "f", "--report", tmp_path / "r", "--data", data("de-en.jsonl")
    )
    written = (tmp_path / "r" / "f.md").read_text()
    assert (code, "![f](f.svg)" in written, out.strip() in written) == (0, True, True)
    assert (tmp_path / "r" / "f.svg").stat().st_size > 1000


def test_a_recipe_takes_a_preset_for_each_language_pair(mtmetrics, data, preset, tmp_path):
    paths = [data(f"{pair}.jsonl", pair) for pair in ("de-en", "fi-en")]
    for pair, ngram in (("de-en", 2), ("fi-en", 1)):
        settings = (preset / "preset.toml").read_text() + f"[score]\nngram = {ngram}\n"
        write(tmp_path / "made" / pair / "preset.toml", settings)
    made = f"{tmp_path}/made/{{lp}}"
    metric = (
        "--recipe",
        "zhao2020-table1",
        "--metric",
        f"xmoverscore:{made}:map=none",
        "--format",
        "csv",
    )
    code, out, _ = mtmetrics("evaluate", *metric, "--device", "cpu", "--data", *paths)
    rows = {row[0]: row for row in csv.reader(io.StringIO(out))}
    # The map is not that of the paper, the language model is one.
    row = rows[f"Mover-2 + CLP(M-BERT) + LM [{made}, map=none]"]
    assert code == 0
    assert "" not in row[1:6]
    assert "lp:de-en,fi-en" in row[-2]
    assert f"Mover-1 + M-BERT [{made}]" in rows


def test_rows_of_vectors_that_somebody_computed(mtmetrics, data, tmp_path):
    texts = [*SOURCES, *PREDICTIONS]
    vectors = np.random.default_rng(0).normal(size=(len(texts), 4))
    pyarrow.parquet.write_table(
        pyarrow.table({"text": texts, "vector": vectors.tolist()}), tmp_path / "l.parquet"
    )
    pairs = write_jsonl(
        tmp_path / "pairs.jsonl",
        [
            {"source": source, "target": text}
            for source, text in zip(SOURCES, PREDICTIONS, strict=True)
        ],
    )
    remap = (
        "train",
        "maps",
        "--encoder",
        tmp_path / "l.parquet",
        "--level",
        "sentence",
        "--lp",
        "de-en",
        "--parallel",
        pairs,
    )
    assert mtmetrics(*remap, "--out", tmp_path / "maps")[0] == 0
    recipe = (
        "evaluate",
        "--recipe",
        "zhao2020-table1",
        "--preset",
        "mini",
        "--format",
        "csv",
        "--data",
        data(),
    )
    code, out, _ = mtmetrics(
        *recipe, "--vectors", f"LASER={tmp_path}/l.parquet,maps={tmp_path}/maps"
    )
    assert code == 0
    rows = {row[0]: row for row in csv.reader(io.StringIO(out))}
    plain = [
        float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))
        for a, b in zip(vectors[:5], vectors[5:], strict=True)
    ]
    assert float(rows["Cosine + LASER [mini]"][1]) == pytest.approx(
        pearson(plain, HUMAN).value, abs=5e-4
    )
    for name in ("Cosine + CLP(LASER)", "Cosine + UMD(LASER)", "Cosine + CLP(LASER) + LM"):
        assert rows[f"{name} [mini]"][1] != ""
    refused(
        mtmetrics(*recipe, "--vectors", "LASER"),
        "--vectors LASER: MODEL=FILE.parquet or MODEL=ENCODER is needed",
    )
    refused(
        mtmetrics(*recipe, "--vectors", "LASER=no.parquet"),
        "--vectors LASER=no.parquet: no.parquet: no such file",
    )


def test_a_row_that_lacks_a_language_pair_shows_the_others(mtmetrics, data, preset, tmp_path):
    paths = [data(f"{pair}.jsonl", pair) for pair in ("fi-en", "de-en", "ru-en")]
    for pair in ("de-en", "ru-en"):
        write(tmp_path / "made" / pair / "preset.toml", (preset / "preset.toml").read_text())
    argv = (
        "evaluate",
        "--recipe",
        "zhao2020-table1",
        "--preset",
        f"{tmp_path}/made/{{lp}}",
        "--device",
        "cpu",
    )
    code, out, err = mtmetrics(*argv, "--format", "csv", "--data", *paths)
    assert code == 0
    head, *rows = csv.reader(io.StringIO(out))
    assert [name for name in head if name.count("-en") and "published" not in name] == [
        "de-en",
        "fi-en",
        "ru-en",
    ]
    row = next(
        dict(zip(head, row, strict=True)) for row in rows if row[0].startswith("Mover-1 + M-BERT")
    )
    assert (float(row["de-en"]), row["fi-en"], float(row["ru-en"])) == (
        float(row["ru-en"]),
        "",
        float(row["de-en"]),
    )
    assert row["average"] == f"{row['de-en']} (2 of 3)"
    # Of the paper's numbers those of the same pairs.
    assert float(row["average published"]) == pytest.approx((0.371 + 0.267) / 2, abs=5e-4)
    assert row["problem"].startswith("fi-en: ")
    assert "made/fi-en" in row["problem"]
    assert "fi-en" not in row["signature"]
    document = json.loads(mtmetrics(*argv, "--format", "json", "--data", *paths)[1])
    [found] = [row for row in document["rows"] if row["title"].startswith("Mover-1 + M-BERT")]
    assert [value["value"] is None for value in found["values"]] == [False, True, False]
    out = mtmetrics(*argv, "--format", "markdown", "--data", *paths)[1]
    assert f"Not run: Mover-1 + M-BERT [{tmp_path}/made/{{lp}}] for fi-en: " in out
    assert "no correlation for Mover-1 + M-BERT" in err


def test_a_file_without_references_costs_its_column_alone(mtmetrics, data):
    paths = [data("de-en.jsonl"), data("fi-en.jsonl", "fi-en", reference=None)]
    argv = (
        "evaluate",
        "--recipe",
        "mathur2019-table1",
        "--preset",
        "nothing",
        "--format",
        "csv",
        "--data",
        *paths,
    )
    head, *rows = csv.reader(io.StringIO(mtmetrics(*argv)[1]))
    row = next(dict(zip(head, row, strict=True)) for row in rows if row[0] == "SentBLEU")
    assert (row["de-en"] != "", row["fi-en"]) == (True, "")
    assert "has no reference" in row["problem"]


def test_without_sacrebleu_its_rows_are_left_out(mtmetrics, data, system_files, monkeypatch):
    real = importlib.util.find_spec
    monkeypatch.setattr(
        "importlib.util.find_spec", lambda name: None if name == "sacrebleu" else real(name)
    )
    for recipe, path in (("mathur2019-table1", data()), ("zhao2020-table5", system_files)):
        argv = (
            "evaluate",
            "--recipe",
            recipe,
            "--preset",
            "nothing",
            "--format",
            "csv",
            "--data",
            path,
        )
        code, out, _ = mtmetrics(*argv)
        assert code == 0
        assert "needs sacrebleu; pip install" in out


def test_a_figure_draws_the_rows_of_its_table(mtmetrics, data, tmp_path):
    argv = (
        "--preset",
        "mini",
        "--format",
        "json",
        "--device",
        "cpu",
        "--data",
        data("de-en.jsonl"),
    )
    figure = ("evaluate", "--recipe", "song2021-figure6", "--report", tmp_path / "r", *argv)
    table = ("evaluate", "--recipe", "song2021-table3", *argv)
    documents = [json.loads(mtmetrics(*call)[1]) for call in (figure, table)]
    drawn, printed = (
        [row["values"][0]["value"] for row in document["rows"]] for document in documents
    )
    assert drawn == printed
    assert len(set(drawn)) == 5
    assert (tmp_path / "r" / "song2021-figure6.svg").stat().st_size > 1000
    refused(
        mtmetrics("evaluate", "--recipe", "song2021-figure6", *argv), "say with --report DIR where"
    )


def test_a_figure_of_layers_draws_the_part_of_the_paper(mtmetrics, data, tmp_path):
    argv = (
        "--preset",
        "mini",
        "--format",
        "json",
        "--device",
        "cpu",
        "--data",
        data("de-en.jsonl"),
    )
    code, out, _ = mtmetrics(
        "evaluate", "--recipe", "song2021-figure3", "--report", tmp_path / "r", *argv
    )
    assert code == 0
    rows = json.loads(out)["layers"]
    assert [(row["measure"], row["layer"]) for row in rows] == [
        ("wmd", layer) for layer in range(7)
    ]
    options = {
        "lang_pair": "de-en",
        "against": "source",
        "combine": "wmd",
        "normalize": "batch",
        "layer": 2,
    }
    distances = (
        load_scorer("sentsim", preset="mini", **options)
        .score(PREDICTIONS, sources=SOURCES)
        .parts["wmd"]
    )
    assert rows[2]["pearson"]["mean"] == pytest.approx(pearson(-distances, HUMAN).value, abs=1e-5)
    assert (tmp_path / "r" / "song2021-figure3.svg").stat().st_size > 1000
    assert "song2021-figure3.svg" in (tmp_path / "r" / "song2021-figure3.md").read_text()


def test_a_list_of_recipes_whose_reader_goes_away_ends_quietly():
    call = f"{shlex.quote(sys.executable)} -m mtmetrics evaluate --recipes | head -1"
    done = subprocess.run(["bash", "-c", call], capture_output=True, text=True, timeout=60)
    assert done.stdout.startswith("NAME")
    assert done.stderr == ""


def test_word_by_word_translations_come_from_dictionaries(mtmetrics, data, tmp_path):
    words = write(tmp_path / "de-en.tsv", "haus\thouse\nist\tis\nhund\tdog\n")
    argv = ("evaluate", "--recipe", "zhao2020-table3", "--preset", "mini", "--device", "cpu")
    argv += ("--data", data("de-en.jsonl"))
    refused(mtmetrics(*argv), "--recipe zhao2020-table3: pass --text: dictionaries")
    other = write(tmp_path / "fi-en.tsv", "koira\tdog\n")
    refused(mtmetrics(*argv, "--text", other), "no file has de-en in its name")
    report = tmp_path / "r"
    code, out, _ = mtmetrics(*argv, "--text", words, "--format", "json", "--report", report)
    assert code == 0
    rows = {row["title"]: row for row in json.loads(out)["rows"]}
    row = rows["Mover-2 + M-BERT [mini]"]
    assert 0 <= row["measured"]["de-en"] <= 1
    assert row["published"] == {"cs-en": 0.618, "de-en": 0.502, "fi-en": 0.459}
    assert "|lm:none|" in row["signatures"][0]
    assert rows["Cosine + LASER [mini, encoder=mini-encoder]"]["measured"].keys() == {"de-en"}
    assert 0 <= rows["Mover-2 + CLP(M-BERT) [mini]"]["measured"]["de-en"] <= 1
    assert "| Mover-2 + M-BERT [mini] | " in (report / "zhao2020-table3.md").read_text()


def test_rows_with_maps_are_run_with_those_of_the_user(mtmetrics, data, tmp_path):
    texts = [{"source": a, "target": b} for a, b in zip(SOURCES, PREDICTIONS, strict=True)]
    pairs = write_jsonl(tmp_path / "pairs.jsonl", texts)
    fit = ("train", "maps", "--encoder", "mini-encoder", "--layer", "6", "--lp", "de-en")
    kinds = ("--map", "clp", "umd", "--parallel", pairs, "--out", tmp_path / "maps")
    assert mtmetrics(*fit, *kinds, "--device", "cpu")[0] == 0
    argv = ("evaluate", "--recipe", "zhao2020-table1", "--preset", "mini", "--device", "cpu")
    argv += ("--format", "csv", "--data", data("de-en.jsonl"), "--maps", tmp_path / "maps")
    rows = {row[0]: row for row in csv.reader(io.StringIO(mtmetrics(*argv)[1]))}
    maps = f"maps={tmp_path / 'maps'}"
    for title in ("Mover-1 + CLP(M-BERT)", "Mover-2 + UMD(M-BERT)", "Mover-2 + CLP(M-BERT) + LM"):
        assert rows[f"{title} [mini, {maps}]"][1] != ""
    assert rows["Mover-1 + M-BERT [mini]"][1] != ""
    refused(
        mtmetrics("evaluate", "--recipe", "song2021-table3", "--data", data(), "--maps", "m"),
        "--maps m: recipe song2021-table3 has no rows with maps",
    )


def test_targets_without_a_language_model_are_run_without(mtmetrics, data):
    paths = [data("de-en.jsonl"), data("en-ru.jsonl", "en-ru")]
    argv = ("evaluate", "--recipe", "belouadi2023-table4", "--preset", "mini", "--device", "cpu")
    code, out, _ = mtmetrics(*argv, "--format", "csv", "--data", *paths)
    head, *lines = csv.reader(io.StringIO(out))
    rows = {line[0]: dict(zip(head, line, strict=True)) for line in lines}
    assert code == 0
    row = rows["UScore wrd [mini, no language model for en-ru]"]
    assert "" not in (row["de-en"], row["en-ru"])
    assert "without:language_model+translation" in row["signature"]


def test_layers_of_a_row_are_as_deep_in_another_encoder(mtmetrics, data):
    argv = ("evaluate", "--recipe", "song2021-table7", "--preset", "mini", "--device", "cpu")
    code, out, _ = mtmetrics(*argv, "--format", "csv", "--data", data("de-en.jsonl"))
    rows = list(csv.reader(io.StringIO(out)))[1:]
    assert code == 0
    # Layers 9 and 10 of 12 are layers 4 and 5 of 6.
    assert [row[0] for row in rows] == [
        f"{title} [mini, layer={layer}]"
        for title, layer in (
            ("WMD", 4),
            ("BERTScore", 5),
            ("SSS", 5),
            ("SSS + WMD", 4),
            ("SSS + BERTScore", 5),
        )
    ]
    assert all(row[1] for row in rows)


def test_a_training_needs_all_of_its_sets(mtmetrics, tmp_path):
    (tmp_path / "wmt16-da").mkdir()
    argv = ("evaluate", "--recipe", "mathur2019-trains", "--preset", "mini", "--data", tmp_path)
    message = "needs all of wmt16-da, wmt15-da, wmt17-cased; pass --data DIR"
    refused(mtmetrics(*argv, "--report", tmp_path / "r"), message)
    argv = ("evaluate", "--recipe", "mathur2019-trainl", "--preset", "mini", "--data", tmp_path)
    refused(mtmetrics(*argv, "--report", tmp_path / "r"), "pass --text: the single judgements")


def test_sets_are_those_of_the_recipe_whatever_the_order_of_data(mtmetrics, tmp_path, monkeypatch):
    runs = [f"score --metric chrf {{sets[{number}]}}/rows.tsv" for number in (0, 1)]
    recipe = Recipe("f", "Figure", "Someone", pull=["one", "two"], runs=runs)
    monkeypatch.setattr("mtmetrics.cli.recipe_runs.load_recipe", lambda _: recipe)
    for name in recipe.pull:
        rows = tmp_path / f"of-{name}" / name / "rows.tsv"
        write(rows, "reference\ttranslation\na house\ta house\n")
    argv = ("evaluate", "--recipe", "f", "--report", tmp_path / "r", "--data")
    code, out, _ = mtmetrics(*argv, tmp_path / "of-two", tmp_path / "of-one")
    calls = [line for line in out.splitlines() if line.startswith("mtmetrics score")]
    assert code == 0
    assert ["/one/rows.tsv" in calls[0], "/two/rows.tsv" in calls[1]] == [True, True]
