"""What is timed: pairs of a given length made from the starter benchmark, and the bank's one-token reads alone."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd

from baer_utils.backbones.base import Backbone, Generation, Likelihood, Read
from baer_utils.benchmarks import load_pairs
from baer_utils.protocols import DERIVED, EXPERTS, PROTOCOLS, Call, Settings

BANK = (*(name for name in EXPERTS if name not in DERIVED), "calibraeval", "pointwise", "reference")
READERS = ("direct", "rubric", "calibraeval", "pointwise", "reference", "deliberate")
NOTES = "The answer should be correct, complete and clear. It should do what the request asks for, and nothing else. "


def long_pairs(backbone: Backbone, n_pairs: int, tokens: int = 400) -> pd.DataFrame:
    """Pairs whose request and two responses have about `tokens` tokens together, made by joining starter pairs.

    Parameters
    ----------
    backbone : whose tokens are counted.
    n_pairs : number of pairs; the starter benchmark is gone through again, from another start, when it is used up.

    Returns
    -------
    pair table without labels; the same for every call.
    """
    texts = ["instruction", "response_a", "response_b"]
    parts = load_pairs("starter_preference").sort_values("pair_id")[texts].to_dict("records")
    sizes = [sum(backbone.count(part[column]) for column in texts) for part in parts]
    rows: list[dict] = []
    place = 0
    while len(rows) < n_pairs:
        taken, total = [], 0
        while total + sizes[place % len(parts)] / 2 < tokens:
            taken.append(parts[place % len(parts)])
            total += sizes[place % len(parts)]
            place += 1
        place += place // len(parts) - (place - len(taken)) // len(parts)
        rows.append({column: "\n\n".join(part[column] for part in taken) for column in texts})
    number = [f"{n:04d}" for n in range(n_pairs)]
    fixed = {"benchmark": "bench", "subset": "all", "task_type": "all", "label": float("nan"), "split": "test"}
    return pd.DataFrame(rows).assign(pair_id=number, group_id=number, **fixed)


def fixed_reads(pairs: pd.DataFrame, settings: Settings, tokens_of) -> list[Call]:
    """The one-token reads of the bank, with fixed criteria, reference and reasoning in place of generated ones.

    Parameters
    ----------
    pairs : pair table. settings : budgets, which say how long the fixed texts are.
    tokens_of : text to token ids.

    Returns
    -------
    calls, 11 per pair: direct 2, rubric 2, CalibraEval's third prompt, pointwise 2, reference 2, deliberate 2.
    """
    calls: list[Call] = []
    for pair in pairs.itertuples(index=False):
        for name in READERS:
            asking = PROTOCOLS[name](pair, settings)
            asked = next(asking)
            while asked:
                calls += [call for call in asked if call.verb == "read"]
                try:
                    asked = asking.send([_fixed(call, tokens_of) for call in asked])
                except StopIteration:
                    asked = []
    return calls


def by_labels(calls: Iterable[Call]) -> dict[tuple[str, str], list[Call]]:
    """Reads that may share a batch: those with the same two labels."""
    groups: dict[tuple[str, str], list[Call]] = {}
    for call in calls:
        groups.setdefault(call.labels, []).append(call)
    return groups


def _fixed(call: Call, tokens_of) -> Read | Generation | Likelihood:
    if call.verb == "generate":
        ids = tokens_of(NOTES * 8)[: call.max_new_tokens]
        return Generation(NOTES * max(1, call.max_new_tokens // 26), tuple(ids), "stop", 0)
    return Read(0.0, 1.0, 0) if call.verb == "read" else Likelihood(0.0, 0, new_tokens=1)
