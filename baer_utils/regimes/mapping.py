"""The regime map: which action a setting supports, by rules that are written down, with the evidence beside them.

Reads measured risks and costs of finished policies, split by split, and nothing else. Policies are compared by their
net risk, risk + lam * cost. A difference counts where the interval of the paired differences over splits excludes zero;
`firm` says whether it still does so in the wider interval that remembers that splits overlap.
"""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from baer_utils.juries.bench import FULL_CALL
from baer_utils.regimes.comparing import paired_difference

NOBODY, KEEP, FULL, ROUTE, STOP, DROP = (
    "call nobody", "keep the single judge", "pay for the full panel", "route specialists", "stop early", "drop copies",
)  # fmt: skip
BASE = "the base (the single best judge where that is below a constant which calls nobody, else this constant)"
RULES = {
    FULL: f"the best full-call policy has a net risk below {BASE}, and below the role policy's where the stopped "
    "panel, routed or not, is below the base too",
    ROUTE: f"the role policy is below {BASE}, and its unrouted half is not, or is undercut by it too",
    STOP: f"the stopped panel is below {BASE} with nobody routed, and its routes do not lower it further",
    KEEP: "the single best judge is below a constant which calls nobody, and neither the stopped panel, routed or not, "
    "nor the best full-call policy is below the single best judge",
    NOBODY: "none of these is below a constant which calls nobody: the single best judge, the stopped panel, routed or "
    "not, the best full-call policy",
}
GAINS = {  # (what is worse if the gain is positive, what is better)
    "single_gain": ("nobody", "single"),
    "role_gain": ("base", "role"),
    "stop_gain": ("base", "stopped"),
    "full_gain": ("base", "full"),
    "route_gain": ("stopped", "role"),
    "full_over_role": ("role", "full"),
}
POLICIES = {"nobody": "nobody_called", "single": "single_best", "stopped": "stopped", "role": "role"}
BOUNDS = ("low", "high", "wide_low", "wide_high")


def regime_map(table: pd.DataFrame, *, copies: Mapping[str, int] | None = None, lam: float = 0.002) -> pd.DataFrame:
    """The action that each setting supports, the rule that says so, and its evidence (Panels Table 6).

    Parameters
    ----------
    table : a row per setting, policy and split: columns setting, policy, seed, risk, cost. Policies must include
        nobody_called, single_best, role, stopped (the role policy that routes nobody) and one full-call policy or more.
    copies : number of judges of a setting that repeat another one (`repeated_judges`), where known.
    lam : what a unit of cost must gain in risk. The default is the middle of the paper's sweep (its Table 18); at 0
        seventeen calls for a hundredth of risk are worth buying.

    Returns
    -------
    frame indexed by setting: action, rule, evidence (a sentence), firm, also (drop copies, where judges repeat), lam;
    base (single or nobody: what the other actions have to beat); full_policy; the risk and cost of nobody, single,
    stopped, role and full (`role_risk`, `role_cost`); and the `GAINS` in net risk with their bounds (`role_gain`,
    `role_gain_low`, `role_gain_wide_low`): positive favours what comes second.

    Notes
    -----
    The first of `RULES` that holds. The best full-call policy is picked by its mean risk on the very splits it is
    compared on, which favours it; where a stopped panel is worth having, it must beat that as well. To keep the single
    judge is firm where the role policy is worse in the wider interval too; to call nobody, where the single best judge
    is (an empty plan is the constant itself, and never worse). Judges that repeat another exactly (value 0
    whatever the panel) can be dropped beside any action. The paper draws its map by hand and states no rule: these are
    ours.

    Raises
    ------
    ValueError
        where a policy that the rules compare is missing.
    """
    rows = {}
    for setting, part in table.groupby("setting", sort=False):
        numbers = _compare(str(setting), part, lam)
        action, firm = _decide(numbers)
        repeats = (copies or {}).get(setting, 0)
        rows[setting] = {
            "action": action,
            "rule": RULES[action],
            "evidence": _evidence(action, numbers),
            "firm": firm,
            "also": f"{DROP} ({repeats})" if repeats else "",
            "lam": lam,
            **numbers,
        }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("setting")


def _compare(setting: str, part: pd.DataFrame, lam: float) -> dict:
    part = part.assign(net=part["risk"] + lam * part["cost"])
    means = part.groupby("policy")[["risk", "cost"]].mean()
    full = [name for name in FULL_CALL if name in means.index]
    missing = [name for name in POLICIES.values() if name not in means.index]
    if missing or not full:
        raise ValueError(
            f"{setting}: a regime map compares {', '.join(POLICIES.values())} and one of {', '.join(FULL_CALL)}; "
            f"{', '.join(missing) or 'every full-call policy'} is missing. Measure `juries.standard_policies()`."
        )
    best = str(means.loc[full, "risk"].idxmin())
    names = {**POLICIES, "full": best}
    useful = paired_difference(part, "nobody_called", "single_best", "net")["low"] > 0
    numbers: dict = {"base": "single" if useful else "nobody", "full_policy": best}
    for short, name in names.items():
        numbers |= {f"{short}_risk": float(means.at[name, "risk"]), f"{short}_cost": float(means.at[name, "cost"])}
    names["base"] = names[numbers["base"]]
    for gain, (worse, better) in GAINS.items():
        difference = paired_difference(part, names[worse], names[better], "net")
        numbers[gain] = difference["mean"]
        numbers |= {f"{gain}_{bound}": difference[bound] for bound in BOUNDS}
    return numbers


def _decide(numbers: dict) -> tuple[str, bool]:
    """The first rule that holds, and whether its differences survive the wider interval."""

    def positive(bound: str, *gains: str) -> bool:
        return all(numbers[f"{gain}_{bound}"] > 0 for gain in gains)

    rival = positive("low", "role_gain") or positive("low", "stop_gain")
    full = ("full_gain", "full_over_role") if rival else ("full_gain",)
    if positive("low", *full):
        return FULL, positive("wide_low", *full)
    if positive("low", "role_gain") and (positive("low", "route_gain") or not positive("low", "stop_gain")):
        return ROUTE, positive("wide_low", "role_gain")
    if positive("low", "stop_gain"):
        return STOP, positive("wide_low", "stop_gain")
    if numbers["base"] == "nobody":
        return NOBODY, numbers["single_gain_wide_high"] < 0
    return KEEP, numbers["role_gain_wide_high"] < 0


def _evidence(action: str, n: dict) -> str:
    """The numbers behind an action, as a sentence."""
    labels = {"nobody": "nobody", "single": "single", "stopped": "unrouted", "role": "role"}
    labels["full"] = n["full_policy"].replace("_", " ")
    risks = ", ".join(f"{text} {n[f'{key}_risk']:.3f} at {n[f'{key}_cost']:.2f}" for key, text in labels.items())
    gain = {FULL: "full_gain", ROUTE: "role_gain", STOP: "stop_gain", KEEP: "role_gain", NOBODY: "single_gain"}[action]
    worse, better = (labels[n["base"] if key == "base" else key] for key in GAINS[gain])
    interval = f"{n[gain]:+.3f} [{n[f'{gain}_low']:+.3f}, {n[f'{gain}_high']:+.3f}]"
    return f"risk at cost: {risks}; net gain of {better} over {worse} {interval}"
