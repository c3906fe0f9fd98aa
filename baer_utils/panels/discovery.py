"""Slices found rather than declared: where the global panel errs, in terms of what is known before routing.

A shallow tree over route features proposes regions on the fit items; only a judge that clears the slice rule on
validation items is ever routed there. The features are cheap signals of the pool, so a new item's slice is known as
soon as these are, and they are paid for on every item once anything is routed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.tree import DecisionTreeRegressor

from baer_utils.calibrators import Audit, cell_means, cells_of
from baer_utils.panels.building import search_plan
from baer_utils.panels.role_policy import RolePolicy
from baer_utils.roles import MIN_SLICE


@dataclass(frozen=True)
class SliceTree:
    """Regions of route features, named by their rules."""

    columns: dict[str, tuple | None]
    """Features in order, and the values of those that are no numbers."""
    tree: DecisionTreeRegressor
    rules: dict[int, str]
    """Rule of every leaf; empty where the tree found nothing to split."""

    def labels(self, features: pd.DataFrame) -> NDArray[np.object_]:
        """The slice of every item, None where a feature is missing or nothing was found."""
        design, known = _design(features, self.columns)
        if not self.rules:
            return np.full(len(features), None, dtype=object)
        names = np.array([self.rules[leaf] for leaf in self.tree.apply(design)], dtype=object)
        names[~known] = None
        return names


def discover_slices(
    features: pd.DataFrame, loss: ArrayLike, *, max_depth: int = 2, min_items: int = MIN_SLICE
) -> SliceTree:
    """Regions of route features in which the loss differs, by a shallow regression tree.

    Parameters
    ----------
    features : (N, F), of fit items; numbers as they are, anything else by its values. Items with a missing feature are
        left out, here and later. loss : (N,), for example `left_out_loss` of the global panel.
    max_depth : of the tree, so at most 2 ** max_depth slices. min_items : fit items in a slice.

    Raises
    ------
    ValueError
        for no features, or fewer than two items without missing features.
    """
    columns = {str(name): _values(column) for name, column in features.items()}
    design, known = _design(features, columns)
    if not design.shape[1] or known.sum() < 2:
        raise ValueError(f"features must hold at least one column and two items; {design.shape[1]} columns, "
                         f"{int(known.sum())} items without missing features came.")  # fmt: skip
    tree = DecisionTreeRegressor(max_depth=max_depth, min_samples_leaf=min_items, random_state=0)
    tree.fit(design[known], np.asarray(loss, dtype=float)[known])
    return SliceTree(columns, tree, _rules(tree.tree_, _questions(columns)))


def left_out_loss(audit: Audit, panel: Sequence[str]) -> NDArray[np.float64]:
    """Squared error of the panel's pattern table on each of its own items, that item left out of its cell.

    An item alone in its cell is predicted by the label mean.
    """
    codes = audit.coding.codes[:, audit.columns(panel)]
    cells = cells_of(codes, codes, [int(column.max()) + 1 for column in codes.T])
    means, count = cell_means(cells.fit, audit.y, cells.number)
    n = count[cells.fit]
    others = (means[cells.fit] * n - audit.y) / np.maximum(n - 1, 1)
    return (audit.y - np.where(n > 1, others, audit.y.mean())) ** 2


class DiscoveringPolicy(RolePolicy):
    """The role policy on slices that it finds itself; slices declared in the audit are not looked at.

    Parameters
    ----------
    signals : judges of the pool whose outputs are the route features. max_depth : as in `discover_slices`.
    settings : of `build_policy`, without slices and route_key: the signals are the route key.

    Attributes
    ----------
    slices_ : `SliceTree`. plan_ : `CallPolicy` over its slices.
    """

    def __init__(self, signals: Sequence[str], *, max_depth: int = 2, **settings: object) -> None:
        super().__init__(**settings)
        if settings.keys() & {"slices", "route_key"}:
            raise ValueError("settings must leave slices and route_key to this policy; they came. Use RolePolicy.")
        self.signals, self.max_depth = tuple(signals), max_depth

    def fit(
        self, fit: Audit, validation: Audit, *, costs: Mapping[str, float] | None = None, seed: int = 0
    ) -> DiscoveringPolicy:
        """Global panel, then slices on fit items, then routes that clear on validation items, then the refit."""
        settings = self.settings | {"costs": costs, "route_key": self.signals}
        base = search_plan(fit, validation, **settings | {"slices": ()})
        loss = left_out_loss(fit, base.global_panel)
        self.columns_ = fit.columns(self.signals)
        self.slices_ = discover_slices(self._features(fit.Z), loss, max_depth=self.max_depth)
        parts = [self._sliced(part) for part in (fit, validation)]
        self.plan_ = search_plan(*parts, **settings | {"slices": None}).refit(self._sliced(fit.join(validation)))
        return self

    def predict(self, Z: ArrayLike, slices: object = None) -> tuple[np.ndarray, np.ndarray]:
        """Probability and called mask; the slice of an item is read off its signals, `slices` is not used."""
        outputs = np.asarray(Z, dtype=object)
        return self.plan_.predict(outputs, self.slices_.labels(self._features(outputs)) if self.plan_.routes else None)

    def _features(self, Z: NDArray[np.object_]) -> pd.DataFrame:
        columns = zip(self.signals, Z[:, self.columns_].T, strict=True)
        return pd.DataFrame({name: pd.Series(list(column)) for name, column in columns})

    def _sliced(self, audit: Audit) -> Audit:
        return Audit(audit.Z, audit.y, audit.judges, self.slices_.labels(self._features(audit.Z)), audit.groups)


def _values(column: pd.Series) -> tuple | None:
    """The values to ask for, in order; of two values one is enough; None for numbers."""
    if pd.api.types.is_numeric_dtype(column):
        return None
    found = tuple(sorted(column.dropna().unique(), key=str))
    return found[:1] if len(found) == 2 else found


def _design(features: pd.DataFrame, columns: dict[str, tuple | None]) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Numbers of every item, and whether it has all features."""
    known = features[[*columns]].notna().all(axis=1).to_numpy()
    parts = []
    for name, values in columns.items():
        if values is None:
            parts.append(features[name].astype(float).fillna(0.0).to_numpy()[:, None])
        else:
            parts.append(np.stack([(features[name] == value).to_numpy(float) for value in values], axis=1))
    return (np.concatenate(parts, axis=1) if parts else np.zeros((len(features), 0))), known


def _questions(columns: dict[str, tuple | None]) -> list[tuple[str, str | None]]:
    """For every column of the design, how its two answers read; a number has its name alone."""
    return [
        (f"{name}", None) if values is None else (f"{name} is not {value}", f"{name} is {value}")
        for name, values in columns.items()
        for value in (values if values is not None else (None,))
    ]


def _rules(tree: object, questions: list) -> dict[int, str]:
    """Rule of every leaf of a tree that splits at all."""
    rules: dict[int, str] = {}
    todo = [(0, ())] if tree.node_count > 1 else []
    while todo:
        node, path = todo.pop()
        if tree.children_left[node] < 0:
            rules[node] = " and ".join(path)
            continue
        no, yes = questions[tree.feature[node]]
        if yes is None:
            no, yes = f"{no} <= {tree.threshold[node]:g}", f"{no} > {tree.threshold[node]:g}"
        todo += [(tree.children_left[node], (*path, no)), (tree.children_right[node], (*path, yes))]
    return rules
