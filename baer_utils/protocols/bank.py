"""The experts of the bank, and the candidates beside it: how each one asks about a pair, call by call.

PriDe and CalibraEval correct direct's reads (`debias`); only CalibraEval's own baseline asks one read more.
"""

from __future__ import annotations

from baer_utils import prompts
from baer_utils.prompts import AFTER_THINKING, CORRECTNESS, Key
from baer_utils.protocols.calls import Asking, Call, Settings

ORDERS = ("ab", "ba")
ALONE = ("a", "b")


def direct(pair, settings: Settings) -> Asking:
    """Which response is better: one constrained read in each display order (protocols A.1)."""
    yield [Call("read", prompts.two_responses(pair, v, "direct", Key(pair.pair_id, "direct", v))) for v in ORDERS]


def self_consistency(pair, settings: Settings) -> Asking:
    """Sampled comparisons with a marked verdict, several trials in each display order (protocols A.2)."""
    yield [
        Call(
            "generate",
            prompts.two_responses(
                pair, v, "chain_of_thought", Key(pair.pair_id, "self_consistency", v, "verdict", trial)
            ),
            max_new_tokens=settings.max_new_tokens,
            temperature=settings.temperature,
            top_p=settings.top_p,
            parse=prompts.final_verdict,
        )
        for v in ORDERS
        for trial in range(settings.trials)
    ]


def chain_of_thought(pair, settings: Settings) -> Asking:
    """A short comparison, then a marked verdict, greedily, in each display order (protocols A.3)."""
    yield [
        Call(
            "generate",
            prompts.two_responses(pair, v, "chain_of_thought", Key(pair.pair_id, "chain_of_thought", v)),
            max_new_tokens=settings.max_new_tokens,
            parse=prompts.final_verdict,
        )
        for v in ORDERS
    ]


def rubric(pair, settings: Settings) -> Asking:
    """Criteria from the question alone, then a read against them in each display order (protocols A.4)."""
    asked = prompts.question_alone(pair, "criteria", Key(pair.pair_id, "rubric", "q", "criteria"))
    (criteria,) = yield [Call("generate", asked, max_new_tokens=settings.criteria_tokens)]
    notes = [("Criteria", criteria.answer)]
    yield [
        Call("read", prompts.two_responses(pair, v, "rubric", Key(pair.pair_id, "rubric", v), notes)) for v in ORDERS
    ]


def score_then_choose(pair, settings: Settings) -> Asking:
    """A score for each response, then a letter, in each display order; the letter counts first (protocols A.5)."""
    yield [
        Call(
            "generate",
            prompts.two_responses(pair, v, "score_then_choose", Key(pair.pair_id, "score_then_choose", v)),
            max_new_tokens=settings.max_new_tokens,
            parse=prompts.two_scores,
        )
        for v in ORDERS
    ]


def prepair(pair, settings: Settings) -> Asking:
    """Each response analysed alone, once; then a marked letter with both analyses, in each order (protocols A.6)."""
    analyses = yield [
        Call(
            "generate",
            prompts.one_response(pair, v, "analysis", Key(pair.pair_id, "prepair", v, "analysis")),
            max_new_tokens=settings.max_new_tokens,
        )
        for v in ALONE
    ]
    texts = dict(zip(ALONE, (answer.answer for answer in analyses), strict=True))
    yield [
        Call(
            "generate",
            prompts.two_responses(pair, v, "prepair", Key(pair.pair_id, "prepair", v), _lettered("Notes on", texts, v)),
            max_new_tokens=settings.letter_tokens,
            parse=prompts.final_verdict,
        )
        for v in ORDERS
    ]


def calibraeval(pair, settings: Settings) -> Asking:
    """The third prompt of CalibraEval's own baseline: b first, yet a under the letter A (2A; protocols A.8)."""
    view = "ba_BA"
    yield [Call("read", prompts.two_responses(pair, view, "direct", Key(pair.pair_id, "calibraeval", view)))]


def deliberate(pair, settings: Settings) -> Asking:
    """The judge's own greedy reasoning, then a read in the same turn, in each display order (protocols A.9)."""
    asked = {v: prompts.two_responses(pair, v, "deliberate", _key(pair, "deliberate", v, "analysis")) for v in ORDERS}
    thoughts = yield [Call("generate", prompt, max_new_tokens=settings.max_new_tokens) for prompt in asked.values()]
    yield [
        Call(
            "read", prompts.thought_through(asked[v], t.ids, AFTER_THINKING["deliberate"], _key(pair, "deliberate", v))
        )
        for v, t in zip(ORDERS, thoughts, strict=True)
    ]


def pointwise(pair, settings: Settings) -> Asking:
    """Is this response correct: one constrained read of each response alone (protocols A.10)."""
    yield [
        Call("read", prompts.one_response(pair, v, "pointwise", Key(pair.pair_id, "pointwise", v)), CORRECTNESS)
        for v in ALONE
    ]


def reference(pair, settings: Settings) -> Asking:
    """The judge solves the request blind, then verifies each response alone against its solution (protocols A.10)."""
    asked = prompts.question_alone(pair, "solution", Key(pair.pair_id, "reference", "q", "solution"))
    (solution,) = yield [Call("generate", asked, max_new_tokens=settings.reference_tokens)]
    notes = [("Reference answer", solution.answer)]
    yield [
        Call("read", prompts.one_response(pair, v, "reference", Key(pair.pair_id, "reference", v), notes), CORRECTNESS)
        for v in ALONE
    ]


def likelihood_sum(pair, settings: Settings) -> Asking:
    """Log-probability of each response, with its end token, as the whole answer to the request."""
    yield [_likelihood(pair, "likelihood_sum", v) for v in ALONE]


def likelihood_mean(pair, settings: Settings) -> Asking:
    """The same per token."""
    yield [_likelihood(pair, "likelihood_mean", v, lambda a: a.log_likelihood / a.new_tokens) for v in ALONE]


def likelihood_pmi(pair, settings: Settings) -> Asking:
    """What the request adds: the log-probability minus that of the same response after an empty request."""
    empty = yield [_likelihood(pair, "likelihood_pmi", v, stage="empty") for v in ALONE]
    yield [
        _likelihood(pair, "likelihood_pmi", v, lambda a, less=e.log_likelihood: a.log_likelihood - less)
        for v, e in zip(ALONE, empty, strict=True)
    ]


def _likelihood(pair, protocol: str, view: str, score=None, stage: str = "verdict") -> Call:
    prompt = prompts.answer_to("" if stage == "empty" else pair.instruction, Key(pair.pair_id, protocol, view, stage))
    return Call("likelihood", prompt, text=getattr(pair, f"response_{view}"), score=score)


def _key(pair, protocol: str, view: str, stage: str = "verdict") -> Key:
    return Key(pair.pair_id, protocol, view, stage)


def _lettered(heading: str, texts: dict[str, str], view: str) -> list[tuple[str, str]]:
    """Notes about each response under the letter that it has in a display order."""
    return [(f"{heading} Response {letter}", texts[response]) for letter, response in zip("AB", view, strict=True)]
