"""Real conditions through the whole pipeline: six judge models on LLMBar, seventeen judges on JudgeBench, ten seeds."""

from __future__ import annotations

import subprocess
from pathlib import Path

from baer_utils.deployment import printing, tables
from baer_utils.deployment.banks import judgebench_bank, llmbar_banks, run_banks
from baer_utils.deployment.choice import choice_sentences, choice_table
from baer_utils.deployment.files import plain_values
from baer_utils.selective import rendered_abstention

REPOSITORY = Path(__file__).parents[1]
SHARED = REPOSITORY.parent / "shared" / "data"
SEEDS = range(10)
FAR_AHEAD = ("llmbar / ChatGPT", "llmbar / ChatGPT-0301", "llmbar / LLaMA2")  # banks whose weak judges err together
AT_MOST_BELOW, AT_LEAST_ABOVE = 0.02, 0.15


def banks(once: bool = False) -> dict:
    """Matched rule, mean over seeds: the deployed head against the best single expert; nothing survives a swap.

    Where it is more than half a point behind the better of the condition's heads, what the gates saw and refused is
    recorded beside it, with an interval and in words made of these numbers.
    What is computed for one condition and seed is kept under outputs/, by the state of the module, and not done again.
    """
    conditions = llmbar_banks(SHARED / "llmbar" / "Dataset-LLMBar.tar.xz")
    verdicts = SHARED / "tidy" / "judgebench_gpt.verdicts.csv.gz"
    conditions.append(judgebench_bank(SHARED / "judgebench", verdicts))
    state = ["git", "rev-parse", "--short", "HEAD:baer_utils"]
    name = subprocess.run(state, cwd=REPOSITORY, capture_output=True, text=True).stdout.strip()
    figures = list(run_banks(conditions, SEEDS[:1] if once else SEEDS, REPOSITORY / "outputs" / f"banks-{name}"))
    print(printing.rendered(figures), rendered_abstention(figures), sep="\n\n")
    summary = tables.summary_table(figures)
    gain = summary["deployed"] - summary["best_single"]
    assert (summary["swap_violations"] == 0).all(), summary["swap_violations"].to_dict()
    if not once:
        assert (gain >= -AT_MOST_BELOW).all(), gain.to_dict()
        assert (gain[list(FAR_AHEAD)] >= AT_LEAST_ABOVE).all(), gain.to_dict()
    margins = tables.margin_table(figures).xs("development", level="named_on")
    columns = ["deployed", "best_single", "majority", "stack", "best_head", "oracle", "spread"]
    columns += ["deployed_without", "best_single_without", "seeds_without"]
    shown = summary[columns].round(4).assign(heads=summary["heads"])
    shown = shown.join(margins[["matched", "paper"]].round(2)).join(margins["star"])
    shown = shown.join(margins[["p", "holm"]].map(lambda p: float(f"{p:.3g}")))
    choices, leads = choice_table(figures), tables.leads_table(figures)
    zero = {name: {} for name in summary.index}
    for one in figures:
        zero[one["bank"]] |= {f"seed {one['seed']}": one["zero_scores"]} if one["zero_scores"] else {}
    measured = {
        "conditions": shown.to_dict("index"),
        "against_the_better_head": choices.round(2).to_dict("index"),
        "behind_the_better_head": choice_sentences(choices),
        "column_leads": {rule: leads.loc[rule].round(2).to_dict("index") for rule in ("matched", "paper")},
        "pairs_with_s_0": {name: lists for name, lists in zero.items() if lists},
        "swapped_pairs": sum(one["swap"]["pairs"] for one in figures),
        "unseen_regret": tables.unseen_table(figures).round(2).to_dict("index"),
    }
    return plain_values(measured)
