"""Metrics inside ``Seq2SeqTrainer``."""

import evaluate
import numpy as np
import pytest
from transformers import AutoTokenizer, EvalPrediction

import mtmetrics
from mtmetrics.errors import InputError
from mtmetrics.scorers.registry import load_scorer
from mtmetrics.scorers.xmoverscore import XMoverScore

PAIRS = [
    ("das haus ist klein .", "the house is small ."),
    ("der hund schläft nicht .", "the dog sleeps not ."),
    ("ich sehe die katze .", "i see the cat ."),
]
SOURCES, REFERENCES = map(list, zip(*PAIRS, strict=True))


@pytest.fixture(scope="module")
def tokenizer(tiny_encoder):
    return AutoTokenizer.from_pretrained(tiny_encoder)


@pytest.fixture(scope="module")
def scorer(tiny_preset):
    return XMoverScore.load(str(tiny_preset), lang_pair="de-en")


@pytest.fixture
def load(evaluate_cache):
    return lambda name, *arguments, **options: evaluate.load(
        mtmetrics.metric_path(name), *arguments, **options
    )


@pytest.fixture
def evaluated(tokenizer):
    """Predictions of a model that has generated the references, in another order; all are padded by -100, as
    the trainer does."""

    def tokens(texts):
        rows = [tokenizer(text)["input_ids"] for text in texts]
        return np.array([row + [-100] * (9 - len(row)) for row in rows])

    return EvalPrediction(tokens(REFERENCES[::-1]), tokens(REFERENCES), tokens(SOURCES))


@pytest.fixture
def trainer(tokenizer, tmp_path):
    """Makes a trainer of a tiny T5."""
    import datasets
    import torch
    from transformers import (
        DataCollatorForSeq2Seq,
        Seq2SeqTrainer,
        Seq2SeqTrainingArguments,
        T5Config,
        T5ForConditionalGeneration,
    )

    torch.manual_seed(0)
    pad, end = tokenizer.pad_token_id, tokenizer.sep_token_id
    tokens = {
        "vocab_size": len(tokenizer),
        "decoder_start_token_id": pad,
        "pad_token_id": pad,
        "eos_token_id": end,
    }
    model = T5ForConditionalGeneration(
        T5Config(d_model=16, d_kv=8, d_ff=32, num_layers=1, num_heads=2, **tokens)
    )
    data = datasets.Dataset.from_list(
        [tokenizer(source, text_target=reference) for source, reference in PAIRS]
    )

    def made(compute_metrics, **arguments):
        arguments |= {
            "eval_strategy": "epoch",
            "save_strategy": "no",
            "report_to": [],
            "disable_tqdm": True,
        }
        arguments |= {
            "per_device_train_batch_size": 2,
            "per_device_eval_batch_size": 2,
            "num_train_epochs": 2,
        }
        folder = str(tmp_path / "run")
        settings = Seq2SeqTrainingArguments(
            folder, use_cpu=True, generation_max_length=8, **arguments
        )
        sets = {"train_dataset": data, "eval_dataset": data}
        collator = DataCollatorForSeq2Seq(tokenizer, model=model)
        return Seq2SeqTrainer(model, settings, collator, compute_metrics=compute_metrics, **sets)

    return made


def test_the_metric_is_logged_every_epoch(trainer, tokenizer, load, scorer, tiny_preset):
    metric = load("xmoverscore", preset=tiny_preset)
    compute_metrics = mtmetrics.make_compute_metrics(metric, tokenizer, lang_pair="de-en")
    run = trainer(compute_metrics, predict_with_generate=True, include_for_metrics=["inputs"])
    run.train()
    logged = [entry for entry in run.state.log_history if "eval_mean_score" in entry]
    assert [entry["epoch"] for entry in logged] == [1, 2]
    generated = run.predict(run.eval_dataset).predictions
    texts = tokenizer.batch_decode(
        np.where(generated < 0, tokenizer.pad_token_id, generated), skip_special_tokens=True
    )
    expected = scorer.score(texts, sources=SOURCES)
    assert logged[-1]["eval_mean_score"] == pytest.approx(expected.system)
    assert logged[-1]["eval_mover_part"] == pytest.approx(expected.parts["mover"].mean())
    assert logged[-1]["eval_lm_part"] == pytest.approx(expected.parts["lm"].mean())


