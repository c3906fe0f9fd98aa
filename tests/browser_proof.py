"""The book seen in a real browser: every page of the site, and the notebooks with their widgets in JupyterLab.

Screenshots go to outputs/browser, to be looked at: a program sees that a text is cut off, not that a page is ugly.
"""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from urllib.parse import quote, unquote

from selenium import webdriver
from selenium.webdriver.common.by import By

from baer_utils.batch.book import run_book
from baer_utils.batch.execution import environment
from baer_utils.reports import REPOSITORY
from tests import chromium
from tests.lab_proof import lab

OUT = REPOSITORY / "outputs" / "browser"
WIDTHS = (1280, 800)
SCHEMES = ("light", "dark")
FAULTS = {  # what the audit must see, as pieces of a page
    "out of the window": '<p style="width: 3000px">far</p>',
    "clipped": '<p style="width: 3em; overflow: hidden"><code>a_name_that_is_too_long</code></p>',
    "contrast": '<p style="color: #bbb; background: #fff">pale</p>',
    "letters of 8px": '<p style="font-size: 8px">tiny</p>',
    "not loaded": '<img alt="none" src="file:///none.png">',
    "without alternative text": '<img src="data:image/gif;base64,R0lGODlhAQABAAAAACwAAAAAAQABAAA=">',
    "an empty formula": "<math></math>",
    "a formula to scroll": '<div class="formula" style="width: 2em"><math><mi>formula</mi></math></div>',
}


def browser() -> dict:
    """Pages and notebooks as a reader sees them; raises AssertionError with everything that is wrong."""
    shutil.rmtree(OUT / "shots", ignore_errors=True)
    measured = {}
    with environment(BAER_STORE=str(OUT / "store")):
        book = run_book({"N_PAIRS": 16, "N_LIVE": 0}, out=OUT / "book")
        for look, at in ((site, book), (lab, OUT)):
            start = time.monotonic()
            with chromium.browser() as driver:
                measured[look.__name__] = look(driver, at)
            measured[look.__name__]["seconds"] = round(time.monotonic() - start, 1)
    wrong = [line for part in measured.values() for line in part.pop("wrong")]
    assert not wrong, f"{len(wrong)} things are wrong:\n" + "\n".join(wrong)
    return measured | {"console_errors": 0, "screenshots": len(list((OUT / "shots").glob("*.png")))}


def site(driver: webdriver.Chrome, book: Path) -> dict:
    """Every page from disk in both widths and both schemes, solutions unfolded, then the walk along the links."""
    wrong, counts = blind(driver), {"pages": 0, "views": 0, "images": 0, "formulas": 0, "texts": 0}
    for page in sorted(book.glob("*.html")):
        driver.get(page.as_uri())
        driver.execute_script("document.querySelectorAll('details').forEach(e => { e.open = true })")
        counts["pages"] += 1
        for width, scheme in ((width, scheme) for width in WIDTHS for scheme in SCHEMES):
            chromium.show(driver, width, scheme=scheme)
            seen = chromium.audit(driver)
            wrong += [f"{page.stem}, {width} pixels, {scheme}: {line}" for line in seen.pop("wrong")]
            counts |= {key: counts[key] + number for key, number in ({"views": 1} | seen).items()}
            chromium.screenshot(driver, OUT / "shots" / f"site-{page.stem}-{width}-{scheme}.png", whole=True)
        wrong += [f"{page.stem}: {line}" for line in chromium.console(driver) + chromium.strangers(driver)]
        wrong += [f"{page.stem}: a link leads nowhere: {link}" for link in dead_links(driver, book)]
    return counts | {"wrong": wrong + walk(driver, book)}


def blind(driver: webdriver.Chrome) -> list[str]:
    """Faults that the audit does not see on a page that has them all: an audit that sees nothing proves nothing."""
    chromium.show(driver, 800)
    driver.get(f"data:text/html,{quote('<!doctype html>' + ''.join(FAULTS.values()))}")
    found = "\n".join(chromium.audit(driver)["wrong"])
    chromium.console(driver)  # the image that is not there
    return [f"the audit is blind for: {fault}" for fault in FAULTS if fault not in found]


def dead_links(driver: webdriver.Chrome, book: Path) -> list[str]:
    """Links of the page that name no file of the run, or a place that is not on the page."""
    links = driver.execute_script("return [...document.querySelectorAll('a[href]')].map(a => a.href)")
    here = driver.current_url.partition("#")[0]
    files = {path.as_uri() for path in book.rglob("*") if path.is_file()}
    places = {""} | set(driver.execute_script("return [...document.querySelectorAll('[id]')].map(e => e.id)"))
    parts = [(link, *link.partition("#")[::2]) for link in links]
    return [link for link, page, place in parts if page not in files or page == here and unquote(place) not in places]


def walk(driver: webdriver.Chrome, book: Path) -> list[str]:
    """From the contents through every page by clicking, and back from the last; what went wrong."""
    names = [path.stem for path in sorted(book.glob("[0-9][0-9]_*.html"))] + ["symbols"]
    driver.get((book / "index.html").as_uri())
    driver.find_element(By.CSS_SELECTOR, f'a[href="{names[0]}.html"]').click()
    visited = [Path(driver.current_url).stem]
    for _ in names[1:]:
        driver.find_element(By.CSS_SELECTOR, "nav a:last-child").click()
        visited.append(Path(driver.current_url).stem)
    driver.find_element(By.LINK_TEXT, "Contents").click()
    ends = [] if Path(driver.current_url).stem == "index" else [f"the walk ended at {driver.current_url}"]
    return ends + ([] if visited == names else [f"the next page led through {visited}, not {names}"])
