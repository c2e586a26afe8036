"""The base class of the `evaluate` modules, by way of XMoverScore."""

import json
import shutil
import warnings
from pathlib import Path

import datasets
import evaluate
import pytest
from helpers import note_loads, write

import mtmetrics
import mtmetrics.models.pool
import mtmetrics.scorers.registry
from mtmetrics.checks import InputReport
from mtmetrics.cli.main import main
from mtmetrics.errors import ArtifactError, InputError, MTMetricsError
from mtmetrics.integrations.metric_module import MetricModule
from mtmetrics.layout import metric_names
from mtmetrics.scorers.registry import load_scorer
from mtmetrics.statistics.significance import bootstrap_interval

SOURCES = ["Das Haus ist klein.", "Der Hund schläft nicht.", "Ich sehe die Katze."]
PREDICTIONS = ["the house is small.", "the dog sleeps not.", "i see a tree."]
CALL = {"sources": SOURCES, "predictions": PREDICTIONS, "lang_pair": "de-en"}


@pytest.fixture
def load(evaluate_cache, tiny_preset):
    def loaded(*arguments, **options):
        if not arguments and "preset" not in options:
            options["preset"] = tiny_preset
        return evaluate.load(mtmetrics.metric_path("xmoverscore"), *arguments, **options)

    return loaded


@pytest.fixture
def metric(load):
    return load()


def expected(preset, lang_pair="de-en", **options):
    return load_scorer("xmoverscore", preset=str(preset), lang_pair=lang_pair, **options).score(
        PREDICTIONS, sources=SOURCES
    )


def test_numbers_equal_the_scorer(metric, tiny_preset):
    result = metric.compute(**CALL, return_parts=True)
    assert result == expected(tiny_preset).as_dict(parts=True)
    assert type(result["mean_score"]) is float
    assert {type(score) for score in result["scores"]} == {float}
    assert "map:clp#" in result["signature"]


def test_numbers_equal_the_command_line(metric, tiny_preset, tmp_path, capsys):
    rows = tmp_path / "rows.tsv"
    lines = [f"{source}\t{text}\n" for source, text in zip(SOURCES, PREDICTIONS, strict=True)]
    rows.write_text("".join(lines), encoding="utf-8")
    assert (
        main(
            [
                "score",
                "--preset",
                str(tiny_preset),
                "--lp",
                "de-en",
                "--parts",
                "--full-precision",
                str(rows),
            ]
        )
        == 0
    )
    result = metric.compute(**CALL, return_parts=True)
    assert json.loads(capsys.readouterr().out) == result


def test_every_option_reaches_the_scorer(metric, tiny_preset):
    options = {
        "variant": "uscore",
        "layer": 2,
        "ngram": 2,
        "distance": "cosine",
        "map": "none",
        "lm": "none",
    }
    options |= {"drop_rate": 0.3, "workers": 1}
    result = metric.compute(**CALL, **options)
    assert result == expected(tiny_preset, **options).as_dict()
    unlike = metric.compute(**CALL, lm_weight=0.5)
    assert unlike == expected(tiny_preset, lm_weight=0.5).as_dict()


def test_alignments_and_interval(metric, tiny_preset):
    result = metric.compute(**CALL, return_alignments=True, return_ci=True)
    plain = expected(tiny_preset)
    assert result["ci"] == bootstrap_interval(plain.segments)._asdict()
    assert json.loads(json.dumps(result)) == result
    distances = [alignment["total"] for alignment in result["alignments"]]
    assert distances == pytest.approx((1 - plain.parts["mover"]).tolist())
    assert result["alignments"][1]["source"] == [
        "[CLS]",
        "Der",
        "Hund",
        "schläft",
        "nicht",
        "[SEP]",
    ]
    cosine = metric.compute(**CALL, similarity="cosine", map="none")
    assert cosine == expected(tiny_preset, similarity="cosine", map="none").as_dict()
    with pytest.raises(InputError, match="nothing to align"):
        metric.compute(**CALL, similarity="cosine", map="none", return_alignments=True)


def test_keywords_of_load_are_defaults(load, tiny_preset):
    metric = load(preset=tiny_preset, lang_pair="de-en", ngram=2, return_scores=False)
    result = metric.compute(sources=SOURCES, predictions=PREDICTIONS)
    assert result == expected(tiny_preset, ngram=2).as_dict(scores=False)
    assert (
        "|ngram:3|"
        in metric.compute(sources=SOURCES, predictions=PREDICTIONS, ngram=3)["signature"]
    )


