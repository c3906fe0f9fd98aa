"""What will be asked together: blocks of pairs fixed by their texts alone, and how much of a response fits.

Both are decided before anything is computed or looked up, so that a resumed run, a sharded run and the run of the
swapped pairs make the same batches: what shares a batch moves the last bits of an answer.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from baer_utils.backbones.base import Backbone
from baer_utils.protocols import Call, Settings, rehearse

BLOCK_PAIRS = 32
BLOCK_CHARACTERS = 60_000  # of instruction and responses; bounds the memory that one block of long pairs can take
CALL_WORK = 32  # tokens: about what a prompt has behind its shared beginning
SHARED_PER_CHARACTER = 0.75  # tokens: a pair is shown whole in two orders and by halves, four characters a token
LEAST_RESPONSE = 32  # tokens; a pair whose instruction leaves less for each response is not judged but counted


def text_size(pair) -> int:
    """Characters of a pair, the same for the pair and its swap."""
    return len(pair.instruction) + len(pair.response_a) + len(pair.response_b)


def call_work(call: Call) -> int:
    """What a call counts for in the progress of a block: new tokens, and about as much as the end of its prompt."""
    return CALL_WORK + call.max_new_tokens


def planned_work(
    backbone: Backbone, experts: Sequence[str], settings: Settings, pairs: Sequence
) -> tuple[float, float]:
    """Work of all calls about these pairs, were no two the same, and of what their prompts begin with.

    Both only say how far a block is: they weigh what is done against what is left, and decide nothing.
    """
    calls = len(pairs) * sum(call_work(call) for name in experts for call in rehearse(name, settings))
    if not hasattr(backbone, "share_steps"):
        return calls, 0.0
    return calls, SHARED_PER_CHARACTER * sum(map(text_size, pairs))


def blocks(pairs: pd.DataFrame) -> Iterator[list]:
    """Rows of the pair table in order of size (then pair id), cut into blocks of bounded length."""
    block: list = []
    size = 0
    for pair in sorted(pairs.itertuples(index=False), key=lambda p: (text_size(p), p.pair_id)):
        if block and (len(block) == BLOCK_PAIRS or size + text_size(pair) > BLOCK_CHARACTERS):
            yield block
            block, size = [], 0
        block.append(pair)
        size += text_size(pair)
    if block:
        yield block


def call_key(backbone: str, call: Call, ids: Sequence[int]) -> str:
    """Name of an answer, without the protocol: backbone, verb, token ids, labels or decoding, trial."""
    likely = [call.text, call.prompt.cut] if call.verb == "likelihood" else []
    head = json.dumps([backbone, *call.decoding, call.prompt.key.trial, *likely])
    return hashlib.sha256(head.encode() + np.asarray(ids, dtype="<i4").tobytes()).hexdigest()


def refuse_unable(backbone: Backbone, experts: Sequence[str], settings: Settings) -> None:
    """Refuse experts that ask what the judge cannot answer, before anything is asked.

    Raises
    ------
    ValueError : names them, and what they need.
    """
    verbs = {name: {call.verb for call in rehearse(name, settings)} for name in experts}
    unable = {name: verbs[name] - getattr(backbone, "verbs", verbs[name]) for name in experts}
    unable = {name: ", ".join(sorted(lacking)) for name, lacking in unable.items() if lacking}
    if unable:
        told = "; ".join(f"{name} needs {lacking}" for name, lacking in unable.items())
        raise ValueError(f"{backbone.name} cannot answer all of these experts: {told}. Leave them out, or use a judge "
                         "that can: a server with api=completions, or a local model.")  # fmt: skip


def unsayable(backbone: Backbone, experts: Sequence[str], settings: Settings) -> dict[str, str]:
    """Experts that read a label which this judge cannot say as one token, and the reason."""
    refused = {}
    for name in experts:
        for labels in {call.labels for call in rehearse(name, settings) if call.verb == "read"}:
            try:
                backbone.read([], labels)
            except ValueError as error:
                refused[name] = str(error)
    return refused


class ResponseLimit:
    """How many tokens of each response every protocol of a run may show.

    c = floor(B / 2) with B = context - instruction - the longest template and generation budget among the protocols, so
    that both responses are cut alike whatever the other's length, and every protocol sees the same text.

    Parameters
    ----------
    backbone : the judge.
    experts : protocols of the run.
    settings : decoding budgets of the run.

    Raises
    ------
    ValueError : when templates and budgets alone leave fewer than `LEAST_RESPONSE` tokens for each response.
    """

    def __init__(self, backbone: Backbone, experts: Sequence[str], settings: Settings):
        self._backbone = backbone
        self._room = None  # tokens for instruction and responses; None where nothing is rendered
        if backbone.context:
            longest = {name: _longest_empty(backbone, name, settings) for name in experts}
            self._room = backbone.context - max(longest.values())
            if self._room < 2 * LEAST_RESPONSE:
                name = max(longest, key=longest.get)
                raise ValueError(
                    f"the prompts must leave at least {LEAST_RESPONSE} tokens for each response; {name} takes "
                    f"{longest[name]} of a context of {backbone.context} before any content, {settings.max_new_tokens} "
                    "of them for its answer. Give a smaller budget, or use a judge with more context."
                )

    def cut(self, pair) -> tuple[int | None, int]:
        """Tokens to keep of each response (None: all) and how many of the two are cut.

        Raises
        ------
        ValueError : when the instruction leaves fewer than `LEAST_RESPONSE` tokens for each response.
        """
        if self._room is None:
            return None, 0
        texts = (pair.instruction, pair.response_a, pair.response_b)
        instruction, *responses = (self._backbone.count(text) for text in texts)
        limit = (self._room - instruction) // 2
        if limit < LEAST_RESPONSE:
            raise ValueError(
                f"the instruction must leave at least {LEAST_RESPONSE} tokens for each response; it has {instruction} "
                f"tokens, which leaves {limit} of a context of {self._backbone.context}. Use a judge with more context."
            )
        cut = sum(count > limit for count in responses)
        return (limit if cut else None), cut


def _longest_empty(backbone: Backbone, name: str, settings: Settings) -> int:
    """Tokens of a protocol's longest call beside instruction and responses, its answer included."""
    calls = rehearse(name, settings)
    return max(len(backbone.render(call.prompt)) + max(1, call.max_new_tokens) for call in calls)
