"""Early exit over question-grouped splits: a stack from one half, a threshold from a quarter, figures on the rest.

This file only deals pairs to these parts; what an exit is, and what holds its risk, is decided in the files above it.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd

from baer_utils.calibrators import split_audit
from baer_utils.deployment.fitting import benchmark_of, lambda_for
from baer_utils.early_exit.bank import Bank
from baer_utils.early_exit.comparing import SPLITS
from baer_utils.early_exit.controlling import exit_grid, fit_exit
from baer_utils.early_exit.exits import (
    Terms,
    evidence_limits,
    exit_order,
    exit_scores,
    exit_steps,
    exit_tokens,
    stack_terms,
    term_limits,
)
from baer_utils.features import category_columns, stack_features
from baer_utils.selective import one_per_question
from baer_utils.stacking import fit_stack

EXIT_MEASURES = ("accuracy", "changed", "tokens", "tokens_alone", "experts")


def exit_study(
    bank: Bank, pairs: pd.DataFrame, *, alpha: float = 0.1, delta: float = 0.1, seeds: Iterable[int] = SPLITS
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Asking everybody, exiting where the answer is certain, and exiting at a controlled risk, on every split.

    Parameters
    ----------
    bank : of `bank_of`. pairs : the pair table that it was made of, in that order.
    alpha, delta : see `fit_exit`. seeds : one split each. The half that other policies are tested on fits the stack
        (lambda chosen as in deployment), the order and the grid; a quarter, one pair per question, fits the threshold;
        the other quarter is reported.

    Returns
    -------
    figures : one row per split and policy (``full``, ``certain``, ``controlled``): accuracy (a score of 0 counts one
        half), changed (share of answers that differ from the full bank's), tokens, tokens_alone, experts (asked per
        pair), threshold, n_test, n_construction, n_tuned (pairs, the last those of the threshold).
    still_asking : share of reported pairs that are still asked at each step: policy, seed, step (from 1), expert,
        share.
    """
    figures, asking = [], []
    for seed in seeds:
        split = split_audit(bank.audit, seed)
        train, tuned, shown = (bank.pairs_of(part) for part in (split.test, split.fit, split.validation))
        tuned = tuned[one_per_question(pairs["pair_id"].iloc[tuned], pairs["group_id"].iloc[tuned])]
        terms = ordered_terms(bank, pairs, train)
        threshold = fit_exit(terms.take(tuned), exit_grid(terms.take(train)), alpha=alpha, delta=delta).value
        part, last = terms.take(shown), np.full(len(shown), len(terms.order) - 1)
        steps = {"full": last, "certain": exit_steps(part), "controlled": exit_steps(part, threshold)}
        for rule, at in steps.items():
            sizes = {"n_test": len(shown), "n_construction": len(train) + len(tuned), "n_tuned": len(tuned)}
            row = {"policy": rule, "seed": seed, "threshold": threshold if rule == "controlled" else np.inf}
            figures.append(row | _figures(bank, pairs, part, at, shown) | sizes)
            asking += [
                {"policy": rule, "seed": seed, "step": step + 1, "expert": name, "share": float((at >= step).mean())}
                for step, name in enumerate(terms.order)
            ]
    return pd.DataFrame(figures), pd.DataFrame(asking)


def ordered_terms(bank: Bank, pairs: pd.DataFrame, train: np.ndarray) -> Terms:
    """The terms of all pairs of a bank under a stack fitted on some of them, in the order of asking that suits these.

    Parameters
    ----------
    pairs : the table that the bank was made of. train : places of the pairs that fit the stack; lambda is chosen as in
        deployment (fitted on their selection rows, chosen on their calibration rows), the order by `exit_order`.
    """
    categories = category_columns(pairs, benchmark_of(pairs)).to_numpy(float)
    evidence = bank.evidence
    phi = stack_features(evidence.z, evidence.z_shrunk, categories)
    y, split = pairs["label"].to_numpy(float)[train], pairs["split"].to_numpy()[train]
    stack = fit_stack(phi[train], y, lambda_for(phi[train], y, split, largest=False))
    reach = term_limits(stack, categories[train], evidence_limits(evidence.experts))
    return stack_terms(stack, evidence, categories, exit_order(reach, evidence.experts, bank.prices))


def _figures(bank: Bank, pairs: pd.DataFrame, part: Terms, at: np.ndarray, shown: np.ndarray) -> dict[str, float]:
    s, label = exit_scores(part, at), pairs["label"].to_numpy(float)[shown]
    ids = [bank.pair_ids[place] for place in shown]
    alone = np.cumsum([bank.prices.alone[name] for name in part.order])
    return {
        "accuracy": float(np.where(s == 0, 0.5, np.sign(s) == label).mean()),
        "changed": float((np.sign(s) != np.sign(part.partial[:, -1])).mean()),
        "tokens": exit_tokens(part, at, bank.prices, ids),
        "tokens_alone": float(alone[at].mean()),
        "experts": float(at.mean() + 1),
    }
