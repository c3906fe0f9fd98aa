"""`bench judge`: what the promises about judging measure on this machine, one function each.

Every function returns a dict: what was promised (`at_least` or `at_most`), what was measured, and the counts behind it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

from baer_utils.bench.pairing import machine, side_by_side, timed
from baer_utils.bench.peers import harness, server
from baer_utils.bench.reading import OURS, PLAIN, SETTINGS, arithmetic, backbone, precision, reads
from baer_utils.bench.workload import BANK, long_pairs
from baer_utils.judging import judge_pairs
from baer_utils.reports import REPOSITORY, write_json

PACKAGE = Path(__file__).parents[1]
RESULTS = REPOSITORY / "outputs" / "reference" / "bench.json"
KEPT = REPOSITORY / "outputs" / "bench"


def bank(pairings: int, experts: tuple[str, ...] = BANK) -> dict:
    """The whole default bank against the same prompts one by one; goes on from the pairings that are measured."""
    ours, plain = backbone(), backbone(plain=True)
    table = long_pairs(ours, OURS + PLAIN * pairings)
    kept = KEPT / f"bank-{_state()}.json"
    counted = kept.with_suffix(".counts.json")

    def mine(number: int) -> float:
        seconds, (_, report) = timed(lambda: judge_pairs(table.head(OURS), ours, experts, **_quiet()))
        computed = report.prompt_tokens - report.cached_tokens
        counts = {"prompt_tokens": report.prompt_tokens, "computed_prompt_tokens": computed}
        write_json(counted, counts | {"new_tokens": report.new_tokens})
        return seconds / OURS

    def theirs(number: int) -> float:
        block = table.iloc[OURS + PLAIN * number :].head(PLAIN).reset_index(drop=True)
        return timed(lambda: judge_pairs(block, plain, experts, **_quiet()))[0] / PLAIN

    result = side_by_side(mine, theirs, pairings, kept)
    counts = json.loads(counted.read_text())
    share = counts["computed_prompt_tokens"] / counts["prompt_tokens"]
    return {
        "at_least": 6.0,
        "computed_share": round(share, 4),
        "computed_share_at_most": 0.30,
        **counts,
        "holds": result["ratio"] >= 6.0 and share <= 0.30,
    } | result


def _state() -> str:
    """Name of the code that judges: what was measured with other code is measured again."""
    digest = hashlib.sha256()
    for module in ("prompts", "backbones", "protocols", "judging", "bench"):
        for path in sorted((PACKAGE / module).glob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def trials(pairings: int) -> dict:
    """Five sampled trials in two orders: new tokens per second against `model.generate` prompt by prompt."""
    ours, plain = backbone(), backbone(plain=True)
    table = long_pairs(ours, OURS + PLAIN * pairings)

    def seconds_per_token(judge, block) -> float:
        took, (_, report) = timed(lambda: judge_pairs(block, judge, ("self_consistency",), **_quiet()))
        return took / report.new_tokens

    result = side_by_side(
        lambda number: seconds_per_token(ours, table.head(OURS)),
        lambda number: seconds_per_token(plain, table.iloc[OURS + PLAIN * number :].head(PLAIN).reset_index(drop=True)),
        pairings,
    )
    return {"at_least": 6.0, "holds": result["ratio"] >= 6.0} | result


SECTIONS: dict[str, Callable[[int], dict]] = {
    "precision": precision, "reads": reads, "arithmetic": arithmetic, "harness": harness, "server": server,
    "trials": trials, "bank": bank,
}  # fmt: skip


def bench_judge(pairings: int, only: tuple[str, ...] = ()) -> bool:
    """Measure, print and keep every section; returns whether none failed (an absent peer is no failure)."""
    unknown = [name for name in only if name not in SECTIONS]
    if unknown:
        raise ValueError(f"a section must be one of {', '.join(SECTIONS)}; {', '.join(unknown)} is not.")
    kept = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for name in only or SECTIONS:
        kept[name] = SECTIONS[name](pairings) | {"pairings": pairings} | machine()
        print(f"{name}: {json.dumps(kept[name], indent=1)}", flush=True)
        RESULTS.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n")
    return all(kept[name]["holds"] is not False for name in only or SECTIONS)


def _quiet() -> dict:
    return {"settings": SETTINGS, "progress": False}
