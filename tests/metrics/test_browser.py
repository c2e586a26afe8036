"""The demo apps in a real browser: Debian's Chromium, which reaches nothing but loopback."""

import json
import shutil
import urllib.parse
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mtmetrics.integrations.demo import MAX_BYTES, metric_app, serve
from mtmetrics.layout import metric_names
from mtmetrics.scorers.base import MetricResult, Scorer

pytest.importorskip("gradio", reason="needs the extra 'app'")
webdriver = pytest.importorskip("selenium.webdriver", reason="needs selenium, of the extra 'test'")

PATIENCE = 300
PHONE = 390
SCORE = "//button[normalize-space()='Score']"
HEATMAP = "//img[contains(@src, '/gradio_api/file=')]"
NUMBER = "//*[normalize-space(text())='Heatmap of segment']"
FLAGS = (
    "headless",
    "no-sandbox",
    "disable-gpu",
    "disable-dev-shm-usage",
    "disable-quic",
    "no-first-run",
    "no-proxy-server",
    "disable-background-networking",
    "disable-component-update",
    "disable-sync",
    "host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    """The browser, with logs of its console and of its requests."""
    browser, program = shutil.which("chromium"), shutil.which("chromedriver")
    if browser is None or program is None:
        pytest.skip("needs the Debian packages chromium and chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = browser
    for flag in (*FLAGS, f"user-data-dir={tmp_path_factory.mktemp('chromium')}"):
        options.add_argument(f"--{flag}")
    options.set_capability("goog:loggingPrefs", {"performance": "ALL", "browser": "ALL"})
    # A driver that is named keeps selenium from looking for one to download.
    driver = webdriver.Chrome(options, webdriver.ChromeService(program))
    driver.set_page_load_timeout(PATIENCE)
    yield driver
    driver.quit()


class Page:
    """The app of a metric, as a visitor sees it."""

    def __init__(self, driver, url: str) -> None:
        self.driver = driver
        self.url = url

    def open(self, width: int) -> None:
        """Loads the page anew, so many pixels wide."""
        size = {"width": width, "height": 844, "deviceScaleFactor": 1, "mobile": width < 500}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        self.driver.get_log("browser")
        self.driver.get(self.url)
        self.one(SCORE)

    def all(self, path: str) -> list:
        """The visible elements of an XPath."""
        return [found for found in self.driver.find_elements("xpath", path) if found.is_displayed()]

    def one(self, path: str):
        """The first visible element of an XPath; waits for it."""
        return self.wait(lambda: next(iter(self.all(path)), None))

    def wait(self, condition: Callable[[], Any]):
        """What the condition returns, as soon as that is true."""
        from selenium.common.exceptions import StaleElementReferenceException
        from selenium.webdriver.support.wait import WebDriverWait

        return WebDriverWait(self.driver, PATIENCE, ignored_exceptions=[StaleElementReferenceException]).until(
            lambda _: condition()
        )

    def type(self, label: str, text: str) -> None:
        """Types into an empty field."""
        self.one(f"//label[span[normalize-space()='{label}']]//textarea").send_keys(text)

    def upload(self, path: Path) -> None:
        """Chooses a file on the tab of files."""
        self.one("//button[normalize-space()='File']").click()
        self.one("//button[contains(., 'Click to Upload')]")
        self.driver.find_element("css selector", "input[type=file]").send_keys(str(path))

    def message(self, text: str) -> None:
        """Waits for a message that holds the text."""
        self.one(f"//*[@data-testid='toast-text'][contains(., '{text}')]")

    def assert_sound(self) -> None:
        """Nothing reaches beyond the right edge, and nothing was asked of another host."""
        assert self.driver.execute_script("return document.documentElement.scrollWidth <= window.innerWidth")
        events = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        sent = [event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"]
        asked = [urllib.parse.urlsplit(url) for url in sent if not url.startswith(("data:", "chrome:"))]
        assert {url.hostname for url in asked} == {"127.0.0.1"}


@pytest.fixture(scope="module", params=metric_names())
def name(request) -> str:
    return request.param


@pytest.fixture(scope="module")
def page(name, driver, tmp_path_factory) -> Iterator[Page]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GRADIO_TEMP_DIR", str(tmp_path_factory.mktemp("gradio")))
        patch.setenv("GRADIO_ANALYTICS_ENABLED", "False")
        app = serve(metric_app(name))
        yield Page(driver, app.local_url)
        app.close()


@pytest.fixture
def scored(monkeypatch) -> list[tuple[Scorer, MetricResult]]:
    """The scorers behind the page, and what they computed."""
    seen: list[tuple[Scorer, MetricResult]] = []
    real = Scorer.score_stream

    def recorded(self, chunks):
        results = real(self, chunks)
        seen.append((self, results[0]))
        return results

    monkeypatch.setattr(Scorer, "score_stream", recorded)
    return seen


@pytest.mark.parametrize("width", [1280, PHONE])
def test_a_pair_is_scored(page, scored, width):
    """With the preset that the page begins with."""
    page.open(width)
    sources = bool(page.all("//label[span[normalize-space()='Source']]"))
    page.type("Source" if sources else "Reference", "Das Haus ist klein." if sources else "The house is small.")
    page.type("Translation", "The home is little.")
    page.one(SCORE).click()
    shown = page.one("//h3[starts-with(., 'System score:')]").text
    [(scorer, result)] = scored
    assert shown == f"System score: {result.system:.4f}"
    if type(scorer)._align is Scorer._align:
        page.wait(lambda: not page.all(NUMBER))
    else:
        heatmap = page.one(HEATMAP)
        page.wait(lambda: int(heatmap.get_attribute("naturalWidth")) > 300)
        assert 100 < heatmap.size["width"] <= width
        assert page.all(NUMBER)
    page.assert_sound()
    assert [entry for entry in page.driver.get_log("browser") if entry["level"] == "SEVERE"] == []


def test_an_error_is_a_message(page):
    page.open(PHONE)
    page.type("Translation", "a line without another side")
    page.one(SCORE).click()
    page.message("empty; there is nothing to score")
    page.assert_sound()


@pytest.mark.parametrize("name", ["xmoverscore"], indirect=True)
def test_a_file_is_scored(page, scored, tmp_path):
    (tmp_path / "rows.tsv").write_text("one\tone\ntwo\ttwo\n")
    page.open(PHONE)
    page.upload(tmp_path / "rows.tsv")
    page.one("//*[contains(@class, 'stem')][normalize-space()='rows']")
    page.one(SCORE).click()
    page.one("//*[contains(text(), 'mean of 2 segments')]")
    assert len(scored[0][1].segments) == 2
    page.assert_sound()


@pytest.mark.parametrize("name", ["xmoverscore"], indirect=True)
def test_a_large_file_is_refused(page, tmp_path):
    (tmp_path / "large.tsv").write_text("a\tb\n" * (MAX_BYTES // 4 + 1))
    page.open(PHONE)
    page.upload(tmp_path / "large.tsv")
    page.message("exceed the maximum allowed size")
