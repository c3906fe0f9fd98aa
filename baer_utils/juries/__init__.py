"""The policies that a practitioner would otherwise deploy, each fitted on construction data alone.

All speak the interface of the role policy: `fit(fit, validation, *, costs, seed)` and
`predict(Z, slices) -> (probability, called)`.
"""

from baer_utils.juries.bench import standard_policies
from baer_utils.juries.cascades import FrugalCascade
from baer_utils.juries.chosen import (
    CorrelationDiverse,
    FixedPanel,
    FlatAll,
    NobodyCalled,
    QualityDiverse,
    SingleBest,
    TopK,
)
from baer_utils.juries.escalation import TrustOrEscalate, certified_threshold
from baer_utils.juries.jurors import DawidSkene, ReliabilityJury
from baer_utils.juries.rates import RateProduct
from baer_utils.juries.routed import TwoJudgeThreshold
from baer_utils.juries.stacks import LogisticStack, RidgeStack

__all__ = [
    "CorrelationDiverse", "DawidSkene", "FixedPanel", "FlatAll", "FrugalCascade", "LogisticStack", "NobodyCalled",
    "QualityDiverse",
    "RateProduct", "ReliabilityJury", "RidgeStack", "SingleBest", "TopK", "TrustOrEscalate", "TwoJudgeThreshold",
    "certified_threshold", "standard_policies",
]  # fmt: skip
