"""One frozen head per condition, the one opening of its test, and scores for new pairs (BAER sections 2.3 and 3)."""

from baer_utils.deployment.baselines import baseline_table
from baer_utils.deployment.conditions import Condition, baselines_of, describe_condition
from baer_utils.deployment.developing import develop, out_of_fold, question_folds
from baer_utils.deployment.fitting import Heads, deployed_score, fit_heads
from baer_utils.deployment.freezing import freeze
from baer_utils.deployment.frozen import Frozen
from baer_utils.deployment.opening import open_test
from baer_utils.deployment.report import TestReport

__all__ = [
    "Condition", "Frozen", "Heads", "TestReport", "baseline_table", "baselines_of", "describe_condition",
    "deployed_score", "develop", "fit_heads", "freeze", "open_test", "out_of_fold", "question_folds",
]  # fmt: skip
