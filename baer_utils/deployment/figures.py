"""What is kept of one opened condition, as plain values: everything that a table over conditions and seeds may show.

Taken from the frozen head and its report; nothing is counted here that they do not hold, except who was right on which
pair.
"""

from __future__ import annotations

import pandas as pd

from baer_utils.deployment.frozen import Frozen
from baer_utils.deployment.report import TestReport
from baer_utils.gates import HEADS
from baer_utils.scores import decision as decide

BOUNDED = "stack, no weight below 0"  # the row of the sign-constrained stack in a test report


def condition_figures(frozen: Frozen, report: TestReport, development: pd.DataFrame) -> dict:
    """The figures of an opened condition.

    Parameters
    ----------
    frozen, report : the head and its opened test. development : `Frozen.head_scores` of the development pairs.

    Returns
    -------
    dict: deployed `head`, its `sha256` and verdict in words (`reasons`); `development`, as in `deployment.json`, its
    `best_single`, and `selected`, False where data were too few; what `measured_figures` says, and `without`, the same
    without the subsets on which the head's lead rests (`explained_by`; the same figures where nothing explains a lead,
    None where no pair is left); `inverted`, the experts and categories that the free stack turns around, and by how
    many points it is right more often than the sign-constrained one; `transfer_gap` (points, low, high), of the
    deployed head from calibration to test; `calibration`, `brier` and `ece` of every evaluated head; `right`, by
    evaluated head whether it is right on each test pair, with the `pair` and `question` of each; `scores` of the
    deployed head on "test" and "development" pairs, each `s` and the router's `reliability` (None for another head);
    `zero_scores`, ids of the test pairs with s = 0.
    """
    summary, looked_at = report.summary, frozen.content["development"]
    rest = report if not summary["explained_by"] else report.without
    names = {head: f"BAER ({head})" if head == frozen.head else head for head in frozen.heads}
    return {
        "head": frozen.head,
        "sha256": frozen.sha256,
        "reasons": frozen.content["reasons"],
        "selected": frozen.content["selected"],
        "development": looked_at,
        "best_single": looked_at["best_single"],
        **measured_figures(report),
        "explained_by": summary["explained_by"],
        "without": rest and measured_figures(rest),
        "inverted": {
            "experts": summary["inverted_experts"],
            "categories": summary["inverted_categories"],
            "points": summary["free_over_held"],
        },
        "transfer_gap": [summary[f"transfer_gap{end}"] for end in ("", "_low", "_high")],
        "calibration": {head: report.methods.loc[name, ["brier", "ece"]].to_dict() for head, name in names.items()},
        "right": _right(report.pairs, list(frozen.heads)),
        "scores": {
            part: {"s": table[frozen.head].tolist(), "reliability": _reliability(table, frozen.head)}
            for part, table in (("test", report.pairs), ("development", development))
        },
        "zero_scores": sorted(report.pairs.index[report.pairs["s"] == 0]),
    }


def measured_figures(report: TestReport) -> dict:
    """What a report measured: `pairs`; `accuracy` and `paper` (matched and paper rule), `comparisons`, and oracles.

    `accuracy` and `paper`: method -> share, with the experts natively, the simple rules, `HEADS`, `BOUNDED` and
    "deployed"; None for a head that was not evaluated.
    """
    methods = report.methods.rename(index={f"BAER ({report.head})": "deployed"})
    shares = {kept: methods[f"{rule}_rule"] for kept, rule in (("accuracy", "matched"), ("paper", "paper"))}
    return {
        "pairs": report.summary["pairs"],
        **{kept: _accuracies(of, report.head) for kept, of in shares.items()},
        "comparisons": report.comparisons.to_dict("records"),
        "oracle": report.summary["oracle"],
        "oracle_coin_flippers": report.summary["oracle_coin_flippers"],
    }


def _accuracies(shares: pd.Series, deployed: str) -> dict[str, float | None]:
    """Share by method; a head without a row of its own is the deployed one, or was not evaluated."""
    heads = {head: shares.get(head, shares["deployed"] if head == deployed else None) for head in HEADS}
    return shares.to_dict() | heads


def _right(pairs: pd.DataFrame, heads: list[str]) -> dict[str, list]:
    right = {head: (decide(pairs[head]) == pairs["label"]).astype(int).tolist() for head in heads}
    return {"pair": pairs.index.tolist(), "question": pairs["group_id"].tolist()} | right


def _reliability(table: pd.DataFrame, head: str) -> list[float] | None:
    return table["route_reliability"].tolist() if head == "route" else None
