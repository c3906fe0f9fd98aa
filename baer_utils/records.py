"""Pair and run tables: their columns, their checks, their hashes, the swap, the splits.

Two pandas frames carry everything in this project. A *pair* is an instruction with two responses, called *a* and *b*;
a *run* is one call to a judge about one pair. This file knows what the frames must hold and how a pair is named,
oriented and split; it knows nothing about judges, files or scores.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

PAIR_COLUMNS = (
    "pair_id", "group_id", "benchmark", "subset", "task_type", "instruction", "response_a", "response_b",
    "label", "split",
)  # fmt: skip
RUN_COLUMNS = (
    "pair_id", "backbone", "protocol", "stage", "view", "trial", "log_odds", "status", "label_mass",
    "prompt_tokens", "cached_tokens", "new_tokens", "seconds", "prompt_sha", "text",
)  # fmt: skip
RUN_KEY = ["pair_id", "protocol", "view", "stage", "trial"]
SPLITS = ("selection", "calibration", "test")
STATUSES = ("ok", "tie", "unparsed", "truncated", "error")
# The paper compares routers by five-fold cross-validation; more folds would leave single questions in one of them.
FOLDS = 5
SILENT = ("unparsed", "error")  # statuses that carry no value, whatever the row holds
SWAPPED_VIEW = {
    "ab": "ba", "ba": "ab", "ab_BA": "ba_BA", "ba_BA": "ab_BA", "a": "b", "b": "a", "q": "q", "net": "net",
}  # fmt: skip
ONE_RESPONSE_VIEWS = ("a", "b", "q")


# ---------------------------------------------------------------- hashes


def unit_hash(text: str) -> float:
    """A fixed number in [0, 1) for a text: the first 16 hex digits of its SHA-256 over 2**64."""
    return int(hashlib.sha256(text.encode("utf-8")).hexdigest()[:16], 16) / 2**64


def question_group(question: str) -> str:
    """Name shared by all pairs that ask the same question, whatever its case and spacing (`group_id`)."""
    normal = " ".join(unicodedata.normalize("NFC", question).lower().split())
    return hashlib.sha256(normal.encode("utf-8")).hexdigest()[:16]


def content_id(question: str, response_1: str, response_2: str) -> str:
    """Pair id where upstream has none: 16 hex digits of the question and the two responses in sorted order."""
    text = "\x1f".join([question, *sorted([response_1, response_2])])
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:16]


def first_is_a(benchmark: str, pair_id: str) -> bool:
    """Whether the response that upstream lists first becomes *a*: a coin that has never seen the label."""
    return unit_hash(f"orient|{benchmark}|{pair_id}") < 0.5


def split_of(group_id: str, seed: int = 0) -> str:
    """Split of a question: selection below .2, calibration below .6, else test."""
    u = unit_hash(f"{seed}|split|{group_id}")
    return "selection" if u < 0.2 else "calibration" if u < 0.6 else "test"


def questions_in_order(group_ids: Sequence[str], *, seed: int) -> list[str]:
    """The distinct questions, in the order of a hash of their name and the seed."""
    return sorted(set(group_ids), key=lambda group: (unit_hash(f"{seed}|fold|{group}"), group))


def question_folds(group_ids: Sequence[str], *, seed: int) -> NDArray[np.int64]:
    """Fold of every pair: its question's place in hash order, dealt round robin.

    Parameters
    ----------
    group_ids : (n_pairs,) question of each pair.
    seed : part of the hash.

    Returns
    -------
    (n_pairs,) integers from 0 to min(5, questions) - 1: the same for all pairs of a question, whatever the row order.
    """
    ordered = questions_in_order(group_ids, seed=seed)
    folds = min(FOLDS, max(len(ordered), 1))
    fold_of = {group: place % folds for place, group in enumerate(ordered)}
    return np.array([fold_of[group] for group in group_ids], dtype=int)


def take_pairs(pairs: pd.DataFrame, n_pairs: int) -> pd.DataFrame:
    """Keep about `n_pairs` pairs, 20/40/40 over the splits, always the same ones, never half a question.

    Parameters
    ----------
    pairs : pair table.
    n_pairs : number to keep; 0 keeps all.

    Returns
    -------
    pair table in its old order. Within a split, questions enter in order of ``unit_hash("take|" + group_id)`` until the
    split's number is reached, so a split may exceed its number by the rest of one question, and each split that has
    any question keeps at least one.
    """
    if n_pairs < 0:
        raise ValueError(f"n_pairs must be 0 (all) or a positive number of pairs; it is {n_pairs}.")
    if n_pairs == 0:
        return pairs
    wanted = [round(0.2 * n_pairs), round(0.4 * n_pairs)]
    wanted.append(n_pairs - sum(wanted))
    kept: set[str] = set()
    for split, number in zip(SPLITS, wanted, strict=True):
        sizes = pairs.loc[pairs["split"] == split, "group_id"].value_counts()
        total = 0
        for group in sorted(sizes.index, key=lambda g: (unit_hash(f"take|{g}"), g)):
            kept.add(group)
            total += int(sizes[group])
            if total >= number:
                break
    return pairs[pairs["group_id"].isin(kept)].reset_index(drop=True)


# ---------------------------------------------------------------- checks


def check_pairs(pairs: pd.DataFrame) -> pd.DataFrame:
    """Return the pair table in canonical columns and types, or refuse it.

    Raises
    ------
    ValueError
        naming what must hold, the first row that breaks it, what came there, how many such rows, and what to do.
    """
    _check_columns(pairs, PAIR_COLUMNS, "pair")
    out = pairs.loc[:, list(PAIR_COLUMNS)].reset_index(drop=True)
    for column in PAIR_COLUMNS[:8]:  # all but label and split
        _as_text(out, column, "Fill it (an empty text is legal), or drop the row.")
    _refuse(out, out["pair_id"].duplicated(), "pair_id", "must be unique", "Rename or drop the repeated pair.")
    wrong = out["label"].notna() & ~out["label"].isin([1, -1])
    _refuse(out, wrong, "label", "must be +1 (a preferred), -1 (b preferred) or null", "Drop ties before checking.")
    out["label"] = out["label"].where(out["label"].notna(), np.nan).astype(float)
    _refuse(out, ~out["split"].isin(SPLITS), "split", f"must be one of {', '.join(SPLITS)}", "Use records.split_of.")
    out["split"] = out["split"].astype("str")
    split_count = out.groupby("group_id")["split"].transform("nunique")
    _refuse(out, split_count > 1, "split", "must be the same for all pairs of a question", "Split by group_id.")
    return out


def check_runs(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the run table in canonical columns and types, or refuse it (as `check_pairs`)."""
    _check_columns(runs, RUN_COLUMNS, "run")
    out = runs.loc[:, list(RUN_COLUMNS)].reset_index(drop=True)
    for column in ("pair_id", "backbone", "protocol", "stage", "prompt_sha", "text"):
        _as_text(out, column, "Use an empty text where there is none.")
    _refuse(out, ~out["view"].isin(list(SWAPPED_VIEW)), "view", f"must be one of {', '.join(SWAPPED_VIEW)}", "Map it.")
    _refuse(out, ~out["status"].isin(STATUSES), "status", f"must be one of {', '.join(STATUSES)}", "Map it.")
    out[["view", "status"]] = out[["view", "status"]].astype("str")
    for column in ("trial", "prompt_tokens", "cached_tokens", "new_tokens"):
        number = pd.to_numeric(out[column], errors="coerce").astype(float)
        _refuse(
            out, number.isna() | (number % 1 != 0), column, "must be a whole number", "Use 0 where it does not apply."
        )
        out[column] = number.astype(int)
    for column in ("log_odds", "label_mass", "seconds"):
        number = pd.to_numeric(out[column], errors="coerce").astype(float)
        _refuse(out, number.isna() & out[column].notna(), column, "must be a number or null", "Use null for none.")
        out[column] = number
    mass = out["label_mass"]
    _refuse(out, ~(mass.isna() | mass.between(0, 1 + 1e-6)), "label_mass", "must lie in [0, 1]", "It is a probability.")
    repeated = out.duplicated(["backbone", *RUN_KEY])
    _refuse(out, repeated, "pair_id", "must be unique with backbone, protocol, view, stage and trial", "Drop repeats.")
    return out


