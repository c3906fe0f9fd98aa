"""The role of a judge beside a panel: copy, complement, specialist, or complement and specialist (R5).

A profile proposes an action; it is not a kind of judge. The same judge may be a copy once another has entered.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from baer_utils.calibrators import Audit
from baer_utils.roles.gains import DIGITS, broad_gain, slice_gain, specialization_ratio

ACTIONS = {
    ("copy",): "drop",
    ("complement",): "add to the global panel",
    ("specialist",): "route to its slices",
    ("complement", "specialist"): "add, and inspect its slices",
}


@dataclass(frozen=True)
class RoleProfile:
    """What one judge adds to one panel, and what that makes of it."""

    judge: str
    panel: tuple[str, ...]
    broad: float
    """Broad gain C_P(j|S)."""
    slices: dict[str, float]
    """Slice gain A_f(j|S) of every slice; NaN where it has too few items to say."""
    ratio: dict[str, float]
    """Specialisation ratio of every slice: a diagnostic."""
    roles: tuple[str, ...]
    """('copy',), ('complement',), ('specialist',) or ('complement', 'specialist')."""
    routes: tuple[str, ...]
    """The slices whose rule holds."""

    @property
    def action(self) -> str:
        """What the policy would do with it (the paper's role taxonomy)."""
        return ACTIONS[self.roles]


def role_profile(
    fit: Audit,
    validation: Audit,
    panel: Sequence[str],
    judge: str,
    *,
    slices: Sequence[str] | None,
    costs: Mapping[str, float] | None = None,
    tau_global: float = 0.005,
    tau_slice: float = 0.005,
    lam: float = 0,
    lam_slice: float = 0,
) -> RoleProfile:
    """Broad gain, slice gains and roles of a judge beside a panel (Panels R5).

    Parameters
    ----------
    fit, validation, panel, judge : as for `broad_gain`.
    slices : names of the slices to look at; None for all that the fit audit declares.
    costs : cost of a call of each judge, 1 by default.
    tau_global, tau_slice : thresholds, exceeded strictly by the gain minus lam (lam_slice) times the cost.

    Returns
    -------
    RoleProfile. Complement: the broad rule holds. Specialist: the rule of some slice holds. Copy: neither does.

    Raises
    ------
    ValueError
        as `broad_gain` and `slice_gain`, and where the judge has no cost.
    """
    names = fit.coding.routes if slices is None else tuple(slices)
    if costs is not None and judge not in costs:
        raise ValueError(f"costs must give {judge} a cost; they give one to {', '.join(costs) or 'nobody'}.")
    cost = 1.0 if costs is None else float(costs[judge])
    broad = broad_gain(fit, validation, panel, judge)
    gains = {name: slice_gain(fit, validation, panel, judge, name) for name in names}
    routes = tuple(name for name, gain in gains.items() if clears(gain, cost, lam_slice, tau_slice))
    complement = clears(broad, cost, lam, tau_global)
    roles = ("complement",) * complement + ("specialist",) * bool(routes)
    ratio = {name: specialization_ratio(gain, broad) for name, gain in gains.items()}
    return RoleProfile(judge, tuple(panel), broad, gains, ratio, roles or ("copy",), routes)


def adjusted(gain: float, cost: float, lam: float) -> float:
    """Gain minus what the call costs, rounded to 1e-12."""
    return round(gain - lam * cost, DIGITS)


def clears(gain: float, cost: float, lam: float, tau: float) -> bool:
    """Whether a gain is strictly above its threshold after the cost; NaN is not."""
    return adjusted(gain, cost, lam) > tau


def role_table(profiles: Sequence[RoleProfile]) -> pd.DataFrame:
    """Profiles as a frame: judge, broad gain, a column per slice, the roles and the action; one row per profile."""
    rows = [
        {"judge": p.judge, "broad": p.broad} | p.slices | {"role": " + ".join(p.roles), "action": p.action}
        for p in profiles
    ]
    return pd.DataFrame(rows)
