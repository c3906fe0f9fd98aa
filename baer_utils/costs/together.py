"""What a set of experts costs when each distinct call is made once and shared beginnings are computed once.

Read off a run table: the hash of each prompt says which calls are one, the tokens that calls took over from each other
say how long a shared beginning is. This file makes no call, and what it cannot see as shared it counts in full.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from types import SimpleNamespace

import numpy as np
import pandas as pd

from baer_utils.costs.alone import calls_of, of_pairs, per_pair
from baer_utils.prompts import Prompt
from baer_utils.protocols import PROTOCOLS, Settings, rehearse
from baer_utils.records import RUN_KEY

CONTENT = ["pair_id", "content"]


def price(runs: pd.DataFrame, experts: Sequence[str], pair_ids: Sequence[str] | None = None) -> dict[str, float]:
    """What a set of experts really needs, as far as a run table can tell.

    Parameters
    ----------
    runs : run table of one backbone. Calls outside the set are looked at too: what they took over (`cached_tokens`)
        shows how long a content is, also where the call that paid for it is not in the set.
    experts, pair_ids : as in `standalone`.

    Returns
    -------
    dict, each number per pair: ``calls``, distinct by prompt, decoding and trial (so what is asked about a question
    alone counts once for all its pairs); ``prompt_tokens``, all of theirs; ``new_tokens``; ``unique_tokens``, the
    prompt tokens left when a content that several calls begin with, and a prompt that several trials share, is computed
    once. Where the table shows nothing shared (one call about a content, a judge that does not say) these are all
    prompt tokens. An imported row names no prompt and is a call of its own.
    """
    mine, n = of_pairs(runs, pair_ids)
    named = _named(mine)
    calls = _distinct(pd.concat([calls_of(named, name) for name in experts] or [named[:0]]))
    return per_pair(calls, n) | {"unique_tokens": _unique_tokens(calls, _content_tokens(named)) / n}


def _named(runs: pd.DataFrame) -> pd.DataFrame:
    """The runs with how each answer was taken, and with the content that its prompt begins with ("": none known)."""
    kinds = [_kinds().get(key, ("", "")) for key in zip(runs["protocol"], runs["stage"], runs["view"], strict=True)]
    return runs.assign(decoding=[decoding for decoding, _ in kinds], content=[content for _, content in kinds])


def _distinct(calls: pd.DataFrame) -> pd.DataFrame:
    """One row per call that has to be made: the first of those with one prompt, decoding, trial and likelihood."""
    calls = calls[~calls.duplicated(RUN_KEY)]  # the same row, needed by two experts
    # the prompt of a likelihood does not name the text; its row's own text does, being the likelihood itself
    text = calls["text"].where(calls["decoding"].str.startswith("likelihood"), "")
    repeated = calls.assign(text=text).duplicated(["prompt_sha", "decoding", "trial", "text"])
    return calls[~repeated | (calls["prompt_sha"] == "")]


def _content_tokens(named: pd.DataFrame) -> pd.Series:
    """Tokens of every content that a call of the table took over from another: the fewest that any one did."""
    known = named[named["content"] != ""].groupby(CONTENT)
    taken = named[(named["content"] != "") & (named["cached_tokens"] > 0)].groupby(CONTENT)["cached_tokens"].min()
    shortest = known["prompt_tokens"].min().reindex(taken.index) - 1  # a resumed run may show whole prompts alone
    return np.minimum(taken, shortest)


def _unique_tokens(calls: pd.DataFrame, content_tokens: pd.Series) -> float:
    """Prompt tokens of distinct calls, shared as the backbones share them.

    A content is computed once for all calls that begin with it, and all of a prompt but its last token once for all
    its trials.
    """
    of_prompt = calls.groupby([*CONTENT, "prompt_sha"], sort=False)
    prompts = of_prompt.agg(calls=("trial", "size"), trials=("trial", "nunique"), tokens=("prompt_tokens", "max"))
    contents = prompts.index.droplevel("prompt_sha")
    held = content_tokens.reindex(contents).fillna(0).to_numpy()
    behind = prompts["tokens"] - held
    behind = (behind + prompts["calls"] - 1).where(prompts["trials"] > 1, behind * prompts["calls"])
    alone = of_prompt["prompt_tokens"].sum()
    return float(behind.where(held > 0, alone).sum() + held[~contents.duplicated()].sum())


@cache
def _kinds() -> dict[tuple[str, str, str], tuple[str, str]]:
    """(protocol, stage, view) -> verb and decoding, and the content that the prompt begins with, of every protocol."""
    blank = SimpleNamespace(pair_id="", instruction="{instruction}", response_a="{a}", response_b="{b}")
    calls = [call for name in PROTOCOLS for call in rehearse(name, Settings(), blank)]
    kinds = [(" ".join(map(str, call.decoding)), _content(call.prompt)) for call in calls]
    keys = [(call.prompt.key.protocol, call.prompt.key.stage, call.prompt.key.view) for call in calls]
    return dict(zip(keys, kinds, strict=True))


def _content(prompt: Prompt) -> str:
    """The texts of a prompt up to the last piece of its content; empty where it has none to share."""
    pieces = [number for number, segment in enumerate(prompt.segments) if not segment.trusted][: prompt.shared]
    return "".join(segment.text for segment in prompt.segments[: pieces[-1] + 1]) if pieces else ""
