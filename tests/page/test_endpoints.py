"""The endpoints of the running page, called by gradio's own client."""

import contextlib
import io

import pytest
from documents import blocks, show_output

from mtmetrics.page.app import build_page
from mtmetrics.page.endpoints import MOST_EXPLAINED
from mtmetrics.page.theme import serve
from mtmetrics.reports.example import example
from mtmetrics.scorers.registry import load_scorer

pytest.importorskip("gradio", reason="needs the extra 'app'")
pytest.importorskip("sacrebleu", reason="needs the extra 'baselines'")
gradio_client = pytest.importorskip("gradio_client", reason="needs the extra 'app'")

SOURCES, REFERENCES = example().sources[:3], example().references[:3]
CAREFUL, HASTY = (example().systems[name][:3] for name in ("careful", "hasty"))
PAGE = "http://127.0.0.1:7860"
CARD = "metrics/compare/README.md"


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """The page with all metrics, served on loopback."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GRADIO_TEMP_DIR", str(tmp_path_factory.mktemp("gradio")))
        app = serve(build_page())
        yield app
        app.close()


@pytest.fixture(scope="module")
def client(page):
    client = gradio_client.Client(page.local_url, verbose=False)
    yield client
    # A client that is not closed goes on calling the page from a thread of its own.
    client.close()


def test_the_page_has_three_endpoints_and_no_more(client):
    described = client.view_api(return_format="dict")
    assert set(described["named_endpoints"]) == {"/score", "/compare", "/explain"}
    assert not described["unnamed_endpoints"]
    parameters = {
        name: {
            parameter["parameter_name"]: parameter["parameter_has_default"]
            for parameter in endpoint["parameters"]
        }
        for name, endpoint in described["named_endpoints"].items()
    }
    optional = {"sources": True, "references": True}
    one = {"predictions": False, **optional, "metric": True, "lang_pair": True}
    several = {"systems": False, **optional, "metrics": True, "lang_pair": True}
    assert parameters == {"/score": one, "/explain": one, "/compare": several}


def test_scores_are_those_of_the_scorer(client):
    for name, columns, metric in (
        (None, {"sources": SOURCES}, ("xmoverscore", "mini", "source")),
        ("xmoverscore:mini", {"sources": SOURCES}, ("xmoverscore", "mini", "source")),
        ("bertr", {"references": REFERENCES}, ("bertr", "mini", "reference")),
        ("bertr:mini", {"sources": SOURCES}, ("bertr", "mini", "source")),
        (None, {"references": REFERENCES}, None),
    ):
        answer = client.predict(
            predictions=CAREFUL, **columns, metric=name, lang_pair="de-en", api_name="/score"
        )
        if metric is None:
            assert answer["metric"] in {"chrf", "sentsim:mini:against=reference"}
            continue
        scorer = load_scorer(metric[0], preset=metric[1], lang_pair="de-en", against=metric[2])
        expected = scorer.score(CAREFUL, **columns)
        assert answer["scores"] == pytest.approx(expected.segments.tolist())
        assert answer["mean_score"] == pytest.approx(expected.system)
        assert answer["signature"] == expected.signature
        assert answer["report"] == expected.report.as_dict()
        assert answer["parts"].keys() == expected.parts.keys()
        assert answer["metric"].startswith(":".join(metric[:2]))


def test_systems_are_compared_as_on_the_page(client):
    systems = {"careful": CAREFUL, "hasty": HASTY}
    answer = client.predict(
        systems=systems,
        sources=SOURCES,
        references=REFERENCES,
        metrics=["chrf", "xmoverscore:mini"],
        api_name="/compare",
    )
    assert answer["lang_pair"] == "de-en"
    assert [metric["metric"] for metric in answer["metrics"]] == ["chrf", "xmoverscore:mini"]
    chrf = load_scorer("chrf").score(HASTY, references=REFERENCES)
    assert answer["metrics"][0]["scores"]["hasty"] == pytest.approx(chrf.segments.tolist())
    for metric in answer["metrics"]:
        assert [system["system"] for system in metric["systems"]] == ["careful", "hasty"]
    usual = client.predict(systems=systems, references=REFERENCES, api_name="/compare")
    assert "chrf" in {metric["metric"] for metric in usual["metrics"]}


def test_words_are_explained(client):
    answer = client.predict(predictions=HASTY, sources=SOURCES, api_name="/explain")
    scorer = load_scorer("xmoverscore", preset="mini", lang_pair="de-en")
    result, alignments = (
        scorer.score(HASTY, sources=SOURCES),
        scorer.align(HASTY, sources=SOURCES),
    )
    faults = scorer.faults(HASTY, alignments)
    assert answer["metric"] == "xmoverscore:mini"
    assert answer["signature"] == result.signature
    for number, segment in enumerate(answer["segments"]):
        assert segment["score"] == pytest.approx(result.segments[number])
        assert segment["alignment"]["prediction"] == alignments[number].prediction
        severities = [fault["severity"] for fault in segment["faults"]]
        assert severities == pytest.approx([fault.severity for fault in faults[number]])
        for fault in segment["faults"]:
            assert fault["text"] == HASTY[number][fault["start"] : fault["end"]]
    # Against references the usual metric is one that matches words, not chrF.
    answer = client.predict(predictions=HASTY, references=REFERENCES, api_name="/explain")
    assert answer["segments"][0]["alignment"]["source"]


@pytest.mark.parametrize(
    ("endpoint", "arguments", "message"),
    [
        ("/score", {"predictions": CAREFUL}, "no sources and no references"),
        (
            "/score",
            {"predictions": CAREFUL, "sources": SOURCES[:2]},
            "predictions has 3 segments but sources has 2",
        ),
        ("/score", {"predictions": [], "sources": []}, "sources: empty"),
        ("/score", {"predictions": "text", "sources": SOURCES}, "a list of strings is needed"),
        (
            "/score",
            {"predictions": CAREFUL, "sources": SOURCES, "metric": "bleurt"},
            "metric 'bleurt': this page does not have it; it has: ",
        ),
        (
            "/score",
            {"predictions": CAREFUL, "sources": SOURCES, "metric": "chrf"},
            "chrF: cannot score these texts.*leave it out",
        ),
        (
            "/score",
            {"predictions": CAREFUL, "sources": SOURCES, "lang_pair": "de"},
            "language pair 'de'",
        ),
        (
            "/compare",
            {"systems": {"one": CAREFUL}, "sources": SOURCES},
            "at least two systems and two segments are needed, got 1 and 3",
        ),
        ("/compare", {"systems": {}, "sources": SOURCES}, "systems: a dictionary of names"),
        (
            "/compare",
            {"systems": {"a": CAREFUL, "b": HASTY}, "sources": SOURCES, "metrics": []},
            "metrics: empty; name at least one",
        ),
        (
            "/compare",
            {"systems": {"a": CAREFUL, "b": CAREFUL[:2]}, "sources": SOURCES},
            r"systems\['b'\] has 2 segments",
        ),
        (
            "/explain",
            {"predictions": CAREFUL, "references": REFERENCES, "metric": "chrf"},
            "alignments: ",
        ),
        (
            "/explain",
            {"predictions": ["a"] * (MOST_EXPLAINED + 1), "sources": ["b"] * (MOST_EXPLAINED + 1)},
            "at most 100 are explained at once",
        ),
    ],
)
def test_what_cannot_be_computed_is_refused_with_a_reason(client, endpoint, arguments, message):
    with pytest.raises(gradio_client.exceptions.AppError, match=message):
        client.predict(**arguments, api_name=endpoint)


def test_the_page_of_one_metric_has_the_same_endpoints():
    names = {event.api_name for event in build_page("bertr").fns.values()}
    assert {"score", "compare", "explain"} <= names


def run_calls(page, calls):
    """Runs the calls of the card on this page; returns what they print."""
    assert PAGE in calls
    printed, names = io.StringIO(), {}
    with contextlib.redirect_stdout(printed):
        exec(calls.replace(PAGE, page.local_url), names)
    names["client"].close()
    return printed.getvalue()


@pytest.fixture
def card_blocks():
    """The calls in the card, and the output that it shows."""
    by_language = {block.language: block for block in blocks(CARD)}
    return by_language["python"], by_language["text"]


def test_the_calls_in_the_card_print_what_it_shows(page, card_blocks):
    calls, shown = card_blocks
    assert not show_output(CARD, shown, run_calls(page, calls.text))


def test_the_calls_in_the_card_work_with_a_metric_that_blames_no_words(page, card_blocks):
    calls = card_blocks[0].text.replace('api_name="/explain"', '**attention, api_name="/explain"')
    attention = "attention = {'metric': 'esim:mini'}\n"
    printed = run_calls(page, f"{attention}{calls}\nprint(explained['metric'])")
    assert printed.splitlines()[-1] == "esim:mini:against=source"
