"""A Chromium without a window for the checks that look at pages: what it logs, asks for, and how a page is laid out.

Selenium drives Debian's Chromium; nothing is fetched, and every request of a page is on record.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

from selenium import webdriver
from selenium.webdriver.chrome.service import Service

INSTALL = "apt-get install -y chromium chromium-driver"
FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars",
)  # fmt: skip
LOCAL = ("127.0.0.1", "localhost")  # hosts that a page may ask
TALLEST = 16000  # pixels of a picture; no browser paints more at once
AUDIT = Path(__file__).with_name("page_audit.js").read_text(encoding="utf-8")


def missing() -> str | None:
    """What has to be installed before a browser can be opened, in a sentence; None if nothing."""
    absent = [program for program in ("chromium", "chromedriver") if not shutil.which(program)]
    return f"{' and '.join(absent)} must be installed: {INSTALL}" if absent else None


@contextmanager
def browser() -> Iterator[webdriver.Chrome]:
    """A browser with an empty profile, ended whatever happens."""
    os.environ |= {"SE_OFFLINE": "true", "SE_AVOID_STATS": "true"}
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        for flag in [*FLAGS, f"--user-data-dir={profile}"]:
            options.add_argument(flag)
        driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
        try:
            driver.set_script_timeout(300)
            driver.set_page_load_timeout(300)
            yield driver
        finally:
            with suppress(Exception):  # a browser that died on its own cannot be asked to
                driver.quit()


def show(driver: webdriver.Chrome, width: int, height: int = 900, scheme: str = "light") -> None:
    """Set the window, and the colours that its user prefers: "light" or "dark"."""
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    preferred = [{"name": "prefers-color-scheme", "value": scheme}]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": preferred})


def screenshot(driver: webdriver.Chrome, path: Path, *, whole: bool = False) -> None:
    """What the window shows, or the whole page, as PNG."""
    what = {"captureBeyondViewport": whole}
    if whole:
        size = driver.execute_cdp_cmd("Page.getLayoutMetrics", {})["cssContentSize"]
        what["clip"] = {
            "x": 0, "y": 0, "width": size["width"], "height": min(size["height"], TALLEST), "scale": 1
        }  # fmt: skip
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(base64.b64decode(driver.execute_cdp_cmd("Page.captureScreenshot", what)["data"]))


def audit(driver: webdriver.Chrome, parts: str = "body", *, contrast: float = 4.5) -> dict:
    """Elements out of the window or clipped, pale or tiny texts, images and formulas that do not show (`wrong`).

    `parts` selects the elements to look into. `contrast` is the least ratio between a text and its
    ground that counts as readable (WCAG 2, level AA: 4.5).
    """
    return driver.execute_script(AUDIT, parts, contrast)


def console(driver: webdriver.Chrome) -> list[str]:
    """Errors logged since the last call."""
    return [entry["message"] for entry in driver.get_log("browser") if entry["level"] == "SEVERE"]


def strangers(driver: webdriver.Chrome) -> list[str]:
    """Addresses on other hosts that were asked for since the last call."""
    events = [json.loads(entry["message"])["message"] for entry in driver.get_log("performance")]
    asked = [urlsplit(e["params"].get("request", e["params"])["url"]) for e in events
             if e["method"] in ("Network.requestWillBeSent", "Network.webSocketCreated")]  # fmt: skip
    return [u.geturl() for u in asked if u.scheme in ("http", "https", "ws", "wss") and u.hostname not in LOCAL]
