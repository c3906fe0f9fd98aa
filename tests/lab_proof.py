"""Notebooks in JupyterLab as their readers use them: run all cells, then work the widgets.

The notebooks are copies with few pairs, and no live ones, set by the cell that papermill adds, so nothing is judged but
what the playground asks, and the notebooks of the repository stay as they are.
"""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
from papermill.iorw import load_notebook_node
from papermill.parameterize import parameterize_notebook
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import Select

from baer_utils.batch.book import NOTEBOOKS
from baer_utils.reports import REPOSITORY
from baer_utils.widgets.browser import EVERY, ORDERS, OUTVOTED
from tests import chromium
from tests.jupyterlab import THEMES, cell, change_theme, idle, jupyterlab, run_all, wait

SHOWN = ".jp-RenderedMarkdown, .jp-OutputArea-output"  # what is the book's in a notebook; the rest is JupyterLab's
FOREIGN = "without alternative text"  # JupyterLab shows images without
SURER = "self_consistency"  # its confidence differs from pair to pair
TYPED = ("What is 7 times 8?", "7 times 8 is 56.", "It is 54.")
WIDTHS = (1280, 800)


def lab(driver: webdriver.Chrome, out: Path) -> dict:
    """Each notebook with a widget: run, worked, looked at in both themes and widths."""
    found, wrong = {}, []
    with jupyterlab(out / "jupyterlab.log") as address:
        for start, widget, work, few in WIDGETS:
            source = next(NOTEBOOKS.glob(f"{start}_*.ipynb"), None)
            if source is None:
                print(f"browser: the {widget} is not seen, notebook {start} is not there")
                found[widget] = "not measured"
                continue
            chromium.show(driver, 1280)
            state = run_all(driver, address(_copy(source, out, few)))
            found[source.stem] = state["run"]
            wrong += [f"{source.stem}: {error}" for error in state["errors"]]
            found[widget] = work(driver, out)
            wrong += look(driver, source.stem, widget, out / "shots")
            wrong += [f"{source.stem}: {line}" for line in chromium.console(driver) + chromium.strangers(driver)]
    return found | {"wrong": wrong}


def _copy(source: Path, out: Path, few: dict) -> str:
    """Write the notebook with these parameters; its path from the repository's root."""
    notebook = load_notebook_node(str(source))
    values = few | {"OUT_DIR": str((out / "lab").relative_to(REPOSITORY))}
    copy = out / "notebooks" / source.name
    copy.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(parameterize_notebook(notebook, values), copy)
    return str(copy.relative_to(REPOSITORY))


def look(driver: webdriver.Chrome, notebook: str, widget: str, shots: Path) -> list[str]:
    """The widget and the notebook's beginning in every theme and width; what is wrong with how they show."""
    wrong = []
    for scheme, width in ((scheme, width) for scheme in THEMES for width in WIDTHS):
        change_theme(driver, scheme)
        chromium.show(driver, width, 1200)
        for place in ("title", widget):
            cell(driver, place)
            idle(driver)
            chromium.screenshot(driver, shots / f"lab-{notebook}-{place}-{width}-{scheme}.png")
        faults = chromium.audit(driver, SHOWN)["wrong"]
        wrong += [f"{notebook}, {width} pixels, {scheme}: {fault}" for fault in faults if FOREIGN not in fault]
    return wrong


def playground(driver: webdriver.Chrome, out: Path) -> dict:
    """Type a pair, have it judged live, then type its swap: scores add up to 0, and change places."""
    asked = [press(driver, TYPED), press(driver, (TYPED[0], TYPED[2], TYPED[1]))]
    for score, swapped in asked:
        assert score + swapped == 0, f"the scores {score} and {swapped} do not add up to 0"
    assert asked[0] == asked[1][::-1] and asked[0][0] != 0, f"typed the other way round, the scores are {asked}"
    return {"scores": asked[0]}


def press(driver: webdriver.Chrome, texts: tuple[str, ...]) -> tuple[float, float]:
    """Fill the fields and press the button; the two scores."""
    node = cell(driver, "swap_playground")
    for field, text in zip(node.find_elements(By.CSS_SELECTOR, "textarea"), texts, strict=True):
        field.send_keys(Keys.CONTROL, "a", Keys.NULL, text)
    idle(driver)
    node.find_element(By.CSS_SELECTOR, "button.jupyter-button").click()
    idle(driver)
    said = wait(lambda: re.search(r"Asked smollm2-135m\S* four times|could not be judged.*", node.text), "no judgment")
    assert said[0].startswith("Asked"), said[0]
    assert "add up to 0.0" in node.text, node.text
    first, second = re.search(r"score s\s+([-+][\d.]+)\s+([-+][\d.]+)", node.text).groups()
    return float(first), float(second)


