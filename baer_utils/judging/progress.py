"""Where a long run stands: a bar for a person, a file for a watching program, lines for a log, else silence."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from pathlib import Path

from tqdm.auto import tqdm

EVERY_SECONDS = 30  # between lines of a log


class Progress:
    """Pairs done, tokens per second, time left.

    Parameters
    ----------
    pairs, work : totals; work is in any unit that grows with the time a pair takes.
    show : False keeps silent.

    Notes
    -----
    With BAER_PROGRESS set, only that file is written (JSON, replaced whole). In a terminal, or a notebook that a person
    has open, there is a bar. A notebook kernel without a person (papermill) is silent. Elsewhere a line now and then.
    """

    def __init__(self, pairs: int, work: float, *, show: bool = True):
        self.pairs, self.work = pairs, work
        self.done, self.tokens = 0, 0
        self._worked, self._skipped, self._ahead = 0.0, 0.0, 0
        self._start = self._last = time.monotonic()
        self._file = os.environ.get("BAER_PROGRESS") if show else None
        self._bar = tqdm(total=pairs, unit="pair", leave=False) if show and not self._file and _watched() else None
        self._lines = show and not self._file and self._bar is None and not _in_kernel()
        if self._file:
            self._write()  # a place that cannot be written is an error now, not after hours

    def update(self, pairs: int, work: float, tokens: int) -> None:
        """Count `pairs` finished, the work in them, and the tokens newly computed for them (0: all were found)."""
        self.done += pairs
        self.tokens += tokens - self._ahead
        self._ahead = 0
        if tokens:
            self._worked += work
        else:
            self._skipped += work
        if self._bar is not None:
            self._bar.update(pairs)
        self._show()

    def advance(self, tokens: int) -> None:
        """Tokens computed for pairs that are not finished yet; `update` will count them once."""
        self.tokens += tokens
        self._ahead += tokens
        self._show()

    def _show(self) -> None:
        state = self.state()
        if self._bar is not None:
            left = "" if state["seconds_left"] is None else f", {state['seconds_left']:.0f} s left"
            self._bar.set_postfix_str(f"{state['tokens_per_second']:.0f} tokens/s{left}")
        elif self._file:
            with contextlib.suppress(OSError):  # a full disk must not end the run for the sake of its progress
                self._write()
        elif self._lines and time.monotonic() - self._last > EVERY_SECONDS:
            self._last = time.monotonic()
            print(f"{self.done} of {self.pairs} pairs, {state['tokens_per_second']:.0f} tokens/s", file=sys.stderr)

    def _write(self) -> None:
        scratch = Path(f"{self._file}.part")
        scratch.write_text(json.dumps(self.state()))
        scratch.replace(self._file)

    def state(self) -> dict:
        """pairs_done, pairs, tokens_per_second, seconds_left (None before anything was computed)."""
        seconds = max(time.monotonic() - self._start, 1e-9)
        left = None
        if self._worked:
            left = seconds / self._worked * max(0.0, self.work - self._worked - self._skipped)
        return {"pairs_done": self.done, "pairs": self.pairs, "tokens_per_second": self.tokens / seconds,
                "seconds_left": left}  # fmt: skip

    def close(self) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.close()


def _in_kernel() -> bool:
    return "ipykernel" in sys.modules and "IPython" in sys.modules and sys.modules["IPython"].get_ipython() is not None


def _watched() -> bool:
    if _in_kernel():  # notebook servers name their sessions; papermill and nbconvert do not
        return any(name in os.environ for name in ("JPY_SESSION_NAME", "VSCODE_PID", "COLAB_RELEASE_TAG"))
    return sys.stderr is not None and sys.stderr.isatty()
