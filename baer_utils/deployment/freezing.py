"""Freezing: what was decided for a condition, in words a person can read, and the numbers behind it.

`deployment.json` gets the condition, the choice and every number it rested on; `arrays.npz` the fitted arrays, and the
router's model as a skops archive. No date and no path goes in, so the same data give the same name. This file knows
nothing about sealed labels.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path

import numpy as np

from baer_utils.deployment.conditions import RULES, baselines_of, feature_names
from baer_utils.deployment.corrections import debias_arrays, debias_figures
from baer_utils.deployment.explaining import inversions
from baer_utils.deployment.files import plain_values, write_frozen
from baer_utils.deployment.fitting import Heads
from baer_utils.deployment.frozen import Frozen
from baer_utils.features import reliability_names
from baer_utils.gates import Decision, Development, Verdict
from baer_utils.routing import pack_model
from baer_utils.routing.models import DEPTH, LEAF, TREES
from baer_utils.stacking import Stack


def freeze(decision: Decision, heads: Heads, path: str | Path) -> Frozen:
    """Write the chosen head to a folder, name it by its SHA-256, and read it back.

    Parameters
    ----------
    decision : what `select_head` said; all the figures it looked at are kept.
    heads : the fitted heads, with their condition.
    path : folder, made if need be; a head frozen there before is replaced.

    Returns
    -------
    Frozen
        as loaded from disk. The hash holds no date and no path: the same data give the same name.
    """
    folder = Path(path)
    arrays = {
        "stack_weights": heads.stack.weights,
        "stack_scale": heads.stack.scale,
        "nonnegative_weights": heads.nonnegative_stack.weights,
        "nonnegative_scale": heads.nonnegative_stack.scale,
    }
    arrays = {name: np.ascontiguousarray(values, dtype=np.float64) for name, values in arrays.items()}
    if heads.router is not None:
        arrays["route_model"] = np.frombuffer(pack_model(heads.router.reliability.fitted), dtype=np.uint8)
    if heads.condition.debias is not None:
        arrays |= debias_arrays(heads.condition.debias)
    write_frozen(folder, plain_values(_content(decision, heads)), arrays)
    return Frozen.load(folder)


def _content(decision: Decision, heads: Heads) -> dict:
    """Everything that names a head, and everything the decision looked at (design section 6)."""
    debias = heads.condition.debias
    condition = asdict(replace(heads.condition, debias=None))
    del condition["debias"]  # its figures stand on their own, and only where there are any
    return {
        "head": decision.head,
        "selected": decision.selected,
        "reasons": list(decision.reasons),
        "verdicts": {name: _verdict(decision.verdicts[name]) for name in decision.verdicts},
        "development": development_figures(decision.development),
        "condition": condition,
        "baselines": list(baselines_of(heads.condition.experts)),
        "rules": RULES,
        "fitted_rows": heads.rows,
        "stack": _readable(heads.stack, heads),
        "nonnegative_stack": _readable(heads.nonnegative_stack, heads),
        "route": _router(heads),
        "reference": {"protocol": "reference"} if heads.reference else None,
    } | ({} if debias is None else {"debias": debias_figures(debias)})


def _verdict(verdict: Verdict | None) -> dict | None:
    """Margins and thresholds of a head that passed the gates or did not; None for one that was not evaluated."""
    return None if verdict is None else asdict(verdict)  # a failed verdict is False, and not None


def _readable(stack: Stack, heads: Heads) -> dict:
    """Lambda, the weight of every feature, those below zero, and which experts and categories they turn around."""
    named = dict(zip(feature_names(heads.condition), map(float, stack.weights), strict=True))
    inverted = [name for name, weight in named.items() if weight < 0]
    rounded = {name: round(weight, 6) for name, weight in named.items()}
    turned = {f"inverted_{what}": names for what, names in inversions(stack, heads.condition).items()}
    return {"lambda": stack.lam, "weights_rounded": rounded, "weights_below_zero": inverted} | turned


def _router(heads: Heads) -> dict | None:
    """What the router is, in words; its fitted model is the array `route_model`, a skops archive."""
    if heads.router is None:
        return None
    model, candidates = heads.router.reliability, heads.router.candidates
    return {
        "candidates": list(candidates),
        "features": reliability_names(candidates, heads.condition.categories),
        "model": model.name,
        "settings": {"trees": TREES, "depth": DEPTH, "rows_in_a_leaf": LEAF, "seed": heads.condition.seed},
    }


def development_figures(development: Development) -> dict:
    """The figures of a Development as plain values; the out-of-fold rows stay in the notebook."""
    names = ("pairs", "questions", "baselines", "baseline_accuracy", "best_single", "unlabelled")
    names += ("not_evaluated", "extra_candidates")
    methods = {
        kind: {name: asdict(figures) if figures else None for name, figures in getattr(development, kind).items()}
        for kind in ("heads", "rules")
    }
    return {name: getattr(development, name) for name in names} | methods