def disagreements(driver: webdriver.Chrome, out: Path) -> dict:
    """Filter by expert, kind, subset and confidence: as many pairs as the page of the site counts; turn the pages."""
    node = cell(driver, "disagreement_browser")
    expert, kind, subset = (Select(found) for found in node.find_elements(By.TAG_NAME, "select"))
    expected = counted(out / "book" / "01_judging_protocols.ipynb")
    assert set(expected) == {option.text for option in expert.options}, "the browser shows other experts than the page"
    for name, numbers in expected.items():
        expert.select_by_visible_text(name)
        for kind_name, number in zip((EVERY, ORDERS, OUTVOTED), numbers, strict=True):
            kind.select_by_visible_text(kind_name)
            assert matching(driver, node) == number, (
                f"{name}, {kind_name}: {matching(driver, node)}, not {number} pairs"
            )
    kind.select_by_visible_text(EVERY)
    total, parts = matching(driver, node), []
    for option in [option.text for option in subset.options][1:]:
        subset.select_by_visible_text(option)
        parts.append(matching(driver, node))
    assert sum(parts) == total, f"the subsets have {parts} pairs, all of them {total}"
    subset.select_by_index(0)
    expert.select_by_visible_text(SURER)
    all_of_it = matching(driver, node)
    least, _, place = node.find_elements(By.CSS_SELECTOR, ".noUi-handle")
    before = node.text
    place.send_keys(Keys.ARROW_RIGHT)
    idle(driver)
    assert "2 of " in node.text and node.text != before, "the next pair does not show"
    least.send_keys(*[Keys.ARROW_RIGHT] * 10)
    sure = matching(driver, node)
    assert 0 < sure < all_of_it, f"a bound on confidence leaves {sure} of {all_of_it} pairs"
    least.send_keys(*[Keys.ARROW_LEFT] * 10)
    expert.select_by_visible_text("chain_of_thought")
    assert matching(driver, node) == expected["chain_of_thought"][0]
    return {"experts": len(expected), "pairs": total, "subsets": len(parts), "surer_pairs": sure}


def matching(driver: webdriver.Chrome, node: WebElement) -> int:
    """How many pairs the browser says that it has found."""
    idle(driver)
    found = re.search(r"of (\d+) pairs that match|No pair matches", node.text)
    return int(found[1] or 0)


def counted(copy: Path) -> dict[str, tuple[int, ...]]:
    """Expert -> pairs answered, contradicting themselves, outvoted: from the static side in an executed copy."""
    cells = nbformat.read(copy, as_version=4).cells
    shown = (
        next(c for c in cells if "disagreement_browser(" in c.source)
        .outputs[0]["data"]["text/html"]
        .partition("</table>")[0]
    )
    rows = [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in shown.split("<tr>")]
    return {row[0]: tuple(map(int, row[1:4])) for row in rows if row}


def dial(driver: webdriver.Chrome, out: Path) -> dict:
    """Turn tau from its least to its largest value: another sentence and another picture."""
    node = cell(driver, "tau_dial")
    shown = []
    for key in (Keys.HOME, Keys.END):
        node.find_element(By.CSS_SELECTOR, ".noUi-handle").send_keys(key)
        idle(driver)
        picture = node.find_element(By.CSS_SELECTOR, ".jp-OutputArea-output img")
        shown.append((re.search("tau = .*", node.text)[0], picture.get_attribute("src")))
    (least, picture), (most, other_picture) = shown
    found = [said.partition(":")[2] for said in (least, most)]
    assert found[0] != found[1] and picture != other_picture, f"the dial turns and nothing changes: {least}"
    return {"least": least, "most": most}


WIDGETS = (  # number of the notebook, function that makes the widget, what works it, parameters of the copy
    ("00", "swap_playground", playground, {"N_PAIRS": 16}),
    ("01", "disagreement_browser", disagreements, {"N_PAIRS": 16, "N_LIVE": 0}),
    ("10", "tau_dial", dial, {}),  # on few pairs every tau gives the same plan
)
