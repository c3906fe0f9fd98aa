"""A plan at work: items come one at a time, and each judge is asked only when the plan calls it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import NamedTuple

import numpy as np

from baer_utils.calibrators import route_labels
from baer_utils.panels.policy import CallPolicy


class Judged(NamedTuple):
    """What a plan says about one item, and what it asked for."""

    item: object
    probability: float
    decision: int
    """1 where the probability is at least 1/2, else 0."""
    slice: str | None
    outputs: dict[str, object]
    """The output of every judge that was asked."""
    cost: float
    fallback: bool
    """The outputs made a pattern that the table does not hold."""


def apply_plan(
    plan: CallPolicy,
    items: Iterable[object],
    ask: Mapping[str, Callable[[object], object]],
    *,
    route: Callable[[object, dict[str, object]], str | None] | None = None,
) -> Iterator[Judged]:
    """Judge a stream of new items, asking nobody whom the plan does not call.

    Parameters
    ----------
    plan : fitted and refitted, or read from JSON. items : anything; consumed lazily.
    ask : {judge: callable(item) -> symbol}, the symbols being those of the audit. Each judge is asked at most once per
        item; judges that the plan never calls need no entry. None is a missing output.
    route : callable(item, outputs of the route-key judges) -> slice or None; needed, and called, where the plan routes.

    Returns
    -------
    iterator of Judged, in the order of the items. What a judge raises comes out at its item, and does not end the
    iterator: `next` goes on with the item after it.

    Raises
    ------
    ValueError
        at once: for a plan that is for audits only, a judge without a callable, or no `route` where the plan routes.
    """
    if plan.audit_only:
        raise ValueError(
            "this plan was built with audit_only=True: its slices are unknown for new items. Build it with route_key=, "
            "or without slices."
        )
    silent = sorted(plan.needed - ask.keys())
    if silent:
        raise ValueError(f"ask must have a callable for each judge the plan calls; none for {', '.join(silent)}.")
    if plan.routes and route is None:
        raise ValueError(f"route must tell an item's slice: the plan routes {', '.join(plan.routes)}. None came.")
    return map(partial(_judge, plan, ask=ask, route=route), items)


def _judge(plan: CallPolicy, item: object, ask: Mapping, route: Callable | None) -> Judged:
    keys = [name for name in plan.route_key if name in plan.judges] if plan.routes else []
    outputs = {judge: ask[judge](item) for judge in keys}
    slice = route_labels([route(item, dict(outputs))], 1)[0] if plan.routes else None
    for judge in plan.judges_for(slice):
        if judge not in outputs:
            outputs[judge] = ask[judge](item)
    row = np.full((1, len(plan.judges)), None, dtype=object)
    for judge, output in outputs.items():
        row[0, plan.judges.index(judge)] = output
    probability = float(plan.predict(row, np.array([slice], dtype=object))[0][0])
    cost = sum(plan.costs[judge] for judge in outputs) + plan.route_key_cost
    return Judged(item, probability, int(probability >= 0.5), slice, outputs, cost, plan.fallback_rate_ > 0)
