"""The page that compares systems, without the browser around it."""

import csv
import dataclasses
import json
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

from mtmetrics.errors import InputError, MTMetricsError
from mtmetrics.page import views
from mtmetrics.page.app import _Page, build_page
from mtmetrics.page.comparing import Comparer, ComparisonResult, Progress
from mtmetrics.page.downloads import FILES, command, write_files
from mtmetrics.page.endpoints import Endpoints
from mtmetrics.page.explaining import heatmap, mark_wrong_words
from mtmetrics.page.offers import MetricChoice, offers, offers_from_names, ticked_offers
from mtmetrics.page.texts import Texts
from mtmetrics.reports.comparison import compare_systems
from mtmetrics.reports.example import example
from mtmetrics.scorers.plugins import load_plugin
from mtmetrics.scorers.registry import load_scorer
from mtmetrics.scorers.side import Side
from mtmetrics.scorers.spec import MetricSpec

gradio = pytest.importorskip("gradio", reason="needs the extra 'app'")
pytest.importorskip("sacrebleu", reason="needs the extra 'baselines'")

PLUGIN = '''
import mtmetrics


class Shorter(mtmetrics.PluginMetric):
    """Characters by which a translation is shorter than its source."""

    metric = "shorter"
    sides = ("source",)

    def segment_scores(self, predictions, sources=None, references=None):
        return [len(source) - len(text) for source, text in zip(sources, predictions)]
'''
CHRF = next(offer for offer in offers() if offer.key == "chrf")
BLEU = next(offer for offer in offers() if offer.key == "sentbleu")


def run(texts: Texts, *wanted: MetricChoice) -> tuple[list[Progress], ComparisonResult]:
    *progress, compared = Comparer().compare(texts, wanted)
    return progress, compared


@pytest.fixture(scope="module")
def known() -> Texts:
    given = example()
    return Texts("de-en", {"sources": given.sources, "references": given.references}, given.systems)


@pytest.fixture(scope="module")
def compared(known) -> ComparisonResult:
    return run(known, CHRF, BLEU)[1]


def test_what_is_offered_fits_what_is_given():
    def keys(columns, lang_pair):
        return {offer.key for offer in offers() if offer.fits(columns, lang_pair)}

    both = keys({"sources", "references"}, "de-en")
    assert {
        "xmoverscore:mini",
        "sentsim:mini:against=source",
        "sentsim:mini:against=reference",
        "chrf",
    } <= both
    assert "uscore:mini" not in keys({"sources"}, "de-fr")
    assert "xmoverscore:mini" not in keys({"references"}, "de-en")
    german = keys({"sources", "references"}, "en-de")
    assert {"xmoverscore:mini", "bertr:mini:against=source"} <= german
    assert "uscore:mini" not in german  # it has no language model for German
    assert keys({"sources"}, "xx-yy") == set()
    assert keys({"sources"}, "deu_Latn-eng_Latn") == keys({"sources"}, "de-en")
    assert keys({"sources"}, "German-English") <= keys(
        {"sources"}, "xx-yy"
    )  # while it is being typed
    assert not any(offer.spec.preset == "paper" for offer in offers())


def test_what_cannot_be_scored_is_refused():
    for keys, columns, message in [
        ([], {"sources"}, "no metric is ticked"),
        (["chrf"], {"sources"}, "chrF: cannot"),
    ]:
        with pytest.raises(InputError, match=message):
            ticked_offers(offers(), keys, columns, "de-en")
    assert ticked_offers(offers(), ["chrf"], {"references"}, "de-en") == [CHRF]


def test_the_numbers_are_those_of_the_scorer_and_of_compare(known, compared):
    expected = load_scorer("chrf").score_systems(
        known.systems, references=known.columns["references"]
    )
    found = compared.metrics[0]
    for name, result in expected.items():
        assert np.array_equal(found.results[name].segments, result.segments)
    wanted = compare_systems({name: result.segments for name, result in expected.items()})
    assert found.comparison.systems == wanted.systems
    moved = [*example().second[5:], *example().second[:5]]
    assert (
        found.anchors.random
        == load_scorer("chrf").score(moved, references=example().references).system
    )
    assert (
        found.anchors.human
        == load_scorer("chrf").score(example().second, references=example().references).system
    )


