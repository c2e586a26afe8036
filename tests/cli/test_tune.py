"""``mtmetrics evaluate --tune`` in process: what it finds, what it gains, the preset that it writes, and what
is refused."""

import functools
import itertools
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from helpers import refused, write_jsonl

from mtmetrics.scorers.registry import load_scorer

NOUNS = ["Haus", "Hund", "Baum", "Auto", "Buch", "Mann", "Wald", "Tisch"]
VERBS = ["ist klein.", "schläft nicht!", "steht da.", "ist rot.", "fährt heute."]
ENDS = ["is small.", "sleeps not!", "stands there.", "is red, red, red.", "goes today."]


@pytest.fixture
def rows() -> list[dict[str, str]]:
    texts = itertools.product(NOUNS, range(len(VERBS)), (0, 2))
    return [
        {
            "lp": "de-en",
            "source": f"{noun} {VERBS[verb]}",
            "translation": f"the {noun[:3]} {ENDS[verb - shift]}",
        }
        for noun, verb, shift in texts
    ]


@pytest.fixture
def judged(rows, tiny_preset, tmp_path):
    """Writes judgements that are the scores with some options, and noise that is no one's."""

    def made(count: int = 80, noise: float = 0.0, **options) -> str:
        scorer = load_scorer(
            "xmoverscore", str(tiny_preset), lang_pair="de-en", map="none", **options
        )
        sources, translations = ([row[name] for row in rows] for name in ("source", "translation"))
        scores = scorer.score(translations, sources=sources).segments
        scores = scores + noise * np.random.default_rng(1).normal(size=len(scores))
        made = ({**row, "human": float(score)} for row, score in zip(rows, scores, strict=True))
        return str(write_jsonl(tmp_path / "judged.jsonl", itertools.islice(made, count)))

    return made


@pytest.fixture
def tune(mtmetrics, tiny_preset, tmp_path):
    metric = ("--metric", f"xmoverscore:{tiny_preset}:map=none")
    return functools.partial(
        mtmetrics, "evaluate", *metric, "--device", "cpu", "--tune", tmp_path / "tuned"
    )


def test_finds_what_people_went_by_and_writes_it_as_a_preset(
    tune, judged, rows, tiny_preset, tmp_path
) -> None:
    data = judged(layer=1, lm_weight=0.3)
    code, out, err = tune("--data", data, "--format", "json")
    assert code == 0
    found = json.loads(out)
    assert found["after"] > 0.999 > found["before"]
    assert {step["option"]: step["chosen"] for step in found["steps"]}["lm_weight"] == 0.3
    assert found["gain"]["low"] > 0
    assert not err
    assert json.loads((tmp_path / "tuned" / "tuning.json").read_text())["judgements"] == 80
    sources, translations = ([row[name] for row in rows] for name in ("source", "translation"))
    mine = load_scorer("xmoverscore", str(tmp_path / "tuned"), lang_pair="de-en")
    same = load_scorer(
        "xmoverscore", str(tiny_preset), lang_pair="de-en", map="none", layer=1, lm_weight=0.3
    )
    expected = same.score(translations, sources=sources).segments
    assert mine.score(translations, sources=sources).segments == pytest.approx(expected)
    assert found["signatures"] == [mine.signature]


def test_what_is_only_noise_is_no_gain(tune, judged) -> None:
    code, out, err = tune("--data", judged(noise=3.0), "--format", "markdown")
    assert code == 0
    assert "80 judgements, 5-fold cross-validation: pearson " in out
    assert "mtmetrics: warning: the gain could be chance: its interval holds 0" in err


def test_only_what_is_asked_for_is_tried(tune, judged, tmp_path) -> None:
    data = judged(layer=2)
    code, out, _ = tune(
        "--data", data, "--try", "layer=2,3", "--coefficient", "spearman", "--format", "json"
    )
    assert code == 0
    found = json.loads(out)
    [step] = found["steps"]
    assert [tried["value"] for tried in step["tried"]] == [None, 2, 3]
    assert (step["chosen"], step["tried"][1]["spearman"]) == (2, pytest.approx(1.0))
    refused(tune("--data", data), "tuned: exists already; pass --overwrite or another name")
    assert tune("--data", data, "--try", "layer=3", "--overwrite")[0] == 0


