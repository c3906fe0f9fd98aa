"""A call to a judge, the budgets it is made under, and the row of the run table that its answer fills."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Generator
from dataclasses import asdict, dataclass

from baer_utils.backbones.base import Failure, Generation, Likelihood, Read
from baer_utils.prompts import LABEL_SIGN, LABELS, SYSTEM, TEMPLATES, Prompt

Answer = Read | Generation | Likelihood | Failure


@dataclass(frozen=True)
class Settings:
    """Decoding budgets of a run, in tokens; part of every key and of the frozen head.

    Attributes
    ----------
    max_new_tokens : reasoning, analyses, audits, claims.
    criteria_tokens, reference_tokens : what is written from the question alone; the paper's references have 4096.
    letter_tokens : a verdict that is nothing but its marked letter.
    trials, temperature, top_p : self-consistency, per display order.
    """

    max_new_tokens: int = 48
    criteria_tokens: int = 48
    reference_tokens: int = 96
    letter_tokens: int = 8
    trials: int = 5
    temperature: float = 0.7
    top_p: float = 0.95

    def __post_init__(self):
        for name, value in asdict(self).items():
            if name not in ("temperature", "top_p") and value < 1:
                raise ValueError(f"{name} must be at least 1; it is {value}. Give texts some room.")
        if self.temperature <= 0 or not 0 < self.top_p <= 1:
            raise ValueError(
                f"sampling needs a temperature above 0 and a top_p in (0, 1]; they are {self.temperature} and "
                f"{self.top_p}. The usual ones are 0.7 and 0.95."
            )

    @property
    def tag(self) -> str:
        """Eight hex digits that name these settings, and the words of all prompts, in the store."""
        named = json.dumps([asdict(self), SYSTEM, TEMPLATES], sort_keys=True)
        return hashlib.sha256(named.encode()).hexdigest()[:8]


@dataclass(frozen=True)
class Call:
    """One call to a judge: the verb, the prompt, and what it takes to read the answer.

    Attributes
    ----------
    verb : "read", "generate" or "likelihood".
    labels : of a read; label 0 speaks for the response shown as A, or for "correct".
    max_new_tokens, temperature, top_p : of a generation; temperature 0 is greedy.
    text : of a likelihood, the text whose likelihood is asked.
    parse : generated text to "A", "B", "tie" or None; only verdicts by generation have it.
    score : a `Likelihood` to the value of its row; the log-likelihood itself by default.
    """

    verb: str
    prompt: Prompt
    labels: tuple[str, str] = LABELS
    max_new_tokens: int = 0
    temperature: float = 0.0
    top_p: float = 1.0
    text: str = ""
    parse: Callable[[str], str | None] | None = None
    score: Callable[[Likelihood], float] | None = None

    @property
    def decoding(self) -> tuple:
        """What besides prompt and text decides the answer: calls that share it may share a batch."""
        if self.verb == "read":
            return (self.verb, *self.labels)
        if self.verb == "likelihood":
            return (self.verb,)
        return (self.verb, self.max_new_tokens, self.temperature, self.top_p)

    @property
    def seed(self) -> int:
        """Seed of a sampled text, from the prompt and the trial: a pair and its swap see the same draws."""
        digest = hashlib.sha256(f"{self.prompt.sha}|{self.prompt.key.trial}".encode()).hexdigest()
        return int(digest[:15], 16)


Asking = Generator[list[Call], list[Answer], None]


def run_row(call: Call, answer: Answer, backbone: str) -> dict:
    """The row of the run table that a call and its answer make, mapped to the canonical response *a*.

    A hard verdict becomes ±inf, a tie 0, an unparsed or cut text NaN; a failed call keeps its reason as text, a read
    that is a bound its remark, a likelihood its raw log-likelihood, which the value of its row may have been scaled or
    shifted from.
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
        status = "tie" if signed == 0 else "ok"
        return row | {"log_odds": signed, "label_mass": answer.label_mass, "status": status, "text": answer.text}
    if isinstance(answer, Likelihood):
        value = call.score(answer) if call.score else answer.log_likelihood
        return row | {"log_odds": value, "text": repr(answer.log_likelihood)}
    return row | {"text": answer.text} | _verdict(call, answer)


def _verdict(call: Call, answer: Generation) -> dict:
    if answer.finish_reason == "length":
        return {"status": "truncated"}
    if call.parse is None:
        return {}
    letter = call.parse(answer.answer)
    if letter is None:
        return {"status": "unparsed"}
    if letter == "tie":
        return {"status": "tie", "log_odds": 0.0}
    return {"log_odds": LABEL_SIGN[call.prompt.key.view] * (math.inf if letter == LABELS[0] else -math.inf)}
