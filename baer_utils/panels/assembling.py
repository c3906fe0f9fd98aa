"""From chosen calls to a plan with tables and a report."""

from __future__ import annotations

import numpy as np

from baer_utils.calibrators import Audit
from baer_utils.panels.manner import Search
from baer_utils.panels.policy import CallPolicy
from baer_utils.panels.report import StoppingReport
from baer_utils.panels.search import GLOBAL, Grown


def assemble(
    parts: dict[str, tuple[Audit, Audit]], grown: dict[str, Grown], skipped: dict[str, int], prices: dict[str, float],
    keys: tuple[str, ...], audit_only: bool, search: Search,
) -> CallPolicy:  # fmt: skip
    """A plan from what each scope's search ended at; tables of the fit items of `parts`."""
    judges = parts[GLOBAL][0].judges
    panels = {name: tuple(judges[place] for place in end.state.panel) for name, end in grown.items()}
    base = len(panels[GLOBAL])
    routes = {name: panel[base:] for name, panel in panels.items() if name != GLOBAL and len(panel) > base}
    tables = {name: search.table(panels[name]).fit(parts[name][0], parts[name][0].y) for name in (GLOBAL, *routes)}
    report = StoppingReport(
        failed=tuple(step for end in grown.values() for step in end.failed),
        skipped=skipped,
        cells={name: _occupied(parts[name][0], panel) for name, panel in panels.items()},
        unseen={name: end.state.unseen for name, end in grown.items()},
        risk={name: end.state.risk for name, end in grown.items()},
    )
    steps = tuple(step for end in grown.values() for step in end.steps)
    return CallPolicy(judges, panels[GLOBAL], routes, steps, report, tables, prices, keys, audit_only)


def _occupied(audit: Audit, panel: tuple[str, ...]) -> int:
    return len(np.unique(audit.coding.codes[:, audit.columns(panel)], axis=0)) if panel else 1
