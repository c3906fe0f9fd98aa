"""The rendered book: pages that refer to nothing outside, say what their images show, and hold mathematics."""

from __future__ import annotations

import html
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import nbformat
import pandas as pd
import pytest

from baer_utils.batch.book import NOTEBOOKS
from baer_utils.batch.markup import alternative_texts, cell_html, code, markdown
from baer_utils.batch.mathml import mathml
from baer_utils.batch.site import link_pages, write_contents, write_page
from baer_utils.batch.style import sheet
from tests.finished_book import finished_book

REFERS = ("src", "href", "srcset", "data", "action", "poster", "background", "cite", "longdesc", "xlink:href")
LARGEST_PAGE = 1_000_000  # bytes
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


class Page(HTMLParser):
    """What a page refers to, its images and ids, and whether every element is closed."""

    VOID = ("meta", "link", "img", "br", "hr", "input", "mspace", "col")

    def __init__(self, text: str):
        super().__init__()
        self.references, self.images, self.scripts, self.open, self.styles = [], [], 0, [], ""
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.references += [attributes[name] for name in REFERS if name in attributes]
        self.styles += attributes.get("style") or ""
        self.images += [attributes] if tag == "img" else []
        self.scripts += tag in ("script", "iframe", "object", "embed")
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        pass

    def handle_endtag(self, tag):
        assert self.open and self.open.pop() == tag, f"</{tag}> closes nothing"

    def handle_data(self, data):
        if self.open and self.open[-1] == "style":
            self.styles += data


def pages() -> list[Path]:
    found = sorted(finished_book().out.glob("*.html"))
    assert len(found) == len(list(NOTEBOOKS.glob("*.ipynb"))) + 2  # the contents and the symbols
    return found


def leads_to_a_place(path: Path, reference: str) -> bool:
    """Whether the place that a link names is on the page that it names."""
    page, _, place = html.unescape(reference).partition("#")
    there = (path.parent / page if page else path).read_text(encoding="utf-8") if place else ""
    return not place or f' id="{place}"' in html.unescape(there)


def test_no_page_refers_to_another_host_or_to_a_page_that_is_not_there():
    for path in pages():
        page = Page(path.read_text(encoding="utf-8"))
        assert not page.open and not page.scripts, path.name
        outside = [ref for ref in page.references if re.match(r"(?!data:)[a-z]+:|//", ref)]
        assert not outside and not re.search(r"url\(|@import|expression", page.styles), (path.name, outside)
        lost = [ref for ref in page.references if not ref.startswith("data:")]
        assert not [ref for ref in lost if not (path.parent / ref.partition("#")[0]).exists()], path.name
        assert not [ref for ref in lost if not leads_to_a_place(path, ref)], path.name


def test_pages_are_small_and_every_image_says_what_it_shows():
    for path in pages():
        text = path.read_text(encoding="utf-8")
        assert len(text.encode()) < LARGEST_PAGE, path.name
        told = [image.get("alt", "") for image in Page(text).images]
        assert all(len(alt) > 20 for alt in told), path.name
        assert "No description" not in text and "prefers-color-scheme: dark" in text


def test_previous_next_and_contents_lead_through_the_book_in_order():
    names = [path.stem for path in sorted(NOTEBOOKS.glob("*.ipynb"))] + ["symbols"]
    for number, name in enumerate(names):
        text = (finished_book().out / f"{name}.html").read_text(encoding="utf-8")
        bars = re.findall(r"<nav>(.*?)</nav>", text)
        assert len(bars) == 2 and bars[0] == bars[1]
        expected = [*names[max(number - 1, 0) : number], "index", *names[number + 1 : number + 2]]
        assert re.findall(r'href="(.*?)\.html"', bars[0]) == expected


@pytest.mark.parametrize("path", sorted(NOTEBOOKS.glob("*.ipynb")), ids=lambda path: path.stem)
def test_every_formula_of_a_notebook_is_drawn_without_a_script(path):
    sources = [
        "".join(cell["source"]) for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "markdown"
    ]
    shown = "".join(markdown(source) for source in sources)
    formulas = sum(len(re.findall(r"\$\$.+?\$\$|\$[^$\n]+\$", source, re.S)) for source in sources)
    assert shown.count("<math") == formulas and "$" not in re.sub(r"<code>.*?</code>", "", shown, flags=re.S)
    assert shown.count('class="tag"') == sum(source.count("\\tag{") for source in sources)


def test_letters_of_other_alphabets_are_characters_because_browsers_ignore_variants():
    drawn = html.unescape(mathml(r"\mathcal G \mathcal{B} \mathbb{1} \mathbb R \mathbf{x} s_{\rm stk} \arg\min_w"))
    assert all(letter in drawn for letter in "𝒢ℬ𝟙ℝ𝐱") and "mathvariant" not in drawn
    assert "<mtext>stk</mtext>" in drawn and ">arg<" in drawn


@pytest.mark.parametrize("latex", [r"\nosuchcommand{x}", r"\frac{1", r"x_", r"\left( x"])
def test_a_formula_that_cannot_be_drawn_is_an_error_and_no_garbage(latex):
    with pytest.raises(ValueError, match="a formula must"):
        mathml(latex)


