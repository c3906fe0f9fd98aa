"""Measurements that take an hour, in several sittings: every step is kept when it is done, and none is repeated.

What was measured with another workload, other code, other versions or on another machine has another file, so that it
never stands beside what is measured now.
"""

from __future__ import annotations

import hashlib
import json
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from baer_utils.reports import REPOSITORY, write_json

PACKAGE = Path(__file__).parents[1]
KEPT = REPOSITORY / "outputs" / "bench"
JUDGES_WITH = ("prompts", "backbones", "protocols", "judging", "bench")  # packages whose code is timed


class Sitting:
    """The steps of a section that are measured, in this sitting or an earlier one.

    Parameters
    ----------
    section : name of what is measured.
    workload : what is measured, with what and on what, as JSON: a step counts only under the same.

    Attributes
    ----------
    steps : name of a step to its `value`, the `seconds` that it took, and the `date`.
    notes : counts beside the steps; a step being measured may write some, and they are kept when it is.
    """

    def __init__(self, section: str, workload: dict):
        named = json.dumps([workload, code()], sort_keys=True)
        self.section = section
        self.path = KEPT / f"{section}-{hashlib.sha256(named.encode()).hexdigest()[:12]}.json"
        kept = json.loads(self.path.read_text()) if self.path.exists() else {"steps": {}, "notes": {}}
        self.steps: dict[str, dict] = kept["steps"]
        self.notes: dict = kept["notes"]
        self._earlier, self._asked = frozenset(self.steps), []

    def once(self, step: str, measure: Callable[[], object]):
        """What a step measured, as JSON gives it back; `measure` is called only where no sitting has done it."""
        if step not in self.steps:
            start = time.perf_counter()
            value = json.loads(json.dumps(measure()))
            seconds = round(time.perf_counter() - start, 1)
            self.steps[step] = {"value": value, "seconds": seconds, "date": datetime.now(UTC).date().isoformat()}
            write_json(self.path, {"steps": self.steps, "notes": self.notes})
            print(f"{self.section}: {step} measured, {seconds:.0f} s", file=sys.stderr, flush=True)
        self._asked.append(step)
        return self.steps[step]["value"]

    @property
    def told(self) -> dict:
        """Days on which the steps asked for were measured, and those of them that an earlier sitting had measured."""
        return {
            "dates": sorted({self.steps[step]["date"] for step in self._asked}),
            "from_earlier_sittings": [step for step in self._asked if step in self._earlier],
        }


def code() -> str:
    """Digest of the code that judges and measures."""
    digest = hashlib.sha256()
    for module in JUDGES_WITH:
        for path in sorted((PACKAGE / module).glob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:12]
