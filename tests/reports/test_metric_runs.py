"""Several metrics on the same files: shared encodings, columns, systems, problems."""

import numpy as np
import pytest

import mtmetrics.models.pool
from mtmetrics.errors import InputError
from mtmetrics.judgements.judged import Judged
from mtmetrics.models.pool import ModelPool
from mtmetrics.reports.metric_runs import Entry, run_metrics, score_together
from mtmetrics.scorers.base import Scorer
from mtmetrics.scorers.results import PartScores
from mtmetrics.scorers.side import Side
from mtmetrics.scorers.spec import MetricSpec

SOURCES = ["Das Haus ist klein.", "Der Hund schläft.", "Ich sehe die Katze.", "Der Hund schläft."]
PREDICTIONS = ["the house is small.", "the dog sleeps.", "i see a cat.", "a dog sleeps."]


def segments(**changes: object) -> Judged:
    fields = {"reference": PREDICTIONS, "given": [1.0, None, 3.0, 4.0]} | changes
    columns = {"source": SOURCES, "translation": PREDICTIONS, "human": [0.0, 1.0, 2.0, 3.0]}
    return Judged.of("f.jsonl", "de-en", columns | fields)


@pytest.fixture
def presets(tmp_path, tiny_encoder, tiny_lm):
    """A preset of XMoverScore and one of BERTR, on the same encoder and layer."""
    encoder = f'[encoder]\nmodel = "{tiny_encoder}"\nlayer = 2\n'
    for metric, rest in {
        "xmoverscore": f'[language_models.en]\nmodel = "{tiny_lm}"\n',
        "bertr": "",
    }.items():
        (tmp_path / metric).mkdir()
        (tmp_path / metric / "preset.toml").write_text(f'metric = "{metric}"\n{encoder}{rest}')
    return {
        metric: MetricSpec(metric, str(tmp_path / metric)) for metric in ("xmoverscore", "bertr")
    }


def test_another_metric_is_run_where_one_cannot_be_loaded(presets) -> None:
    mapped = presets["xmoverscore"].having(map="clp")
    plain = presets["xmoverscore"].having(map="none")
    pool = ModelPool(device="cpu")
    instead = {mapped: plain}
    run = run_metrics([mapped, plain], [segments()], pool, lenient=True, instead=instead)
    scored = run.scored(Entry("x", mapped))
    assert scored.scores == run.scored(Entry("x", plain)).scores
    assert "|map:none|" in scored.signatures[0]
    # Where neither can be loaded, the reason is that of the first.
    other = presets["xmoverscore"].having(map="umd")
    run = run_metrics([mapped], [segments()], pool, lenient=True, instead={mapped: other})
    assert run.scored(Entry("x", mapped)).problem.startswith("no clp map")


def test_a_text_is_encoded_once_for_all_metrics(presets, monkeypatch) -> None:
    encoders = []
    real = mtmetrics.models.pool.TokenEncoder
    counted = lambda *a, **k: encoders.append(real(*a, **k)) or encoders[-1]  # noqa: E731
    monkeypatch.setattr(mtmetrics.models.pool, "TokenEncoder", counted)
    source = presets["bertr"].having(against="source")
    metrics = [presets["xmoverscore"], source, presets["xmoverscore"]]
    run = run_metrics(metrics, [segments(), segments()], ModelPool(device="cpu"))
    [encoder] = encoders
    assert encoder.counts.computed == len({*SOURCES, *PREDICTIONS})
    assert encoder.counts.requested > encoder.counts.computed
    assert [len(by_file) for by_file in run.results.values()] == [2, 2]
    alone = (
        presets["bertr"]
        .having(against="source")
        .load(ModelPool(device="cpu"), "de-en")
        .score(PREDICTIONS, sources=SOURCES)
    )
    assert run.scored(Entry("b", source)).scores[0] == pytest.approx(
        alone.segments.tolist(), abs=1e-6
    )


class Recorder(Scorer):
    """Notes who scored how many segments, in order."""

    signature = "recorder|v:0"
    side = Side.SOURCE

    def __init__(self, name: str, calls: list[tuple[str, int]], whole: bool = False) -> None:
        self.name, self.calls, self.whole = name, calls, whole

    def score_batches(self, batches):
        results = super().score_batches(batches)
        yield from list(results) if self.whole else results

    def compute(self, batch):
        self.calls.append((self.name, len(batch)))
        nothing = np.zeros(len(batch), dtype=bool)
        return [
            PartScores(np.arange(float(len(batch))), {}, nothing.copy(), nothing.copy())
            for _ in batch.systems
        ]

    def floor_with_parts(self):
        return 0.0, {}


