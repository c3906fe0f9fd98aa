"""What is timed: pairs of a given length made from the starter benchmark, and the bank's one-token reads alone."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator

import pandas as pd

from baer_utils.backbones.base import Backbone, Generation, Likelihood, Read
from baer_utils.benchmarks import load_pairs
from baer_utils.protocols import DERIVED, EXPERTS, PROTOCOLS, Call, Settings
from baer_utils.records import unit_hash

BANK = (*(name for name in EXPERTS if name not in DERIVED), "calibraeval", "pointwise", "reference")
READERS = ("direct", "rubric", "calibraeval", "pointwise", "reference", "deliberate")
NOTES = "The answer should be correct, complete and clear. It should do what the request asks for, and nothing else. "


def long_pairs(backbone: Backbone, n_pairs: int, tokens: int = 400) -> pd.DataFrame:
    """Pairs whose request and two responses have about `tokens` tokens together, made by joining starter pairs.

    Parameters
    ----------
    backbone : whose tokens are counted.
    n_pairs : number of pairs; the starter benchmark is gone through again, in another order, when it is used up.

    Returns
    -------
    pair table without labels; the same for every call.
    """
    texts = ["instruction", "response_a", "response_b"]
    parts = load_pairs("starter_preference")[["pair_id", *texts]].to_dict("records")
    sizes = {part["pair_id"]: sum(backbone.count(part[column]) for column in texts) for part in parts}
    supply = _shuffled_for_ever(parts)
    rows: list[dict] = []
    while len(rows) < n_pairs:
        taken, total = [], 0
        while not taken or total + sizes[taken[-1]["pair_id"]] / 2 < tokens:  # another one of that size comes nearer
            taken.append(next(supply))
            total += sizes[taken[-1]["pair_id"]]
        rows.append({column: "\n\n".join(part[column] for part in taken) for column in texts})
    number = [f"{n:04d}" for n in range(n_pairs)]
    fixed = {"benchmark": "bench", "subset": "all", "task_type": "all", "label": float("nan"), "split": "test"}
    return pd.DataFrame(rows).assign(pair_id=number, group_id=number, **fixed)


def _shuffled_for_ever(parts: list[dict]) -> Iterator[dict]:
    """The same parts round after round, each round in an order of its own that hashes give."""
    for number in itertools.count():
        yield from sorted(parts, key=lambda part, number=number: unit_hash(f"{number}|{part['pair_id']}"))


def fixed_reads(pairs: pd.DataFrame, settings: Settings, tokenizer) -> list[Call]:
    """The one-token reads of the bank, with fixed criteria, reference and reasoning in place of generated ones.

    Parameters
    ----------
    pairs : pair table. settings : budgets, which say how long the fixed texts are.
    tokenizer : the judge's, which cuts the fixed texts to their budgets.

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
                    asked = asking.send([_fixed(call, tokenizer) for call in asked])
                except StopIteration:
                    asked = []
    return calls


def by_labels(calls: Iterable[Call]) -> dict[tuple[str, str], list[Call]]:
    """Reads that may share a batch: those with the same two labels."""
    groups: dict[tuple[str, str], list[Call]] = {}
    for call in calls:
        groups.setdefault(call.labels, []).append(call)
    return groups


def _fixed(call: Call, tokenizer) -> Read | Generation | Likelihood:
    """A stand-in for an answer; a text is as long as its budget, so that what goes on from it costs the most it can."""
    if call.verb == "generate":
        ids = tokenizer(NOTES * call.max_new_tokens, add_special_tokens=False)["input_ids"][: call.max_new_tokens]
        return Generation(tokenizer.decode(ids), tuple(ids), "stop", 0)
    return Read(0.0, 1.0, 0) if call.verb == "read" else Likelihood(0.0, 0, new_tokens=1)
