"""One function per figure of the book, in one look; a figure shows what it is given and computes nothing new."""

from baer_utils.plots.asking import label_mass, opinion_bar, position_preference, status_bars, swap_picture
from baer_utils.plots.comparing import agreement_matrix, price_of_accuracy, tau_path
from baer_utils.plots.deciding import coin_flip_rules, forest, gate_margins, gate_story
from baer_utils.plots.fitting import lambda_choice, lambda_path, out_of_fold_scores, stack_weights
from baer_utils.plots.look import caption, spoken, style
from baer_utils.plots.pruning import accuracy_against_tokens, bank_prices, early_exit_tokens
from baer_utils.plots.regimes import conflict_against_shared_error, frontier, regime_chart, role_profiles
from baer_utils.plots.routing import route_map
from baer_utils.plots.screening import letters_exchanged, screening_margins
from baer_utils.plots.trusting import reliability, risk_coverage
from baer_utils.plots.weighing import (
    clip_effect,
    feature_map,
    feature_plane,
    instability_against_confidence,
    order_plane,
    shrinkage,
)

__all__ = [
    "accuracy_against_tokens", "agreement_matrix", "bank_prices", "caption", "clip_effect", "coin_flip_rules",
    "conflict_against_shared_error", "early_exit_tokens", "feature_map", "feature_plane", "forest", "frontier",
    "gate_margins", "gate_story", "instability_against_confidence", "label_mass", "lambda_choice", "lambda_path",
    "letters_exchanged", "opinion_bar", "order_plane", "out_of_fold_scores", "position_preference", "price_of_accuracy",
    "regime_chart", "reliability", "risk_coverage", "role_profiles", "route_map",
    "screening_margins", "shrinkage", "spoken", "stack_weights", "status_bars", "style", "swap_picture", "tau_path",
]  # fmt: skip
