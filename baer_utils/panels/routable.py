"""Which slices may be routes: not those that the label decides, nor those whose key has no price."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from baer_utils.calibrators import Audit


def refuse_label_derived(fit: Audit, validation: Audit) -> None:
    """Refuse slices from which the label can be read, on fit and validation items together.

    Raises
    ------
    ValueError
        where y is binary with both values, there are at least two slices (items without one count as one), and y is
        constant within every slice; a slice that is constant within each y is a case of this.
    """
    y = np.concatenate([fit.y, validation.y])
    route = np.concatenate([fit.route_names, validation.route_names])
    slices = pd.factorize(route, use_na_sentinel=False)[0]
    if set(np.unique(y)) != {0.0, 1.0} or len(np.unique(slices)) < 2:
        return
    table = pd.crosstab(slices, y).to_numpy() > 0
    if (table.sum(axis=1) == 1).all():
        raise ValueError(
            f"slices must not be made from the labels: over {len(y)} items every slice has one y alone. "
            "Name what tells the slice of a new item (route_key=), or say audit_only=True."
        )


def refuse_unpriced(route_key: Sequence[str], costs: Mapping[str, float]) -> None:
    """Refuse a route key that is no judge and has no price: a misspelt name would be free.

    Raises
    ------
    ValueError
        where a name is not in `costs`, which price every judge.
    """
    unknown = [name for name in route_key if name not in costs]
    if unknown:
        raise ValueError(
            f"a route key must be a judge or have a price in costs; {', '.join(map(str, unknown))} came, and priced "
            f"are {', '.join(costs)}. Correct the name, or add its price (0 for what is known before anybody is asked)."
        )
