"""The words of every protocol, how they become a prompt, and what is read out of the answer; import from here.

A prompt is a sequence of segments, each either our own text (trusted) or somebody else's (an instruction, a response,
a generation: untrusted). The content comes first and the question last, so that all protocols of one display order
begin alike. Nothing here knows about tokens, chat templates or models; backbones do the rendering.
"""

from baer_utils.prompts.building import (
    Key,
    Prompt,
    Segment,
    answer_to,
    one_claim,
    one_response,
    question_alone,
    response_as_claim,
    thought_through,
    two_responses,
)
from baer_utils.prompts.parsing import THINKING, claim_graph, final_verdict, open_thought, two_scores, without_thinking
from baer_utils.prompts.words import (
    AFTER_THINKING,
    CORRECTNESS,
    DISPLAY,
    LABEL_SIGN,
    LABELS,
    SYSTEM,
    TEMPLATES,
    VERDICT_MARKER,
    Template,
)

__all__ = [
    "AFTER_THINKING", "CORRECTNESS", "DISPLAY", "LABELS", "LABEL_SIGN", "SYSTEM", "TEMPLATES", "THINKING",
    "VERDICT_MARKER", "Key", "Prompt", "Segment", "Template", "answer_to", "claim_graph", "final_verdict", "one_claim",
    "one_response", "open_thought", "question_alone", "response_as_claim", "thought_through", "two_responses",
    "two_scores", "without_thinking",
]  # fmt: skip
