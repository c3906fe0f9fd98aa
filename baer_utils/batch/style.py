"""The look of the rendered book: one sheet, put into every page, light or dark as the reader's system is.

Nothing is wider than the window: tables, code and formulas scroll inside their own box. Figures have a white ground of
their own, so they stay as drawn in the dark.
"""

from __future__ import annotations

from pygments.formatters import HtmlFormatter

SHEET = """
:root { color-scheme: light dark; --ink: #1f2328; --ground: #ffffff; --soft: #59636e; --line: #d1d9e0; --box: #f6f8fa;
  --link: #0550ae; --bad: #ffebe9;
  /* what views of the book ask JupyterLab for */
  --jp-content-font-color1: var(--ink); --jp-layout-color2: var(--box); --jp-border-color2: var(--line); }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --ground: #0d1117; --soft: #9aa4af; --line: #3d444d;
  --box: #161b22; --link: #79b8ff; --bad: #3c1618; } }
* { box-sizing: border-box; }
body { margin: 0; color: var(--ink); background: var(--ground); font: 17px/1.6 system-ui, "Segoe UI", sans-serif;
  overflow-wrap: break-word; }
main, nav { max-width: 65rem; margin: 0 auto; padding: 0 1.25rem; }
nav { display: flex; flex-wrap: wrap; gap: .3rem 1.5rem; justify-content: space-between; padding: .9rem 1.25rem;
  font-size: .92em; }
nav:last-of-type { border-top: 1px solid var(--line); margin-top: 3rem; }
a { color: var(--link); }
:is(section.markdown, .said, .solution) > :is(p, ul, ol) { max-width: 47rem; }
h1, h2, h3 { line-height: 1.25; margin: 1.6em 0 .6em; }
h1 { margin-top: .6em; }
pre, code, .source { font-family: ui-monospace, "SFMono-Regular", Menlo, Consolas, "DejaVu Sans Mono", monospace; }
code { font-size: .88em; background: var(--box); border-radius: 4px; padding: .1em .3em; }
pre { font-size: .8rem; line-height: 1.5; margin: 0; padding: .7rem .9rem; overflow-x: auto; }
pre code { background: none; padding: 0; font-size: inherit; }
.source { background: var(--box); border: 1px solid var(--line); border-radius: 6px; margin: 1rem 0 .6rem; }
.outputs { margin: 0 0 1.2rem; }
.outputs > * { margin: .6rem 0; }
.outputs > pre { border-left: 3px solid var(--line); }
pre.stdout { white-space: pre-wrap; }
pre.stderr { background: var(--bad); }
.wide { overflow-x: auto; }
table { border: 0; border-collapse: collapse; font-size: .84rem; line-height: 1.4; }
th, td { padding: .35rem .7rem; border: 0; border-bottom: 1px solid var(--line); text-align: right;
  vertical-align: top; }
section.markdown :is(th, td), table.contents :is(th, td) { text-align: left; }
.dataframe :is(tbody th, thead th:first-child, .words) { text-align: left; }
.dataframe tbody th { font-weight: 600; white-space: nowrap; }
figure { margin: 1rem 0; overflow-x: auto; }
figure img { display: block; max-width: 100%; height: auto; background: #fff; border-radius: 4px; }
math { font-size: 1.08em; }
.equation { display: flex; flex-wrap: wrap; align-items: center; gap: 0 1rem; margin: 1.1rem 0; }
.equation .formula { flex: 1 1 auto; max-width: 100%; overflow-x: auto; overflow-y: hidden; padding: .3rem 0; }
.tag { margin-left: auto; color: var(--soft); font-size: .88em; white-space: nowrap; }
details.solution { border-left: 3px solid var(--line); padding: .1rem 0 .1rem 1rem; margin: .8rem 0; }
summary { cursor: pointer; color: var(--soft); }
nav:empty { display: none; }
table.contents td:first-child { width: 60%; }
table.contents p { margin: .2rem 0 0; }
.sections { line-height: 1.7; }
.numbers, .state { font-size: .9em; color: var(--soft); }
@media (max-width: 50rem) { body { font-size: 16px; } main, nav { padding-left: .9rem; padding-right: .9rem; } }
@media print { nav { display: none; } pre { white-space: pre-wrap; } }
"""


def sheet() -> str:
    """The whole sheet: the look, and the colours of code in the light and in the dark."""
    light, dark = (HtmlFormatter(style=name).get_style_defs(".source") for name in ("default", "github-dark"))
    ground = ".source, .source pre { background: var(--box); line-height: 1.5; }"
    return f"{SHEET}{light}\n@media (prefers-color-scheme: dark) {{\n{dark}\n}}\n{ground}\n"
