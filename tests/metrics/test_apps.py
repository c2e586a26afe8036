"""The pages answer over HTTP, on loopback."""

import functools
import json
import runpy
import socket
import tempfile
import urllib.error
import urllib.parse
import urllib.request

import pytest

from mtmetrics.errors import MTMetricsError
from mtmetrics.layout import COMPARE, metric_names, metric_scripts
from mtmetrics.page.app import build_page
from mtmetrics.page.offers import offers
from mtmetrics.page.theme import MAX_FILE, serve
from mtmetrics.scorers.side import Side

gradio = pytest.importorskip("gradio", reason="needs the extra 'app'")


class Client:
    """Asks an app over HTTP."""

    def __init__(self, url: str) -> None:
        self.url = url

    def open(self, path: str, body: bytes | None = None, kind: str = "application/json") -> bytes:
        call = urllib.request.Request(f"{self.url}{path}", body, {"Content-Type": kind})
        with urllib.request.urlopen(call, timeout=60) as answer:
            return answer.read()

    def upload(self, name: str, content: bytes):
        """Uploads a file, and returns what a file component takes."""
        head = f'--edge\r\nContent-Disposition: form-data; name="files"; filename="{name}"\r\n'
        head += "Content-Type: text/plain\r\n\r\n"
        answer = self.open(
            "gradio_api/upload",
            head.encode() + content + b"\r\n--edge--\r\n",
            "multipart/form-data; boundary=edge",
        )
        return {"path": json.loads(answer)[0], "meta": {"_type": "gradio.FileData"}}


@pytest.fixture(scope="module")
def page_of():
    """Builds the page of a metric, once."""
    return functools.cache(build_page)


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GRADIO_TEMP_DIR", str(tmp_path_factory.mktemp("gradio")))
        app = serve(build_page("xmoverscore"))
        yield Client(app.local_url)
        app.close()


def test_uploads_are_limited(client):
    client.upload("rows.tsv", b"a\tb\n" * (MAX_FILE // 5))
    with pytest.raises(urllib.error.HTTPError, match="413"):
        client.upload("rows.tsv", b"a\tb\n" * (MAX_FILE // 4 + 1))


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd",
        "../../../../etc/passwd",
        __file__,
        "tests/conftest.py",
        f"{tempfile.gettempdir()}/../etc/passwd",
    ],
)
def test_files_that_were_not_uploaded_are_out_of_reach(client, path):
    for quoted in (path, urllib.parse.quote(path, safe="")):
        with pytest.raises(urllib.error.HTTPError, match=r"40[034]"):
            client.open(f"gradio_api/file={quoted}")


def test_page_loads_nothing_from_elsewhere(client):
    page = client.open("").decode()
    config = json.loads(client.open("config"))
    assert config["analytics_enabled"] is False
    for host in ("googleapis", "gstatic", "cdnjs", "jsdelivr", "unpkg"):
        assert host not in page
        assert host not in json.dumps(config)
    assert not config["stylesheets"] or all(
        sheet.startswith(("/", ".")) for sheet in config["stylesheets"]
    )


@pytest.mark.parametrize("name", metric_names())
def test_the_page_of_a_metric_offers_it_alone(name, preset, page_of):
    here = [offer for offer in offers() if offer.spec.metric == name]
    side = next(side for side in Side if any(offer.side == side for offer in here))
    given = {*side.columns}
    shown = {
        offer.key: offer.label
        for offer in here
        if offer.side == side and offer.fits(given, "de-en")
    }
    groups = [
        part["props"]
        for part in page_of(name).config["components"]
        if part["type"] == "checkboxgroup"
    ]
    offered = {key: label for group in groups for label, key in group["choices"]}
    assert offered == shown
    assert [key for group in groups for key in group["value"]] == [next(iter(shown))]
    assert not any("paper" in key for key in offered)


@pytest.mark.parametrize("name", [*metric_names(), COMPARE])
def test_the_script_serves_its_page(name, preset, page_of, monkeypatch):
    served = []

    class Served:
        def block_thread(self):
            served.append("blocked")

    monkeypatch.setattr(
        "mtmetrics.page.theme.serve", lambda app: served.append(app.title) or Served()
    )
    runpy.run_path(str(metric_scripts() / name / "app.py"), run_name="__main__")
    assert served == [
        "mtmetrics: compare" if name == COMPARE else page_of(name).title,
        "blocked",
    ]


def test_the_page_needs_what_all_metrics_and_the_baselines_need():
    def needed(name):
        return set(
            (metric_scripts() / name / "requirements.txt").read_text(encoding="utf-8").splitlines()
        )

    assert needed(COMPARE) == set().union(*map(needed, metric_names())) | {"sacrebleu >= 2.4"}


def test_a_port_that_is_taken():
    with gradio.Blocks(analytics_enabled=False) as app:
        gradio.Markdown("page")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(MTMetricsError, match=f"port {port}: cannot be used .*choose another"):
            serve(app, port)
