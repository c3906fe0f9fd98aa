"""How right a method is, on how many pairs, and whether it is luck (Eq. 11); import every name from here."""

from baer_utils.metrics.bank import (
    ONE_TEMPLATE,
    any_expert_oracle,
    best_single,
    coin_oracle,
    flip_rate,
    flips,
    longer_response,
    majority,
    opinions,
    vote_weights,
)
from baer_utils.metrics.calibration import brier_score, calibration_error
from baer_utils.metrics.comparisons import discordant, holm, mcnemar, minimum_detectable_effect
from baer_utils.metrics.intervals import paired_bootstrap, share_interval, wilson_interval
from baer_utils.metrics.rules import as_answers, ledger, pairwise_accuracy

__all__ = [
    "ONE_TEMPLATE", "any_expert_oracle", "as_answers", "best_single", "brier_score", "calibration_error", "coin_oracle",
    "discordant", "flip_rate", "flips", "holm", "ledger", "longer_response", "majority", "mcnemar",
    "minimum_detectable_effect", "opinions", "paired_bootstrap", "pairwise_accuracy", "share_interval", "vote_weights",
    "wilson_interval",
]  # fmt: skip
