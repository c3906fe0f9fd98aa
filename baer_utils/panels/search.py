"""Growing a panel inside one scope until no candidate clears the threshold, and what each candidate fell short by.

Greedy by default; a wider beam, pairs of judges and a one-standard-error rule on request. A scope knows the held-out
risk of panels (`roles`); this file knows costs, thresholds and ties.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np

from baer_utils.roles import DIGITS, State, adjusted, gain_of

GLOBAL = "(all)"  # the scope of every item


@dataclass(frozen=True)
class Rule:
    """When a candidate is worth calling in a scope.

    tau : threshold, exceeded strictly. lam : price of one unit of cost in units of risk. one_se : ask the gain minus
    its standard error (paired differences of validation losses, the paper's extension) to clear it. beam : partial
    panels kept at every size. pairs : where no single judge clears, add a pair that clears 2 tau, and go on.
    """

    tau: float
    lam: float
    one_se: bool = False
    beam: int = 1
    pairs: bool = False


class Step(NamedTuple):
    """One inequality: candidate judges in a scope, what they gain and cost, and the threshold they had to exceed."""

    scope: str
    judges: tuple[str, ...]
    gain: float
    error: float
    """Standard error of the gain over validation items."""
    cost: float
    adjusted: float
    """Gain minus lam times cost (minus the error under the one-standard-error rule)."""
    threshold: float

    @property
    def clears(self) -> bool:
        """Whether the inequality holds, strictly."""
        return self.adjusted > self.threshold


class Grown(NamedTuple):
    """A panel that nothing enlarges any more."""

    state: State
    steps: tuple[Step, ...]
    failed: tuple[Step, ...]
    """The inequality of every judge left out, largest first."""


def grow(name: str, scope: object, start: Sequence[int], costs: Sequence[float], rule: Rule) -> Grown:
    """Add judges to a panel while one clears the rule.

    Parameters
    ----------
    name : of the scope, for the report. scope : `Scope` or its kin. start : places of the judges already called.
    costs : of one call of each judge. rule : threshold, price and manner of search.

    Returns
    -------
    Grown. Among candidates that clear, the largest cost-adjusted gain wins, then the larger raw gain, then the name;
    all compared after rounding to 1e-12. Of several ends of a beam, the one with the largest adjusted total is kept.
    """
    search = _Search(name, scope, costs, rule)
    alive, ends = [(scope.start(start), ())], []
    while alive:
        wider = []
        for state, steps in alive:
            tried = search.single(state)
            better = [(after, (*steps, step)) for step, after in tried if step.clears]
            if not better and rule.pairs:
                better = [(after, (*steps, step)) for step, after in search.pairs(state) if step.clears]
            wider += better
            if not better:
                ends.append((state, steps, [step for step, _ in tried]))
        wider.sort(key=search.rank)
        distinct = {frozenset(state.panel): (state, steps) for state, steps in reversed(wider)}
        alive = sorted(distinct.values(), key=search.rank)[: rule.beam]
    state, steps, failed = min(ends, key=search.rank)
    return Grown(state, steps, tuple(_largest_first(failed)))


def pair_steps(name: str, scope: object, state: State, costs: Sequence[float], rule: Rule) -> list[Step]:
    """The inequality of every pair of judges left out, largest first: what a search by single judges cannot see."""
    return _largest_first([step for step, _ in _Search(name, scope, costs, rule).pairs(state)])


def _largest_first(steps: list[Step]) -> list[Step]:
    return sorted(steps, key=lambda step: (-step.adjusted, -step.gain, step.judges))


class _Search:
    def __init__(self, name: str, scope: object, costs: Sequence[float], rule: Rule) -> None:
        self.name, self.scope, self.costs, self.rule = name, scope, costs, rule

    def single(self, state: State) -> list[tuple[Step, State]]:
        left = [place for place in range(len(self.costs)) if place not in state.panel]
        return [self._step(state, (place,), self.scope.add(state, place)) for place in left]

    def pairs(self, state: State) -> list[tuple[Step, State]]:
        first = {after.panel[-1]: after for _, after in self.single(state)}
        return [self._step(state, pair, self.scope.add(first[pair[0]], pair[1])) for pair in combinations(first, 2)]

    def _step(self, before: State, added: tuple[int, ...], after: State) -> tuple[Step, State]:
        gain, cost = gain_of(before, after), sum(self.costs[place] for place in added)
        change = before.loss - after.loss
        error = float(change.std(ddof=1) / np.sqrt(len(change))) if len(change) > 1 else float("inf")
        net = adjusted(gain, cost, self.rule.lam) - (error if self.rule.one_se else 0.0)
        judges = tuple(self.scope.judges[place] for place in added)
        return Step(self.name, judges, gain, error, cost, net, len(added) * self.rule.tau), after

    def rank(self, end: tuple) -> tuple[float, float, tuple[str, ...]]:
        steps = end[1]
        net = sum(step.gain - self.rule.lam * step.cost for step in steps)
        gain = sum(step.gain for step in steps)
        names = tuple(judge for step in steps for judge in step.judges)
        return -round(net, DIGITS), -round(gain, DIGITS), names
