"""What one expert says and how firmly: runs to signed, shrunk log-odds (Eq. 3, 4), and each baseline's own verdict."""

from baer_utils.evidence.native import NATIVE, native_decisions
from baer_utils.evidence.runs import run_array
from baer_utils.evidence.summary import (
    Evidence,
    clip_limit,
    log_odds,
    mean_preference,
    order_free_sum,
    order_instability,
    shrunk_log_odds,
    summarize,
)

__all__ = [
    "NATIVE", "Evidence", "clip_limit", "log_odds", "mean_preference", "native_decisions", "order_free_sum",
    "order_instability", "run_array", "shrunk_log_odds", "summarize",
]  # fmt: skip
