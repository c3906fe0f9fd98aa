"""The executed copy of the book that is checked in, and what a rerun must find again.

`outputs/reference/book` is the book at its defaults: executed notebooks and results.json. Beside it, `small` holds
the results.json of a run of few pairs, which the tests make anyway and compare with it. Pages are left out: `make book`
makes them.
"""

from __future__ import annotations

import base64
import io
import math
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
from PIL import Image

from baer_utils.batch.book import run_book
from baer_utils.batch.execution import environment
from baer_utils.reports import REPOSITORY

FOLDER = REPOSITORY / "outputs" / "reference"
SCRATCH = REPOSITORY / "outputs" / "reference-run"  # inside, so that no copy names a place of this machine
SMALL = {"N_PAIRS": 16, "N_LIVE": 4}  # parameters of the small run
RELATIVE, ABSOLUTE = 1e-6, 1e-9  # numbers agree within the larger of the two; other values must be the same
# results that may differ more: the same model on another processor, and names made from the last bits of weights
LOOSE = {"live / largest": 1e-3, "live / same_winner": 0.1}
UNCOMPARED = ("sha256",)
SHOWN = "00_start_here/figure_1.png"  # in the README, too
COLOURS = 128  # of a figure in the copy that is checked in


def make_reference() -> str:
    """Run the book at its defaults and small, and keep both below `FOLDER`; returns what was kept, in a sentence.

    Stopped half-way, the next call goes on where it was.
    """
    with environment(BAER_STORE=str(SCRATCH / "store")):  # where nobody has opened a test before
        runs = {"book": run_book({}, out=SCRATCH / "book"), "small": run_book(SMALL, out=SCRATCH / "small")}
    for name, run in runs.items():
        shutil.rmtree(FOLDER / name, ignore_errors=True)
        for path in [*run.glob("*/results.json"), *(run.glob("[0-9][0-9]_*.ipynb") if name == "book" else ())]:
            target = FOLDER / name / path.relative_to(run)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, target)
            if target.suffix == ".ipynb":
                make_small(target)
    (FOLDER / "swap.png").write_bytes(in_few_colours((runs["book"] / SHOWN).read_bytes()))
    shutil.rmtree(SCRATCH)
    files = [path for name in runs for path in (FOLDER / name).rglob("*") if path.is_file()]
    size = sum(path.stat().st_size for path in files) / 1e6
    return f"{len(files)} files, {size:.1f} MB, in {FOLDER.relative_to(REPOSITORY)}."


def make_small(copy: Path) -> None:
    """Redraw the figures of an executed copy in few colours, as is enough for lines, marks and letters."""
    notebook = nbformat.read(copy, as_version=4)
    for output in (output for cell in notebook.cells for output in cell.get("outputs", [])):
        if "image/png" in output.get("data", {}):
            image = in_few_colours(base64.b64decode(output["data"]["image/png"]))
            output["data"]["image/png"] = base64.b64encode(image).decode()
    nbformat.write(notebook, copy)


def in_few_colours(png: bytes) -> bytes:
    """The same image with at most `COLOURS` colours, about a third of the size."""
    buffer = io.BytesIO()
    image = Image.open(io.BytesIO(png)).convert("RGB")
    image.quantize(COLOURS, dither=Image.Dither.NONE).save(buffer, "png", optimize=True)
    return buffer.getvalue()


def differences(expected: Any, found: Any, path: str = "") -> Iterator[str]:
    """Where two results differ by more than the tolerances of this file, each in a line that names the place.

    Parameters
    ----------
    expected, found : values of `reports.load_results`.
    path : of the place compared, its keys joined by " / ".
    """
    if isinstance(expected, dict) and isinstance(found, dict):
        for key in dict.fromkeys([*expected, *found]):
            inner = f"{path} / {key}" if path else str(key)
            if key in UNCOMPARED:
                continue
            if (key in expected) != (key in found):
                yield f"{inner}: only in {'the reference' if key in expected else 'this run'}"
            else:
                yield from differences(expected[key], found[key], inner)
    elif isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        for number, (one, other) in enumerate(zip(expected, found, strict=True)):
            yield from differences(one, other, f"{path} / {number}")
    elif not _agree(expected, found, LOOSE.get(path, ABSOLUTE)):
        yield f"{path}: {expected!r} in the reference, {found!r} in this run"


def _agree(expected: Any, found: Any, absolute: float) -> bool:
    numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in (expected, found))
    if numbers:
        return math.isclose(expected, found, rel_tol=RELATIVE, abs_tol=absolute)
    return type(expected) is type(found) and expected == found
