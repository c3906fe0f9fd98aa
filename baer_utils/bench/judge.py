"""`bench judge`: what the promises about judging measure on this machine, one function each.

Every function returns a dict: what was promised (`at_least` or `at_most`), what was measured, and the counts behind it.
Together they take hours, so each step is kept when it is done (`Sitting`): a run that was stopped goes on from there,
and `--only` takes one section at a time.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict

from baer_utils.bench.estimating import Estimate, spelled
from baer_utils.bench.pairing import machine, side_by_side, timed
from baer_utils.bench.peers import harness, peer, server
from baer_utils.bench.reading import FULL, OURS, PLAIN, SETTINGS, arithmetic, backbone, precision, reads
from baer_utils.bench.sitting import Sitting
from baer_utils.bench.workload import BANK, long_pairs
from baer_utils.judging import judge_pairs
from baer_utils.reports import REPOSITORY, write_json

RESULTS = REPOSITORY / "outputs" / "reference" / "bench.json"


def bank(pairings: int, sitting: Sitting, experts: tuple[str, ...] = BANK) -> dict:
    """The whole default bank against the same prompts one by one."""
    ours, plain = backbone(), backbone(plain=True)
    table = long_pairs(ours, OURS + PLAIN * pairings)

    def mine(number: int) -> float:
        seconds, (_, report) = timed(lambda: judge_pairs(table.head(OURS), ours, experts, **_quiet()))
        computed = report.prompt_tokens - report.cached_tokens
        counts = {"prompt_tokens": report.prompt_tokens, "computed_prompt_tokens": computed}
        sitting.notes["counts"] = counts | {"new_tokens": report.new_tokens}
        return seconds / OURS

    def theirs(number: int) -> float:
        block = table.iloc[OURS + PLAIN * number :].head(PLAIN).reset_index(drop=True)
        return timed(lambda: judge_pairs(block, plain, experts, **_quiet()))[0] / PLAIN

    result = side_by_side(mine, theirs, pairings, sitting)
    counts = sitting.notes["counts"]
    share = counts["computed_prompt_tokens"] / counts["prompt_tokens"]
    return {
        "at_least": 6.0,
        "computed_share": round(share, 4),
        "computed_share_at_most": 0.30,
        **counts,
        "holds": result["ratio"] >= 6.0 and share <= 0.30,
    } | result


def trials(pairings: int, sitting: Sitting) -> dict:
    """Five sampled trials in two orders: new tokens per second against `model.generate` prompt by prompt."""
    ours, plain = backbone(), backbone(plain=True)
    table = long_pairs(ours, OURS + PLAIN * pairings)

    def seconds_per_token(judge, block, side: str) -> float:
        took, (_, report) = timed(lambda: judge_pairs(block, judge, ("self_consistency",), **_quiet()))
        sitting.notes[f"new_tokens_{side}"] = report.new_tokens
        return took / report.new_tokens

    def theirs(number: int) -> float:
        block = table.iloc[OURS + PLAIN * number :].head(PLAIN).reset_index(drop=True)
        return seconds_per_token(plain, block, "theirs")

    result = side_by_side(lambda number: seconds_per_token(ours, table.head(OURS), "ours"), theirs, pairings, sitting)
    return {"at_least": 6.0, "holds": result["ratio"] >= 6.0} | sitting.notes | result


SECTIONS: dict[str, Callable[[int, Sitting], dict]] = {
    "precision": precision, "reads": reads, "arithmetic": arithmetic, "harness": harness, "server": server,
    "trials": trials, "bank": bank,
}  # fmt: skip


def bench_judge(pairings: int, only: tuple[str, ...] = ()) -> bool:
    """Measure, print and keep every section; returns whether none failed (an absent peer is no failure).

    Parameters
    ----------
    pairings : how often the two sides are timed.
    only : names in `SECTIONS`; all of them by default. Of a section that was stopped, what is missing is measured.
    """
    unknown = [name for name in only if name not in SECTIONS]
    if unknown:
        raise ValueError(f"a section must be one of {', '.join(SECTIONS)}; {', '.join(unknown)} is not.")
    sittings = {name: open_sitting(name) for name in only or SECTIONS}
    foresee(pairings, sittings)
    for name, sitting in sittings.items():
        result = SECTIONS[name](pairings, sitting) | {"pairings": pairings} | machine() | sitting.told
        kept = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
        kept[name] = result
        print(f"{name}: {json.dumps(result, indent=1)}", flush=True)
        write_json(RESULTS, kept)
    return all(kept[name]["holds"] is not False for name in sittings)


def open_sitting(section: str) -> Sitting:
    """What is kept of a section under this judge, workload, machine and these versions."""
    sizes = {"ours": OURS, "plain": PLAIN, "full": FULL, "bank": BANK, "settings": asdict(SETTINGS)}
    where = {name: fact for name, fact in machine().items() if name != "date"}
    return Sitting(section, sizes | where | {"judge": backbone().name, "peer": peer(section)})


def foresee(pairings: int, sittings: dict[str, Sitting]) -> None:
    """Print what each section has from earlier sittings, and about how long the rest will take."""
    estimate, total = Estimate(backbone()), 0.0
    print("About how long, from the tokens of each section and one timed batch (other work on the machine adds to it):")
    for name, sitting in sittings.items():
        seconds = estimate.seconds(sitting, pairings)
        total += seconds
        kept = f"; {len(sitting.steps)} steps are kept in {sitting.path.name}" if sitting.steps else ""
        print(f"  {name:<11}{spelled(seconds):>8}{kept}")
    print(f"  {'together':<11}{spelled(total):>8}", flush=True)


def _quiet() -> dict:
    return {"settings": SETTINGS, "progress": False}