@pytest.fixture
def deeper_encoder(tiny_encoder, tmp_path) -> Path:
    """An encoder of five layers, of which the last says the same of all words."""
    import torch
    from transformers import BertConfig, BertModel

    folder = tmp_path / "deeper"
    shutil.copytree(tiny_encoder, folder)
    config = BertConfig.from_pretrained(tiny_encoder)
    config.num_hidden_layers = 5
    torch.manual_seed(7)
    network = BertModel(config, add_pooling_layer=False)
    network.encoder.layer[-1].output.LayerNorm.weight.data.zero_()
    network.encoder.layer[-1].output.LayerNorm.bias.data.fill_(1.0)
    network.save_pretrained(folder)
    return folder


@pytest.fixture
def tune_words(mtmetrics, tiny_preset, tmp_path):
    """Calls `tune` without the language model, which sees nothing of encoders."""
    metric = ("--metric", f"xmoverscore:{tiny_preset}:map=none,lm=none")
    return functools.partial(
        mtmetrics, "evaluate", *metric, "--folds", "2", "--tune", tmp_path / "tuned", "--overwrite"
    )


@pytest.mark.parametrize("layers", ["all", "2,4", "4"])
@pytest.mark.parametrize("encoder_first", [True, False])
def test_encoders_are_compared_at_every_layer_that_is_asked_for(
    tune_words, judged, deeper_encoder, tiny_encoder, layers, encoder_first
) -> None:
    data = judged(encoder=str(deeper_encoder), layer=4, lm="none")
    tried = ["--try", f"encoder={tiny_encoder},{deeper_encoder}", "--try", f"layer={layers}"]
    tried = tried if encoder_first else [*tried[2:], *tried[:2]]
    code, out, err = tune_words("--data", data, *tried, "--format", "json")
    assert code == 0, err
    found = json.loads(out)
    chosen = {step["option"]: step["chosen"] for step in found["steps"]}
    assert chosen == {"encoder": str(deeper_encoder), "layer": 4}
    assert found["after"] > 0.999
    [of_encoders, of_layers] = found["steps"]
    best = {row["value"]: (row["layer"], row["pearson"]) for row in of_encoders["tried"]}
    assert best[str(deeper_encoder)] == (4, pytest.approx(1.0))
    expected = {"all": [None, 1, 2, 3, 4, 5], "2,4": [None, 2, 4], "4": [None, 4]}
    assert [row["value"] for row in of_layers["tried"]] == expected[layers]
    # The bundled one has three layers.
    assert ("encoder=" in err) == (layers != "all")
    assert f"encoder={deeper_encoder}" not in err
    table = tune_words("--data", data, *tried, "--format", "markdown")[1]
    assert f"{deeper_encoder}, layer 4" in table


def test_encoders_alone_are_compared_at_their_own_layer(
    tune_words, judged, deeper_encoder, tiny_encoder
) -> None:
    data = judged(encoder=str(deeper_encoder), layer=4, lm="none")
    code, out, _ = tune_words(
        "--data", data, "--try", f"encoder={tiny_encoder},{deeper_encoder}", "--format", "json"
    )
    [step] = json.loads(out)["steps"]
    assert (code, step["chosen"] == str(deeper_encoder)) == (0, False)
    assert all("layer" not in row for row in step["tried"])


def test_a_layer_that_another_encoder_lacks_does_not_rule_it_out(
    mtmetrics, judged, deeper_encoder, tiny_encoder, tiny_preset, tmp_path
) -> None:
    data = judged(layer=1)
    metric = f"xmoverscore:{tiny_preset}:map=none,encoder={deeper_encoder},layer=4"
    tried = ("--try", f"encoder={tiny_encoder}", "--try", "layer=all")
    call = (
        "--metric",
        metric,
        "--data",
        data,
        *tried,
        "--folds",
        "2",
        "--format",
        "json",
        "--tune",
        tmp_path / "tuned",
    )
    code, out, err = mtmetrics("evaluate", *call)
    assert (code, err) == (0, "")
    chosen = {step["option"]: step["chosen"] for step in json.loads(out)["steps"]}
    assert chosen == {"encoder": str(tiny_encoder), "layer": 1}


