"""What one more judge takes off the held-out risk, everywhere or in one slice (R4), and where it concentrates (R6)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from baer_utils.calibrators import Audit
from baer_utils.roles.scopes import Scope, State

MIN_SLICE = 20  # fit rows below which a slice is not measured and gets no route
DIGITS = 12  # gains are compared after rounding to 1e-12


def gain_of(before: State, after: State) -> float:
    """Risk before minus risk after, rounded to 1e-12 so that equal tables give equal gains; may be negative."""
    return round(before.risk - after.risk, DIGITS) + 0.0


def broad_gain(fit: Audit, validation: Audit, panel: Sequence[str], judge: str) -> float:
    """Held-out gain of a judge over a panel on all items, R_val(S) - R_val(S + j) (Panels R4a).

    Parameters
    ----------
    fit, validation : audits with the same judges and no missing output; every panel's table is counted on `fit`.
    panel : names of the current panel, in the order they were added. judge : the candidate.

    Returns
    -------
    float, rounded to 1e-12; negative where the finer table generalises worse. 0 for a member of the panel or a copy.

    Raises
    ------
    ValueError
        for unknown judges, missing outputs, or two audits with different judges.
    """
    check_audits(fit, validation)
    return _gain(Scope(fit, validation), fit.columns(panel), fit.columns([judge])[0])


def slice_gain(fit: Audit, validation: Audit, panel: Sequence[str], judge: str, slice: str) -> float:
    """Held-out gain of a judge over a panel inside one slice, with the slice's own tables (Panels R4b).

    Parameters as for `broad_gain`; `slice` names one of the audits' slices: the items whose route it is.

    Returns
    -------
    float as for `broad_gain`; NaN where the slice has fewer than 20 fit items or no validation item.

    Raises
    ------
    ValueError
        as `broad_gain`, and for a slice that neither audit names.
    """
    check_audits(fit, validation)
    scope = slice_scope(fit, validation, slice)
    return float("nan") if scope is None else _gain(scope, fit.columns(panel), fit.columns([judge])[0])


def slice_scope(fit: Audit, validation: Audit, slice: str, *, smoothing: float = 0.0) -> Scope | None:
    """The scope of a slice; None where it has fewer than 20 fit items or no validation item."""
    parts = slice_items(fit, validation, slice)
    return None if parts is None else Scope(*parts, smoothing=smoothing)


def slice_items(fit: Audit, validation: Audit, slice: str) -> tuple[Audit, Audit] | None:
    """The fit and validation items of a slice; None where there are fewer than 20, or none."""
    if slice not in fit.coding.routes and slice not in validation.coding.routes:
        raise ValueError(f"slice must be one of {', '.join(fit.coding.routes) or 'none declared'}; {slice!r} came.")
    rows = [audit.coding.route == _place(audit, slice) for audit in (fit, validation)]
    if rows[0].sum() < MIN_SLICE or not rows[1].any():
        return None
    return fit.take(rows[0]), validation.take(rows[1])


def specialization_ratio(slice_gain: float, broad_gain: float, *, epsilon: float = 1e-6) -> float:
    """How much a judge's value concentrates on a slice, slice / (max(broad, 0) + epsilon) (Panels R6).

    A diagnostic, never used to decide. The paper gives no epsilon and does not say what happens where the broad gain is
    negative; here that counts as 0, so that the ratio keeps the sign of the slice gain.
    """
    return slice_gain / (max(broad_gain, 0.0) + epsilon)


def check_audits(fit: Audit, validation: Audit) -> None:
    """Refuse audits that do not belong together, or hold missing outputs."""
    if fit.judges != validation.judges:
        raise ValueError(f"fit and validation must have the same judges; {fit.judges} and {validation.judges} came.")
    for name, audit in (("fit", fit), ("validation", validation)):
        missing = (audit.coding.codes < 0).any(axis=0)
        if missing.any():
            judge = fit.judges[int(np.flatnonzero(missing)[0])]
            raise ValueError(
                f"{name} must hold complete cases; outputs of {judge} are missing. Use Audit.complete() before a split."
            )


def _place(audit: Audit, slice: str) -> int:
    return audit.coding.routes.index(slice) if slice in audit.coding.routes else -2


def _gain(scope: Scope, panel: list[int], judge: int) -> float:
    state = scope.start(panel)
    return 0.0 if judge in panel else gain_of(state, scope.add(state, judge))
