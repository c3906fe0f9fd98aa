"""The action that a setting supports: drop, add, route, stop, pay, or call nobody; and every table that says why.

Each function works on whatever audit it is given. Which one makes which table of the paper: 2 `experimental_matrix`,
3 `side_by_side`, 4 `endpoints`, 5 `against_role`, 6 `regime_map`, 7 and 17 `frequency_audit`, 8
`threshold_sensitivity`, 9 `copy_stress`, 10 `proxy_routing`, 11 `judge_pool`, 12 `complete_cases`, 13 `interval_table`,
14 `pattern_sparsity`, 15 `audit_size`, 16 `slice_mix_shift`, 18 `price_sensitivity`, 19 `variant_stress`, 20
`pair_addition`; Figure 2 `frontier_points`. Table 1 is `roles.role_table`, appendix I a plan's stopping report.
"""

from baer_utils.regimes.comparing import (
    against_role,
    endpoints,
    frontier_points,
    interval_table,
    paired_difference,
    side_by_side,
    split_interval,
)
from baer_utils.regimes.mapping import BASE, DROP, FULL, KEEP, NOBODY, ROUTE, RULES, STOP, regime_map
from baer_utils.regimes.pairs import pair_addition
from baer_utils.regimes.routing import Route, proxy_routing, slice_mix_shift, slice_outcomes, sliced_by_judge
from baer_utils.regimes.settings import (
    Setting,
    complete_cases,
    experimental_matrix,
    judge_pool,
    measure_settings,
    repeated_judges,
    shared_errors,
)
from baer_utils.regimes.stability import audit_size, fitted_plans, frequency_audit, pattern_sparsity
from baer_utils.regimes.stress import (
    copy_stress,
    price_sensitivity,
    threshold_sensitivity,
    variant_stress,
    with_copies,
)
from baer_utils.regimes.tables import table_settings

__all__ = [
    "BASE", "DROP", "FULL", "KEEP", "NOBODY", "ROUTE", "RULES", "STOP", "Route", "Setting", "against_role",
    "audit_size", "complete_cases", "copy_stress", "endpoints", "experimental_matrix", "fitted_plans",
    "frequency_audit", "frontier_points", "interval_table", "judge_pool", "measure_settings", "pair_addition",
    "paired_difference", "pattern_sparsity", "price_sensitivity", "proxy_routing", "regime_map", "repeated_judges",
    "shared_errors", "side_by_side", "slice_mix_shift", "slice_outcomes", "sliced_by_judge", "split_interval",
    "table_settings", "threshold_sensitivity", "variant_stress", "with_copies",
]  # fmt: skip
