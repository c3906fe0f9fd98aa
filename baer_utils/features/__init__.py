"""Representations that a swap can only negate (Eq. 5), or cannot touch (the rho of Eq. 7)."""

from baer_utils.features.categories import category_columns
from baer_utils.features.reliability import reliability_features, reliability_names
from baer_utils.features.signed import mean_evidence, stack_features

__all__ = ["category_columns", "mean_evidence", "reliability_features", "reliability_names", "stack_features"]