def _check_columns(frame: pd.DataFrame, columns: tuple[str, ...], kind: str) -> None:
    missing = [name for name in columns if name not in frame.columns]
    extra = [str(name) for name in frame.columns if name not in columns]
    if missing or extra:
        raise ValueError(
            f"a {kind} table must have exactly the columns {', '.join(columns)}; "
            f"missing: {', '.join(missing) or 'none'}; not known: {', '.join(extra) or 'none'}."
        )


def _as_text(out: pd.DataFrame, column: str, remedy: str) -> None:
    if isinstance(out[column].dtype, pd.StringDtype) and out[column].dtype.storage == "pyarrow":
        _refuse(out, out[column].isna(), column, "must be text", remedy)  # Arrow's text is whole by construction
        return
    is_text = out[column].map(lambda value: isinstance(value, str)).astype(bool)
    _refuse(out, ~is_text, column, "must be text", remedy)
    whole = out[column].map(_is_whole).astype(bool)
    _refuse(out, ~whole, column, "must be valid Unicode; half a surrogate pair is not", "Decode the source as UTF-8.")
    out[column] = out[column].astype("str")


def _is_whole(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _refuse(frame: pd.DataFrame, wrong, column: str, must: str, remedy: str) -> None:
    wrong = np.asarray(wrong, dtype=bool)
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        pair, came = frame["pair_id"].iloc[row], frame[column].iloc[row]
        raise ValueError(f"{column} {must}; row {row} (pair {pair}) is {came!r} ({int(wrong.sum())} such). {remedy}")


def about(runs: pd.DataFrame, pair_ids: Sequence[str]) -> NDArray[np.bool_]:
    """Which rows of a run table are about one of these pairs; fast where there are many of both."""
    return pd.Index(pair_ids).drop_duplicates().get_indexer(runs["pair_id"]) >= 0


# ---------------------------------------------------------------- the swap


def swap_pairs(pairs: pd.DataFrame) -> pd.DataFrame:
    """T x: every pair with its responses exchanged and its label negated; everything else as it was."""
    out = pairs.copy()
    out["response_a"], out["response_b"] = pairs["response_b"], pairs["response_a"]
    out["label"] = 0.0 - pairs["label"].astype(float)
    return out


def swap_runs(runs: pd.DataFrame) -> pd.DataFrame:
    """Runs of the swapped pairs: two-response rows negate, ab/ba, ab_BA/ba_BA and a/b change places, q stays."""
    out = runs.copy()
    shows_both = ~runs["view"].isin(ONE_RESPONSE_VIEWS)
    out["log_odds"] = runs["log_odds"].where(~shows_both, 0.0 - runs["log_odds"])
    out["view"] = runs["view"].map(SWAPPED_VIEW)
    return out