def test_keywords_of_the_models(load, tiny_preset):
    metric = load(preset=tiny_preset, device=["cpu", "cpu"], batch_tokens=8)
    result = metric.compute(**CALL)
    assert result["scores"] == pytest.approx(expected(tiny_preset).as_dict()["scores"], abs=1e-5)


def test_texts_come_back_from_the_store_unchanged(metric, monkeypatch):
    """`evaluate` writes the texts to an Arrow file and reads them again."""
    odd = ["tab\t", "line\r\nbreak", "\u2028", "𝔘𝔫𝔦", "  ", ""]
    seen = []
    monkeypatch.setattr(type(metric), "scorer", lambda self, **_: seen)
    monkeypatch.setattr(
        type(metric),
        "_compute",
        lambda self, sources, predictions, lang_pair: seen.extend([sources, predictions]),
    )
    metric.compute(sources=odd, predictions=odd[::-1], lang_pair="de-en")
    assert seen == [odd, odd[::-1]]


def test_models_load_once(load, monkeypatch):
    loaded = note_loads(monkeypatch)
    metric = load()
    assert len(loaded) == 2
    for lang_pair in ("de-en", "fi-en", "de-en"):
        metric.compute(sources=SOURCES, predictions=PREDICTIONS, lang_pair=lang_pair)
    assert len(loaded) == 2


def test_two_metrics_at_the_same_time(load, tiny_preset):
    first, second = load(), load()
    first.add_batch(sources=SOURCES[:2], predictions=PREDICTIONS[:2])
    second.add_batch(sources=SOURCES, predictions=PREDICTIONS)
    first.add(source=SOURCES[2], prediction=PREDICTIONS[2])
    assert second.compute(lang_pair="fi-en") == expected(tiny_preset, "fi-en").as_dict()
    assert first.compute(lang_pair="de-en") == expected(tiny_preset).as_dict()


@pytest.mark.parametrize("keep_in_memory", [False, True])
def test_a_failed_call_keeps_what_was_added(load, tiny_preset, keep_in_memory, evaluate_cache):
    metric = load(preset=tiny_preset, keep_in_memory=keep_in_memory)
    metric.add_batch(sources=SOURCES[:2], predictions=PREDICTIONS[:2])
    with pytest.raises(InputError, match="two ISO 639 codes"):
        metric.compute(sources=["dropped"], predictions=["dropped"], lang_pair="??")
    with pytest.raises(ArtifactError, match="no clp map for language pair cs-en"):
        metric.compute(lang_pair="cs-en")
    metric.add(source=SOURCES[2], prediction=PREDICTIONS[2])
    assert metric.compute(lang_pair="de-en") == expected(tiny_preset).as_dict()
    assert not list(evaluate_cache.parent.rglob("*.arrow"))
    with pytest.raises(InputError, match="nothing to score"):
        metric.compute(lang_pair="de-en")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"predictions": PREDICTIONS[:2]},
            "predictions has 2 segments but sources has 3; they must be parallel",
        ),
        ({"sources": ["a", None, "c"]}, r"sources\[1\]: a string is needed, got None"),
        ({"sources": None}, "sources is missing; xmoverscore needs sources and predictions"),
        ({"sources": None, "predictions": None}, "nothing to score; pass sources=, predictions="),
        (
            {"lang_pairs": "de-en"},
            (
                "compute: xmoverscore has no keyword 'lang_pairs'; it takes: sources, predictions, "
                "lang_pair"
            ),
        ),
        ({"lang_pair": None}, "language pair None"),
        ({"variant": "acl21"}, "variant 'acl21': must be one of acl20, release, uscore"),
    ],
)
def test_wrong_input_is_refused_in_one_line(metric, tiny_preset, arguments, message):
    with pytest.raises(InputError, match=message) as raised:
        metric.compute(**CALL | arguments)
    assert "\n" not in str(raised.value)
    assert metric.compute(**CALL) == expected(tiny_preset).as_dict()


def test_missing_language_pair(metric):
    message = r"lang_pair is missing; pass lang_pair='de-en' to compute or to evaluate.load"
    with pytest.raises(InputError, match=message):
        metric.compute(sources=SOURCES, predictions=PREDICTIONS)


