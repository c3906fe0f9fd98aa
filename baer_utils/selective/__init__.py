"""Risk-controlled abstention: which answers to trust, fitted on one half of the opened test, reported on the other."""

from baer_utils.selective.conditions import abstention_table, rendered_abstention
from baer_utils.selective.curves import aurc, risk_coverage
from baer_utils.selective.halves import confidence_of, one_per_question, reported_half
from baer_utils.selective.tables import ALPHAS, PREVIEW, selective_table
from baer_utils.selective.thresholds import (
    DELTA,
    Threshold,
    binomial_p,
    confidence_grid,
    fewest_accepted,
    fit_threshold,
    scope_threshold,
)

__all__ = [
    "ALPHAS", "DELTA", "PREVIEW", "Threshold", "abstention_table", "aurc", "binomial_p", "confidence_grid",
    "confidence_of", "fewest_accepted", "fit_threshold", "one_per_question", "rendered_abstention", "reported_half",
    "risk_coverage", "scope_threshold", "selective_table",
]  # fmt: skip
