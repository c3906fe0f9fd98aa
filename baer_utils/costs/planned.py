"""What a run will take before it is made: every call is rehearsed, and the judge only renders the prompts.

This file asks nothing and looks nothing up: answers that a store has already are not taken off.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

import pandas as pd

from baer_utils.backbones.base import Backbone
from baer_utils.costs.alone import TOKENS
from baer_utils.debias import protocols_for
from baer_utils.protocols import PROTOCOLS, Call, Settings, rehearse

TOGETHER = "each call once"


def dry_run(
    pairs: pd.DataFrame,
    backbone: Backbone,
    experts: Sequence[str],
    settings: Settings | None = None,
    *,
    cut: Callable[[object], tuple[int | None, int]] | None = None,
) -> pd.DataFrame:
    """Calls and tokens of judging these pairs, counted without a call to the judge.

    Parameters
    ----------
    pairs : pair table. backbone : the judge, for its tokenizer. settings : decoding budgets.
    experts : names; what is asked for them is `debias.protocols_for`, the baselines' own calls included.
    cut : pair -> (tokens to keep of each response, how many are cut), a ValueError for a pair that does not fit
        (`judging.planning.ResponseLimit.cut`); by default every response is whole.

    Returns
    -------
    frame indexed by protocol, totals over the pairs: `calls`; `prompt_tokens`, as separate prompts; `new_tokens`, the
    most there can be. The last row counts each distinct call once, which is less than the sum where protocols share
    calls. A prompt that quotes what the judge wrote before counts with the longest text its budget allows. A judge that
    renders nothing (a record) has NaN tokens. ``attrs["unfit"]``: pairs that do not fit, whose calls are left out.

    Raises
    ------
    ValueError : for an expert that cannot be asked.
    """
    asked = protocols_for(experts)
    unknown = [name for name in asked if name not in PROTOCOLS]
    if unknown:
        raise ValueError(f"experts must be among {', '.join(PROTOCOLS)}; {', '.join(unknown)} cannot be asked.")
    settings, rows, unfit = settings or Settings(), [], 0
    for pair in pairs.itertuples(index=False):
        try:
            keep = cut(pair)[0] if cut else None
        except ValueError:
            unfit += 1
            continue
        rows += [
            (name, *_planned(call, backbone, keep)) for name in asked for call in rehearse(name, settings, pair)
        ]  # fmt: skip
    table = pd.DataFrame(rows, columns=["protocol", "call", *TOKENS]).assign(calls=1)
    once = table.drop_duplicates("call").assign(protocol=TOGETHER)
    frame = pd.concat([table, once]).groupby("protocol")[["calls", *TOKENS]].sum()
    frame = frame.reindex([*asked, TOGETHER], fill_value=0)
    if not backbone.context:
        frame[TOKENS] = float("nan")
    frame.attrs["unfit"] = unfit
    return frame


def _planned(call: Call, backbone: Backbone, keep: int | None) -> tuple[tuple, int, int]:
    """What makes a call distinct, the tokens of its prompt, and the most new tokens it can give."""
    prompt = dataclasses.replace(call.prompt, cut=keep)
    new = call.max_new_tokens
    if call.verb == "likelihood":
        tokens = backbone.count(call.text)
        new = 1 + (tokens if keep is None else min(tokens, keep))
    return (*call.decoding, prompt.sha, prompt.key.trial, call.text), len(backbone.render(prompt)), new
