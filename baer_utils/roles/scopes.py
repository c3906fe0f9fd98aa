"""Held-out risk of panels on one set of items, each panel grown from a smaller one by a single judge.

A scope is the whole audit or one slice of it. Tables are counted on its fit items and judged on its validation items;
a pattern the fit items never showed is predicted by their label mean. Everything is done on integer codes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from baer_utils.calibrators import Audit, Cells, cell_means, one_cell, recode, refine


class State(NamedTuple):
    """A panel in a scope: what it predicts for the validation items, and how wrong that is."""

    panel: tuple[int, ...]
    """Places of the judges, in the order they were added."""
    loss: NDArray[np.float64]
    """Squared error of every validation item."""
    risk: float
    """Its mean."""
    unseen: float
    """Share of validation items whose pattern the table does not hold."""
    inner: object
    """What the scope needs to grow the panel."""


class Scope:
    """Pattern tables on the fit items, smoothed towards the smaller panel's table if asked (`PatternCalibrator`)."""

    def __init__(self, fit: Audit, validation: Audit, *, smoothing: float = 0.0) -> None:
        self.judges, self.smoothing = fit.judges, smoothing
        codes, known = validation.coding.codes, validation.coding.levels
        self.sizes = [len(levels) for levels in fit.coding.levels]
        self.fit, self.y = fit.coding.codes, fit.y
        self.held = [recode(codes[:, c], known[c], levels) for c, levels in enumerate(fit.coding.levels)]
        self.y_held = validation.y
        self.mean = cell_means(np.zeros(len(self.y), np.int64), self.y, 1)[0][0]

    def start(self, panel: Sequence[int] = ()) -> State:
        """The state of a panel given by places."""
        state = _state((), one_cell(len(self.y), len(self.y_held)), np.full(len(self.y_held), self.mean), self.y_held)
        for judge in panel:
            state = self.add(state, judge)
        return state

    def add(self, state: State, judge: int) -> State:
        """The state of the panel with one more judge."""
        before, smaller = state.inner
        cells = refine(before, self.fit[:, judge], self.held[judge], self.sizes[judge])
        means, count = cell_means(cells.fit, self.y, cells.number)
        own, otherwise = means[cells.other], self.mean
        if self.smoothing:
            n, otherwise = count[cells.other], smaller
            own = (n * own + self.smoothing * smaller) / (n + self.smoothing)
        prediction = np.where(cells.other >= 0, own, otherwise)
        return _state((*state.panel, judge), cells, prediction, self.y_held)


def _state(panel: tuple[int, ...], cells: Cells, prediction: NDArray, y: NDArray) -> State:
    loss = (y - prediction) ** 2
    return State(panel, loss, float(loss.mean()), float((cells.other < 0).mean()), (cells, prediction))


class FoldedScope:
    """Cross-fitting: several scopes over the same items, each judging the part that its tables did not see."""

    def __init__(self, scopes: Sequence[object]) -> None:
        self.scopes, self.judges = tuple(scopes), scopes[0].judges

    def start(self, panel: Sequence[int] = ()) -> State:
        """The state of a panel given by places."""
        return self._pool([scope.start(panel) for scope in self.scopes])

    def add(self, state: State, judge: int) -> State:
        """The state of the panel with one more judge."""
        return self._pool([scope.add(part, judge) for scope, part in zip(self.scopes, state.inner, strict=True)])

    def _pool(self, parts: list[State]) -> State:
        loss = np.concatenate([part.loss for part in parts])
        unseen = sum(part.unseen * len(part.loss) for part in parts) / len(loss)
        return State(parts[0].panel, loss, float(loss.mean()), unseen, parts)


class EstimatorScope:
    """The same for any calibrator with `fit` and `predict`: one fit per panel tried, so for small audits."""

    def __init__(self, fit: Audit, validation: Audit, calibrator: Callable[[tuple[str, ...]], object]) -> None:
        self.audits, self.calibrator, self.judges = (fit, validation), calibrator, fit.judges

    def start(self, panel: Sequence[int] = ()) -> State:
        """The state of a panel given by places."""
        fit, validation = self.audits
        model = self.calibrator(tuple(self.judges[place] for place in panel)).fit(fit, fit.y)
        loss = (validation.y - model.predict(validation)) ** 2
        return State(tuple(panel), loss, float(loss.mean()), float(getattr(model, "fallback_rate_", 0.0)), None)

    def add(self, state: State, judge: int) -> State:
        """The state of the panel with one more judge."""
        return self.start((*state.panel, judge))