@pytest.mark.parametrize(
    ("call", "arguments", "message"),
    [
        (
            "add_batch",
            {"sources": ["a", None, "c"], "predictions": ["a", "b", "c"]},
            r"sources\[1\]: a string is needed, got None",
        ),
        (
            "add_batch",
            {"sources": ["a"], "predictions": ["a", "b"]},
            "predictions has 2 segments but sources has 1",
        ),
        (
            "add_batch",
            {"sources": ["a"]},
            "predictions is missing; xmoverscore needs sources and predictions",
        ),
        (
            "add_batch",
            {"source": ["a"], "predictions": ["a"]},
            "add_batch: .* no keyword 'source'; it takes: sources, predictions",
        ),
        ("add", {"source": None, "prediction": "a"}, "sources is missing"),
        (
            "add",
            {"source": ["a"], "prediction": "a"},
            r"sources\[0\]: a string is needed, got \['a'\]",
        ),
        (
            "add",
            {"source": "a", "prediction": "a", "score": 1},
            "add: xmoverscore has no keyword 'score'",
        ),
        (
            "add",
            {"sources": "a"},
            "predictions is missing; xmoverscore needs sources and predictions",
        ),
        (
            "add",
            {"sources": ["a"], "predictions": ["a"]},
            r"sources\[0\]: a string is needed, got \['a'\]",
        ),
        (
            "add",
            {"sources": "a", "source": "b", "prediction": "a"},
            "source and sources are the same column",
        ),
        (
            "add",
            {"source": "a", "predictions": "a", "prediction": "b"},
            "prediction and predictions are the same",
        ),
    ],
)
def test_wrong_additions_are_refused_and_leave_nothing(metric, call, arguments, message):
    with pytest.raises(InputError, match=message):
        getattr(metric, call)(**arguments)
    assert len(metric) == 0


@pytest.mark.parametrize(
    "names",
    [
        ("source", "prediction"),
        ("sources", "predictions"),
        ("source", "predictions"),
        ("sources", "prediction"),
    ],
)
def test_segments_are_added_by_either_name(metric, tiny_preset, names):
    for texts in zip(SOURCES, PREDICTIONS, strict=True):
        metric.add(**dict(zip(names, texts, strict=True)))
    assert metric.compute(lang_pair="de-en") == expected(tiny_preset).as_dict()


def test_combine_adds_single_segments(metric, tiny_preset):
    combined = evaluate.combine([metric])
    for source, prediction in zip(SOURCES, PREDICTIONS, strict=True):
        combined.add(sources=source, prediction=prediction)
    assert combined.compute(lang_pair="de-en")["mean_score"] == expected(tiny_preset).system


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (
            ("nope",),
            {},
            "unknown preset 'nope' for metric xmoverscore; there are: mini, paper; for a folder",
        ),
        (
            ("mini",),
            {"preset": "elsewhere"},
            "config name 'mini' and preset='elsewhere' both name a preset",
        ),
        ((), {"preset": "elsewhere"}, "unknown preset 'elsewhere'"),
        (
            (),
            {"presets": "mini"},
            "evaluate.load: xmoverscore has no keyword 'presets'; it takes: preset, device",
        ),
        ((), {"device": ["cpu", 99]}, "device 99 cannot be used here"),
        ((), {"batch_tokens": 0}, "batch_tokens 0: must be a whole number"),
    ],
)
def test_wrong_keywords_of_load(load, tiny_preset, arguments, options, message):
    if not arguments and "preset" not in options:
        options = options | {"preset": tiny_preset}
    with pytest.raises(InputError, match=message):
        load(*arguments, **options)


