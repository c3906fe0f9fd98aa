"""One small run of the real book, made when it is first asked for and shared by every test that reads it."""

from __future__ import annotations

import atexit
import functools
import io
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from baer_utils.batch.book import run_book
from baer_utils.batch.reference import SMALL


@dataclass(frozen=True)
class Finished:
    """Where a run of the book lies, the store it judged into, and what it printed."""

    out: Path
    store: Path
    printed: str


@functools.cache
def finished_book() -> Finished:
    """The book of few pairs from recorded answers (notebook 01 judges some live, too), with a store of its own."""
    place = Path(tempfile.mkdtemp(prefix="book-"))
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    return Finished(place / "run", place / "store", run_into(place / "run", place / "store"))


def run_into(out: Path, store: Path, only: tuple[str, ...] = (), keep_going: bool = False, **settings: object) -> str:
    """Run the book into a folder, with a store; returns what it printed."""
    stream = io.StringIO()
    with mock.patch.dict(os.environ, BAER_STORE=str(store), HF_HUB_OFFLINE="1"):
        run_book(SMALL | settings, out=out, only=only, keep_going=keep_going, stream=stream)
    return stream.getvalue()
