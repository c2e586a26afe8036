"""Features of `evaluate` around ``compute``, for every metric with the models that its examples
use."""

import concurrent.futures

import datasets
import evaluate
import numpy as np
import pytest

import mtmetrics
from mtmetrics.layout import metric_names
from mtmetrics.scorers.metric import METRICS

TEXTS = {
    "sources": ["Das Haus ist klein.", "Der Hund schläft nicht.", "Ich sehe die Katze."],
    "references": ["The house is small.", "The dog does not sleep.", "I see the cat."],
    "predictions": ["The home is little.", "The dog sleeps not.", "I see a tree."],
}
# `evaluate` has such a script on the Hub only.
SACREBLEU = """
import datasets
import evaluate
import sacrebleu


class Sacrebleu(evaluate.Metric):
    def _info(self):
        text = datasets.Value("string")
        several = datasets.Features({"predictions": text, "references": datasets.List(text)})
        single = datasets.Features({"predictions": text, "references": text})
        return evaluate.MetricInfo(description="BLEU", citation="", inputs_description="", features=[several, single])

    def _compute(self, predictions, references):
        return {"score": sacrebleu.corpus_bleu(predictions, [references]).score}
"""


@pytest.fixture(params=metric_names())
def name(request):
    return request.param


@pytest.fixture
def load(name, preset, evaluate_cache):
    """Loads the module, told which column it compares with where it has no usual one."""
    metric = METRICS[name]
    told = {} if metric.usual or len(metric.sides) == 1 else {"against": "source"}
    return lambda **options: evaluate.load(
        mtmetrics.metric_path(name), preset, lang_pair="de-en", **told, **options
    )


@pytest.fixture
def texts(name):
    """The columns that the metric usually reads."""
    metric = METRICS[name]
    side = metric.usual or metric.sides[0]
    return {column: TEXTS[column] for column in ("predictions", *side.columns)}


def rows(texts, first, last):
    return {name: column[first:last] for name, column in texts.items()}


def assert_same(result, expected):
    assert result["scores"] == pytest.approx(expected["scores"], abs=1e-5)
    assert result["mean_score"] == pytest.approx(expected["mean_score"], abs=1e-5)
    assert (result["signature"], result["report"]) == (expected["signature"], expected["report"])


def test_columns_and_batches(load, texts):
    metric = load()
    expected = metric.compute(**texts)
    assert len(expected["scores"]) == 3
    table = datasets.Dataset.from_dict(texts)
    assert_same(metric.compute(**{name: table[name] for name in texts}), expected)
    assert_same(
        metric.compute(**{name: np.array(column) for name, column in texts.items()}), expected
    )
    metric.add_batch(**rows(texts, 0, 2))
    metric.add(**{name.removesuffix("s"): column[2] for name, column in texts.items()})
    assert_same(metric.compute(), expected)
    metric.add_batch(**rows(texts, 0, 1))
    assert_same(metric.compute(**rows(texts, 1, 3)), expected)


def test_two_processes_share_the_rows(load, texts):
    """Two processes, each played by a thread; the first one has the result."""
    expected = load().compute(**texts)
    modules = [
        load(num_process=2, process_id=process, experiment_id="shared", keep_in_memory=False)
        for process in range(2)
    ]

    def process(number):
        modules[number].add_batch(**rows(texts, *((0, 2), (2, 3))[number]))
        return modules[number].compute()

    with concurrent.futures.ThreadPoolExecutor(2) as threads:
        first, second = threads.map(process, range(2))
    assert second is None
    assert_same(first, expected)


def test_combined_with_sacrebleu(load, texts, tmp_path):
    pytest.importorskip("sacrebleu", reason="needs the extra 'baselines'")
    (tmp_path / "sacrebleu").mkdir()
    (tmp_path / "sacrebleu" / "sacrebleu.py").write_text(SACREBLEU)
    bleu = evaluate.load(str(tmp_path / "sacrebleu"))
    metric = load()
    expected = metric.compute(**texts) | bleu.compute(
        **{name: TEXTS[name] for name in ("predictions", "references")}
    )
    combined = evaluate.combine([metric, bleu])
    for columns in (texts | {"references": TEXTS["references"]}, TEXTS):
        for first, last in ((0, 2), (2, 3)):
            combined.add_batch(**rows(columns, first, last))
        result = combined.compute()
        assert_same(result, expected)
        assert result["score"] == expected["score"]
        assert result.keys() == expected.keys()
