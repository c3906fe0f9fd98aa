"""Why construction stopped: every inequality that failed, what was not tried, how full the tables are, how stable."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from baer_utils.panels.search import Step
from baer_utils.roles import MIN_SLICE

UNSTABLE = 0.5  # Jaccard index of plans at tau/2 and 2 tau below which a plan is called unstable


@dataclass(frozen=True)
class StoppingReport:
    """The stopping report of a call plan (Panels, appendix I)."""

    failed: tuple[Step, ...]
    """Every candidate that was left out of a scope, with its inequality."""
    skipped: dict[str, int]
    """Slices that got no route for too few fit items (no validation item, or one group to fold), with that number."""
    cells: dict[str, int]
    """Occupied cells of each scope's final table, on the fit items."""
    unseen: dict[str, float]
    """Share of validation items of each scope that fell outside its final table."""
    risk: dict[str, float]
    """Validation risk in each scope after the last step; its search looked at it, so it is optimistic."""
    stability: tuple[float, float] | None = None
    """Jaccard index of the plan with those at half and at twice the thresholds."""

    @property
    def unstable(self) -> bool:
        """Whether halving or doubling the thresholds changes more than half of the plan."""
        return self.stability is not None and min(self.stability) < UNSTABLE

    def frame(self) -> pd.DataFrame:
        """The failed inequalities, one a row, the closest of each scope first."""
        columns = ["scope", "judges", "gain", "error", "cost", "adjusted", "threshold"]
        frame = pd.DataFrame([step._asdict() for step in self.failed], columns=columns)
        return frame.assign(judges=[" + ".join(judges) for judges in frame["judges"]])

    def __str__(self) -> str:
        lines = [line for scope in self.cells for line in self._scope(scope)]
        lines += [
            f"{name}: no route, not measured: {n} fit items ({MIN_SLICE} are needed, and one for validation; two "
            "groups for folds)"
            for name, n in self.skipped.items()
        ]
        if self.stability is not None:
            half, twice = self.stability
            word = "unstable: a small change of the threshold is another plan" if self.unstable else "stable"
            lines.append(f"plan kept at tau/2: {half:.2f}, at 2 tau: {twice:.2f} (Jaccard): {word}")
        return "\n".join(lines)

    def _scope(self, scope: str) -> list[str]:
        here = [step for step in self.failed if step.scope == scope]
        head = (
            f"{scope}: validation risk {self.risk[scope]:.4f}, {self.cells[scope]} cells, "
            f"{self.unseen[scope]:.0%} of validation items outside the table"
        )
        if not here:
            return [head + "; nothing else was tried"]
        rows = [
            f"  {' + '.join(s.judges)}: gain {s.gain:.4f}, cost {s.cost:g}, "
            f"{s.adjusted:.4f} does not exceed {s.threshold:.4f}"
            for s in here[:3]
        ]
        rest = [f"  and {len(here) - 3} more, all below"] if len(here) > 3 else []
        reason = "; nothing is left to gain" if self.risk[scope] == 0 else "; stopped because"
        return [head + reason, *rows, *rest]
