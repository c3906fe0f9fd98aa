"""Table 1 over several conditions and split seeds: accuracies, margins, what luck would give.

Seed 0 is the declared split: its p-values are corrected over conditions and may earn a star; the other seeds give mean
and spread. It lays out figures that `banks.run_bank` made and computes nothing on pairs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd

from baer_utils.deployment.banks import BOUNDED
from baer_utils.deployment.unseen import leave_one_condition_out
from baer_utils.gates import ALPHA, HEADS
from baer_utils.metrics import holm

DECLARED = 0  # the split seed whose p-values count
BEST = "best single expert"
NOT_EVALUATED = "not evaluated"
SHOWN_LAST = (BEST, "majority", "longer response", *HEADS, BOUNDED, "deployed", "oracle", "oracle_coin_flippers")


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
    does not have the method, "not evaluated" for a head without runs.
    """
    shares = long_table(figures)
    cells = {}
    for (condition, method), rows in shares.groupby(["condition", "method"], sort=False):
        declared = rows.loc[rows["seed"] == DECLARED, rule]
        cells[method, condition] = _spread(rows[rule]) + (f" [{100 * declared.iloc[0]:.1f}]" if len(declared) else "")
        if rows[rule].isna().all():
            cells[method, condition] = NOT_EVALUATED
    table = pd.Series(cells).unstack(fill_value="")
    experts = sorted(set(table.index) - set(SHOWN_LAST))
    columns = list(dict.fromkeys(shares["condition"]))
    return table.loc[[*experts, *(name for name in SHOWN_LAST if name in table.index)], columns]


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
    over the `seeds_without` seeds in which any pair is left.
    """
    shares = long_table(figures).set_index(["condition", "method", "seed"])["matched"].sort_index()
    mean, rows = shares.groupby(level=[0, 1]).mean(), {}
    for condition in dict.fromkeys(one["bank"] for one in figures):
        mine = [one for one in figures if one["bank"] == condition]
        heads = pd.Series([one["head"] for one in mine]).value_counts()
        rows[condition] = {"pairs": np.mean([one["pairs"] for one in mine]), "best_single": mean[condition, BEST]}
        rows[condition] |= {name: mean[condition, name] for name in ("deployed", "majority", "oracle", "stack")}
        evaluated = [shares[condition, head] for head in HEADS]
        rows[condition]["best_head"] = max(of.mean() for of in evaluated if of.notna().all())
        rows[condition] |= {
            "spread": shares[condition, "deployed"].std(),
            "heads": ", ".join(f"{head} {count}" for head, count in heads.items()),
            "zero_scores": sum(len(one["zero_scores"]) for one in mine),
            "swap_violations": sum(count for one in mine for name, count in one["swap"].items() if name != "pairs"),
        }
        without = pd.DataFrame([one["without"] for one in mine], dtype=float)
        rows[condition] |= without.add_suffix("_without").mean().to_dict() | {
            "seeds_without": int(without.notna().all(axis=1).sum())
        }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("condition")


def unseen_table(figures: Sequence[dict], *, extra: Sequence[str] = ()) -> pd.DataFrame:
    """`unseen.leave_one_condition_out` on these figures, among the evaluated heads and `extra` methods."""
    names = pd.Index([one["bank"] for one in figures])
    features = pd.DataFrame([one["descriptors"] for one in figures], index=names)
    accuracy = pd.DataFrame(
        [{name: one["accuracy"][name] for name in (*HEADS, *extra)} for one in figures], index=names
    )
    return leave_one_condition_out(features, accuracy.astype(float), [one["head"] for one in figures])


def rendered(figures: Sequence[dict]) -> str:
    """All tables as one text."""
    seeds = len({one["seed"] for one in figures})
    sections: list[tuple[str, pd.DataFrame]] = []
    for benchmark in dict.fromkeys(one["bank"].partition(" / ")[0] for one in figures):
        mine = [one for one in figures if one["bank"].startswith(f"{benchmark} / ")]
        for rule in ("matched", "paper"):
            title = (
                f"{benchmark}, {rule} rule: accuracy on test (%), mean ± sd over {seeds} split seeds [seed {DECLARED}]"
            )
            sections.append((title, accuracy_table(mine, rule)))
    title = f"Deployed head against the strongest baseline, points: seed {DECLARED}; mean and sd over {seeds} seeds"
    sections.append((f"{title}. Star: Holm over the conditions below {ALPHA}", margin_table(figures)))
    sections.append(("Summary, means over seeds, matched rule", summary_table(figures)))
    if len({one["bank"] for one in figures}) > 2:
        title = "Unseen condition: regret (points) of what label-free descriptors of it pick among"
        sections.append((f"{title} the heads", unseen_table(figures)))
        extra = (BOUNDED, "majority")
        sections.append((f"{title} the heads, {' and '.join(extra)}", unseen_table(figures, extra=extra)))
    return "\n\n".join(f"{title}\n{frame.to_string(float_format='{:.3f}'.format)}" for title, frame in sections)


def _spread(shares: pd.Series) -> str:
    return f"{100 * shares.mean():.1f}" + (f" ±{100 * shares.std():.1f}" if len(shares) > 1 else "")