def test_logits_are_refused(tokenizer, scorer):
    logits = EvalPrediction(np.zeros((3, 9, 5), dtype=np.float32), np.zeros((3, 9), dtype=np.int64))
    with pytest.raises(InputError, match="set predict_with_generate=True"):
        mtmetrics.make_compute_metrics(scorer, tokenizer, SOURCES)(logits)


def test_sources_as_inputs_or_as_texts(evaluated, tokenizer, scorer):
    scored = scorer.score(REFERENCES[::-1], sources=SOURCES)
    means = {f"{name}_part": values.mean() for name, values in scored.parts.items()}
    for sources in (None, SOURCES, np.array(SOURCES)):
        result = mtmetrics.make_compute_metrics(scorer, tokenizer, sources)(evaluated)
        assert result == pytest.approx({"mean_score": scored.system, **means})
        assert {type(value) for value in result.values()} == {float}
    with pytest.raises(InputError, match="predictions has 3 segments but sources has 2"):
        mtmetrics.make_compute_metrics(scorer, tokenizer, SOURCES[:2])(evaluated)
    without = EvalPrediction(evaluated.predictions, evaluated.label_ids)
    with pytest.raises(InputError, match=r'pass sources=, or include_for_metrics=\["inputs"\]'):
        mtmetrics.make_compute_metrics(scorer, tokenizer)(without)


def test_what_a_module_compares_with(evaluated, tokenizer, load, tiny_encoder):
    options = {"encoder": str(tiny_encoder), "layer": 2, "map": "none"}
    metric = load("bertr", "mini", **options)
    for given, against in (
        ({}, "reference"),
        ({"against": "source"}, "source"),
        ({"sources": SOURCES}, "source"),
    ):
        scorer = load_scorer("bertr", preset="mini", lang_pair="de-en", against=against, **options)
        expected = scorer.score(REFERENCES[::-1], sources=SOURCES, references=REFERENCES)
        result = mtmetrics.make_compute_metrics(metric, tokenizer, lang_pair="de-en", **given)(
            evaluated
        )
        assert result == pytest.approx({"mean_score": expected.system})
    assert load("bertr", "mini", against="source", **options).scorer_options["against"] == "source"


def test_wrong_options_are_refused_before_the_training(tokenizer, load, scorer, tiny_preset):
    metric = load("xmoverscore", preset=tiny_preset)
    sentsim = load("sentsim", "mini")
    make = mtmetrics.make_compute_metrics
    for wrong, message in [
        (lambda: make(metric, tokenizer, lang_pair="deen"), "language pair 'deen'"),
        (lambda: make(metric, tokenizer), "language pair None"),
        (
            lambda: make(metric, tokenizer, lang_pairs="de-en"),
            "xmoverscore has no option 'lang_pairs'",
        ),
        (
            lambda: make(metric, tokenizer, ["a", None], lang_pair="de-en"),
            r"sources\[1\]: a string is needed",
        ),
        (
            lambda: make(scorer, tokenizer, lang_pair="de-en"),
            "lang_pair: options are for evaluate modules",
        ),
        (
            lambda: make(sentsim, tokenizer, lang_pair="de-en"),
            "pass against='source' or against='reference'",
        ),
        (
            lambda: make(sentsim, tokenizer, SOURCES, lang_pair="de-en", setting="mt-ref"),
            "sources: .*does not read them",
        ),
        (lambda: make(evaluate.combine([metric]), tokenizer), "got CombinedEvaluations"),
    ]:
        with pytest.raises(InputError, match=message):
            wrong()


