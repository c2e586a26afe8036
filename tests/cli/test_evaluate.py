import json

import pytest

import mtmetrics.scorers.load
import mtmetrics.scorers.pool
from mtmetrics.cli.main import main
from mtmetrics.evaluation.correlation import pearson
from mtmetrics.scorers.load import load_scorer

SOURCES = ["Das Haus ist klein.", "Der Hund schläft.", "Ich sehe zwei rote Autos.", "Wer hat das gesagt?", "Nein."]
PREDICTIONS = ["the house is small.", "the dog sleeps.", "i see red cars.", "who said that?", "the house is red."]
HUMAN = [1.0, 0.7, 0.1, 0.9, -1.5]


@pytest.fixture
def preset(tmp_path, tiny_encoder, tiny_lm):
    folder = tmp_path / "preset"
    folder.mkdir()
    (folder / "preset.toml").write_text(
        f'metric = "xmoverscore"\n[encoder]\nmodel = "{tiny_encoder}"\n[language_models.en]\nmodel = "{tiny_lm}"\nweight = 0.5\n'
    )
    return folder


@pytest.fixture
def data(tmp_path):
    def write(name="set.jsonl", lang_pair="de-en", **changes):
        rows = [
            {"lp": lang_pair, "source": source, "translation": text, "translation_tok": text.upper(), "human": human}
            for source, text, human in zip(SOURCES, PREDICTIONS, HUMAN, strict=True)
        ]
        rows[-1] |= changes
        path = tmp_path / name
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        return str(path)

    return write


@pytest.fixture
def evaluate(preset, capsys):
    def run(*arguments):
        code = main(["evaluate", "--metric", "xmoverscore", "--preset", str(preset), "--device", "cpu", *arguments])
        output = capsys.readouterr()
        return code, output.out, output.err

    return run


def test_prints_what_the_scores_of_the_package_give(evaluate, preset, data):
    code, out, err = evaluate("--data", data(), data("other.jsonl", "fi-en"), "--parts")
    assert (code, err) == (0, "")
    shown = json.loads(out)
    result = load_scorer("xmoverscore", preset=str(preset), lang_pair="de-en").score(SOURCES, PREDICTIONS)
    expected = {name: pearson(values, HUMAN).value for name, values in {"score": result.segments, **result.parts}.items()}
    assert shown["files"][0]["pearson"] == pytest.approx(expected, abs=1e-6)
    assert list(shown["files"][0]["pearson"]) == ["score", "mover", "lm"]
    assert shown["files"][0]["signature"] == result.signature
    assert [file["lp"] for file in shown["files"]] == ["de-en", "fi-en"]
    assert [file["n"] for file in shown["files"]] == [5, 5]
    assert "lp:fi-en" in shown["files"][1]["signature"]
    assert shown["mean"]["pearson"]["score"] == pytest.approx(expected["score"], abs=1e-6)


def test_the_same_call_prints_the_same(evaluate, data):
    path = data()
    assert evaluate("--data", path) == evaluate("--data", path)


def test_models_are_loaded_once_for_all_files(evaluate, data, monkeypatch):
    loaded = []
    for name in ("TokenEncoder", "LanguageModel"):
        real = getattr(mtmetrics.scorers.pool, name)
        monkeypatch.setattr(mtmetrics.scorers.pool, name, lambda *a, real=real, **k: loaded.append(real.__name__) or real(*a, **k))
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


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"human": "good"}, "line 5, field 'human': a finite number is needed, got 'good'"),
        ({"human": float("nan")}, "line 5, field 'human': a finite number is needed, got nan"),
        ({"source": 3}, "line 5, field 'source': a string is needed, got 3"),
        ({"lp": "fi-en"}, "line 5, field 'lp': 'fi-en', but the lines before have 'de-en'"),
    ],
)
def test_a_bad_row_in_the_last_file_stops_before_anything_is_scored(evaluate, data, monkeypatch, changes, message):
    monkeypatch.setattr(mtmetrics.scorers.load, "load_scorer", lambda *_, **__: pytest.fail("scoring began"))
    code, out, err = evaluate("--data", data(), data("bad.jsonl", **changes))
    assert (code, out) == (2, "")
    assert message in err
    assert "bad.jsonl" in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--field", "nothing"], "no field 'nothing'"),
        (["--metric", "bleurt"], "metric 'bleurt'"),
        (["--preset", "nothing"], "unknown preset 'nothing'"),
        (["--layer", "99"], "layer 99"),
        (["--batch-tokens", "0"], "batch_tokens 0"),
        (["--map", "xyz"], "map 'xyz'"),
    ],
)
def test_bad_options_end_in_one_line(evaluate, data, arguments, message):
    code, out, err = evaluate("--data", data(), *arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


def test_a_missing_file(evaluate, tmp_path):
    code, out, err = evaluate("--data", str(tmp_path / "none.jsonl"))
    assert (code, out) == (2, "")
    assert "none.jsonl: no such file" in err


@pytest.mark.parametrize("arguments", [[], ["--data"], ["--data", "x", "--format", "html"]])
def test_bad_usage(arguments, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["evaluate", *arguments])
    assert stopped.value.code == 2
    assert capsys.readouterr().out == ""