def test_metrics_take_turns() -> None:
    n = 600
    many = Judged.of(
        "f", "de-en", {"source": ["x"] * n, "translation": ["y"] * n, "human": [0.0] * n}
    )
    calls: list[tuple[str, int]] = []
    results = score_together([Recorder("a", calls), Recorder("b", calls)], many)
    assert calls == [("a", 512), ("b", 512), ("a", 88), ("b", 88)]
    assert [len(system.segments) for [system] in results] == [n, n]
    calls.clear()
    results = score_together([Recorder("whole", calls, whole=True), Recorder("b", calls)], many)
    assert calls[:3] == [("whole", 512), ("whole", 88), ("b", 512)]
    assert [len(system.segments) for [system] in results] == [n, n]
    calls.clear()
    score_together([Recorder("alone", calls)], many)  # has nobody to share with
    assert calls == [("alone", n)]


def test_metrics_that_compare_with_different_columns_score_as_alone() -> None:
    metrics = [MetricSpec("chrf"), MetricSpec("source_length"), MetricSpec("random")]
    files = [segments(reference=[text[::-1] for text in PREDICTIONS])]
    together = run_metrics(metrics, files, ModelPool())
    for metric in metrics:
        entry = Entry("m", metric)
        assert (
            together.scored(entry).scores
            == run_metrics([metric], files, ModelPool()).scored(entry).scores
        )


def test_whole_systems_score_as_the_mean_over_their_segments() -> None:
    outputs = {"good": PREDICTIONS, "short": ["the", "a", "i", "no"]}
    columns = {
        "source": SOURCES * 2,
        "translation": [text for texts in outputs.values() for text in texts],
        "system": [name for name in outputs for _ in SOURCES],
        "human": [1.0] * 4 + [0.0] * 4,
    }
    systems = Judged.of("f", "de-en", columns, "system")
    run = run_metrics([MetricSpec("prediction_length")], [systems], ModelPool())
    [[good, short]] = run.scored(Entry("length", MetricSpec("prediction_length"))).scores
    singly = MetricSpec("prediction_length").load(ModelPool(), "de-en")
    assert [good, short] == [
        pytest.approx(singly.score(texts, sources=SOURCES).system) for texts in outputs.values()
    ]
    with pytest.raises(InputError, match="whole systems have no columns"):
        run.scored(Entry("given", column="given"))


def test_columns_and_parts(presets) -> None:
    run = run_metrics([presets["xmoverscore"]], [segments()], ModelPool(device="cpu"))
    assert run.scored(Entry("given", column="given")).scores == [[1.0, None, 3.0, 4.0]]
    assert run.scored(Entry("given", column="given", falls=True)).scores == [
        [-1.0, None, -3.0, -4.0]
    ]
    entries = run.with_parts(Entry("x", presets["xmoverscore"]))
    assert [entry.title for entry in entries] == ["x", "x mover", "x lm"]
    score, mover, lm = (run.scored(entry).scores[0] for entry in entries)
    assert score == pytest.approx([a + 0.1 * b for a, b in zip(mover, lm, strict=True)])
    with pytest.raises(InputError, match="no part 'wmd'; there are: score, mover, lm"):
        run.scored(Entry("x", presets["xmoverscore"], part="wmd"))


def test_what_cannot_be_run_ends_everything_or_becomes_a_problem() -> None:
    metrics = [MetricSpec("chrf"), MetricSpec("bleurt"), MetricSpec("prediction_length")]
    without = segments(reference=[*PREDICTIONS[:3], None])
    with pytest.raises(
        InputError, match=r"segment 4 has no reference, which the metric compares with \(chrf\)"
    ):
        run_metrics(metrics, [without], ModelPool())
    run = run_metrics(metrics, [without], ModelPool(), lenient=True)
    assert "segment 4 has no reference" in run.scored(Entry("chrF", metrics[0])).problem
    assert "metric 'bleurt'" in run.scored(Entry("BLEURT", metrics[1])).problem
    assert run.scored(Entry("length", metrics[2])).problem is None
    assert run.scored(Entry("else", why_not="not ours")).problem == "not ours"
    assert "no column of numbers 'sentbleu'" in run.scored(Entry("BLEU", column="sentbleu")).problem


def test_unusual_segments_are_noted() -> None:
    run = run_metrics(
        [MetricSpec("chrf")], [segments(reference=["", *PREDICTIONS[1:]])], ModelPool()
    )
    assert run.notes() == ["f.jsonl: chrf: of 4 segments: 1 blank (floor score; segment 1)"]


def test_corpus_bleu_of_detokenised_texts_is_signed() -> None:
    columns = {
        "source": ["das Haus ."],
        "translation": ["the house is small ."],
        "reference": ["the house is small ."],
        "system": ["A"],
        "human": [1.0],
    }
    systems = Judged.of("f", "de-en", columns, level="system")
    signatures = []
    for file in (systems, systems.detokenised()):
        row = run_metrics([], [file], ModelPool()).scored(Entry("BLEU", corpus=True))
        assert row.scores == [[pytest.approx(1)]]
        signatures += row.signatures
    plain, running = signatures
    assert running.replace("|detok:moses|v:", "|v:") == plain
    assert running != plain
