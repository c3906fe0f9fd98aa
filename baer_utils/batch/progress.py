"""One line that says how far long work has come, for work that happens in another process.

Whoever judges writes its state to the file named by the environment variable `BAER_PROGRESS` (one JSON object, replaced
as a whole: `pairs_done`, `pairs`, `share_done`, `tokens_per_second`, `seconds_left`); this file reads it and writes a
line. In a terminal it renews itself every second; elsewhere a new one comes every half minute: logs stay short.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import threading
import time
from pathlib import Path
from typing import Any, TextIO

VARIABLE = "BAER_PROGRESS"
SECONDS_IN_TERMINAL, SECONDS_ELSEWHERE = 1.0, 30.0


def spell_seconds(seconds: float) -> str:
    """A duration as a person says it: 8 s, 3 min 05 s, 1 h 02 min."""
    whole = int(round(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def spell_state(state: dict[str, Any]) -> str:
    """The judging part of the line: pairs done, tokens per second, time left; empty where nothing is known."""
    parts = []
    if state.get("pairs"):
        share = f" ({state['share_done']:.0%} done)" if state.get("share_done") else ""
        parts.append(f"{state.get('pairs_done', 0):,} of {state['pairs']:,} pairs judged{share}")
    if state.get("tokens_per_second"):
        parts.append(f"{state['tokens_per_second']:,.0f} tokens/s")
    if state.get("seconds_left") is not None and parts:
        parts.append(f"{spell_seconds(state['seconds_left'])} left")
    return ", ".join(parts)


class Progress:
    """Shows `label`, the time so far and the judging state of a file, until the `with` block ends.

    Parameters
    ----------
    label : what is being done.
    path : file that the work writes its state to; the block sets `BAER_PROGRESS` to it, for child processes too.
    stream : where lines go; standard output if not given.
    """

    def __init__(self, label: str, path: Path, stream: TextIO | None = None):
        self.label, self.path, self.stream = label, path, stream or sys.stdout
        self.live = self.stream.isatty()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Progress:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.unlink(missing_ok=True)
        self._before = os.environ.get(VARIABLE)
        os.environ[VARIABLE] = str(self.path)
        self.start = time.monotonic()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self.path.unlink(missing_ok=True)
        if self._before is None:
            os.environ.pop(VARIABLE, None)
        else:
            os.environ[VARIABLE] = self._before
        if self.live:
            self.stream.write("\r\x1b[K")

    @property
    def seconds(self) -> float:
        """Seconds since the block began."""
        return time.monotonic() - self.start

    def say(self, text: str) -> None:
        """Write a line of its own, above the one that renews itself."""
        self.stream.write(("\r\x1b[K" if self.live else "") + text + "\n")
        self.stream.flush()

    def line(self) -> str:
        """The line as it would be shown now."""
        try:
            state = spell_state(json.loads(self.path.read_text(encoding="utf-8")))
        except (OSError, ValueError):
            state = ""
        return f"{self.label}  {spell_seconds(self.seconds)}" + (f"  {state}" if state else "")

    def _watch(self) -> None:
        while not self._stop.wait(SECONDS_IN_TERMINAL if self.live else SECONDS_ELSEWHERE):
            width = shutil.get_terminal_size().columns - 1
            self.stream.write(f"\r\x1b[K{self.line()[:width]}" if self.live else f"{self.line()}\n")
            self.stream.flush()
