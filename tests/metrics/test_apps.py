"""The demo apps answer over HTTP, on loopback."""

import json
import runpy
import socket
import tempfile
import urllib.error
import urllib.parse
import urllib.request
import uuid

import pytest

import mtmetrics.scorers.base
from mtmetrics.errors import MTMetricsError
from mtmetrics.layout import COMPARE, metric_names, metric_scripts
from mtmetrics.page.metric_demo import DemoBackend, build_demo
from mtmetrics.page.offers import MetricChoice, offers
from mtmetrics.page.theme import MAX_FILE, serve
from mtmetrics.reports.metric_runs import MetricSpec

gradio = pytest.importorskip("gradio", reason="needs the extra 'app'")

SOURCES = ["Das Haus", "ich sehe die Katze"]
PREDICTIONS = ["the house", "i see the cat"]
MINI = "xmoverscore:mini"


class Client:
    """Calls the endpoints of an app as one visitor."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.session = uuid.uuid4().hex

    def open(self, path: str, body: bytes | None = None, kind: str = "application/json") -> bytes:
        call = urllib.request.Request(f"{self.url}{path}", body, {"Content-Type": kind})
        with urllib.request.urlopen(call, timeout=60) as answer:
            return answer.read()

    def ask(self, endpoint: str, *data):
        """The last event of a call, and what it carries."""
        body = json.dumps({"data": data, "session_hash": self.session}).encode()
        number = json.loads(self.open(f"gradio_api/call/{endpoint}", body))["event_id"]
        lines = self.open(f"gradio_api/call/{endpoint}/{number}").decode().strip().splitlines()
        return lines[-2].removeprefix("event: "), json.loads(lines[-1].removeprefix("data: "))

    def upload(self, name: str, content: bytes):
        """Uploads a file, and returns what a file component takes."""
        head = f'--edge\r\nContent-Disposition: form-data; name="files"; filename="{name}"\r\n'
        head += "Content-Type: text/plain\r\n\r\n"
        answer = self.open(
            "gradio_api/upload", head.encode() + content + b"\r\n--edge--\r\n", "multipart/form-data; boundary=edge"
        )
        return {"path": json.loads(answer)[0], "meta": {"_type": "gradio.FileData"}}


@pytest.fixture(scope="module")
def client(tmp_path_factory, tiny_preset):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GRADIO_TEMP_DIR", str(tmp_path_factory.mktemp("gradio")))
        real = mtmetrics.scorers.base.load_preset
        patch.setattr(
            mtmetrics.scorers.base,
            "load_preset",
            lambda metric, preset, **options: real(metric, tiny_preset if preset == "mini" else preset, **options),
        )
        app = serve(build_demo("xmoverscore"))
        yield Client(app.local_url)
        app.close()


@pytest.fixture(scope="module")
def scored(tiny_preset):
    rows = [list(row) for row in zip(SOURCES, PREDICTIONS, strict=True)]
    offer = MetricChoice(MetricSpec("xmoverscore", str(tiny_preset)), "", "", "sources", "", "", True, ())
    return DemoBackend().score(rows, "de-en", offer)


def assert_is(answer, scored) -> None:
    table, summary, signature, number, *_ = answer
    assert table["headers"] == ["segment", "score", "source", "translation", "mover", "lm"]
    for index, row in enumerate(table["data"]):
        assert [row[0], *row[2:4]] == [index + 1, SOURCES[index], PREDICTIONS[index]]
        values = [scored.result.segments, *scored.result.parts.values()]
        assert [row[1], *row[4:]] == pytest.approx([column[index] for column in values])
    assert table["metadata"]["display_value"][0][1] == f"{scored.result.segments[0]:.4f}"
    assert f"{scored.result.system:.4f}" in summary
    assert f"{scored.interval.low:.4f}" in summary
    assert signature == scored.result.signature
    assert number == 1


def test_text(client, scored):
    event, answer = client.ask("score", "\n".join(SOURCES), "", "\n".join(PREDICTIONS), "de-en", MINI)
    assert event == "complete"
    assert_is(answer, scored)


def test_file(client, scored):
    file = client.upload("rows.tsv", "".join(f"{s}\t{p}\n" for s, p in zip(SOURCES, PREDICTIONS, strict=True)).encode())
    event, answer = client.ask("score_file", file, "de-en", MINI)
    assert event == "complete"
    assert_is(answer, scored)


def test_heatmap_of_a_row(client, scored):
    client.ask("score", "\n".join(SOURCES), "", "\n".join(PREDICTIONS), "de-en", MINI)
    assert client.ask("heatmap", 2) == ("complete", [scored.draw(2)])
    assert 'alt="Segment 2: score' in scored.draw(2)
    event, error = client.ask("heatmap", 3)
    assert (event, error["error"]) == ("error", "segment 3: there are 2")
    assert Client(client.url).ask("heatmap", 1) == ("complete", [""])


@pytest.mark.parametrize(
    ("endpoint", "data", "message"),
    [
        ("score", ["a", "", "b", "deen", MINI], "language pair 'deen': two ISO 639 codes"),
        ("score", ["a", "", "b", "<b>", MINI], "language pair '&lt;b&gt;'"),
        ("score", ["a\nb", "", "c", "de-en", MINI], "translation has 1 segments but source has 2"),
        ("score", ["a", "", "b", "et-en", MINI], "no clp map for language pair et-en"),
        ("score", ["a", "", "b", "de-en", "/etc"], "not in the list of choices"),
        ("score_file", [None, "de-en", MINI], "no file: choose one first"),
    ],
)
def test_errors_are_messages(client, endpoint, data, message):
    event, error = client.ask(endpoint, *data)
    assert event == "error"
    assert message in error["error"]


def test_files_that_cannot_be_used(client):
    for name, content, message in [
        ("rows.tsv", b"a\tb\nc\n", "rows.tsv, line 2: 1 column"),
        ("rows.tsv", b"a\tb\n" * 2001, "more than 2,000 rows or 4 MB"),
        ("rows.png", b"a\tb\n", "Invalid file type"),
    ]:
        event, error = client.ask("score_file", client.upload(name, content), "de-en", MINI)
        assert event == "error"
        assert message in error["error"]


def test_uploads_are_limited(client):
    client.upload("rows.tsv", b"a\tb\n" * (MAX_FILE // 5))
    with pytest.raises(urllib.error.HTTPError, match="413"):
        client.upload("rows.tsv", b"a\tb\n" * (MAX_FILE // 4 + 1))


@pytest.mark.parametrize(
    "path",
    ["/etc/passwd", "../../../../etc/passwd", __file__, "tests/conftest.py", f"{tempfile.gettempdir()}/../etc/passwd"],
)
def test_files_that_were_not_uploaded_are_out_of_reach(client, path):
    for quoted in (path, urllib.parse.quote(path, safe="")):
        with pytest.raises(urllib.error.HTTPError, match=r"40[034]"):
            client.open(f"gradio_api/file={quoted}")
    for field in ("path", "url"):
        event, error = client.ask(
            "score_file", {"path": "rows.tsv", field: path, "meta": {"_type": "gradio.FileData"}}, "de-en", MINI
        )
        assert event == "error"
        assert "root:" not in json.dumps(error)


def test_page_loads_nothing_from_elsewhere(client):
    page = client.open("").decode()
    config = json.loads(client.open("config"))
    assert config["analytics_enabled"] is False
    for host in ("googleapis", "gstatic", "cdnjs", "jsdelivr", "unpkg"):
        assert host not in page
        assert host not in json.dumps(config)
    assert not config["stylesheets"] or all(sheet.startswith(("/", ".")) for sheet in config["stylesheets"])


@pytest.mark.parametrize("name", metric_names())
def test_a_demo_lists_what_works_here_and_asks_for_what_it_needs(name):
    parts = {part["props"].get("label"): part["props"] for part in build_demo(name).config["components"]}
    here = [offer for offer in offers() if offer.spec.metric == name]
    assert [value for _, value in parts["Preset"]["choices"]] == [offer.key for offer in here]
    assert parts["Preset"]["value"] == here[0].key
    assert not any("paper" in offer.key for offer in here)
    assert [parts[side]["visible"] for side in ("Source", "Reference")] == [
        here[0].column == "sources",
        here[0].column == "references",
    ]


@pytest.mark.parametrize("name", [*metric_names(), COMPARE])
def test_the_script_serves_its_page(name, monkeypatch):
    served = []

    class Served:
        def block_thread(self):
            served.append("blocked")

    monkeypatch.setattr("mtmetrics.page.theme.serve", lambda app: served.append(app.title) or Served())
    runpy.run_path(str(metric_scripts() / name / "app.py"), run_name="__main__")
    assert served == ["mtmetrics: compare" if name == COMPARE else build_demo(name).title, "blocked"]


def test_the_page_needs_what_all_metrics_and_the_baselines_need():
    def needed(name):
        return set((metric_scripts() / name / "requirements.txt").read_text(encoding="utf-8").splitlines())

    assert needed(COMPARE) == set().union(*map(needed, metric_names())) | {"sacrebleu >= 2.4"}


def test_a_port_that_is_taken():
    with gradio.Blocks(analytics_enabled=False) as app:
        gradio.Markdown("page")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(MTMetricsError, match=f"port {port}: cannot be used .*choose another"):
            serve(app, port)
