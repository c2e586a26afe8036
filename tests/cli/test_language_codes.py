"""Language pairs in the codes of FLORES, BCP 47 and the shared tasks; names stay as they are
written."""

import json

import pytest
from helpers import HUMAN, PREDICTIONS, SOURCES, write, write_jsonl

CODES = ["deu-eng", "deu_Latn-eng_Latn", "DE-EN", "de_DE-en_US", "de-AT-en-GB"]


def _texts(folder):
    write(folder / "source.txt", "\n".join(SOURCES) + "\n")
    write(folder / "system.txt", "\n".join(PREDICTIONS) + "\n")
    return "-s", folder / "source.txt", "-t", folder / "system.txt"


@pytest.mark.parametrize("pair", CODES)
def test_any_code_chooses_the_same_models(mtmetrics, bundle, tmp_path, pair):
    command = (
        "score",
        "--metric",
        "xmoverscore",
        "--preset",
        "mini",
        *_texts(tmp_path),
        "--format",
        "json",
        "--lp",
    )
    (code, usual, _), (other_code, other, err) = (
        mtmetrics(*command, "de-en"),
        mtmetrics(*command, pair),
    )
    assert (code, other_code) == (0, 0), err
    assert json.loads(other) == json.loads(usual)  # the signature too
    assert "|lp:de-en|" in other


def test_presets_may_name_their_languages_in_any_code(mtmetrics, bundle, tmp_path):
    text = f'languages = ["deu_Latn", "eng"]\n[encoder]\nmodel = "{bundle / "tiny-encoder"}"\n'
    text += f'[language_models.eng_Latn]\nmodel = "{bundle / "tiny-lm"}"\n'
    write(tmp_path / "own" / "preset.toml", text)
    command = (
        "score",
        "--metric",
        "xmoverscore",
        "--preset",
        tmp_path / "own",
        *_texts(tmp_path),
        "--lp",
    )
    for pair in ("de-en", "deu-eng_GB"):
        code, out, err = mtmetrics(*command, pair)
        assert (code, "tiny-lm" in out) == (0, True), err
    code, _, err = mtmetrics(*command, "fra_Latn-en")
    assert (code, "knows the languages deu_Latn eng, not 'fr'" in err) == (2, True)


@pytest.mark.parametrize("pair", ["deu_Latn-eng_Latn", "en-sr_Cyrl_RS", "cs-de_DE", "DE-EN"])
def test_rows_of_judgements_keep_the_name_of_their_pair(mtmetrics, tmp_path, pair):
    rows = [
        {"lp": pair, "source": source, "translation": text, "human": human, "given": human}
        for source, text, human in zip(SOURCES, PREDICTIONS, HUMAN, strict=True)
    ]
    path = write_jsonl(tmp_path / f"{pair}.jsonl", rows)
    code, out, err = mtmetrics(
        "evaluate", "--column", "given", "--metric", "source_length", "--data", path
    )
    assert (code, [column["lp"] for column in json.loads(out)["columns"]]) == (0, [pair]), err


def test_a_pair_is_found_under_another_code(mtmetrics, tmp_path):
    row = {"source": "x", "translation": "y"}
    pairs = ("de-en", "en-pt_BR", "en-pt_PT")
    rows = [row | {"lp": pair, "human": i, "given": i} for pair in pairs for i in range(3)]
    path = write_jsonl(tmp_path / "all.jsonl", rows)
    for wanted, expected in {
        "deu_Latn-eng_Latn": ["de-en"],
        "en-pt_BR": ["en-pt_BR"],
        "eng-por": ["en-pt_BR", "en-pt_PT"],
    }.items():
        code, out, _ = mtmetrics("evaluate", "--column", "given", "--lp", wanted, "--data", path)
        assert (code, [column["lp"] for column in json.loads(out)["columns"]]) == (0, expected)


def test_ambiguous_pairs_are_refused_with_their_readings(mtmetrics, tmp_path):
    code, _, err = mtmetrics(
        "score", "--metric", "source_length", *_texts(tmp_path), "--lp", "fr-ca-es"
    )
    assert (code, "fr and ca-es, or fr-ca and es" in err) == (2, True)


@pytest.mark.parametrize(
    ("pair", "flagged"), [("en-sr_Latn_RS", True), ("en-sr_Cyrl_RS", False), ("en-sr", False)]
)
def test_the_script_of_a_code_is_looked_at(mtmetrics, tmp_path, pair, flagged):
    source = write(tmp_path / "source.txt", "The house is small.\n")
    system = write(tmp_path / "system.txt", "Кућа је мала.\n")
    arguments = ("-s", source, "-t", system, "--degenerate", "keep", "--format", "json")
    code, out, _ = mtmetrics("score", "--metric", "source_length", *arguments, "--lp", pair)
    assert (code, json.loads(out)["report"]["script"]) == (0, int(flagged))
