"""One frozen head per condition, the one opening of its test, and scores for new pairs (BAER sections 2.3 and 3)."""

from baer_utils.deployment.baselines import baseline_table
from baer_utils.deployment.candidates import candidate_evidence, extra_candidates, right_or_wrong, routing_features
from baer_utils.deployment.conditions import Condition, baselines_of, describe_condition
from baer_utils.deployment.counting import head_curves
from baer_utils.deployment.developing import develop
from baer_utils.deployment.evaluating import out_of_fold
from baer_utils.deployment.explaining import explaining_subsets, inversions
from baer_utils.deployment.fitting import Heads, Router, deployed_score, fit_heads
from baer_utils.deployment.freezing import freeze
from baer_utils.deployment.frozen import Frozen
from baer_utils.deployment.opening import open_test
from baer_utils.deployment.report import TestReport
from baer_utils.records import question_folds

__all__ = [
    "Condition", "Frozen", "Heads", "Router", "TestReport", "baseline_table", "baselines_of", "candidate_evidence",
    "deployed_score", "describe_condition", "develop", "explaining_subsets", "extra_candidates", "fit_heads",
    "freeze", "head_curves", "inversions", "open_test", "out_of_fold", "question_folds", "right_or_wrong",
    "routing_features",
]  # fmt: skip
