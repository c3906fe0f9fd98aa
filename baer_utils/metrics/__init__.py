"""How right a method is, on how many pairs, and whether it is luck (Eq. 11); import every name from here."""

from baer_utils.metrics.bank import (
    ONE_TEMPLATE,
    agreement,
    any_expert_oracle,
    best_single,
    coin_oracle,
    flip_rate,
    flips,
    longer_response,
    majority,
    opinions,
    simple_rules,
    vote_weights,
)
from baer_utils.metrics.calibration import (
    brier_score,
    calibration_error,
    first_shown,
    order_calibration,
    order_curves,
    reliability_curve,
)
from baer_utils.metrics.comparisons import discordant, holm, mcnemar, minimum_detectable_effect
from baer_utils.metrics.conditions import column_leads, difference_interval, transfer_gap
from baer_utils.metrics.intervals import paired_bootstrap, share_interval, wilson_interval
from baer_utils.metrics.rules import as_answers, ledger, pairwise_accuracy

__all__ = [
    "ONE_TEMPLATE", "agreement", "any_expert_oracle", "as_answers", "best_single", "brier_score", "calibration_error",
    "coin_oracle", "column_leads", "difference_interval", "discordant", "first_shown", "flip_rate", "flips", "holm",
    "ledger", "longer_response", "majority", "mcnemar", "minimum_detectable_effect", "opinions", "order_calibration",
    "order_curves", "paired_bootstrap", "pairwise_accuracy", "reliability_curve", "share_interval", "simple_rules",
    "transfer_gap", "vote_weights", "wilson_interval",
]  # fmt: skip
