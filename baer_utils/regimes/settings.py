"""Settings: an audit with what a reader must know before comparing policies on it, and the table of comparisons.

A setting says why it is worth looking at and where its routes come from. What describes the data comes first; the one
function that fits policies measures all of them on all settings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from baer_utils.calibrators import Audit, Split
from baer_utils.juries import standard_policies
from baer_utils.juries.outputs import own_predictions, own_tables
from baer_utils.panels import call_costs, evaluate


@dataclass(frozen=True, eq=False)
class Setting:
    """One audit, and what its tables say about it.

    Parameters
    ----------
    audit : outputs, labels, slices, groups; incomplete items may still be in it.
    why : why it stresses the allocation. signal : what the slices are made of. deployable : whether that signal is
        there before any label is (a human label is not; it may be audited, not routed on).
    costs : cost of a call of each judge, 1 each by default. policy : settings of the role policy.
    prepare : applied to every split before anything is fitted, for example binning of scores on fit quantiles.
    """

    audit: Audit
    why: str = ""
    signal: str = ""
    deployable: bool = True
    costs: Mapping[str, float] | None = None
    policy: Mapping[str, object] = field(default_factory=dict)
    prepare: Callable[[Split], Split] | None = None


def experimental_matrix(settings: Mapping[str, Setting]) -> pd.DataFrame:
    """What each setting is, why it stresses allocation, and whether its route signal is deployable (Panels Table 2).

    Returns
    -------
    frame indexed by setting: why, signal, deployable, items, groups, judges, slices, label_mean, binary.
    """
    rows = {}
    for name, setting in settings.items():
        audit = setting.audit
        rows[name] = {
            "why": setting.why,
            "signal": setting.signal if audit.coding.routes else "none",
            "deployable": setting.deployable if audit.coding.routes else None,
            "items": len(audit),
            "groups": len(np.unique(audit.coding.group)),
            "judges": len(audit.judges),
            "slices": len(audit.coding.routes),
            "label_mean": float(audit.y.mean()),
            "binary": bool(np.isin(audit.y, (0, 1)).all()),
        }
    return _frame(rows)


def judge_pool(settings: Mapping[str, Setting]) -> pd.DataFrame:
    """Every judge of every setting: its outputs, how many are missing, its cost, what it repeats (Panels Table 11).

    Returns
    -------
    frame with one row per setting and judge: setting, judge, symbols (their number), missing (items), cost,
    same_as: the first judge whose outputs correspond one to one with this one's on every item, or None.
    """
    rows = []
    for name, setting in settings.items():
        audit = setting.audit
        repeats, prices = repeated_judges(audit), call_costs(audit.judges, setting.costs)
        for column, judge in enumerate(audit.judges):
            rows.append(
                {
                    "setting": name,
                    "judge": judge,
                    "symbols": len(np.unique(audit.coding.codes[:, column][audit.coding.codes[:, column] >= 0])),
                    "missing": int((audit.coding.codes[:, column] < 0).sum()),
                    "cost": prices[judge],
                    "same_as": repeats.get(judge),
                }
            )
    return pd.DataFrame(rows)


def complete_cases(settings: Mapping[str, Setting]) -> pd.DataFrame:
    """Rows, judges, complete rows, dropped rows and the main source of what is missing (Panels Table 12).

    Returns
    -------
    frame indexed by setting: rows, judges, complete, dropped, main_source, main_missing.
    """
    return _frame({name: setting.audit.complete()[1]._asdict() for name, setting in settings.items()})


def measure_settings(settings: Mapping[str, Setting], *, seeds: Iterable[int] = range(10)) -> pd.DataFrame:
    """All policies on all settings: the long table that every comparison, the frontier and the regime map read.

    Returns
    -------
    frame of `evaluate` with the column setting; `standard_policies` with each setting's own policy settings and costs.
    """
    tables, seeds = [], list(seeds)
    for name, setting in settings.items():
        policies = standard_policies(**setting.policy)
        table = evaluate(setting.audit, policies, costs=setting.costs, seeds=seeds, prepare=setting.prepare)
        tables.append(table.assign(setting=name))
    return pd.concat(tables, ignore_index=True)


def shared_errors(settings: Mapping[str, Setting]) -> pd.DataFrame:
    """How often judges conflict and how often they are wrong together, which no choice among them can repair.

    Each judge answers by its own table, the mean label of its symbol over the complete items (BAER Figure 1 asks the
    same of experts). A label above one half counts as 1.

    Returns
    -------
    frame indexed by setting, shares of items that add up to 1: agree_right, conflict, shared_error.
    """
    rows = {}
    for name, setting in settings.items():
        audit = setting.audit.complete()[0]
        codes = audit.coding.codes
        guess = own_predictions(codes, own_tables(codes, audit.y, max(map(len, audit.coding.levels))))
        right = ((guess >= 0.5) == (audit.y >= 0.5)[:, None]).mean(axis=1)
        rows[name] = {
            "agree_right": float((right == 1).mean()),
            "conflict": float(((right > 0) & (right < 1)).mean()),
            "shared_error": float((right == 0).mean()),
        }
    return _frame(rows)


def repeated_judges(audit: Audit) -> dict[str, str]:
    """Judges that repeat an earlier one: their outputs correspond one to one on every item, so their cells coincide.

    Returns
    -------
    dict
        copy -> the first judge, in the order of the audit, that it repeats.
    """
    first: dict[bytes, str] = {}
    repeats = {}
    for column, judge in enumerate(audit.judges):
        codes = audit.coding.codes[:, column]
        seen, at, place = np.unique(codes, return_index=True, return_inverse=True)
        rank = np.empty(len(seen), dtype=np.int64)
        rank[np.argsort(at)] = np.arange(len(seen))
        canonical = np.where(codes < 0, -1, rank[place]).tobytes()
        if canonical in first:
            repeats[judge] = first[canonical]
        first.setdefault(canonical, judge)
    return repeats


def _frame(rows: dict[str, dict]) -> pd.DataFrame:
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("setting")
