"""What greedy construction may have missed: judges that are worth little alone and something together.

Looks at every pair of uncalled judges beside a finished plan, everywhere and in each slice, on the fit and validation
rows of the plan. It changes no plan; where it finds something, a search with `pairs=True` or a beam is the answer.
"""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from baer_utils.calibrators import Audit
from baer_utils.panels import GLOBAL, CallPolicy, Rule, call_costs, pair_steps
from baer_utils.roles import Scope, check_audits, slice_scope


def pair_addition(
    fit: Audit,
    validation: Audit,
    plan: CallPolicy,
    *,
    costs: Mapping[str, float] | None = None,
    tau: float = 0.005,
    lam: float = 0.0,
) -> pd.DataFrame:
    """The best pair of uncalled judges after greedy stopping, everywhere and in every slice (Panels Table 20).

    Parameters
    ----------
    fit, validation : the audits that the plan was built on. plan : what stopped. costs : of a call, 1 by default.
    tau, lam : a pair must gain more than 2 tau plus lam times both costs: each of its calls earns its own threshold.

    Returns
    -------
    frame with one row per scope: scope, panel, pairs (tried), missed (that clear), best_pair, gain (validation risk),
    threshold. A slice with too few rows to be routed is left out. Where fewer than two judges are left: no pair, NaN.
    """
    check_audits(fit, validation)
    cost = [call_costs(fit.judges, costs)[judge] for judge in fit.judges]
    rows = []
    for name in (GLOBAL, *fit.coding.routes):
        scope = Scope(fit, validation) if name == GLOBAL else slice_scope(fit, validation, name)
        if scope is None:
            continue
        panel = plan.panel_of(None if name == GLOBAL else name)
        steps = pair_steps(name, scope, scope.start(fit.columns(panel)), cost, Rule(tau, lam))
        rows.append(
            {
                "scope": name,
                "panel": panel,
                "pairs": len(steps),
                "missed": sum(step.clears for step in steps),
                "best_pair": steps[0].judges if steps else (),
                "gain": steps[0].gain if steps else float("nan"),
                "threshold": 2 * tau,
            }
        )
    return pd.DataFrame(rows)
