"""The words of every protocol, as data. A text and its version change together: recorded answers are kept by it."""

from __future__ import annotations

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
    stub: str = ""


VERDICT_MARKER = "The better response is"
_CHOOSE = f'write "{VERDICT_MARKER} Response A." or "{VERDICT_MARKER} Response B."'
TEMPLATES = {
    # both responses
    "direct": Template("direct/1", "Which response answers the request correctly, A or B?", "Answer:"),
    "chain_of_thought": Template(
        "chain_of_thought/1", f"Which response is better, A or B? Explain in one short sentence, then {_CHOOSE}"
    ),
    "rubric": Template("rubric/1", "Which response meets these criteria better, A or B?", "Answer:"),
    "score_then_choose": Template(
        "score_then_choose/1",
        "Give each response a score from 0 to 9, one line each: the response, a colon, its score. "
        f"Then, on a third line, {_CHOOSE}",
        "Response A:",
    ),
    "prepair": Template("prepair/1", f"Which response is better, A or B? Use the notes, and {_CHOOSE}"),
    "deliberate": Template(
        "deliberate/1", "Which response answers the request better, A or B? Think it through in two or three sentences."
    ),
    "anchor": Template("anchor/1", "Which response has these key points, A or B?", "Answer:"),
    "reconcile": Template("reconcile/1", "Which response answers the request better, A or B?", "Answer:"),
    # one response
    "pointwise": Template("pointwise/1", "Is this response correct or incorrect?", "The response is"),
    "analysis": Template(
        "analysis/1", 'What is good and what is bad about it? Write one or two short sentences about "the response".'
    ),
    "reference": Template(
        "reference/1",
        "Does the response agree with the reference answer? Is it correct or incorrect?",
        "The response is",
    ),
    "audit": Template("audit/1", "What is wrong or missing in this response? Write one or two short sentences."),
    "claims": Template(
        "claims/1",
        "List the claims of this response, one numbered line each, at most four, its final answer last. "
        "Behind a claim, write in square brackets the numbers of the claims it rests on.",
        "1.",
    ),
    "claim": Template("claim/1", "Is this claim correct or incorrect?", "The claim is"),
    # the question alone
    "criteria": Template("criteria/1", "List at most three short criteria that a good response must meet."),
    "solution": Template("solution/1", "Answer the request yourself, briefly."),
    "key_points": Template("key_points/1", "What must a good answer contain? Write at most two short lines."),
}
AFTER_THINKING = {  # stubs that end a judge's own text right before the label
    "deliberate": "\n\nThe better response is Response",
    "cf": "\n\nThe better response is Response",
    "audit": "\n\nOverall, the response is",
}
