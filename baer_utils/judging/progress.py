"""Where a long run stands: a bar for a person, a file for a watching program, lines for a log, else silence."""

from __future__ import annotations

import contextlib
import json
import math
import os
import sys
import time
from pathlib import Path

from tqdm.auto import tqdm

from baer_utils.presence import in_kernel, is_live

EVERY_SECONDS = 30  # between lines of a log
RENEWED_SECONDS = 0.5  # between looks of a bar or a file, while no pair is finished


class Progress:
    """Pairs done, the part of all work that is done, tokens per second, time left.

    Parameters
    ----------
    pairs, work : totals; work is in any unit that grows with the time a pair takes.
    show : False keeps silent.

    Notes
    -----
    With BAER_PROGRESS set, only that file is written (JSON, replaced whole). In a terminal, or a notebook that a person
    has open, there is a bar. A notebook kernel without a person (papermill) is silent. Elsewhere a line now and then.

    Pairs are asked in blocks, so that none of a block is finished before all are: what moves in between is the work.
    """

    def __init__(self, pairs: int, work: float, *, show: bool = True):
        self.pairs, self.work = pairs, work
        self.done, self.tokens = 0, 0
        self._worked, self._skipped = 0.0, 0.0
        self._ahead, self._tokens_ahead = 0.0, 0
        self._start = self._last = self._renewed = time.monotonic()
        self._file = os.environ.get("BAER_PROGRESS") if show else None
        self._bar = _bar(work) if show and not self._file and _watched() else None
        self._lines = show and not self._file and self._bar is None and not in_kernel()
        if self._file:
            self._write()  # a place that cannot be written is an error now, not after hours

    def update(self, pairs: int, work: float, tokens: int) -> None:
        """Count `pairs` finished, the work in them, and the tokens newly computed for them (0: all were found)."""
        self.done += pairs
        self._count(max(0.0, work - self._ahead), tokens - self._tokens_ahead, found=not tokens)
        self._ahead, self._tokens_ahead = 0.0, 0
        self._show()

    def advance(self, work: float, tokens: int, *, found: bool = False) -> None:
        """Count work and tokens of pairs that are not finished yet; `update` will not count them again."""
        self._ahead += work
        self._tokens_ahead += tokens
        self._count(work, tokens, found=found)
        if time.monotonic() - self._renewed >= RENEWED_SECONDS:
            self._show()

    def _count(self, work: float, tokens: int, *, found: bool) -> None:
        self.tokens += tokens
        self._skipped += work * found
        self._worked += work * (not found)

    def _show(self) -> None:
        self._renewed = time.monotonic()
        if self._bar is not None:
            self._bar.n = min(self.work, self._worked + self._skipped)
            self._bar.set_postfix_str(self._spelled())
        elif self._file:
            with contextlib.suppress(OSError):  # a full disk must not end the run for the sake of its progress
                self._write()
        elif self._lines and self._renewed - self._last > EVERY_SECONDS:
            self._last = self._renewed
            print(f"{self.state()['share_done']:.0%} done, {self._spelled()}", file=sys.stderr)

    def _spelled(self) -> str:
        state = self.state()
        parts = [f"{self.done} of {self.pairs} pairs"]
        if state["tokens_per_second"]:
            parts.append(f"{state['tokens_per_second']:.0f} tokens/s")
        if state["seconds_left"] is not None:
            parts.append(f"{tqdm.format_interval(state['seconds_left'])} left")
        return ", ".join(parts)

    def _write(self) -> None:
        scratch = Path(f"{self._file}.part")
        scratch.write_text(json.dumps(self.state()))
        scratch.replace(self._file)

    def state(self) -> dict:
        """pairs_done, pairs, share_done (of all work, 0 to 1), tokens_per_second, seconds_left (None: unknown yet)."""
        seconds = max(time.monotonic() - self._start, 1e-9)
        done = self._worked + self._skipped
        left = seconds / self._worked * max(0.0, self.work - done) if self._worked else None
        share = 1.0 if self.done == self.pairs else min(0.99, math.floor(100 * done / max(self.work, 1e-9)) / 100)
        return {"pairs_done": self.done, "pairs": self.pairs, "share_done": share,
                "tokens_per_second": self.tokens / seconds, "seconds_left": left}  # fmt: skip

    def close(self) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.close()


def _bar(work: float) -> tqdm:
    return tqdm(total=max(work, 1e-9), leave=False, bar_format="{l_bar}{bar}| {elapsed}{postfix}")


def _watched() -> bool:
    return is_live() if in_kernel() else sys.stderr is not None and sys.stderr.isatty()
