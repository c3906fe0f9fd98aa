"""From a pair and a template to a prompt: the content first, then a judge's earlier notes, the question last."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from baer_utils.prompts.words import DISPLAY, SYSTEM, TEMPLATES


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
    shared : how many untrusted segments, from the first, make up the content: instruction and responses. All prompts
        about one content begin alike up to there.
    continue_ids : token ids of a generation to go on from, or None.
    cut : at most this many tokens of each response are rendered; None renders them whole.
    free : whether the judge writes its turn from the first word, so that one that can think may think first. A stub, or
        a text whose likelihood is asked, begins the answer itself.
    """

    version: str
    segments: tuple[Segment, ...]
    stub: str
    key: Key
    responses: tuple[int, ...] = ()
    shared: int = 0
    continue_ids: tuple[int, ...] | None = None
    cut: int | None = None
    free: bool = False

    @cached_property
    def sha(self) -> str:
        """SHA-256 of the canonical JSON of [version, segments, stub], before any cut: the `prompt_sha` column."""
        text = json.dumps([self.version, self.segments, self.stub], ensure_ascii=True, separators=(",", ":"))
        return hashlib.sha256(text.encode("ascii")).hexdigest()


Notes = Sequence[tuple[str, str]]


def two_responses(pair, view: str, template: str, key: Key, notes: Notes = ()) -> Prompt:
    """Both responses in the display order of `view`, then notes, then the question of a template.

    Parameters
    ----------
    pair : a row of the pair table with fields instruction, response_a, response_b.
    view : one of `DISPLAY`.
    template : a name in `TEMPLATES`.
    key : the row of the run table that it fills.
    notes : (heading, text) pairs; the text is a judge's own earlier writing and is not trusted.
    """
    first, second, first_letter, second_letter = DISPLAY[view]
    content = [(f"Response {first_letter}", getattr(pair, first)), (f"Response {second_letter}", getattr(pair, second))]
    return _prompt(pair.instruction, content, notes, template, key)


def one_response(pair, view: str, template: str, key: Key, notes: Notes = ()) -> Prompt:
    """One response (`view` a or b) without sight of the other, then notes, then the question of a template."""
    return _prompt(pair.instruction, [("Response", getattr(pair, f"response_{view}"))], notes, template, key)


def question_alone(pair, template: str, key: Key) -> Prompt:
    """The instruction and the question of a template: no response is in sight."""
    return _prompt(pair.instruction, [], (), template, key)


def one_claim(pair, claim: str, key: Key, notes: Notes = ()) -> Prompt:
    """The instruction, notes and one claim, without the response that it was taken from."""
    return _prompt(pair.instruction, [], [*notes, ("Claim", claim)], "claim", key)


def response_as_claim(pair, view: str, key: Key) -> Prompt:
    """A whole response in the place of a claim."""
    return _prompt(pair.instruction, [("Claim", getattr(pair, f"response_{view}"))], (), "claim", key)


def answer_to(instruction: str, key: Key) -> Prompt:
    """The instruction as a plain request, for the likelihood of a response as its answer."""
    return Prompt("answer/1", (Segment("user", instruction, False),), "", key)


def thought_through(prompt: Prompt, ids: tuple[int, ...], stub: str, key: Key) -> Prompt:
    """The same prompt after the judge has written `ids` in its turn, ending in a stub right before the label."""
    return replace(prompt, continue_ids=tuple(ids), stub=stub, key=key)


def _prompt(instruction: str, content: Notes, notes: Notes, template: str, key: Key) -> Prompt:
    words = TEMPLATES[template]
    segments = [
        Segment("system", SYSTEM, True),
        Segment("user", "Request:\n", True),
        Segment("user", instruction, False),
    ]
    for heading, text in (*content, *notes):
        segments += [Segment("user", f"\n\n{heading}:\n", True), Segment("user", text, False)]
    segments.append(Segment("user", f"\n\n{words.question}", True))
    responses = tuple(range(4, 4 + 2 * len(content), 2))
    return Prompt(
        words.version, tuple(segments), words.stub, key, responses, shared=1 + len(content), free=not words.stub
    )
