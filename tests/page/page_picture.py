"""Takes the picture of the page that README and guide show, in Debian's Chromium::

python tests/page/page_picture.py tools/guide/pictures/page.png
"""

import io
import shutil
import sys
import tempfile
import time
from pathlib import Path

from PIL import Image
from selenium import webdriver
from selenium.webdriver.support.wait import WebDriverWait

from mtmetrics.page.app import build_page
from mtmetrics.page.theme import serve

PATIENCE = 600
# CSS pixels; the colours of a palette keep the file small.
WIDTH, HEIGHT, COLOURS = 1000, 900, 64
FLAGS = ("headless", "no-sandbox", "disable-gpu", "disable-dev-shm-usage", "no-first-run")
BUTTON = "//button[normalize-space()='{}']"
# The example fills the fields with files of these names, and the boxes follow a moment later.
UPLOADED = "//*[contains(text(), 'careful')]"
SETTLING = 20
TABLE = "//table[contains(@class, 'mt-systems')]"


def visible(driver: webdriver.Chrome, path: str):
    """The first visible element of an XPath; waits for it."""
    return WebDriverWait(driver, PATIENCE).until(
        lambda _: next((e for e in driver.find_elements("xpath", path) if e.is_displayed()), None)
    )


def click(driver: webdriver.Chrome, label: str) -> None:
    driver.execute_script("arguments[0].click()", visible(driver, BUTTON.format(label)))


def picture(url: str, profile: str) -> Image.Image:
    """Compares the systems of the example, and takes the picture of the result."""
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for flag in (*FLAGS, f"user-data-dir={profile}", f"window-size={WIDTH},{HEIGHT}"):
        options.add_argument(f"--{flag}")
    driver = webdriver.Chrome(options, webdriver.ChromeService(shutil.which("chromedriver")))
    try:
        driver.set_page_load_timeout(PATIENCE)
        driver.get(url)
        click(driver, "Try the example")
        visible(driver, UPLOADED)
        time.sleep(SETTLING)
        click(driver, "Compare")
        table = visible(driver, TABLE)
        driver.execute_script(
            "arguments[0].scrollIntoView(); window.scrollBy(0, -arguments[1])", table, HEIGHT // 4
        )
        return Image.open(io.BytesIO(driver.get_screenshot_as_png()))
    finally:
        driver.quit()


if __name__ == "__main__":
    app = build_page()
    serve(app)
    with tempfile.TemporaryDirectory() as profile:
        image = picture(app.local_url, profile)
    image.convert("RGB").quantize(COLOURS).save(Path(sys.argv[1]), optimize=True)
    app.close()