def test_modules_of_others(evaluated, tokenizer):
    class Exact:
        def __init__(self):
            self.features = {"predictions": "string", "references": "string"}

        def compute(self, predictions, references, scale):
            same = [
                prediction == reference
                for prediction, reference in zip(predictions, references, strict=True)
            ]
            return {"exact": np.float32(scale * sum(same)), "counts": same, "signature": "exact"}

    assert mtmetrics.make_compute_metrics(Exact(), tokenizer, scale=2)(evaluated) == {"exact": 2.0}


def test_several_metrics_are_logged_in_one_training(trainer, tokenizer, load, scorer, tiny_preset):
    metrics = {"mover": load("xmoverscore", preset=tiny_preset), "overlap": load_scorer("chrf")}
    compute_metrics = mtmetrics.make_compute_metrics(metrics, tokenizer, SOURCES, lang_pair="de-en")
    run = trainer(
        compute_metrics, predict_with_generate=True, metric_for_best_model="overlap_mean_score"
    )
    run.train()
    logged = [entry for entry in run.state.log_history if "eval_loss" in entry][-1]
    generated = run.predict(run.eval_dataset).predictions
    texts = tokenizer.batch_decode(
        np.where(generated < 0, tokenizer.pad_token_id, generated), skip_special_tokens=True
    )
    expected = scorer.score(texts, sources=SOURCES)
    assert logged["eval_mover_mean_score"] == pytest.approx(expected.system)
    assert logged["eval_mover_lm_part"] == pytest.approx(expected.parts["lm"].mean())
    assert (
        logged["eval_overlap_mean_score"]
        == load_scorer("chrf").score(texts, references=REFERENCES).system
    )
    assert "eval_mean_score" not in logged


def test_several_metrics_have_their_names_before_their_numbers(
    evaluated, tokenizer, load, scorer, tiny_encoder
):
    options = {"encoder": str(tiny_encoder), "layer": 2, "map": "none"}
    bertr = load("bertr", "mini", **options)
    listed = [scorer, bertr, load_scorer("chrf")]
    make = mtmetrics.make_compute_metrics
    result = make(listed, tokenizer, SOURCES, lang_pair="de-en")(evaluated)
    alone = {
        "xmoverscore": make(scorer, tokenizer, SOURCES),
        "bertr": make(bertr, tokenizer, lang_pair="de-en"),  # against references, as is usual
        "chrf": make(load_scorer("chrf"), tokenizer),
    }
    expected = {
        f"{name}_{key}": value
        for name, one in alone.items()
        for key, value in one(evaluated).items()
    }
    assert result == pytest.approx(expected)
    assert {type(value) for value in result.values()} == {float}
    # Functions that are made one by one can be joined, too.
    apart = [
        make([one], tokenizer, *([SOURCES] if one is scorer else [])) for one in (scorer, listed[2])
    ]
    apart.append(make({"bertr": bertr}, tokenizer, lang_pair="de-en"))
    assert {key: value for one in apart for key, value in one(evaluated).items()} == pytest.approx(
        expected
    )


def test_two_of_the_same_metric_need_names(evaluated, tokenizer, scorer):
    make = mtmetrics.make_compute_metrics
    other = load_scorer("random", seed=1)
    with pytest.raises(InputError, match="two are called 'random'; pass a dictionary"):
        make([other, load_scorer("random")], tokenizer)
    result = make({"one": other, "two": load_scorer("random")}, tokenizer, SOURCES)(evaluated)
    assert list(result) == ["one_mean_score", "two_mean_score"]
    assert result["one_mean_score"] != result["two_mean_score"]
    for wrong, message in [
        (lambda: make([], tokenizer), "metric: empty"),
        (lambda: make({}, tokenizer), "metric: empty"),
        (
            lambda: make([scorer, other], tokenizer, lang_pair="de-en"),
            "lang_pair: options are for evaluate modules",
        ),
        (lambda: make([scorer, "chrf"], tokenizer), "got str"),
        (lambda: make([load_scorer("chrf")], tokenizer, SOURCES), "sources: .*does not read them"),
    ]:
        with pytest.raises(InputError, match=message):
            wrong()
