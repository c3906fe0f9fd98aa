"""The experts: how each one asks its question about a pair, call by call.

A protocol is a generator. It yields lists of calls that may be made together, receives the answers in the same order,
and may go on from them; every call fills one row of the run table. That is all a protocol is: who makes the calls, in
which batches, and where answers are kept is the business of `judging`.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Generator
from dataclasses import asdict, dataclass

from baer_utils import prompts
from baer_utils.backbones.base import Failure, Generation, Likelihood, Read
from baer_utils.prompts import CORRECTNESS, LABEL_SIGN, LABELS, Key, Prompt

EXPERTS = (
    "direct", "self_consistency", "chain_of_thought", "rubric", "score_then_choose", "prepair", "pride", "calibraeval",
    "deliberate",
)  # fmt: skip
EXTRA_CANDIDATES = ("pointwise",)
BOOK_BANK = ("direct", "chain_of_thought", "pointwise")  # what the book asks of its judge
Answer = Read | Generation | Likelihood | Failure


@dataclass(frozen=True)
class Settings:
    """Decoding budgets of a run, in tokens; part of every key and of the frozen head."""

    max_new_tokens: int = 48

    def __post_init__(self):
        if self.max_new_tokens < 1:
            raise ValueError(f"max_new_tokens must be at least 1; it is {self.max_new_tokens}. Give texts some room.")

    @property
    def tag(self) -> str:
        """Eight hex digits that name these settings, and the words of all prompts, in the store."""
        named = json.dumps([asdict(self), prompts.SYSTEM, prompts.TEMPLATES], sort_keys=True)
        return hashlib.sha256(named.encode()).hexdigest()[:8]


@dataclass(frozen=True)
class Call:
    """One call to a judge: the verb, the prompt, and what it takes to read the answer.

    `parse` turns generated text into the letter of the better response, or None; only verdicts by generation have it.
    """

    verb: str
    prompt: Prompt
    labels: tuple[str, str] = LABELS
    max_new_tokens: int = 0
    parse: Callable[[str], str | None] | None = None

    @property
    def decoding(self) -> tuple:
        """What besides the prompt decides the answer: calls that share it may share a batch."""
        return (self.verb, *self.labels) if self.verb == "read" else (self.verb, self.max_new_tokens)


Asking = Generator[list[Call], list[Answer], None]


def direct(pair, settings: Settings) -> Asking:
    """Which response is better: one constrained read in each display order (protocols A.1)."""
    yield [
        Call("read", prompts.two_responses(pair, view, "direct", Key(pair.pair_id, "direct", view)))
        for view in ("ab", "ba")
    ]


def chain_of_thought(pair, settings: Settings) -> Asking:
    """A short comparison, then a marked verdict, greedily, in each display order (protocols A.3)."""
    yield [
        Call(
            "generate",
            prompts.two_responses(pair, view, "chain_of_thought", Key(pair.pair_id, "chain_of_thought", view)),
            max_new_tokens=settings.max_new_tokens,
            parse=prompts.final_verdict,
        )
        for view in ("ab", "ba")
    ]


def pointwise(pair, settings: Settings) -> Asking:
    """Is this response correct: one constrained read of each response alone (protocols A.10, BAER Eq. 8 as input)."""
    yield [
        Call("read", prompts.one_response(pair, view, "pointwise", Key(pair.pair_id, "pointwise", view)), CORRECTNESS)
        for view in ("a", "b")
    ]


PROTOCOLS: dict[str, Callable[[object, Settings], Asking]] = {
    "direct": direct,
    "chain_of_thought": chain_of_thought,
    "pointwise": pointwise,
}


def run_row(call: Call, answer: Answer, backbone: str) -> dict:
    """The row of the run table that a call and its answer make, mapped to the canonical response *a*.

    A hard verdict becomes ±inf, an unparsed or cut text NaN; a failed call keeps its reason as text.
    """
    key = call.prompt.key
    row = {
        **key._asdict(),
        "backbone": backbone,
        "log_odds": math.nan,
        "status": "ok",
        "label_mass": math.nan,
        "prompt_tokens": 0,
        "cached_tokens": 0,
        "new_tokens": 0,
        "seconds": 0.0,
        "prompt_sha": call.prompt.sha,
        "text": "",
    }
    if isinstance(answer, Failure):
        return row | {"status": "error", "text": answer.reason}
    row |= {name: getattr(answer, name) for name in ("prompt_tokens", "cached_tokens", "new_tokens", "seconds")}
    if isinstance(answer, Read):
        signed = LABEL_SIGN[key.view] * answer.log_odds
        return row | {"log_odds": signed, "label_mass": answer.label_mass, "status": "tie" if signed == 0 else "ok"}
    row["text"] = answer.text
    if answer.finish_reason == "length":
        return row | {"status": "truncated"}
    if call.parse is not None:
        letter = call.parse(answer.text)
        if letter is None:
            return row | {"status": "unparsed"}
        row["log_odds"] = LABEL_SIGN[key.view] * (math.inf if letter == LABELS[0] else -math.inf)
    return row
