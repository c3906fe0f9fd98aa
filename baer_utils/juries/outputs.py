"""What every jury starts from: judges' outputs as codes, what each judge is worth alone, what each one costs.

Construction data come in two parts, fit and validation, which share one coding here; symbols that only the test rows
hold have no say in it. Tables follow the pattern calibrator: cell means, and the label mean for what was never seen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from baer_utils.calibrators import Audit, Coding, encode_as, recode
from baer_utils.panels import call_costs


class Construction(NamedTuple):
    """Fit and validation rows in one coding; codes are -1 where an output is missing."""

    judges: tuple[str, ...]
    levels: tuple[tuple, ...]  # the symbols behind each judge's codes
    fit_codes: NDArray[np.int32]  # (n_fit, judges)
    fit_y: NDArray[np.float64]
    validation_codes: NDArray[np.int32]  # (n_validation, judges)
    validation_y: NDArray[np.float64]

    @property
    def sizes(self) -> list[int]:
        """The number of symbols of each judge."""
        return [len(levels) for levels in self.levels]

    @property
    def width(self) -> int:
        """The largest number of symbols of any judge."""
        return max(1, *self.sizes)

    @property
    def codes(self) -> NDArray[np.int32]:
        """Codes of all construction rows, fit first."""
        return np.vstack([self.fit_codes, self.validation_codes])

    @property
    def y(self) -> NDArray[np.float64]:
        """Labels of all construction rows, fit first."""
        return np.concatenate([self.fit_y, self.validation_y])


def construction(fit: Audit, validation: Audit) -> Construction:
    """Both parts in one coding of the symbols that occur in them.

    Raises
    ------
    ValueError
        where the two audits name different judges, or either holds no item.
    """
    if fit.judges != validation.judges or not len(fit) or not len(validation):
        raise ValueError(
            "fit and validation must hold items of the same judges in the same order; "
            f"fit has {len(fit)} items of {fit.judges}, validation {len(validation)} of {validation.judges}."
        )
    coded = [_both(fit.coding, validation.coding, judge) for judge in range(len(fit.judges))]
    levels = tuple(levels for _, levels in coded)
    codes = np.stack([codes for codes, _ in coded], axis=1)
    return Construction(fit.judges, levels, codes[: len(fit)], fit.y, codes[len(fit) :], validation.y)


def _both(first: Coding, second: Coding, judge: int) -> tuple[NDArray[np.int32], tuple]:
    """Codes of one judge on all construction rows, and the symbols that occur there: an audit may know more of them."""
    known = first.levels[judge]
    if known != second.levels[judge]:
        known = (*known, *(symbol for symbol in second.levels[judge] if symbol not in known))
    rest = recode(second.codes[:, judge], second.levels[judge], known)
    codes = np.concatenate([first.codes[:, judge], rest])
    occurs = np.flatnonzero(np.bincount(codes[codes >= 0], minlength=len(known)))
    place = np.full(len(known) + 1, -1, dtype=np.int32)  # the last one answers for code -1
    place[occurs] = np.arange(len(occurs), dtype=np.int32)
    return place[codes], tuple(known[code] for code in occurs)


def codes_like(Z: NDArray[np.object_], levels: Sequence[Sequence]) -> NDArray[np.int32]:
    """Codes of new outputs among known symbols, shape (n, judges); -1 where missing or never seen."""
    Z = np.asarray(Z, dtype=object)
    if Z.ndim != 2 or Z.shape[1] != len(levels):
        raise ValueError(f"Z must be items x {len(levels)} judges, as in construction; it is {Z.shape}.")
    return np.stack([encode_as(Z[:, column], known) for column, known in enumerate(levels)], axis=1)


def one_hot(codes: NDArray[np.int32], sizes: Sequence[int]) -> NDArray[np.float64]:
    """Columns of 0 and 1, `sizes[j]` for judge j, shape (n, sum of sizes); a row of zeros for code -1."""
    wide = np.zeros((len(codes), sum(sizes)))
    column = codes + np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(int)
    row, judge = np.nonzero(codes >= 0)
    wide[row, column[row, judge]] = 1.0
    return wide


def own_tables(codes: NDArray[np.int32], y: NDArray[np.float64], width: int) -> NDArray[np.float64]:
    """Each judge's mean label by symbol, (judges, width + 1); the label mean where unseen, and last, for code -1."""
    slot = codes % (width + 1) + (width + 1) * np.arange(codes.shape[1])
    size = (width + 1) * codes.shape[1]
    count = np.bincount(slot.ravel(), minlength=size)
    total = np.bincount(slot.ravel(), weights=np.repeat(y, codes.shape[1]), minlength=size)
    tables = np.where(count > 0, total / np.maximum(count, 1), y.mean()).reshape(-1, width + 1)
    tables[:, -1] = y.mean()
    return tables


def own_predictions(codes: NDArray[np.int32], tables: NDArray[np.float64]) -> NDArray[np.float64]:
    """What each judge's own table says about each item, shape (n, judges)."""
    return tables[np.arange(codes.shape[1]), codes]


def standalone_risk(parts: Construction) -> NDArray[np.float64]:
    """Validation risk of each judge's own table, rounded to 1e-12 so that ties are ties, shape (judges,)."""
    guess = own_predictions(parts.validation_codes, own_tables(parts.fit_codes, parts.fit_y, parts.width))
    return ((guess - parts.validation_y[:, None]) ** 2).mean(axis=0).round(12)


def by_quality(risk: NDArray[np.float64], judges: Sequence[str]) -> list[int]:
    """Places of the judges from the lowest risk up; equal ones by name."""
    return sorted(range(len(judges)), key=lambda place: (risk[place], judges[place]))


def cost_vector(costs: Mapping[str, float] | None, judges: Sequence[str]) -> NDArray[np.float64]:
    """Cost of a call of each judge, shape (judges,); checked, and 1 each where no costs are named (`call_costs`)."""
    prices = call_costs(tuple(judges), costs)
    return np.array([prices[judge] for judge in judges])