def test_a_folder_is_no_config_name(load, tiny_preset, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = sorted(tiny_preset.rglob("*"))
    with pytest.raises(InputError, match=r"for a folder with a preset.toml pass preset=DIR"):
        load(str(tiny_preset))
    assert sorted(tiny_preset.rglob("*")) == before


@pytest.mark.parametrize("way", ["local_files_only", "download_config", "HF_EVALUATE_OFFLINE"])
def test_offline_is_honoured(load, monkeypatch, way):
    seen = []
    monkeypatch.setattr(
        MetricModule, "scorer", lambda self, **_: seen.append(self.pool.local_files_only)
    )
    monkeypatch.setattr(evaluate.config, "HF_EVALUATE_OFFLINE", way == "HF_EVALUATE_OFFLINE")
    options = {
        "local_files_only": {"local_files_only": True},
        "download_config": {"download_config": datasets.DownloadConfig(local_files_only=True)},
    }
    load(**options.get(way, {}))
    assert seen == [True]


def test_the_default_preset_is_that_of_the_paper(load, monkeypatch):
    monkeypatch.setattr(MetricModule, "scorer", lambda self, **_: None)
    assert load(preset=None).preset.name == "paper"
    assert load("mini").preset.name == "mini"


def test_cache_that_cannot_be_written(load, tiny_preset, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(
        MTMetricsError, match=r"the cache of evaluate cannot be written: .*pass cache_dir="
    ):
        load(preset=tiny_preset, cache_dir=str(tmp_path / "file" / "cache"))


def test_blank_segments_are_counted_with_one_warning(metric):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = metric.compute(
            sources=["Das Haus", " ", "x"], predictions=["the house", "a", "x"], lang_pair="de-en"
        )
    assert result["report"] == InputReport(3, blank=1, identical=1).as_dict()
    assert [str(warning.message) for warning in caught if warning.category is UserWarning] == [
        (
            "of 3 segments: 1 blank (floor score; segment 2), 1 identical to the source "
            "(untranslated?; segment 3)"
        )
    ]


def test_combine_gives_each_metric_the_columns_that_it_compares(
    metric, tiny_preset, tiny_encoder, tmp_path
):
    models = f'words = "{tiny_encoder}"\nsentences = "{tiny_encoder}"\n'
    write(tmp_path / "words" / "preset.toml", f'[encoder]\nmodel = "{tiny_encoder}"\n')
    write(tmp_path / "both" / "preset.toml", f"[src-mt]\n{models}[mt-ref]\n{models}")
    write(tmp_path / "references" / "preset.toml", f"[mt-ref]\n{models}")
    others = {
        "bertr": {"preset": tmp_path / "words"},
        "distilscore": {"preset": tmp_path / "words"},
    }
    modules = {
        name: evaluate.load(mtmetrics.metric_path(name), **options)
        for name, options in others.items()
    }
    for name, options in {
        "sentsim": {"preset": tmp_path / "references"},
        "told": {"preset": tmp_path / "both"},
    }.items():
        setting = {"setting": "src-mt"} if name == "told" else {}
        modules[name] = evaluate.load(mtmetrics.metric_path("sentsim"), **options, **setting)
    columns = {
        "sources": SOURCES,
        "predictions": PREDICTIONS,
        "references": PREDICTIONS,
        "lang_pair": "de-en",
    }
    combined = evaluate.combine({"xmoverscore": metric, **modules})
    result = combined.compute(**columns)
    assert result["xmoverscore_mean_score"] == expected(tiny_preset).system
    assert "|set:mt-ref|" in result["sentsim_signature"]
    assert "|set:src-mt|" in result["told_signature"]
    # A reference that equals the translation has the highest score; a source does not.
    assert result["bertr_mean_score"] == pytest.approx(1.0)
    assert result["distilscore_mean_score"] < 0.999
    texts = {name: columns[name] for name in ("sources", "predictions", "references")}
    for first, last in ((0, 2), (2, 3)):
        combined.add_batch(**{name: column[first:last] for name, column in texts.items()})
    assert combined.compute(lang_pair="de-en")["bertr_scores"] == pytest.approx(
        result["bertr_scores"]
    )


def test_all_metrics_are_combined(evaluate_cache):
    names = [name for name in metric_names() if name != "comet"]
    assert len(names) == 8
    combined = evaluate.combine(
        [evaluate.load(mtmetrics.metric_path(name), "mini") for name in names]
    )
    texts = {"sources": ["Das Haus ist klein."], "predictions": ["The house is small."]}
    texts["references"] = ["The house is little."]
    with pytest.raises(
        InputError, match="sentsim: both sources and references are given: pass against='source'"
    ):
        combined.compute(**texts, lang_pair="de-en")
    result = combined.compute(**texts, lang_pair="de-en", against="reference")
    assert {f"{name}_mean_score" for name in names} <= result.keys()
    assert "|set:mt-ref|" in result["sentsim_signature"]
    assert "|against:reference|" in result["distilscore_signature"]
    assert result["xmoverscore_mean_score"] == pytest.approx(
        mtmetrics.load("xmoverscore", "mini", lang_pair="de-en")
        .score(texts["predictions"], sources=texts["sources"])
        .system
    )


def test_name_and_documentation(metric):
    assert metric.name == metric.info.module_name == "xmoverscore"
    for call in (metric.compute, metric.add, metric.add_batch):
        assert "lang_pair (`str`)" in call.__doc__


def test_the_script_alone_is_enough(evaluate_cache, tiny_preset, tmp_path, monkeypatch):
    """The script comes from the Hub, where `evaluate` fetches the script and nothing beside it; relative path,
    another working directory."""
    folder = tmp_path / "elsewhere" / "xmoverscore"
    folder.mkdir(parents=True)
    shutil.copy(Path(mtmetrics.metric_path("xmoverscore")) / "xmoverscore.py", folder)
    monkeypatch.chdir(tmp_path / "elsewhere")
    metric = evaluate.load("./xmoverscore", preset=str(tiny_preset))
    assert metric.compute(**CALL) == expected(tiny_preset).as_dict()
