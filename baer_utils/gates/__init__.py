"""Every threshold of the book, and who advances: two gates on development data, then one head per condition."""

from baer_utils.gates.margins import (
    ALPHA,
    GATED,
    HEADS,
    MIN_CALIBRATION_MARGIN,
    MIN_QUESTIONS,
    MIN_SELECTION_MARGIN,
    POOLED,
    Verdict,
    advance,
    margin,
    strongest_baseline,
)
from baer_utils.gates.screened import screen
from baer_utils.gates.selecting import Decision, Development, HeadFigures, select_head

__all__ = [
    "ALPHA",
    "GATED",
    "HEADS",
    "MIN_CALIBRATION_MARGIN",
    "MIN_QUESTIONS",
    "MIN_SELECTION_MARGIN",
    "POOLED",
    "Decision",
    "Development",
    "HeadFigures",
    "Verdict",
    "advance",
    "margin",
    "screen",
    "select_head",
    "strongest_baseline",
]
