"""The audit: what every judge said about every labelled item, with the slices and the groups of the items.

An `Audit` checks its parts once and turns outputs, routes and groups into integers once; whatever is taken from it
shares that coding. Missing outputs are legal here, and counted; the methods that need complete cases ask for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from baer_utils.calibrators.symbols import Symbol, encode, named_columns, route_labels


class Coding(NamedTuple):
    """An audit in integers: -1 is a missing output, or an item without a slice."""

    codes: NDArray[np.int32]  # (N, J), column-major
    levels: tuple[tuple[Symbol, ...], ...]  # the symbols behind each judge's codes
    route: NDArray[np.int32]  # (N,), place in routes
    routes: tuple[str, ...]  # slice names: columns in declared order, labels in alphabetical order
    group: NDArray[np.int64]  # (N,), place of the group among all sorted groups


class CompleteCases(NamedTuple):
    """How many items every judge answered, and who is to blame for most of the others."""

    rows: int
    judges: int
    complete: int
    dropped: int
    main_source: str | None
    """The judge with the most missing outputs (ties by name); None where nothing is missing."""
    main_missing: int

    def __str__(self) -> str:
        blame = f"; most are missing from {self.main_source} ({self.main_missing})" if self.dropped else ""
        return f"{self.complete} of {self.rows} items have an output of all {self.judges} judges{blame}"


@dataclass(frozen=True, eq=False)
class Audit:
    """Outputs of J judges on N labelled items.

    Parameters
    ----------
    Z : object array (N, J), the symbol that each judge gave; None or NaN is a missing output. Of a frame, the columns
        that `judges` names, whatever their order.
    y : (N,) audit labels in [0, 1].
    judges : J distinct names, the columns of Z.
    slices : None, one label per item (None: no slice), or a boolean frame whose first true column, in declared order,
        is the item's route: slices may overlap, the declared order decides.
    groups : (N,) what is never torn apart by a split, for example the question; by default each item for itself.

    Raises
    ------
    ValueError
        for shapes that do not fit, repeated or empty names, labels outside [0, 1], outputs that are no symbols.
    """

    Z: NDArray[np.object_]
    y: NDArray[np.float64]
    judges: tuple[str, ...]
    slices: object = None
    groups: object = None
    coding: Coding = field(default=None, repr=False)  # filled by the checks; `take` hands it on

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "judges", tuple(self.judges))
        put(self, "y", np.asarray(self.y, dtype=float))
        if isinstance(self.Z, pd.DataFrame):
            put(self, "Z", named_columns(self.Z, self.judges))
        if not isinstance(self.Z, np.ndarray) or self.Z.dtype != object:
            put(self, "Z", np.array(self.Z, dtype=object))
        _check(self.Z, self.y, self.judges)
        if self.slices is not None and not isinstance(self.slices, pd.DataFrame):
            put(self, "slices", np.asarray(self.slices, dtype=object))
        put(self, "groups", np.arange(len(self.y)) if self.groups is None else np.asarray(self.groups))
        if self.groups.shape != self.y.shape or pd.isna(self.groups).any():
            raise ValueError(f"groups must name the group of each of {len(self.y)} items; {self.groups.shape} came.")
        if self.coding is None:
            put(self, "coding", _code(self))

    def __len__(self) -> int:
        return len(self.y)

    def take(self, rows: ArrayLike) -> Audit:
        """The audit of some items, by a boolean mask or by positions, in the order given; nothing is coded again."""
        rows = np.asarray(rows)
        if rows.dtype == bool:
            if rows.shape != (len(self),):
                raise ValueError(f"a mask must hold one entry for each of {len(self)} items; {rows.shape} came.")
            rows = np.flatnonzero(rows)
        c, slices = self.coding, self.slices
        if slices is not None:
            slices = slices.iloc[rows] if isinstance(slices, pd.DataFrame) else slices[rows]
        coding = Coding(np.asfortranarray(c.codes[rows]), c.levels, c.route[rows], c.routes, c.group[rows])
        return Audit(self.Z[rows], self.y[rows], self.judges, slices, self.groups[rows], coding)

    def join(self, other: Audit) -> Audit:
        """The items of this audit and then those of another with the same judges: fit and validation, for a refit."""
        if other.judges != self.judges or (self.slices is None) != (other.slices is None):
            raise ValueError(f"audits to join must have the same judges and both slices or none; {self.judges} with "
                             f"{other.judges}. Use select.")  # fmt: skip
        coding, a, b = None, self.coding, other.coding
        groups = np.concatenate([self.groups, other.groups])
        if a.levels == b.levels and a.routes == b.routes:
            codes = np.asfortranarray(np.concatenate([a.codes, b.codes]))
            coding = Coding(codes, a.levels, np.concatenate([a.route, b.route]), a.routes, _group_codes(groups))
        slices = self.slices
        if slices is not None:
            whole = isinstance(slices, pd.DataFrame)
            slices = pd.concat([slices, other.slices]) if whole else np.concatenate([slices, other.slices])
        Z, y = np.concatenate([self.Z, other.Z]), np.concatenate([self.y, other.y])
        return Audit(Z, y, self.judges, slices, groups, coding)

    def select(self, judges: Sequence[str]) -> Audit:
        """The audit of some judges, in the order given."""
        columns = self.columns(judges)
        c = self.coding
        codes = np.asfortranarray(c.codes[:, columns])
        coding = c._replace(codes=codes, levels=tuple(c.levels[column] for column in columns))
        return Audit(self.Z[:, columns], self.y, tuple(judges), self.slices, self.groups, coding)

    def columns(self, judges: Sequence[str]) -> list[int]:
        """Places of the named judges; a ValueError for a name that no judge has."""
        place = {name: number for number, name in enumerate(self.judges)}
        unknown = [name for name in judges if name not in place]
        if unknown:
            raise ValueError(f"judges must be among {', '.join(self.judges)}; {', '.join(map(str, unknown))} came.")
        return [place[name] for name in judges]

    def complete(self) -> tuple[Audit, CompleteCases]:
        """The items that every declared judge answered, and the account of the others (complete cases)."""
        missing = self.coding.codes < 0
        kept = ~missing.any(axis=1)
        number, worst = min(zip(-missing.sum(axis=0), self.judges, strict=True))
        account = CompleteCases(
            len(self), len(self.judges), int(kept.sum()), int((~kept).sum()), worst if number else None, int(-number)
        )
        if not kept.any():
            raise ValueError(f"at least one item must have an output of every judge: {account}. Declare fewer judges.")
        return (self if kept.all() else self.take(kept)), account

    @property
    def table(self) -> pd.DataFrame:
        """The outputs as a frame, one column a judge."""
        return pd.DataFrame(self.Z, columns=list(self.judges))

    @property
    def route_names(self) -> NDArray[np.object_]:
        """(N,) name of each item's slice, None where it has none."""
        return np.array([*self.coding.routes, None], dtype=object)[self.coding.route]


