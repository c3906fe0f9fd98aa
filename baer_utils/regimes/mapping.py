"""The regime map: which action a setting supports, by rules that are written down, with the evidence beside them.

Reads measured risks and costs of finished policies, split by split, and nothing else. A difference counts where the
interval of the paired differences over splits excludes zero; `firm` says whether it still does so in the wider interval
that remembers that splits overlap.
"""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from baer_utils.juries.bench import FULL_CALL
from baer_utils.regimes.comparing import paired_difference

KEEP, FULL, ROUTE, STOP, DROP = (
    "keep the single judge", "pay for the full panel", "route specialists", "stop early", "drop copies",
)  # fmt: skip
RULES = {
    FULL: "the best full-call policy has a risk below the single best judge's and below the role policy's",
    KEEP: "neither the stopped panel, routed or not, nor the best full-call policy beats the single best judge",
    ROUTE: "the role policy has a risk below the single best judge's and below that of its own unrouted half",
    STOP: "the stopped panel, routed or not, has a risk below the single best judge's; routes do not lower it further",
}


def regime_map(table: pd.DataFrame, *, copies: Mapping[str, int] | None = None) -> pd.DataFrame:
    """The action that each setting supports, the rule that says so, and its evidence (Panels Table 6).

    Parameters
    ----------
    table : a row per setting, policy and split: columns setting, policy, seed, risk, cost, calls. Policies must include
        single_best, role, stopped (the role policy that routes nobody) and at least one full-call policy.
    copies : number of judges of a setting that repeat another one (`repeated_judges`), where known.

    Returns
    -------
    frame indexed by setting: action, rule, evidence (a sentence), firm, also (drop copies, where judges repeat), and
    the numbers: risk of single, stopped, role and full; calls of role; cost of role and full; full_policy; and with
    their bounds role_gain (single minus role), stop_gain (single minus stopped), route_gain (stopped minus role),
    full_gain (role minus full) and full_single_gain (single minus full): a positive gain favours what it is named for.

    Notes
    -----
    `RULES` in their order, the first that holds; KEEP before routes and stops only says that nothing beats the single
    judge. "Below" means that the paired interval excludes 0. The best full-call policy is picked by its mean risk on
    the very splits it is compared on, which favours it; the rule then asks it to beat two others. To keep the single
    judge is firm where the role policy is worse in the wider interval too. Judges that repeat another exactly (value 0
    whatever the panel) can be dropped beside any action. The paper draws its map by hand and states no rule.

    Raises
    ------
    ValueError
        where a policy that the rules compare is missing.
    """
    rows = {}
    for setting, part in table.groupby("setting", sort=False):
        numbers = _compare(str(setting), part)
        action, firm = _decide(numbers)
        repeats = (copies or {}).get(setting, 0)
        rows[setting] = {
            "action": action,
            "rule": RULES[action],
            "evidence": _evidence(action, numbers),
            "firm": firm,
            "also": f"{DROP} ({repeats})" if repeats else "",
            **numbers,
        }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("setting")


def _compare(setting: str, part: pd.DataFrame) -> dict:
    means = part.groupby("policy")[["risk", "cost", "calls"]].mean()
    full = [name for name in FULL_CALL if name in means.index]
    missing = [name for name in ("single_best", "role", "stopped") if name not in means.index]
    if missing or not full:
        raise ValueError(
            f"{setting}: a regime map compares single_best, role, stopped and one of {', '.join(FULL_CALL)}; "
            f"{', '.join(missing) or 'every full-call policy'} is missing. Measure `juries.standard_policies()`."
        )
    best = means.loc[full, "risk"].idxmin()
    numbers = {
        "single": means.at["single_best", "risk"],
        "stopped": means.at["stopped", "risk"],
        "role": means.at["role", "risk"],
        "full": means.at[best, "risk"],
        "full_policy": best,
        "role_calls": means.at["role", "calls"],
        "role_cost": means.at["role", "cost"],
        "full_cost": means.at[best, "cost"],
    }
    gains = {
        "role_gain": ("single_best", "role"),
        "route_gain": ("stopped", "role"),
        "stop_gain": ("single_best", "stopped"),
        "full_gain": ("role", best),
        "full_single_gain": ("single_best", best),
    }
    for name, (first, second) in gains.items():
        difference = paired_difference(part, first, second)
        numbers[name] = difference["mean"]
        numbers |= {f"{name}_{bound}": difference[bound] for bound in ("low", "high", "wide_low", "wide_high")}
    return numbers


def _decide(numbers: dict) -> tuple[str, bool]:
    """The first rule that holds, and whether its differences survive the wider interval."""

    def positive(bound: str, *gains: str) -> bool:
        return all(numbers[f"{gain}_{bound}"] > 0 for gain in gains)

    if positive("low", "full_gain", "full_single_gain"):
        return FULL, positive("wide_low", "full_gain", "full_single_gain")
    if not (positive("low", "role_gain") or positive("low", "stop_gain")):
        return KEEP, numbers["role_gain_wide_high"] < 0
    if positive("low", "role_gain", "route_gain"):
        return ROUTE, positive("wide_low", "role_gain", "route_gain")
    return STOP, positive("wide_low", "role_gain") or positive("wide_low", "stop_gain")


def _evidence(action: str, n: dict) -> str:
    """The numbers behind an action, as a sentence."""
    single = f"single {n['single']:.3f}"
    role = f"role {n['role']:.3f} at {n['role_calls']:.2f} calls"
    full = f"{n['full_policy'].replace('_', ' ')} {n['full']:.3f} at cost {n['full_cost']:.2f}"
    interval = "gain {0:+.3f} [{1:+.3f}, {2:+.3f}]"
    which = {FULL: "full_gain", ROUTE: "route_gain", STOP: "stop_gain", KEEP: "role_gain"}[action]
    gain = interval.format(n[which], n[f"{which}_low"], n[f"{which}_high"])
    beside = f"unrouted {n['stopped']:.3f}; " if action in (ROUTE, STOP) else ""
    return f"risk: {single}; {beside}{role}; {full}; {gain}"
