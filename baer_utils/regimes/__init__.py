"""The action that a setting supports: drop, add, route, stop, or pay; and every table that says why.

Each function works on whatever audit it is given. The tables' numbers in the docstrings are those of the paper.
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
from baer_utils.regimes.mapping import DROP, FULL, KEEP, ROUTE, RULES, STOP, regime_map
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

__all__ = [
    "DROP", "FULL", "KEEP", "ROUTE", "RULES", "STOP", "Route", "Setting", "against_role", "audit_size",
    "complete_cases", "copy_stress", "endpoints", "experimental_matrix", "fitted_plans", "frequency_audit",
    "frontier_points", "interval_table", "judge_pool", "measure_settings", "pair_addition", "paired_difference",
    "pattern_sparsity", "price_sensitivity", "proxy_routing", "regime_map", "repeated_judges", "shared_errors",
    "side_by_side", "slice_mix_shift", "slice_outcomes", "sliced_by_judge", "split_interval",
    "threshold_sensitivity", "variant_stress", "with_copies",
]  # fmt: skip
