"""The demo apps in a real browser: Debian's Chromium, which reaches nothing but loopback."""

import json
import shutil
import urllib.parse
from collections.abc import Iterator

import pytest

from mtmetrics.integrations.serving import metric_app, serve
from mtmetrics.layout import metric_names
from mtmetrics.scorers.base import Scorer

pytest.importorskip("gradio", reason="needs the extra 'app'")
webdriver = pytest.importorskip("selenium.webdriver", reason="needs selenium, of the extra 'test'")

PATIENCE = 120
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
        self.driver.get(self.url)
        self.one("//button[normalize-space()='Score']")

    def one(self, path: str):
        """The first visible element of an XPath; waits for it."""
        return self.wait(lambda: next((found for found in self.driver.find_elements("xpath", path) if found.is_displayed()), None))

    def wait(self, condition):
        """What the condition returns, as soon as that is true."""
        from selenium.common.exceptions import StaleElementReferenceException
        from selenium.webdriver.support.wait import WebDriverWait

        return WebDriverWait(self.driver, PATIENCE, ignored_exceptions=[StaleElementReferenceException]).until(lambda _: condition())

    def type(self, label: str, text: str) -> None:
        """Replaces the text of a field."""
        field = self.one(f"//label[.//span[normalize-space()='{label}']]//*[self::textarea or self::input]")
        field.clear()
        field.send_keys(text)

    def press(self) -> None:
        self.one("//button[normalize-space()='Score']").click()

    def fits(self) -> bool:
        """Whether nothing reaches beyond the right edge of the page."""
        return self.driver.execute_script("return document.documentElement.scrollWidth <= window.innerWidth")

    def hosts(self) -> set[str]:
        """The hosts that were asked for anything since the last call."""
        events = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        urls = [event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"]
        return {urllib.parse.urlsplit(url).hostname for url in urls} - {None}


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


def test_a_pair_is_scored(page, scored, width):
    """With the preset that the page begins with."""
    page.open(width)
    page.type(0, "Das Haus ist klein." if page.fields[0] == "Source" else "The house is small.")
    page.type(1, "The home is little.")
    page.press()
    shown = page.one("//*[starts-with(normalize-space(), 'System score:')]").text
    [(scorer, result)] = scored
    assert shown == f"System score: {result.system:.4f}"
    assert page.one("//table[.//th[.//*[normalize-space()='score']]]//tbody//tr[1]").text.split()[:2] == ["1", f"{result.system:.4f}"]
    if type(scorer)._align is not Scorer._align:
        heatmap = page.one(HEATMAP)
        page.wait(lambda: int(heatmap.get_attribute("naturalWidth")) > 300)
        assert 100 < heatmap.size["width"] <= width
    else:
        page.wait(lambda: not page.driver.find_elements("xpath", f"{HEATMAP} | //*[text()='Heatmap of segment']"))
    page.assert_sound()


def test_an_error_is_a_message(page, width):
    page.open(width)
    page.type(0, "one line")
    page.type(1, "two\nlines")
    page.press()
    message = f"translation has 2 segments but {page.fields[0].lower()} has 1; they must be parallel"
    assert page.one(f"//*[@role='alert' or @data-testid='toast-body']//*[contains(text(), '{message}')]")
    page.assert_sound()


def test_a_file_is_scored_and_a_large_one_refused(page, scored, width, tmp_path):
    (tmp_path / "rows.tsv").write_text("one\tone\ntwo\ttwo\n")
    (tmp_path / "large.tsv").write_text("a\tb\n" * (MAX_BYTES // 4 + 1))
    page.open(width)
    page.one("//button[normalize-space()='File']").click()
    page.upload(tmp_path / "large.tsv")
    page.one("//*[contains(text(), 'maximum')]")
    page.upload(tmp_path / "rows.tsv")
    page.one("//*[contains(., 'rows') and contains(@class, 'filename')]")
    page.press()
    page.one("//*[normalize-space()='System score: ...']")
