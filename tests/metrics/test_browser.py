"""The pages in a real browser: Debian's Chromium, which reaches nothing but loopback."""

import csv
import json
import shutil
import urllib.parse
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mtmetrics.models.pool import ModelPool
from mtmetrics.page.app import build_page
from mtmetrics.page.theme import MAX_FILE, serve
from mtmetrics.page.views import four_decimals
from mtmetrics.reports.example import example
from mtmetrics.scorers.registry import load_scorer

pytest.importorskip("gradio", reason="needs the extra 'app'")
webdriver = pytest.importorskip("selenium.webdriver", reason="needs selenium, of the extra 'test'")

PATIENCE = 240
PHONE = 390
COMPARE = "//button[normalize-space()='Compare']"
PICTURE = "//div[@class='mt-picture']/img"
TABLE = "//table[contains(@class, 'mt-systems')]"
OUTPUT = "//button[contains(@class, 'mt-output')]"
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
    """An app, as a visitor sees it."""

    def __init__(self, driver, url: str) -> None:
        self.driver = driver
        self.url = url

    def open(self, width: int) -> None:
        """Loads the page anew, so many pixels wide."""
        size = {"width": width, "height": 844, "deviceScaleFactor": 1, "mobile": width < 500}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        self.driver.get_log("browser")
        self.driver.get(self.url)
        self.one(COMPARE)

    def all(self, path: str) -> list:
        """The visible elements of an XPath."""
        return [found for found in self.driver.find_elements("xpath", path) if found.is_displayed()]

    def one(self, path: str):
        """The first visible element of an XPath; waits for it."""
        return self.wait(lambda: next(iter(self.all(path)), None))

    def wait(self, condition: Callable[[], Any]):
        """Waits until the condition holds, and returns its value."""
        from selenium.common.exceptions import StaleElementReferenceException
        from selenium.webdriver.support.wait import WebDriverWait

        return WebDriverWait(
            self.driver, PATIENCE, ignored_exceptions=[StaleElementReferenceException]
        ).until(lambda _: condition())

    def click(self, path: str) -> None:
        """Clicks on an element, wherever the page has been scrolled to."""
        self.driver.execute_script("arguments[0].click()", self.one(path))

    def type(self, label: str, text: str) -> None:
        """Types into an empty field, and leaves it."""
        self.one(f"//label[span[normalize-space()='{label}']]//textarea").send_keys(text + "\t")

    def upload(self, paths: dict[str, list[Path]]) -> None:
        """Chooses files by the label of their field; of a label its beginning is enough."""
        for label, files in paths.items():
            block = (
                "//div[contains(@class, 'block')][.//label[contains(normalize-space(), "
                f"'{label}')]]"
            )
            self.wait(
                lambda block=block: self.driver.find_elements(
                    "xpath", f"{block}//input[@type='file']"
                )
            )
            self.driver.find_element("xpath", f"{block}//input[@type='file']").send_keys(
                "\n".join(map(str, files))
            )

    def assert_sound(self) -> None:
        """Nothing reaches beyond the right edge, and nothing was asked of another host."""
        assert self.driver.execute_script(
            "return document.documentElement.scrollWidth <= window.innerWidth"
        )
        events = [
            json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")
        ]
        sent = [
            event["params"]["request"]["url"]
            for event in events
            if event["method"] == "Network.requestWillBeSent"
        ]
        asked = [
            urllib.parse.urlsplit(url) for url in sent if not url.startswith(("data:", "chrome"))
        ]
        assert {url.hostname for url in asked} == {"127.0.0.1"}
        assert [
            entry for entry in self.driver.get_log("browser") if entry["level"] == "SEVERE"
        ] == []


@pytest.fixture(scope="module")
def served(driver, tmp_path_factory) -> Iterator[Callable[[Any], Page]]:
    """Serves apps until the tests end."""
    apps = []

    def start(app: Any) -> Page:
        apps.append(serve(app))
        return Page(driver, app.local_url)

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GRADIO_TEMP_DIR", str(tmp_path_factory.mktemp("gradio")))
        patch.setenv("GRADIO_ANALYTICS_ENABLED", "False")
        yield start
        for app in apps:
            app.close()


@pytest.fixture(scope="module")
def page(served) -> Page:
    return served(build_page())


@pytest.fixture(scope="module")
def scored() -> dict[str, dict[str, Any]]:
    """Scores of the example: metric -> system -> result."""
    known, pool = example(), ModelPool()
    found = {}
    for title, options in (
        ("XMoverScore mini", {"metric": "xmoverscore", "preset": "mini"}),
        (
            "SentSim mini (source)",
            {"metric": "sentsim", "preset": "mini", "setting": "src-mt"},
        ),
        ("chrF", {"metric": "chrf"}),
    ):
        found[title] = load_scorer(**options, lang_pair="de-en", pool=pool).score_systems(
            known.systems, sources=known.sources, references=known.references
        )
    return found


def files(folder: Path) -> dict[str, list[Path]]:
    known = example()
    columns = {"source.de": known.sources, "reference.en": known.references}
    columns |= {f"{name}.en": texts for name, texts in known.systems.items()}
    for name, texts in columns.items():
        (folder / name).write_text("\n".join(texts) + "\n", encoding="utf-8")
    systems = [folder / f"{name}.en" for name in known.systems]
    return {
        "Source": [folder / "source.de"],
        "References": [folder / "reference.en"],
        "Systems": systems,
    }