@pytest.mark.usefixtures("no_plugins")
def test_a_metric_without_models_on_the_page(tmp_path: Path) -> None:
    plugin = tmp_path / "shorter.py"
    plugin.write_text(PLUGIN, encoding="utf-8")
    load_plugin(plugin)
    choices = offers_from_names(["shorter"])
    [choice] = choices
    assert (choice.title, choice.side) == ("shorter", Side.SOURCE)
    about = "Characters by which a translation is shorter than its source."
    assert choice.label.splitlines()[-1] == about
    texts = Texts("xx-yy", {"sources": ["abcd", "ab"]}, {"one": ["a", "ab"], "two": ["ab", "b"]})
    _, compared = run(texts, *ticked_offers(choices, ["shorter"], {"sources"}, "xx-yy"))
    [scored] = compared.metrics
    assert {name: result.segments.tolist() for name, result in scored.results.items()} == {
        "one": [3.0, 0.0],
        "two": [2.0, 1.0],
    }
    assert "nothing to compare" not in views.verdict(compared)
    assert mark_wrong_words(scored.scorer, texts.columns, ["a"]) == []


def test_many_segments_go_in_turns_and_say_how_far_they_are(known):
    many = Texts(
        "de-en",
        {"references": known.columns["references"] * 40},
        {"a": known.systems["hasty"] * 40},
    )
    progress, compared = run(many, CHRF, BLEU)
    done = [state.done for state in progress if state.what.startswith("scoring")]
    assert done == sorted(done)
    assert len(done) == 6
    assert done[-1] == progress[-1].total == 960
    assert [state.left is None for state in progress] == [True, True, *[False] * 6, True]
    assert len(compared.metrics[1].results["a"].segments) == 480
    assert not compared.tested
    assert "nothing to compare" in views.verdict(compared)


def test_segments_are_ordered(compared):
    scores = compared.scores(0)
    names = [name for _, name in compared.orders()]
    assert names[:4] == ["disagree", "input", "lowest", "highest"]
    assert len(names) == 10
    assert compared.order(0, "input").tolist() == list(range(12))
    assert np.ptp(scores, axis=0)[compared.order(0, "disagree")[0]] == np.ptp(scores, axis=0).max()
    assert (np.diff(scores.mean(0)[compared.order(0, "lowest")]) >= 0).all()
    first = compared.order(0, "0>1")[0]
    assert scores[0, first] - scores[1, first] == (scores[0] - scores[1]).max()


def test_the_verdict(compared):
    said = views.verdict(compared)
    for metric in compared.metrics:
        assert metric.offer.title in said or "by all 2 metrics" in said
    assert "<b>careful</b> is the best by all 2 metrics" in said


def test_systems_of_one_cluster_that_differ_are_not_called_equal(compared):
    """The first is better than the last, but the one between them differs from neither."""
    metric = compared.metrics[0]
    p_values = np.ones((3, 3))
    systems = [dataclasses.replace(system, cluster=1) for system in metric.comparison.systems]

    def verdict() -> str:
        one = dataclasses.replace(metric.comparison, systems=systems, p_values=p_values)
        metrics = [dataclasses.replace(metric, comparison=one)]
        return views.verdict(dataclasses.replace(compared, metrics=metrics))

    assert "cannot be told apart" in verdict()
    p_values[0, 2] = p_values[2, 0] = 0.01
    assert "share the lead" in verdict()


def test_the_text_under_the_result_tells_what_the_pictures_show(compared):
    shown = views.overview(compared)
    assert "dotted" not in shown
    assert "A cluster ends where" in shown


def test_errors_name_the_boxes_of_the_page():
    missing = InputError("lang_pair is missing", option="lang_pair")
    assert "From / Into is missing" in views.error_problem(missing)
    columns = InputError("compares with sources; pass sources", mentions=["sources"])
    within = columns.within("metric chrf", option="metric")
    assert "metric chrf: compares with sources; pass Source" in views.error_problem(within)
    unlabelled = InputError("layer 99: too high", option="layer")
    assert "layer 99: too high" in views.error_problem(unlabelled)


def test_what_a_visitor_gives_is_no_markup():
    evil = "<img src=x onerror=alert(1)>"
    texts = Texts("de-en", {"references": [evil, "b"]}, {evil: [evil, "b"], "other": ["c", evil]})
    compared = run(texts, CHRF)[1]
    shown = (
        views.overview(compared)
        + views.segments(compared, 0, [0, 1], {}, None)
        + views.problem(evil)
    )
    assert "<img" not in shown
    assert "&lt;img" in shown