def test_values_that_do_not_go_together_are_left_out(tune, judged) -> None:
    code, out, err = tune(
        "--data", judged(), "--try", "pieces=all", "--try", "encoder=none", "--format", "json"
    )
    [_, step] = json.loads(out)["steps"]
    assert (code, step["chosen"]) == (0, None)
    assert "mtmetrics: warning: cannot be used: encoder=none: " in err


def test_judgements_that_are_all_equal_are_refused(tune, judged) -> None:
    path = judged()
    rows = [
        json.loads(line) | {"human": 1.0}
        for line in Path(path).read_text(encoding="utf-8").splitlines()
    ]
    message = "judged.jsonl: no agreement to tune by: the human judgements are constant"
    refused(tune("--data", str(write_jsonl(Path(path), rows))), message)


PLUGIN = """
import dataclasses

import mtmetrics


class Lengths(mtmetrics.PluginMetric):
    metric = "lengths"

    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Settings(mtmetrics.Settings):
        unit: str = mtmetrics.option("words", "what is counted", choices=("characters", "words"), signed="unit")

    def segment_scores(self, predictions, sources):
        return [float(len(text if self.settings.unit == "characters" else text.split())) for text in predictions]
"""


def test_a_plugin_is_tuned_without_a_preset(no_plugins, mtmetrics, rows) -> None:
    Path("lengths.py").write_text(PLUGIN)
    judged = [row | {"human": len(row["translation"])} for row in rows]
    write_jsonl(Path("judged.jsonl"), judged)
    call = ("--plugin", "lengths.py", "--metric", "lengths", "--try", "unit=words,characters")
    code, _, err = mtmetrics("evaluate", *call, "--data", "judged.jsonl", "--tune", "tuned")
    assert (code, err) == (0, "")
    write_jsonl(Path("rows.jsonl"), rows[:2])
    code, out, err = mtmetrics(
        "score", "--plugin", "lengths.py", "--metric", "lengths:tuned", "rows.jsonl"
    )
    assert (code, err, json.loads(out)["scores"]) == (0, "", [row["human"] for row in judged[:2]])


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--try", "layer"], "--try layer: OPTION=VALUE,VALUE is needed"),
        (
            ["--try", "layer=1", "--try", "layer=2"],
            "--try layer=2: OPTION=VALUE,VALUE is needed, once for each option",
        ),
        (
            ["--try", "lm-weight=0.1", "--try", "lm_weight=0.2"],
            "--try lm_weight=0.2: OPTION=VALUE,VALUE is needed, once for each option",
        ),
        (["--try", "layer=one"], "'layer=one' cannot be used; a whole number is needed"),
        (["--try", "layers=1"], "xmoverscore has no option 'layers'"),
        (["--folds", "1"], "folds 1: must be from 2 to the number of judged sources, 40"),
        (["--tune", "no/where/tuned"], "there is no folder no/where"),
        (["--tune", __file__, "--overwrite"], "test_tune.py: is a file; a folder is needed"),
        (["--metric", "chrf"], "one metric is tuned at a time"),
    ],
)
def test_wrong_use_is_one_line_and_leaves_nothing(tune, judged, argv, message, tmp_path) -> None:
    refused(tune("--data", judged(), *argv), message)
    assert not (tmp_path / "tuned").exists()


def test_a_tuned_preset_is_not_tuned_again(tune, mtmetrics, judged, tmp_path) -> None:
    data = judged()
    assert tune("--data", data, "--try", "ngram=1,2")[0] == 0
    again = ("--metric", f"xmoverscore:{tmp_path / 'tuned'}", "--tune", tmp_path / "again")
    refused(mtmetrics("evaluate", *again, "--data", data), "tuned: has options, so no preset can")
    assert not (tmp_path / "again").exists()


def test_too_few_judgements_are_refused(tune, judged, mtmetrics, tmp_path) -> None:
    refused(tune("--data", judged(49)), "49 judged segments; at least 50 are needed")
    data, out = judged(), tmp_path / "out"
    random = ("--metric", "random", "--try", "seed=1,2")
    refused(
        mtmetrics("evaluate", *random, "--data", data, "--tune", out),
        "--metric random: takes no presets",
    )
    refused(
        mtmetrics("evaluate", "--metric", "esim", "--data", data, "--tune", out),
        "esim: has no values that are tried by default",
    )
