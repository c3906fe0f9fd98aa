"""The experts: how each one asks its question about a pair, call by call; import from here.

A protocol is a generator. It yields lists of calls that may be made together, receives the answers in the same order,
and may go on from them; every call fills one row of the run table. That is all a protocol is: who makes the calls, in
which batches, and where answers are kept is the business of `judging`.
"""

from baer_utils.protocols.bank import (
    calibraeval,
    chain_of_thought,
    deliberate,
    direct,
    likelihood_mean,
    likelihood_pmi,
    likelihood_sum,
    pointwise,
    prepair,
    reference,
    rubric,
    score_then_choose,
    self_consistency,
)
from baer_utils.protocols.calls import Answer, Asking, Call, Settings, run_row
from baer_utils.protocols.registry import (
    BOOK_BANK,
    DERIVED,
    EXPERTS,
    EXTRA_CANDIDATES,
    PROTOCOLS,
    SCREENED,
    rehearse,
)

__all__ = [
    "Answer", "Asking", "BOOK_BANK", "Call", "DERIVED", "EXPERTS", "EXTRA_CANDIDATES", "PROTOCOLS", "SCREENED",
    "Settings", "calibraeval", "chain_of_thought", "deliberate", "direct", "likelihood_mean", "likelihood_pmi",
    "likelihood_sum", "pointwise", "prepair", "reference", "rehearse", "rubric", "run_row", "score_then_choose",
    "self_consistency",
]  # fmt: skip