def test_downloads(compared, known, tmp_path):
    write_files(compared, tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == set(FILES)
    rows = list(csv.DictReader((tmp_path / "segments.csv").open(encoding="utf-8")))
    for place, row in enumerate(rows):
        assert row["source"] == known.columns["sources"][place]
        for name in known.systems:
            assert row[name] == known.systems[name][place]
            assert float(row[f"{name} chrf"]) == compared.metrics[0].results[name].segments[place]
    everything = json.loads((tmp_path / "comparison.json").read_text(encoding="utf-8"))
    first = everything["metrics"][0]
    assert first["scores"]["hasty"] == compared.metrics[0].results["hasty"].segments.tolist()
    assert first["anchors"]["human"] == compared.metrics[0].anchors.human
    systems = list(csv.DictReader((tmp_path / "systems.csv").open(encoding="utf-8")))
    assert {row["system"]: row["mean"] for row in systems if row["metric"] == "chrf"} == {
        name: f"{result.system:.4f}" for name, result in compared.metrics[0].results.items()
    }
    assert r"\begin{tabular}" in (tmp_path / "systems.tex").read_text()
    assert "<svg" in (tmp_path / "means.svg").read_text()
    assert command(compared).startswith(
        "mtmetrics compare --lp de-en -s sources.txt -r references.txt -t careful hasty"
    )


def test_files_of_one_visitor_outlast_those_of_others(tmp_path, monkeypatch):
    """Every visitor downloads what was made for this visitor, however many others come; the page
    itself keeps none."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    handlers = {event.name: event for event in build_page("bertr").fns.values()}
    compare = handlers["_run"]
    texts = {
        "Translations of system 1": "the house\na dog",
        "Translations of system 2": "a house\nthe cat",
        "Name of system 2": "other",
    }
    names = ["first", "second", "third", "fourth", "fifth", "sixth"]
    tables = []
    for name in names:
        form = {part: texts.get(part.label) for part in compare.inputs}
        for part in form:
            if isinstance(part, gradio.Dropdown):
                form[part] = part.value
            elif isinstance(part, gradio.CheckboxGroup):
                form[part] = ["bertr:mini:against=reference"]
            elif part.label == "References, if there are any" and isinstance(part, gradio.Textbox):
                form[part] = "the house\nthe dog"
            elif part.label == "Name of system 1":
                form[part] = name
        *_, result = compare.fn(form)
        [table] = [part for part in result if getattr(part, "label", "") == FILES["systems.csv"]]
        tables.append(result[table].value["path"])
    *_, example_files = handlers["_show_example"].fn()
    assert [name in Path(table).read_text() for name, table in zip(names, tables, strict=True)] == [
        True
    ] * 6
    assert len(example_files) == 5
    assert list(tmp_path.glob("mtmetrics-page-*")) == []


def test_an_unexpected_error_leaves_the_buttons_ready(monkeypatch):
    def fail(*_):
        raise ZeroDivisionError

    monkeypatch.setattr(Comparer, "compare", fail)
    monkeypatch.setattr(_Page, "_texts", lambda *_: Texts("de-en", {"references": ["a"]}, {}))
    compare = {event.name: event for event in build_page("bertr").fns.values()}["_run"]
    form = dict.fromkeys(compare.inputs)
    for part in form:
        if isinstance(part, gradio.CheckboxGroup):
            form[part] = ["bertr:mini:against=reference"]
    updates = compare.fn(form)
    buttons = {getattr(part, "value", ""): update for part, update in next(updates).items()}
    assert buttons["Compare"].interactive
    assert not buttons["Stop"].visible
    with pytest.raises(ZeroDivisionError):
        next(updates)


def test_a_page_without_any_metric_is_refused(monkeypatch):
    monkeypatch.setattr("mtmetrics.page.app.offers", tuple)
    with pytest.raises(MTMetricsError, match=r"^no metric can run .* mtmetrics list says"):
        build_page()
    with pytest.raises(MTMetricsError, match=r"^bertr: none of its presets can run"):
        build_page("bertr")


def test_what_is_unusual_of_a_segment_is_said():
    systems = {
        "one": ["ha ha ha ha ha", "no"],
        "two": ["Das Haus ist klein, und der Hund schläft nicht gut.", "no"],
    }
    compared = run(Texts("de-en", {"references": ["The house is small.", "no"]}, systems), CHRF)[1]
    first, second = (views.segments(compared, 0, [row], {}, None) for row in (0, 1))
    assert "unusual: looping" in first
    assert "unusual: language" in first
    assert "unusual" not in second


def test_a_single_segment_has_neither_test_nor_interval():
    compared = run(Texts("de-en", {"references": ["a"]}, {"one": ["a"], "two": ["b"]}), CHRF)[1]
    shown = views.overview(compared)
    assert "One segment says nothing" in shown
    assert "mt-interval" not in shown
    assert "mt-cluster" not in shown


def test_words_and_heatmaps_of_a_metric(tiny_preset):
    scorer = MetricSpec("xmoverscore", str(tiny_preset)).load(Comparer()._pool, "de-en")
    text = "the house <b> small"
    [shown] = mark_wrong_words(scorer, {"sources": ["das haus ist klein"]}, [text])
    assert shown.replace("</mark>", "").split("<mark")[0] in "the house &lt;b&gt; small"
    assert "<b>" not in shown
    result = scorer.score(["the house"], sources=["das haus"])
    assert 'src="data:image/png;base64,' in heatmap(
        scorer, {"sources": ["das haus"]}, "the house", result, 0
    )
    whole = load_scorer("chrf")
    assert mark_wrong_words(whole, {"references": ["a"]}, ["b"]) == []
    assert "no words are matched" in heatmap(whole, {"references": ["a"]}, "b", result, 0)


def test_metrics_that_are_named_are_offered_first(tmp_path, monkeypatch):
    """Programs, stored scores, checkpoints: whatever the command line can name."""
    monkeypatch.chdir(tmp_path)
    program = "import sys; [print(len(line)) for line in sys.stdin]"
    (tmp_path / "commands.toml").write_text(
        f"[it]\ncommand = [{json.dumps(sys.executable)}, '-c', '{program}']\n"
    )
    (tmp_path / "scores.tsv").write_text("a\t1\na\t2\nb\t3\nb\t5\n")
    found = offers_from_names(["cmd:it", "scores:scores.tsv", "chrf"])
    assert [(offer.title, offer.side, offer.default) for offer in found] == [
        ("cmd:it", "source", True),
        ("scores:scores.tsv", "source", True),
        ("chrf", "reference", True),
    ]
    texts = Texts("de-en", {"sources": ["x", "y"]}, {"a": ["u", "v"], "b": ["w", "z"]})
    *_, compared = Comparer().compare(texts, found[:2])
    assert compared.scores(1).tolist() == [[1.0, 2.0], [3.0, 5.0]]
    assert (compared.scores(0) > 0).all()
    groups = [
        part["props"] for part in build_page(None, ["scores:scores.tsv"]).config["components"]
    ]
    ticked = [key for group in groups if "choices" in group for key in group.get("value") or ()]
    assert "scores:scores.tsv:against=source" in ticked
    page = _Page(None, ["chrf"])
    keys = [offer.key for offer in page.offers]
    assert keys[0] == "chrf"
    assert keys.count("chrf") == 1
    score = Endpoints(page.offers, page.comparer).score
    assert score(["u", "v"], references=["x", "y"], metric="chrf")["metric"] == "chrf"
    with pytest.raises(InputError, match="metric 'nothing': must be one of"):
        offers_from_names(["nothing"])


def test_metrics_of_four_kinds_in_one_comparison(known, four_metrics, tmp_path):
    others = {column: texts * 9 for column, texts in known.columns.items()}
    nine = Texts("de-en", others, {name: texts * 9 for name, texts in known.systems.items()})
    *_, compared = Comparer().compare(nine, offers_from_names(four_metrics))
    assert [offer.side for offer in offers_from_names(four_metrics)] == [
        "source",
        "both",
        "source",
        "source",
    ]
    shown = views.overview(compared)
    for metric, one in zip(four_metrics, compared.metrics, strict=True):
        assert f'data-metric="{metric}"' in shown
        for system in one.comparison.systems:
            assert views.four_decimals(system.mean) in shown
    whole = views.segments(compared, 1, [0, 1], {}, None)
    assert whole.count("mt-chosen") == 6
    row = {name: texts[:1] for name, texts in compared.texts.columns.items()}
    result = compared.metrics[1].results["hasty"]
    assert "data:image/png" in heatmap(compared.metrics[1].scorer, row, "The house.", result, 0)