def _check(Z: NDArray, y: NDArray, judges: tuple[str, ...]) -> None:
    if len(set(judges)) != len(judges) or not judges or not all(isinstance(j, str) and j for j in judges):
        raise ValueError(f"judges must be distinct, non-empty names; {judges} came.")
    if y.ndim != 1 or not len(y) or Z.shape != (len(y), len(judges)):
        raise ValueError(
            f"Z must be items x judges and y one label per item, at least one item; Z is {Z.shape}, y is {y.shape}, "
            f"{len(judges)} judges are named."
        )
    wrong = ~((y >= 0) & (y <= 1))
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        raise ValueError(
            f"y must lie in [0, 1]; row {row} is {y[row]} ({int(wrong.sum())} such). Map labels -1 and +1 by "
            "(label + 1) / 2 and drop unlabelled items first."
        )


def _code(audit: Audit) -> Coding:
    coded = [encode(audit.Z[:, column]) for column in range(len(audit.judges))]
    codes = np.asfortranarray(np.stack([codes for codes, _ in coded], axis=1))
    labels = route_labels(audit.slices, len(audit))
    if isinstance(audit.slices, pd.DataFrame):
        routes = tuple(map(str, audit.slices.columns))
    else:
        routes = tuple(sorted({label for label in pd.unique(labels) if label is not None}))
    if len(set(routes)) != len(routes):
        raise ValueError(f"slices must have distinct names; {routes} came.")
    route = pd.Index(routes, dtype=object).get_indexer(labels).astype(np.int32)
    return Coding(codes, tuple(levels for _, levels in coded), route, routes, _group_codes(audit.groups))


def _group_codes(groups: NDArray) -> NDArray[np.int64]:
    return pd.factorize(groups.astype(str), sort=True)[0].astype(np.int64)
