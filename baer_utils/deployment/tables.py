"""Table 1 over several conditions and split seeds: accuracies, who leads which column, margins, what luck would give.

Seed 0 is the declared split: its p-values are corrected over conditions and may earn a star; the other seeds give mean
and spread. It lays out figures that `banks.run_bank` made and computes nothing on pairs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd

from baer_utils.deployment.figures import BOUNDED
from baer_utils.deployment.unseen import leave_one_condition_out
from baer_utils.gates import ALPHA, HEADS
from baer_utils.metrics import column_leads, holm

DECLARED = 0  # the split seed whose p-values count
BEST = "best single expert"
NOT_EVALUATED = "not evaluated"
SYSTEMS = (BEST, "majority", "longer response", *HEADS, BOUNDED, "deployed")  # what is no external baseline
ORACLES = ("oracle", "oracle_coin_flippers")
AHEAD = f"ahead of every expert [seed {DECLARED}]"


def long_table(figures: Iterable[dict]) -> pd.DataFrame:
    """One row per condition, seed and method: the share of test pairs that is right under the matched and paper rule.

    The best single expert is the one named on development data, whatever its name; the oracle has one value for both
    rules; a head that was not evaluated is NaN.
    """
    rows = []
    for one in figures:
        tables = {rule: _one_name(one[kept]) for rule, kept in (("matched", "accuracy"), ("paper", "paper"))}
        for table in tables.values():
            table |= {name: one[name] for name in ("oracle", "oracle_coin_flippers")}
        rows += [
            {"condition": one["bank"], "seed": one["seed"], "method": name}
            | {rule: np.nan if table[name] is None else table[name] for rule, table in tables.items()}
            for name in tables["matched"]
        ]
    return pd.DataFrame(rows)


def _one_name(shares: dict) -> dict:
    return {BEST if name.startswith("best single (") else name: value for name, value in shares.items()}


def accuracy_table(figures: Sequence[dict], rule: str = "matched") -> pd.DataFrame:
    """Methods x conditions in words: mean over the seeds ± their standard deviation, the declared split in brackets.

    Experts come first, in alphabetical order, then simple rules, heads and the oracle. Percent; empty where a condition
    does not have the method, "not evaluated" for a head without runs. The last row names the heads that lead the column
    on the declared split: strictly above every expert (`leads_table`).
    """
    shares = long_table(figures)
    cells = {}
    for (condition, method), rows in shares.groupby(["condition", "method"], sort=False):
        declared = rows.loc[rows["seed"] == DECLARED, rule]
        cells[method, condition] = _spread(rows[rule]) + (f" [{100 * declared.iloc[0]:.1f}]" if len(declared) else "")
        if rows[rule].isna().all():
            cells[method, condition] = NOT_EVALUATED
    for one in figures:
        if one["seed"] == DECLARED:
            margins = _margins(one, rule)
            cells[AHEAD, one["bank"]] = ", ".join(head for head in HEADS if margins[head] > 0) or "none"
    table = pd.Series(cells).unstack(fill_value="")
    last = [name for name in (*SYSTEMS, *ORACLES, AHEAD) if name in table.index]
    columns = list(dict.fromkeys(shares["condition"]))
    return table.loc[[*sorted(set(table.index) - set(last)), *last], columns]


def leads_table(figures: Sequence[dict]) -> pd.DataFrame:
    """How many columns each system leads, and its mean margin over conditions (`metrics.column_leads`).

    The baselines of a column are its experts, each as its own native judge; the strongest is named on the test itself,
    as in the paper's Table 1, and separately under each rule.

    Returns
    -------
    frame indexed by (rule, system), systems in the order of `SYSTEMS`. On the declared split: `leads`, `conditions`,
    and `mean_margin`, `least_margin` and `largest_margin` in points. Over all seeds, each counted by itself: means of
    `leads` (`leads_mean`) and of `mean_margin` (`margin_mean`), and the latter's standard deviation `margin_sd`.
    """
    seeds, tables = sorted({one["seed"] for one in figures}), {}
    for rule in ("matched", "paper"):
        of_seed = {seed: _leads([one for one in figures if one["seed"] == seed], rule) for seed in seeds}
        over = pd.concat(of_seed).groupby(level=1, sort=False)
        table = of_seed[DECLARED].join(over["leads"].mean().rename("leads_mean"))
        table["margin_mean"], table["margin_sd"] = over["mean_margin"].mean(), over["mean_margin"].std()
        tables[rule] = table
    return pd.concat(tables, names=["rule", "system"])


def _leads(figures: Sequence[dict], rule: str) -> pd.DataFrame:
    """`column_leads` of one seed. Conditions have different experts: of each only the strongest counts."""
    table = pd.DataFrame([_margins(one, rule) | {"strongest": 0.0} for one in figures]) / 100
    return column_leads(table, ["strongest"]).dropna(subset="mean_margin")


def _margins(one: dict, rule: str) -> dict[str, float]:
    """Points by which each system is above the strongest expert of one condition and seed; NaN if not evaluated."""
    shares = _one_name(one["accuracy" if rule == "matched" else "paper"])
    strongest = max(shares[name] for name in one["experts"])
    values = {name: np.nan if shares[name] is None else shares[name] for name in SYSTEMS}
    return {name: 100 * (share - strongest) for name, share in values.items()}


def margin_table(figures: Sequence[dict]) -> pd.DataFrame:
    """Deployed head against the strongest baseline of each condition, named on development data and on test.

    Returns
    -------
    frame indexed by (condition, named_on), points. On the declared split: `head`, `baseline`, `matched` and `paper`
    margins, `low` and `high` (95 %, matched), discordant pairs `head_only` and `baseline_only`, exact two-sided McNemar
    `p`, `mid_p` beside it, `holm` of p over the conditions of that row, `star` (development row only, Holm below .05),
    `detectable` (see `counting.comparison_rows`). Over all seeds: `mean` and `sd` of the matched margin, `paper_mean`.
    """
    comparisons = pd.DataFrame(
        [
            {"condition": one["bank"], "seed": one["seed"], "head": one["head"], **row}
            for one in figures
            for row in one["comparisons"]
        ]
    )
    matched, paper = (comparisons[comparisons["rule"] == rule] for rule in ("matched", "paper"))
    key = ["condition", "named_on"]
    declared = matched[matched["seed"] == DECLARED].set_index(key)
    table = declared[["head", "baseline", "low", "high", "head_only", "baseline_only", "p", "mid_p"]].copy()
    table.insert(2, "matched", declared["margin"])
    table.insert(3, "paper", paper[paper["seed"] == DECLARED].set_index(key)["margin"])
    for named_on, rows in table.groupby("named_on"):
        table.loc[rows.index, "holm"] = holm(rows["p"])
        table.loc[rows.index, "star"] = (table.loc[rows.index, "holm"] < ALPHA) & (named_on == "development")
    table["detectable"] = declared["detectable"].astype(float)
    over_seeds = matched.groupby(key, sort=False)["margin"]
    table["mean"], table["sd"] = over_seeds.mean(), over_seeds.std()
    return table.assign(paper_mean=paper.groupby(key, sort=False)["margin"].mean())


def summary_table(figures: Sequence[dict]) -> pd.DataFrame:
    """One row per condition, means over the seeds: what is deployed, what it beats, what nobody can.

    Columns: `pairs` of a test split (mean), `deployed`, `best_single`, `majority`, `oracle`, `stack` (matched rule) and
    `best_head`, the highest mean among `HEADS` that were evaluated under every seed; `spread`, the standard deviation
    of the deployed head; `heads`, how often each was deployed; `zero_scores` and `swap_violations`, numbers over all
    seeds; `deployed_without` and `best_single_without`, where each seed leaves out the subsets on which the lead rests,
    over the `seeds_without` seeds in which any pair is left (NaN where there is none).
    """
    shares = long_table(figures).set_index(["condition", "method", "seed"])["matched"].sort_index()
    mean, rows = shares.groupby(level=[0, 1]).mean(), {}
    for condition in dict.fromkeys(one["bank"] for one in figures):
        mine = [one for one in figures if one["bank"] == condition]
        heads = pd.Series([one["head"] for one in mine]).value_counts()
        rows[condition] = {"pairs": np.mean([one["pairs"] for one in mine]), "best_single": mean[condition, BEST]}
        rows[condition] |= {name: mean[condition, name] for name in ("deployed", "majority", "oracle", "stack")}
        rows[condition]["best_head"] = mean[condition, best_head(mine)]
        rows[condition] |= {
            "spread": shares[condition, "deployed"].std(),
            "heads": ", ".join(f"{head} {count}" for head, count in heads.items()),
            "zero_scores": sum(len(one["zero_scores"]) for one in mine),
            "swap_violations": sum(count for one in mine for name, count in one["swap"].items() if name != "pairs"),
        }
        rest = [_one_name(one["without"]["accuracy"]) for one in mine if one["without"]]
        for name, method in (("deployed", "deployed"), ("best_single", BEST)):
            rows[condition][f"{name}_without"] = np.mean([shares[method] for shares in rest]) if rest else np.nan
        rows[condition]["seeds_without"] = len(rest)
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("condition")


def best_head(figures: Sequence[dict]) -> str:
    """Of the heads evaluated under every seed of a condition, the one with the highest mean accuracy on test; the first
    of equal ones."""
    shares = {head: [one["accuracy"][head] for one in figures] for head in HEADS}
    return max((head for head in HEADS if None not in shares[head]), key=lambda head: np.mean(shares[head]))


def unseen_table(figures: Sequence[dict], *, extra: Sequence[str] = ()) -> pd.DataFrame:
    """`unseen.leave_one_condition_out` on these figures, among the evaluated heads and `extra` methods."""
    names = pd.Index([one["bank"] for one in figures])
    features = pd.DataFrame([one["descriptors"] for one in figures], index=names)
    accuracy = pd.DataFrame(
        [{name: one["accuracy"][name] for name in (*HEADS, *extra)} for one in figures], index=names
    )
    return leave_one_condition_out(features, accuracy.astype(float), [one["head"] for one in figures])


def _spread(shares: pd.Series) -> str:
    return f"{100 * shares.mean():.1f}" + (f" ±{100 * shares.std():.1f}" if len(shares) > 1 else "")
