"""Random pair and run tables with all that real ones hold: ties, ±inf, missing orders, identical responses.

`banks` is the hypothesis strategy; `make_pairs` and `make_runs` build larger tables from a seed. Shared by the tests.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from baer_utils.records import RUN_COLUMNS, question_group, split_of

# The same examples on every run and machine, and no limit on an example's time: a busy machine is no failure.
settings.register_profile("book", deadline=None, derandomize=True)
settings.load_profile("book")

EXPERTS = (
    "direct", "self_consistency", "chain_of_thought", "rubric", "score_then_choose", "prepair", "pride", "calibraeval",
    "deliberate",
)  # fmt: skip
TEXTS = (
    "", "four", "It is 4.", "It is 5.", "- one\n- two", "1. first\n2. second, 3.5 in all", "```py\nprint(12)\n```",
    "Ärger und Überfluss", "a much longer answer that says the same thing again and again " * 3,
)  # fmt: skip
SUBSETS = (("arithmetic", "math"), ("algebra", "math"), ("chat", "chat"), ("", ""))
TIE, HARD = 0.0, (np.inf, -np.inf)

log_odds_values = st.one_of(
    st.floats(-12, 12, allow_nan=False),
    st.sampled_from([TIE, *HARD, np.nan, 1e-9, -1e-9, 37.0, -800.0]),
)
log_odds_arrays = st.tuples(st.integers(1, 6), st.integers(1, 4), st.integers(1, 5)).flatmap(
    lambda shape: arrays(float, shape, elements=log_odds_values)
)


@st.composite
def banks(draw, max_pairs: int = 6, max_experts: int = 4) -> tuple[pd.DataFrame, pd.DataFrame, tuple[str, ...]]:
    """(pairs, runs, experts). One order, one vote, one expert or one pair may be missing; the runs come shuffled."""
    experts = tuple(draw(st.permutations(EXPERTS))[: draw(st.integers(1, max_experts))])
    pairs = make_pairs(draw(st.integers(1, max_pairs)), draw(st.integers(0, 10**6)))
    rows = []
    for pair_id, a, b in pairs[["pair_id", "response_a", "response_b"]].itertuples(index=False):
        for expert in experts:
            for trial in range(2 if expert == "self_consistency" else 1):
                shown = {view: draw(log_odds_values) for view in ("ab", "ba") if draw(st.integers(0, 9))}
                if a == b and shown:  # both orders are one prompt: what speaks for a in one speaks for b in the other
                    value = next(iter(shown.values()))
                    shown = {"ab": value, "ba": -value}
                rows += [(pair_id, expert, view, trial, value) for view, value in shown.items()]
    runs = run_rows(rows)
    return pairs, runs.iloc[draw(st.permutations(range(len(runs))))].reset_index(drop=True), experts


def make_pairs(n: int, seed: int = 0, *, benchmark: str = "table") -> pd.DataFrame:
    """n pairs with odd texts, some identical responses, repeated questions, several subsets, labels and splits."""
    rng = np.random.default_rng(seed)
    questions = [f"What is {i} + 2?" for i in rng.integers(0, max(2 * n, 2), n)]
    kinds = [SUBSETS[i] for i in rng.integers(0, len(SUBSETS), n)]
    groups = [question_group(question) for question in questions]
    return pd.DataFrame(
        {
            "pair_id": [f"p{i:05d}" for i in rng.permutation(n)],
            "group_id": groups,
            "benchmark": benchmark,
            "subset": [subset for subset, _ in kinds],
            "task_type": [task_type for _, task_type in kinds],
            "instruction": questions,
            "response_a": [TEXTS[i] for i in rng.integers(0, len(TEXTS), n)],
            "response_b": [TEXTS[i] for i in rng.integers(0, len(TEXTS), n)],
            "label": rng.choice([1.0, -1.0], n),
            "split": [split_of(group) for group in groups],
        }
    )


def make_runs(
    pairs: pd.DataFrame, experts: Sequence[str], seed: int = 0, *, skill: float = 1.0, bias: float = 1.0
) -> pd.DataFrame:
    """Soft runs in both orders: `skill` toward the label, `bias` toward the first shown, noise; 5 % missing."""
    rng = np.random.default_rng(seed)
    blocks = []
    for expert in experts:
        for sign, view in ((1, "ab"), (-1, "ba")):
            value = pairs["label"].fillna(0) * skill + sign * bias + rng.normal(size=len(pairs))
            block = pd.DataFrame({"pair_id": pairs["pair_id"], "protocol": expert, "view": view, "log_odds": value})
            blocks.append(block[rng.random(len(pairs)) > 0.05])
    return filled_runs(pd.concat(blocks, ignore_index=True).assign(trial=0))


def run_rows(rows: Iterable[tuple[str, str, str, int, float]], **others) -> pd.DataFrame:
    """Run table from (pair_id, protocol, view, trial, log_odds); `others` overrides whole columns."""
    kinds = {"pair_id": "str", "protocol": "str", "view": "str", "trial": int, "log_odds": float}
    return filled_runs(pd.DataFrame(list(rows), columns=list(kinds)).astype(kinds), **others)


def filled_runs(frame: pd.DataFrame, **others) -> pd.DataFrame:
    """A run table from what differs between its rows; `others` overrides whole columns."""
    status = np.where(frame["log_odds"].isna(), "unparsed", np.where(frame["log_odds"] == 0, "tie", "ok"))
    rest = {"backbone": "test", "stage": "verdict", "status": status, "label_mass": np.nan, "prompt_tokens": 10}
    rest |= {"cached_tokens": 0, "new_tokens": 0, "seconds": 0.0, "prompt_sha": "", "text": ""}
    return frame.assign(**(rest | others))[list(RUN_COLUMNS)]


def same(x, y) -> bool:
    """Equal to the last bit; 0.0 and -0.0 are one number, and NaN equals NaN."""
    return bool(np.array_equal(np.asarray(x, dtype=float), np.asarray(y, dtype=float), equal_nan=True))