def test_links_go_to_pages_and_other_hosts_become_text():
    assert 'href="02_x.html#part"' in markdown("[2](02_x.ipynb#part)") and 'href="a.html"' in markdown("[a](a.md)")
    told = markdown("[the paper](https://arxiv.org/abs/1) and https://example.org/x")
    assert "href" not in told and "the paper (arxiv.org/abs/1)" in told and "example.org/x" in told


def test_raw_text_from_outputs_cannot_become_markup_and_solutions_are_folded():
    stream = nbformat.v4.new_output("stream", text="<script>alert(1)</script>\x1b[31mred\x1b[0m")
    cell = nbformat.v4.new_code_cell("x = '<b>'", outputs=[stream], metadata={"tags": ["solution"]})
    shown = cell_html(cell, {})
    assert "<script" not in shown and "&lt;script" in shown and "red</span>" in shown
    assert shown.startswith("<details") and "&lt;b&gt;" in code("x = '<b>'")


def test_an_image_is_described_by_the_caption_that_follows_it_or_by_its_section():
    figure = [nbformat.v4.new_output("display_data", data={"image/png": PNG}) for _ in range(3)]
    said = nbformat.v4.new_output("execute_result", data={"text/markdown": '**Figure 1.2.** *It "moves" by 3.*'})
    cells = [
        nbformat.v4.new_markdown_cell("## How far\ntext"),
        nbformat.v4.new_code_cell("a", outputs=[figure[0]]), nbformat.v4.new_code_cell("b", outputs=[said, figure[1]]),
        nbformat.v4.new_code_cell("c", outputs=[said]), nbformat.v4.new_code_cell("d", outputs=[figure[2]]),
    ]  # fmt: skip
    notebook = nbformat.v4.new_notebook(cells=cells)
    texts = alternative_texts(notebook)
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", []) if "image/png" in output.data]
    assert [texts[id(output)] for output in outputs] == ['Figure 1.2. It "moves" by 3.'] * 2 + ["Figure: How far"]
    assert 'alt="Figure 1.2. It &quot;moves&quot; by 3."' in cell_html(notebook.cells[1], texts)


def test_navigation_follows_the_pages_that_are_there(tmp_path):
    for name in ("00_a", "01_b"):
        nbformat.write(
            nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell(f"# {name}")]), tmp_path / f"{name}.ipynb"
        )
        write_page(tmp_path / f"{name}.ipynb")
    link_pages(tmp_path, {"00_a": "A"})
    assert "01_b" not in (tmp_path / "00_a.html").read_text()
    link_pages(tmp_path, {"00_a": "A", "01_b": "B & C"})
    assert '<a href="01_b.html">B &amp; C →</a>' in (tmp_path / "00_a.html").read_text()


def test_the_contents_list_the_sections_of_a_page_but_for_those_that_every_page_has(tmp_path):
    source = (
        "# T\n\n## Is *a* < b, & when?\n\n### More\n\n## What we found, and what stays open\n\n## Exercises\n\n# no"
    )
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell(source)])
    nbformat.write(notebook, tmp_path / "00_a.ipynb")
    write_page(tmp_path / "00_a.ipynb")
    shared = {"question": "?", "status": "complete", "seconds": None, "results": {}}
    rows = [{"name": name, "title": "T", **shared} for name in ("00_a", "01_never_ran")]
    write_contents(tmp_path, {}, rows, tmp_path / "symbols.md")
    contents = (tmp_path / "index.html").read_text(encoding="utf-8")
    listed = re.findall(r'<a href="(00_a\.html#.*?)">(.*?)</a>', contents)
    assert [text for _, text in listed] == ["Is <em>a</em> &lt; b, &amp; when?", "More"]
    assert html.unescape(listed[0][0]) == "00_a.html#Is-a-<-b,-&-when?"  # as JupyterLab names it
    assert all(leads_to_a_place(tmp_path / "index.html", reference) for reference, _ in listed)
    assert contents.count('class="sections"') == 1


def test_nothing_may_be_wider_than_the_window():
    rules = sheet()
    for box in ("pre {", ".wide {", ".equation .formula {", "figure {"):
        assert "overflow-x: auto" in rules[rules.index(box) :].partition("}")[0], box
    assert "max-width: 100%" in rules and rules.count("prefers-color-scheme: dark") == 2


def test_words_in_a_frame_stand_at_the_left_and_numbers_at_the_right():
    frame = pd.DataFrame(
        {"score": [-0.25, 1e-9], "what": ["a <b>", "12"], "p": ["5%", None]},
        index=pd.MultiIndex.from_tuples([("x", 1), ("x", 2)], names=["one", "two"]),
    )
    cell = nbformat.v4.new_code_cell(
        outputs=[nbformat.v4.new_output("display_data", {"text/html": frame._repr_html_()})]
    )
    shown = cell_html(cell, {})
    assert re.findall(r'<t[dh] class="words">(.*?)</t[dh]>', shown) == ["what", "", "a &lt;b&gt;", "12"]
    assert len(re.findall("<t[dh][ >]", shown)) == len(re.findall("<t[dh][ >]", frame._repr_html_()))
