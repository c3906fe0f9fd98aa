"""PriDe and CalibraEval: label-free corrections of direct judging's reads, from runs already paid for."""

from baer_utils.debias.calibraeval import IncreasingMap, fit_map
from baer_utils.debias.fitted import Debias, debiased_runs, fit_debias, fit_three_prompts
from baer_utils.debias.objective import EXPERT, FULL_ORBIT, THREE_PROMPTS, Orbit, loss, probability_excess
from baer_utils.debias.pride import item_prior, mean_prior, prior_sample, subtract_prior
from baer_utils.debias.reads import direct_reads, label_reads

__all__ = [
    "EXPERT", "FULL_ORBIT", "THREE_PROMPTS", "Debias", "IncreasingMap", "Orbit", "debiased_runs", "direct_reads",
    "fit_debias", "fit_map", "fit_three_prompts", "item_prior", "label_reads", "loss", "mean_prior", "prior_sample",
    "probability_excess", "subtract_prior",
]  # fmt: skip
