"""Every protocol by name, in fixed orders, and a rehearsal that shows what each one would ask."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

from baer_utils.backbones.base import Generation, Likelihood, Read
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
from baer_utils.protocols.calls import Asking, Call, Settings
from baer_utils.protocols.screening import anchor, audit, cf, claim_graph, orbit

EXPERTS = (
    "direct", "self_consistency", "chain_of_thought", "rubric", "score_then_choose", "prepair", "pride", "calibraeval",
    "deliberate",
)  # fmt: skip
DERIVED = ("pride", "calibraeval")  # as experts, corrections of direct's reads: `debias` makes their rows
EXTRA_CANDIDATES = ("pointwise", "likelihood_mean", "likelihood_sum", "likelihood_pmi")
SCREENED = ("cf", "orbit", "anchor", "audit", "claim_graph")

# name -> generator of calls: what can be asked of a judge
PROTOCOLS: dict[str, Callable[[object, Settings], Asking]] = {
    ask.__name__: ask
    for ask in (
        direct, self_consistency, chain_of_thought, rubric, score_then_choose, prepair, calibraeval, deliberate,
        pointwise, likelihood_mean, likelihood_sum, likelihood_pmi, reference,
        cf, orbit, anchor, audit, claim_graph,
    )
}  # fmt: skip
# what the book asks of its judge about every pair: all but the screened heads that write something of their own
BOOK_BANK = tuple(name for name in PROTOCOLS if name not in SCREENED or name == "orbit")


def rehearse(name: str, settings: Settings, pair=None) -> list[Call]:
    """Every call that a protocol makes about a pair when each text it generates has the longest length it may have.

    Parameters
    ----------
    name : in `PROTOCOLS`.
    settings : decoding budgets.
    pair : by default one whose instruction and responses are empty, so that only templates and budgets are left.
    """
    pair = pair or SimpleNamespace(pair_id="", instruction="", response_a="", response_b="")
    asking = PROTOCOLS[name](pair, settings)
    calls, made = next(asking), []
    while calls:
        made += calls
        try:
            calls = asking.send([_longest_answer(call) for call in calls])
        except StopIteration:
            calls = []
    return made


def _longest_answer(call: Call) -> Read | Generation | Likelihood:
    if call.verb == "generate":
        return Generation(" a" * call.max_new_tokens, (0,) * call.max_new_tokens, "stop", 0)
    return Read(0.0, 1.0, 0) if call.verb == "read" else Likelihood(0.0, 0, new_tokens=1)
