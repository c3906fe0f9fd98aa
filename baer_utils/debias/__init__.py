"""PriDe and CalibraEval: label-free corrections of direct judging's reads, from runs already paid for."""

from baer_utils.debias.bank import bank_runs, fitted_experts, protocols_for
from baer_utils.debias.calibraeval import IncreasingMap, fit_map
from baer_utils.debias.fitted import Debias, debiased_runs, fit_debias, fit_three_prompts
from baer_utils.debias.objective import EXPERT, FULL_ORBIT, THREE_PROMPTS, Orbit, loss, probability_excess
from baer_utils.debias.pride import content_order, item_prior, mean_prior, prior_sample, subtract_prior
from baer_utils.debias.reads import EXCHANGED_VIEWS, SOURCE, direct_reads, label_reads

__all__ = [
    "EXCHANGED_VIEWS", "EXPERT", "FULL_ORBIT", "SOURCE", "THREE_PROMPTS", "Debias", "IncreasingMap", "Orbit",
    "bank_runs", "content_order", "debiased_runs", "direct_reads", "fit_debias", "fit_map", "fit_three_prompts",
    "fitted_experts", "item_prior", "label_reads", "loss", "mean_prior", "prior_sample", "probability_excess",
    "protocols_for", "subtract_prior",
]  # fmt: skip
