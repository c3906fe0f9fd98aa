"""Peak memory of judging many short pairs, in a process of its own: `python -m tests.peak_memory FOLDER PROTOCOL N`."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path

from tests.conftest import make_pairs

REPOSITORY = Path(__file__).parents[1]


def peak(folder: Path, protocol: str, n: int) -> dict[str, int]:
    """Most memory (MiB resident) that judging `n` short pairs by one protocol took, and what was there before it."""
    command = [sys.executable, "-m", "tests.peak_memory", str(folder), protocol, str(n)]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def _measure(folder: str, protocol: str, n: int) -> dict[str, int]:
    from baer_utils.backbones.local import TransformersBackbone
    from baer_utils.judging import judge_pairs
    from baer_utils.protocols import Settings

    judge = TransformersBackbone(folder, device="cpu")
    pairs = make_pairs([(f"What is {k} plus 3?", f"{k} plus 3 is {k + 3}.", f"It is {k + 4}.") for k in range(n)])
    judge_pairs(pairs.head(1), judge, (protocol,), settings=Settings(2), progress=False)  # what has to load has loaded
    before = _most()
    judge_pairs(pairs, judge, (protocol,), settings=Settings(64), progress=False)
    return {"pairs": n, "before_mib": before, "peak_mib": _most()}


def _most() -> int:
    """The high-water mark of this very process; what `getrusage` gives on Linux begins with that of its parent."""
    status = Path("/proc/self/status")
    if status.exists():
        return int(status.read_text().partition("VmHWM:")[2].split()[0]) // 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // (2**20 if sys.platform == "darwin" else 2**10)


if __name__ == "__main__":
    print(json.dumps(_measure(sys.argv[1], sys.argv[2], int(sys.argv[3]))))
