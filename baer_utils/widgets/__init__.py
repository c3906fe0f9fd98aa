"""Small interactive views of the book; where no reader is at the keyboard each shows its static side instead."""

from baer_utils.widgets.browser import DisagreementBrowser, disagreement_browser
from baer_utils.widgets.dial import TauDial, tau_dial
from baer_utils.widgets.escaping import escaped, raw_text
from baer_utils.widgets.playground import SwapPlayground, swap_playground

__all__ = [
    "DisagreementBrowser", "SwapPlayground", "TauDial", "disagreement_browser", "escaped", "raw_text",
    "swap_playground", "tau_dial",
]  # fmt: skip
