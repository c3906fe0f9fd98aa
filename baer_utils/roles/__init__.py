"""The conditional value of a judge, what survives of it on held-out items, and the role this gives it (R1-R6)."""

from baer_utils.roles.gains import (
    DIGITS,
    MIN_SLICE,
    broad_gain,
    check_audits,
    gain_of,
    slice_gain,
    slice_items,
    slice_scope,
    specialization_ratio,
)
from baer_utils.roles.oracle import conditional_value, oracle_predictor, oracle_risk
from baer_utils.roles.profile import RoleProfile, adjusted, clears, role_profile, role_table
from baer_utils.roles.scopes import EstimatorScope, FoldedScope, Scope, State

__all__ = [
    "DIGITS", "MIN_SLICE", "EstimatorScope", "FoldedScope", "RoleProfile", "Scope", "State", "adjusted", "broad_gain",
    "check_audits", "clears", "conditional_value", "gain_of", "oracle_predictor", "oracle_risk", "role_profile",
    "role_table", "slice_gain", "slice_items", "slice_scope", "specialization_ratio",
]  # fmt: skip
