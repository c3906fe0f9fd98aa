"""The two corrections inside a bank: what has to be asked for them, and the rows that they add to a run table.

Whoever needs the runs of a bank with `pride` or `calibraeval` (a head, a figure, a report) gets them from `bank_runs`,
and from nowhere else. This file fits nothing, and it knows nothing about pairs, splits or labels.
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from baer_utils.debias.fitted import Debias
from baer_utils.debias.reads import SOURCE
from baer_utils.protocols import DERIVED, PROTOCOLS


def protocols_for(experts: Sequence[str], *, native: bool = True) -> tuple[str, ...]:
    """The protocols that a judge has to be asked for a bank of experts, each once, in the order of the experts.

    Parameters
    ----------
    experts : names of experts; a correction is answered by direct judging's reads.
    native : also what only the external baselines' own inference takes: CalibraEval's third prompt, under its name.
        A frozen head that scores new pairs does without.
    """
    names = [name for expert in experts for name in ((SOURCE, expert) if expert in DERIVED else (expert,))]
    kept = [name for name in names if name not in DERIVED or (native and name in PROTOCOLS)]
    return tuple(dict.fromkeys(kept))


def bank_runs(runs: pd.DataFrame, experts: Sequence[str], debias: Debias | None) -> pd.DataFrame:
    """The run table of a bank: every call, and the rows of `pride` and `calibraeval` where they are among the experts.

    Parameters
    ----------
    runs : run table of one backbone. Rows that a correction has in it already are replaced, so that only `debias`
        counts; the call that CalibraEval's own baseline makes (view ``ba_BA``) is no such row and stays.
    experts : names of the bank's experts. Without a correction among them the table comes back as it is.
    debias : the condition's fitted corrections (`fit_debias` on its non-test pairs, or `Frozen.debias`).

    Raises
    ------
    ValueError
        when a correction is among the experts and `debias` is None.
    """
    names = fitted_experts(experts, debias)
    if not names:
        return runs
    rows = debias.apply(runs)
    rows = rows[rows["protocol"].isin(names)]
    kept = runs[~(runs["protocol"].isin(names) & (runs["stage"] == "verdict") & runs["view"].isin(["ab", "ba"]))]
    return pd.concat([kept, rows], ignore_index=True) if len(rows) else kept.reset_index(drop=True)


def fitted_experts(experts: Sequence[str], debias: Debias | None) -> tuple[str, ...]:
    """The corrections among the experts, refused where nothing fitted is there for them."""
    names = tuple(name for name in experts if name in DERIVED)
    if names and debias is None:
        raise ValueError(
            f"{' and '.join(names)} must come with fitted corrections of direct's reads; debias is None. Fit them on "
            "the condition's non-test pairs, debias = fit_debias(runs, pairs), and pass debias=debias."
        )
    return names
