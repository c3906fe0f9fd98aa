"""The development heads that the paper screened and did not keep (its Figure 3): what they ask.

The paper gives their names and gains; what is asked is this project's reading of them.
"""

from __future__ import annotations

import re

from baer_utils import prompts
from baer_utils.backbones.base import Generation
from baer_utils.prompts import AFTER_THINKING, CORRECTNESS, DISPLAY, Key
from baer_utils.protocols.bank import ALONE, ORDERS
from baer_utils.protocols.calls import Asking, Call, Settings

MOST_CLAIMS = 4


def orbit(pair, settings: Settings) -> Asking:
    """Every display order under every assignment of the letters: four reads (protocols B.2)."""
    yield [Call("read", prompts.two_responses(pair, v, "direct", Key(pair.pair_id, "orbit", v))) for v in DISPLAY]


def anchor(pair, settings: Settings) -> Asking:
    """Key points from the question alone, then a read with both responses in sight, in each order (protocols B.3)."""
    asked = prompts.question_alone(pair, "key_points", Key(pair.pair_id, "anchor", "q", "anchor"))
    (points,) = yield [Call("generate", asked, max_new_tokens=settings.criteria_tokens)]
    notes = [("Key points", points.answer)]
    yield [
        Call("read", prompts.two_responses(pair, v, "anchor", Key(pair.pair_id, "anchor", v), notes)) for v in ORDERS
    ]


def audit(pair, settings: Settings) -> Asking:
    """The errors of each response listed without sight of the other, then a read in the same turn (protocols B.4)."""
    asked = [prompts.one_response(pair, v, "audit", Key(pair.pair_id, "audit", v, "audit")) for v in ALONE]
    audits = yield [Call("generate", prompt, max_new_tokens=settings.max_new_tokens) for prompt in asked]
    yield [
        Call(
            "read",
            prompts.thought_through(prompt, done.ids, AFTER_THINKING["audit"], Key(pair.pair_id, "audit", v)),
            CORRECTNESS,
        )
        for v, prompt, done in zip(ALONE, asked, audits, strict=True)
    ]


def cf(pair, settings: Settings) -> Asking:
    """Counterfactual reconciliation: both orders are explained, and a conflict is judged again with both explanations.

    Where the verdicts agree, each order is read after its own explanation. Where they do not, or one is missing, a
    second pass sees both explanations in the letters of its own display order: first the one that favours the response
    shown first, or, without two verdicts, the one written for this order (protocols B.1).
    """
    asked = {
        v: prompts.two_responses(pair, v, "chain_of_thought", Key(pair.pair_id, "cf", v, "analysis")) for v in ORDERS
    }
    answers = yield [Call("generate", p, max_new_tokens=settings.max_new_tokens) for p in asked.values()]
    said = dict(zip(ORDERS, answers, strict=True))
    favours = {v: _favoured(said[v], v) for v in ORDERS}
    if favours["ab"] is not None and favours["ab"] == favours["ba"]:
        yield [
            Call(
                "read", prompts.thought_through(asked[v], said[v].ids, AFTER_THINKING["cf"], Key(pair.pair_id, "cf", v))
            )
            for v in ORDERS
        ]
    else:
        yield [
            Call(
                "read",
                prompts.two_responses(
                    pair, v, "reconcile", Key(pair.pair_id, "cf", v), _explanations(said, favours, v)
                ),
            )
            for v in ORDERS
        ]


def claim_graph(pair, settings: Settings) -> Asking:
    """Each response taken apart into claims, each claim read alone with the claims it rests on (protocols B.5)."""
    extracted = yield [
        Call(
            "generate",
            prompts.one_response(pair, v, "claims", Key(pair.pair_id, "claim_graph", v, "claims")),
            max_new_tokens=2 * settings.max_new_tokens,
        )
        for v in ALONE
    ]
    calls = []
    for v, answer in zip(ALONE, extracted, strict=True):
        claims = prompts.claim_graph(answer.answer, MOST_CLAIMS)
        keys = [Key(pair.pair_id, "claim_graph", v, "claim", number) for number in range(max(1, len(claims)))]
        asked = [prompts.response_as_claim(pair, v, keys[0])] if not claims else []
        for key, (claim, parents) in zip(keys, claims, strict=False):
            asked.append(prompts.one_claim(pair, claim, key, [("Given", claims[parent][0]) for parent in parents]))
        calls += [Call("read", prompt, CORRECTNESS) for prompt in asked]
    yield calls


def _favoured(answer: Generation, view: str) -> str | None:
    """The response, a or b, that a finished explanation decides for."""
    letter = prompts.final_verdict(answer.answer) if answer.finish_reason == "stop" else None
    return None if letter is None else view["AB".index(letter)]


def _explanations(said: dict[str, Generation], favours: dict[str, str | None], view: str) -> list[tuple[str, str]]:
    other = "ba" if view == "ab" else "ab"
    texts = {view: said[view].answer, other: _exchange_letters(said[other].answer)}
    first = view
    if None not in favours.values():
        first = next(order for order in ORDERS if favours[order] == view[0])
    second = "ba" if first == "ab" else "ab"
    return [("An earlier judgment", texts[first]), ("Another judgment", texts[second])]


def _exchange_letters(text: str) -> str:
    """An explanation in the letters of the opposite display order."""
    return re.sub(r"\b([Rr]esponse )([AB])\b", lambda m: m[1] + ("B" if m[2] == "A" else "A"), text)
