"""``mtmetrics tune`` in process: what it finds, what it gains, the preset that it writes, and what is refused."""

import functools
import itertools
import json
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
        {"lp": "de-en", "source": f"{noun} {VERBS[verb]}", "translation": f"the {noun[:3]} {ENDS[verb - shift]}"}
        for noun, verb, shift in texts
    ]


@pytest.fixture
def judged(rows, tiny_preset, tmp_path):
    """Writes judgements that are the scores with some options, and noise that is no one's."""

    def made(count: int = 80, noise: float = 0.0, **options) -> str:
        scorer = load_scorer("xmoverscore", str(tiny_preset), lang_pair="de-en", map="none", **options)
        scores = scorer.score(*([row[name] for row in rows] for name in ("source", "translation"))).segments
        scores = scores + noise * np.random.default_rng(1).normal(size=len(scores))
        made = ({**row, "human": float(score)} for row, score in zip(rows, scores, strict=True))
        return str(write_jsonl(tmp_path / "judged.jsonl", itertools.islice(made, count)))

    return made


@pytest.fixture
def tune(mtmetrics, tiny_preset, tmp_path):
    metric = ("--metric", f"xmoverscore:{tiny_preset}:map=none")
    return functools.partial(mtmetrics, "tune", *metric, "--device", "cpu", "--out", tmp_path / "tuned")


def test_finds_what_people_went_by_and_writes_it_as_a_preset(tune, judged, rows, tiny_preset, tmp_path) -> None:
    data = judged(layer=1, lm_weight=0.3)
    code, out, err = tune("--data", data, "--format", "json")
    assert code == 0
    found = json.loads(out)
    assert found["after"] > 0.999 > found["before"]
    assert {step["option"]: step["chosen"] for step in found["steps"]}["lm_weight"] == 0.3
    assert found["gain"]["low"] > 0
    assert not err
    assert json.loads((tmp_path / "tuned" / "tuning.json").read_text())["judgements"] == 80
    texts = [[row[name] for row in rows] for name in ("source", "translation")]
    mine = load_scorer("xmoverscore", str(tmp_path / "tuned"), lang_pair="de-en")
    same = load_scorer("xmoverscore", str(tiny_preset), lang_pair="de-en", map="none", layer=1, lm_weight=0.3)
    assert mine.score(*texts).segments == pytest.approx(same.score(*texts).segments)
    assert found["signatures"] == [mine.signature]


def test_what_is_only_noise_is_no_gain(tune, judged) -> None:
    code, out, err = tune("--data", judged(noise=3.0), "--format", "markdown")
    assert code == 0
    assert "80 judgements, 5-fold cross-validation: pearson " in out
    assert "mtmetrics: warning: the gain could be chance: its interval holds 0" in err


def test_only_what_is_asked_for_is_tried(tune, judged, tmp_path) -> None:
    data = judged(layer=2)
    code, out, _ = tune("--data", data, "--try", "layer=2,3", "--coefficient", "spearman", "--format", "json")
    assert code == 0
    found = json.loads(out)
    [step] = found["steps"]
    assert [tried["value"] for tried in step["tried"]] == [None, 2, 3]
    assert (step["chosen"], step["tried"][1]["spearman"]) == (2, pytest.approx(1.0))
    refused(tune("--data", data), "tuned: exists already; pass --overwrite or another name")
    assert tune("--data", data, "--try", "layer=3", "--overwrite")[0] == 0


def test_values_that_do_not_go_together_are_left_out(tune, judged) -> None:
    code, out, err = tune("--data", judged(), "--try", "pieces=all", "--try", "encoder=none", "--format", "json")
    [_, step] = json.loads(out)["steps"]
    assert (code, step["chosen"]) == (0, None)
    assert "mtmetrics: warning: not tried: encoder=none: " in err


def test_judgements_that_are_all_equal_are_refused(tune, judged) -> None:
    path = judged()
    rows = [json.loads(line) | {"human": 1.0} for line in Path(path).read_text(encoding="utf-8").splitlines()]
    message = "judged.jsonl: no agreement to tune by: the human judgements are constant"
    refused(tune("--data", str(write_jsonl(Path(path), rows))), message)


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--try", "layer"], "--try layer: OPTION=VALUE,VALUE is needed"),
        (["--try", "layer=1", "--try", "layer=2"], "--try layer=2: OPTION=VALUE,VALUE is needed, once for each option"),
        (["--try", "layer=one"], "'layer=one' cannot be used; a whole number is needed"),
        (["--try", "layers=1"], "xmoverscore has no option 'layers'"),
        (["--folds", "1"], "folds 1: must be from 2 to the number of judgements, 80"),
        (["--out", "no/where/tuned"], "there is no folder no/where"),
        (["--out", __file__, "--overwrite"], "test_tune.py: is a file; a folder is needed"),
        (["--metric", "chrf"], "one metric is tuned at a time"),
    ],
)
def test_wrong_use_is_one_line_and_leaves_nothing(tune, judged, argv, message, tmp_path) -> None:
    refused(tune("--data", judged(), *argv), message)
    assert not (tmp_path / "tuned").exists()


def test_too_few_judgements_are_refused(tune, judged, mtmetrics, tmp_path) -> None:
    refused(tune("--data", judged(49)), "49 judged segments; at least 50 are needed")
    data, out = judged(), tmp_path / "out"
    refused(mtmetrics("tune", "--metric", "esim", "--data", data, "--out", out), "esim: no options are tuned by")
