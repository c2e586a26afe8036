"""Scorers that travel to other processes as the names that they were loaded by."""

import concurrent.futures
import multiprocessing
import pickle
import sys
from pathlib import Path

import pytest
from helpers import note_loads

import mtmetrics
from mtmetrics.errors import MTMetricsError
from mtmetrics.models.language_model import LanguageModel
from mtmetrics.models.token_encoder import TokenEncoder
from mtmetrics.scorers import reloading
from mtmetrics.scorers.base import Scorer
from mtmetrics.scorers.baselines import PredictionLength
from mtmetrics.scorers.bertr import BERTR
from mtmetrics.scorers.plugins import load_plugin
from mtmetrics.scorers.registry import METRICS
from mtmetrics.scorers.xmoverscore import XMoverScore

OTHERS = ["das haus ist klein .", "ich sehe die katze ."]
PREDICTIONS = ["the house is small .", "a tree"]
PLUGIN = """
import mtmetrics


class Lengths(mtmetrics.PluginMetric):
    metric = "lengths"

    def segment_scores(self, predictions, sources):
        return [float(len(text)) for text in predictions]
"""


@pytest.fixture(autouse=True)
def _a_new_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reloading, "_POOLS", {})


def scored_like(scorer: Scorer, other: Scorer) -> bool:
    columns = {"sources": OTHERS, "references": OTHERS}
    results = [one.score(PREDICTIONS, **columns) for one in (scorer, other)]
    return results[0].as_dict() == results[1].as_dict()


def test_a_pickle_holds_names_and_no_models(
    tiny_preset: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scorer = mtmetrics.load(
        "xmoverscore", str(tiny_preset), lang_pair="de-en", ngram=2, batch_tokens=64
    )
    stored = pickle.dumps(scorer)
    assert len(stored) < 2000
    loads = note_loads(monkeypatch)
    copies = [pickle.loads(stored), pickle.loads(stored)]
    assert len(loads) == 2  # an encoder and a language model, once
    assert scored_like(scorer, copies[1])
    assert copies[1].encoder is copies[0].encoder is not scorer.encoder
    made = XMoverScore.load(str(tiny_preset), lang_pair="de-en", layer=1, map="none")
    assert scored_like(made, pickle.loads(pickle.dumps(made)))


@pytest.mark.parametrize(
    ("metric", "options"),
    [
        ("sentsim", {"against": "source"}),
        ("sentsim", {"setting": "mt-ref", "normalize": "batch"}),
        ("distilscore", {"against": "source"}),
        ("uscore", {"weights": "+"}),
        ("bertr", {"layer": 1}),
        ("esim", {"against": "source"}),
        ("fluency", {}),
        ("chrf", {}),
        ("sentbleu", {"effective_order": False}),
        ("random", {"seed": 7}),
    ],
)
def test_all_kinds_of_metrics(metric: str, options: dict[str, object]) -> None:
    preset = None if metric in ("chrf", "sentbleu", "random") else "mini"
    scorer = mtmetrics.load(metric, preset, lang_pair="de-en", **options)
    assert scored_like(scorer, pickle.loads(pickle.dumps(scorer)))


def test_what_was_set_afterwards_travels_too() -> None:
    scorer = mtmetrics.load("chrf")
    scorer.floor_degenerate = True
    looping = "ha ha ha ha ha ha ha ha ha ha"
    copy = pickle.loads(pickle.dumps(scorer))
    assert (
        copy.score([looping], references=["a house"]).signature
        == scorer.score([looping], references=["a house"]).signature
    )
    assert copy.floor_degenerate


def test_in_another_process() -> None:
    scorer = mtmetrics.load("bertr", "mini", lang_pair="de-en")
    spawn = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=spawn) as pool:
        result = pool.submit(scorer.score, PREDICTIONS, references=OTHERS).result()
    assert result.as_dict() == scorer.score(PREDICTIONS, references=OTHERS).as_dict()


@pytest.mark.usefixtures("no_plugins")
def test_a_plugin_is_found_by_its_file(tmp_path: Path) -> None:
    (tmp_path / "lengths.py").write_text(PLUGIN)
    load_plugin(tmp_path / "lengths.py")
    stored = pickle.dumps(mtmetrics.load("lengths"))
    METRICS.pop("lengths")
    sys.modules.pop("mtmetrics_plugin_lengths")
    assert pickle.loads(stored).score(["abc"], sources=["a"]).segments.tolist() == [3.0]


@pytest.mark.parametrize("kind", ["scorer", "encoder", "sentences", "language model"])
def test_loaded_models_are_refused(tiny_encoder: Path, tiny_lm: Path, kind: str) -> None:
    encoder = TokenEncoder(tiny_encoder)
    objects = {"scorer": BERTR(encoder), "encoder": encoder, "sentences": encoder.means()}
    refused = objects.get(kind) or LanguageModel(tiny_lm)
    with pytest.raises(MTMetricsError, match="load the metric in the worker") as raised:
        pickle.dumps(refused)
    assert "\n" not in str(raised.value)


def test_a_scorer_of_plain_objects_travels_with_them() -> None:
    scorer = PredictionLength(lang_pair="de-en")
    assert scored_like(scorer, pickle.loads(pickle.dumps(scorer)))
