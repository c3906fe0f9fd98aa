"""All policies side by side, under the names that every table and figure uses for them."""

from __future__ import annotations

from baer_utils.juries.cascades import FrugalCascade
from baer_utils.juries.chosen import CorrelationDiverse, FlatAll, NobodyCalled, QualityDiverse, SingleBest, TopK
from baer_utils.juries.escalation import TrustOrEscalate
from baer_utils.juries.jurors import DawidSkene, ReliabilityJury
from baer_utils.juries.routed import TwoJudgeThreshold
from baer_utils.juries.stacks import LogisticStack, RidgeStack
from baer_utils.panels import RolePolicy

NOT_ROLE = ("top_k", "correlation_diverse", "quality_diverse")  # matched to the role policy's calls
FULL_CALL = ("flat_all", "ridge_stack", "logistic_stack", "reliability_jury", "dawid_skene", "one_coin")


def standard_policies(**settings) -> dict[str, object]:
    """The role policy, its unrouted half, and every baseline, with their default settings.

    Parameters
    ----------
    settings : of `RolePolicy` (thresholds, prices, route key); the matched panels follow its calls, and the cascades
        choose under the same `lam`.

    Returns
    -------
    dict
        name -> unfitted policy: role, stopped (the role policy that routes nobody), nobody_called, single_best,
        flat_all, `NOT_ROLE`, the rest of `FULL_CALL`, frugal_cascade, two_judges, trust_or_escalate.
    """
    lam = settings.get("lam", 0.0)
    unrouted = {**settings, "slices": ()}
    return {
        "role": RolePolicy(**settings),
        "stopped": RolePolicy(**unrouted),
        "nobody_called": NobodyCalled(),
        "single_best": SingleBest(),
        "flat_all": FlatAll(),
        "top_k": TopK(role=RolePolicy(**settings)),
        "correlation_diverse": CorrelationDiverse(role=RolePolicy(**settings)),
        "quality_diverse": QualityDiverse(role=RolePolicy(**settings)),
        "ridge_stack": RidgeStack(),
        "logistic_stack": LogisticStack(),
        "reliability_jury": ReliabilityJury(),
        "dawid_skene": DawidSkene(),
        "one_coin": DawidSkene(one_coin=True),
        "frugal_cascade": FrugalCascade(lam=lam),
        "two_judges": TwoJudgeThreshold(lam=lam, **{name: settings.get(name) for name in ("route_key", "audit_only")}),
        "trust_or_escalate": TrustOrEscalate(),
    }