def cell(system: str, metric: str) -> str:
    return f"{TABLE}/tbody/tr[normalize-space(th)='{system}']/td[@data-metric='{metric}']"


def test_upload_table_download(page, scored, tmp_path):
    """The page shows and downloads the scorers' values; a click draws what was
    matched."""
    page.open(1280)
    page.upload(files(tmp_path))
    page.one(
        "//*[contains(@class, 'mt-facts')][contains(., '12 segments with sources and "
        "references, 3 systems')]"
    )
    page.one("//*[normalize-space()='Against references']")
    page.click(COMPARE)
    page.one(TABLE)
    for metric, systems in scored.items():
        for name, result in systems.items():
            assert page.one(
                f"{cell(name, metric)}/span[contains(@class, 'mt-mean')]"
            ).text == four_decimals(result.system)
    assert "careful" in page.one("//p[@class='mt-verdict']").text
    assert len(page.all("//div[@class='mt-figures']/figure/*[name()='svg']")) == 6
    # The segment on which the systems disagree most stands first; its scores and words are those of
    # the scorer.
    page.one(OUTPUT)
    by_segment = [result.segments for result in scored["XMoverScore mini"].values()]
    first = max(
        range(12),
        key=lambda row: max(column[row] for column in by_segment) - min(c[row] for c in by_segment),
    )
    assert page.one("//span[@class='mt-number']").text == str(first + 1)
    assert page.all(f"{OUTPUT}//span[@class='mt-chosen']/b")[1].text == four_decimals(
        by_segment[1][first]
    )
    assert page.all(f"{OUTPUT}//mark")
    page.click(f"({OUTPUT})[2]")
    assert int(page.one(PICTURE).get_attribute("naturalWidth")) > 300
    place = {"behavior": "allow", "downloadPath": str(tmp_path)}
    page.driver.execute_cdp_cmd("Browser.setDownloadBehavior", place)
    page.click("//*[normalize-space()='Segments, CSV'][self::button or self::a]")
    page.wait((tmp_path / "segments.csv").is_file)
    rows = list(csv.DictReader((tmp_path / "segments.csv").open(encoding="utf-8")))
    for metric, key in (("XMoverScore mini", "xmoverscore:mini"), ("chrF", "chrf")):
        found = [float(row[f"hasty {key}"]) for row in rows]
        assert found == pytest.approx(scored[metric]["hasty"].segments.tolist(), abs=1e-5)
    page.assert_sound()


def test_texts_are_pasted_on_a_phone(page):
    """The result stands below the input, within the width; a wrong input is a message that
    stays."""
    page.open(PHONE)
    page.click("//button[normalize-space()='Paste']")
    page.type("References, if there are any", "The house is small.\nThe dog sleeps.")
    page.type("Translations of system 1", "The home is small.\nA dog sleeps.")
    page.type("Translations of system 2", "The weather is good.")
    wrong = "system-2 has 1 segments but reference has 2; they must be parallel"
    page.one(f"//*[@role='alert'][contains(., '{wrong}')]")
    page.click(COMPARE)
    page.one(f"//*[@id='mt-status']//*[@role='alert'][contains(., '{wrong}')]")
    page.assert_sound()
    page.type("Translations of system 2", "\nThe cat eats.")
    page.one(
        "//*[contains(@class, 'mt-facts')][contains(., '2 segments with references, 2 systems')]"
    )
    assert not page.all("//*[normalize-space()='Against the source, without references']")
    page.click(COMPARE)
    table = page.one(TABLE)
    page.one(OUTPUT)
    assert not page.all("//*[@role='alert']")
    assert 0 < table.location["y"] - page.one(COMPARE).location["y"] < 844
    assert 300 < table.size["width"] <= PHONE
    page.assert_sound()


def test_a_file_that_is_too_large_is_refused(page, tmp_path):
    (tmp_path / "large.en").write_text("a\n" * (MAX_FILE // 2 + 1))
    page.open(PHONE)
    page.upload({"Source": [tmp_path / "large.en"]})
    page.one("//*[@data-testid='toast-text'][contains(., 'exceed the maximum allowed size')]")


def test_the_page_of_a_metric(served):
    """BERTR takes a source or references, scores one system, and draws its matches."""
    page = served(build_page("bertr"))
    page.open(PHONE)
    page.one("//h1[normalize-space()='BERTR']")
    page.click("//button[@role='tab'][normalize-space()='Paste']")
    page.type("Source, a segment per line", "Das Haus ist klein.")
    page.type("Translations of system 1", "The home is little.")
    page.click(COMPARE)
    row = page.one(f"{TABLE}//tbody/tr").text
    expected = load_scorer("bertr", preset="mini", lang_pair="de-en", against="source")
    score = expected.score(["The home is little."], sources=["Das Haus ist klein."]).system
    assert four_decimals(score) in row
    page.click(OUTPUT)
    assert int(page.one(PICTURE).get_attribute("naturalWidth")) > 300
    page.assert_sound()
