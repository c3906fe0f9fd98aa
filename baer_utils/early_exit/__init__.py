"""The bank's own bill: which experts it can do without, and when a pair needs no more of them."""

from baer_utils.early_exit.asking import Exit, ask_until_settled
from baer_utils.early_exit.bank import Bank, SymmetricPolicy, bank_of, bin_evidence, swap_outputs
from baer_utils.early_exit.comparing import ListedPanel, compare_policies, compare_sizes, over_splits, savings
from baer_utils.early_exit.controlling import ExitThreshold, changed_answers, exit_grid, fit_exit
from baer_utils.early_exit.exits import (
    Terms,
    evidence_limits,
    exit_order,
    exit_scores,
    exit_steps,
    exit_tokens,
    stack_terms,
    term_limits,
)
from baer_utils.early_exit.prices import BankPrices
from baer_utils.early_exit.pruning import PrunedBank, PruningStep
from baer_utils.early_exit.recorded import ALONE, own_setting, with_signals
from baer_utils.early_exit.studying import EXIT_MEASURES, exit_study, ordered_terms

__all__ = [
    "ALONE", "Bank", "BankPrices", "EXIT_MEASURES", "Exit", "ExitThreshold", "ListedPanel", "PrunedBank", "PruningStep",
    "SymmetricPolicy", "Terms", "ask_until_settled", "bank_of", "bin_evidence", "changed_answers",
    "compare_policies", "compare_sizes", "evidence_limits", "exit_grid", "exit_order", "exit_scores", "exit_steps",
    "exit_study", "exit_tokens", "fit_exit", "ordered_terms", "over_splits", "own_setting", "savings", "stack_terms",
    "swap_outputs", "term_limits", "with_signals",
]  # fmt: skip
