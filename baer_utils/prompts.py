"""The words of every protocol, as data with versions, and how they become a prompt.

A prompt is a sequence of segments, each either our own text (trusted) or somebody else's (an instruction, a response,
a generation: untrusted). The content comes first and the question last, so that all protocols of one display order
begin alike. This file knows nothing about tokens, chat templates or models; backbones do the rendering.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

SYSTEM = "You judge answers to requests. You are careful, fair and brief."
LABELS = ("A", "B")
CORRECTNESS = ("correct", "incorrect")

# view -> (response shown first, response shown second, letter of the first, letter of the second)
DISPLAY = {
    "ab": ("response_a", "response_b", "A", "B"),
    "ba": ("response_b", "response_a", "A", "B"),
    "ab_BA": ("response_a", "response_b", "B", "A"),
    "ba_BA": ("response_b", "response_a", "B", "A"),
}
# view -> +1 where label A (or the positive label) speaks for a, -1 where it speaks for b
LABEL_SIGN = {"ab": 1.0, "ba": -1.0, "ab_BA": -1.0, "ba_BA": 1.0, "a": 1.0, "b": 1.0, "q": 1.0}


class Template(NamedTuple):
    """What is asked after the content: a version that changes with the words, the question, the stub of the answer."""

    version: str
    question: str
    stub: str


TEMPLATES = {
    "direct": Template("direct/1", "Which response answers the request correctly, A or B?", "Answer:"),
    "chain_of_thought": Template(
        "chain_of_thought/1",
        "Which response is better, A or B? Explain in one short sentence, then write "
        '"The better response is Response A." or "The better response is Response B."',
        "",
    ),
    "pointwise": Template("pointwise/1", "Is this response correct or incorrect?", "The response is"),
}


class Segment(NamedTuple):
    """A piece of a prompt. `role` is the chat role it belongs to; untrusted text can never act as a control token."""

    role: str
    text: str
    trusted: bool


class Key(NamedTuple):
    """Names the row of the run table that a prompt fills; never rendered."""

    pair_id: str
    protocol: str
    view: str
    stage: str = "verdict"
    trial: int = 0


@dataclass(frozen=True)
class Prompt:
    """One question to a judge, before any tokens.

    Attributes
    ----------
    version : version of the words, part of `sha`.
    segments : tuple of (role, text, trusted).
    stub : text inside the assistant turn right before the label, or "".
    key : the row of the run table it fills.
    responses : positions in `segments` that hold a response: the only ones that are ever cut.
    continue_ids : token ids of a generation to go on from, or None.
    cut : at most this many tokens of each response are rendered; None renders them whole.
    """

    version: str
    segments: tuple[Segment, ...]
    stub: str
    key: Key
    responses: tuple[int, ...] = ()
    continue_ids: tuple[int, ...] | None = None
    cut: int | None = None

    @cached_property
    def sha(self) -> str:
        """SHA-256 of the canonical JSON of [version, segments, stub], before any cut: the `prompt_sha` column."""
        text = json.dumps([self.version, self.segments, self.stub], ensure_ascii=True, separators=(",", ":"))
        return hashlib.sha256(text.encode("ascii")).hexdigest()


def two_responses(pair, view: str, template: str, key: Key) -> Prompt:
    """Both responses in the display order of `view`, then the question of a template.

    Parameters
    ----------
    pair : a row of the pair table with fields instruction, response_a, response_b.
    view : one of `DISPLAY`.
    template : a name in `TEMPLATES`.
    key : the row of the run table that it fills.
    """
    first, second, first_letter, second_letter = DISPLAY[view]
    words = TEMPLATES[template]
    segments = (
        *_opening(pair),
        Segment("user", f"\n\nResponse {first_letter}:\n", True),
        Segment("user", getattr(pair, first), False),
        Segment("user", f"\n\nResponse {second_letter}:\n", True),
        Segment("user", getattr(pair, second), False),
        Segment("user", f"\n\n{words.question}", True),
    )
    return Prompt(words.version, segments, words.stub, key, responses=(4, 6))


def one_response(pair, view: str, template: str, key: Key) -> Prompt:
    """One response (`view` a or b) without sight of the other, then the question of a template."""
    words = TEMPLATES[template]
    segments = (
        *_opening(pair),
        Segment("user", "\n\nResponse:\n", True),
        Segment("user", getattr(pair, f"response_{view}"), False),
        Segment("user", f"\n\n{words.question}", True),
    )
    return Prompt(words.version, segments, words.stub, key, responses=(4,))


def _opening(pair) -> tuple[Segment, ...]:
    return (
        Segment("system", SYSTEM, True),
        Segment("user", "Request:\n", True),
        Segment("user", pair.instruction, False),
    )


VERDICT_MARKER = "The better response is"
# the marker, then a letter that ends the line or is followed by "is" or "because": "... is A clear one" names nobody,
# nor does "A/B" or "A & B"
_VERDICT = re.compile(
    r"(?i:better response is)\W{1,6}(?:(?i:response)\W{1,3})?\(?([AB])\b(?!\s*[/&|+])(?!\s+(?!is\b|because\b)\w)"
)


def final_verdict(text: str) -> str | None:
    """Letter of the last marked verdict in a judge's own text, or None.

    Only newly generated text may be passed. The last line that holds `VERDICT_MARKER` counts. Where it names no letter
    or both, or follows directly on a marked line that names the other (an echo of the instruction), nothing is parsed.
    There is no fallback: a text without a clear verdict has none.
    """
    lines = [line for line in text.splitlines() if line.strip()]
    marked = [VERDICT_MARKER.lower() in line.lower() for line in lines]
    if not any(marked):
        return None
    last = len(marked) - 1 - marked[::-1].index(True)
    named = set(_VERDICT.findall(lines[last]))
    if named and last and marked[last - 1]:
        named |= set(_VERDICT.findall(lines[last - 1]))
    return named.pop() if len(named) == 1 else None
