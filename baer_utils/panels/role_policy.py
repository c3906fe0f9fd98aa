"""The role policy under the interface that all policies share."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from baer_utils.calibrators import Audit
from baer_utils.panels.building import search_plan
from baer_utils.panels.manner import PAPER

DEFAULTS = {
    "slices": None, "tau_global": 0.005, "tau_slice": 0.005, "lam": 0.0, "lam_slice": 0.0, "seed_panel": (),
    "audit_only": False, "route_key": None, "search": PAPER,
}  # fmt: skip


class RolePolicy:
    """`build_policy` under the interface that all policies share; the settings are those of `build_policy`.

    `plan_` is the fitted `CallPolicy`, its tables counted on fit and validation items together.
    """

    def __init__(self, **settings: object) -> None:
        unknown = settings.keys() - DEFAULTS.keys()
        if unknown:
            raise ValueError(f"settings must be among {', '.join(DEFAULTS)}; {', '.join(sorted(unknown))} came.")
        self.settings = DEFAULTS | settings

    def fit(
        self, fit: Audit, validation: Audit, *, costs: Mapping[str, float] | None = None, seed: int = 0
    ) -> RolePolicy:
        """Search on fit and validation, then count the tables on both. Nothing is drawn: `seed` changes nothing."""
        self.plan_ = search_plan(fit, validation, costs=costs, **self.settings).refit(fit.join(validation))
        return self

    def predict(self, Z: np.ndarray, slices: object = None) -> tuple[np.ndarray, np.ndarray]:
        """Probability and called mask, as `CallPolicy.predict`."""
        return self.plan_.predict(Z, slices)
