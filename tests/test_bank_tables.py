"""Tables over conditions and split seeds: Table 1, column leads, what lies behind, and why a head was not chosen."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from baer_utils.deployment import tables
from baer_utils.deployment.background import behind_table, calibration_table, development_table, zero_lines
from baer_utils.deployment.choice import choice_sentences, choice_table
from baer_utils.deployment.figures import BOUNDED
from baer_utils.deployment.printing import rendered
from baer_utils.metrics import holm
from baer_utils.selective import abstention_table, rendered_abstention, selective_table

RULES = ("best single (judge)", "majority", "longer response")


def development_of(stack: float, route: float | None, margins: tuple[float | None, ...] = (1.0, 1.0)) -> dict:
    """Out-of-fold figures: pooled accuracies of both heads, and the router's margins on selection and calibration."""
    of_route = {"accuracy": {"pooled": route}, "margin": dict(zip(("selection", "calibration"), margins, strict=True))}
    of_route["notes"] = {"confidence_switching": {"pooled": 0.31}, "subset_lookup": {"pooled": 0.32}}
    of_route["notes"]["reliability_error"] = 0.05
    of_stack = {"accuracy": {"pooled": stack}, "margin": {"selection": 1.0, "calibration": 0.0}}
    of_stack["notes"] = {"nonnegative_accuracy": {"pooled": 0.33}}
    return {
        "heads": {"stack": of_stack, "route": None if route is None else of_route, "reference": None},
        "rules": {name: {"accuracy": {"pooled": 0.4 + k / 10}} for k, name in enumerate(RULES)},
        "questions": {"selection": 25, "calibration": 50},
    }


def figures_of(condition: str, seed: int, p: float, deployed: float, head: str = "stack") -> dict:
    shares = dict.fromkeys(("judge", "best single (judge)", "longer response", BOUNDED), 0.6)
    shares |= {"deployed": deployed, "majority": 0.5, "stack": deployed, "route": None, "reference": None}
    row = {"baseline": "judge", "margin": 100 * (deployed - 0.6), "low": 0.0, "high": 9.0, "head_only": 3}
    row |= {"baseline_only": 1, "p": p, "mid_p": p / 2, "detectable": 4.0, "star": False}
    rows = [
        row | {"named_on": where, "rule": rule} for where in ("development", "test") for rule in ("matched", "paper")
    ]
    measured = {"pairs": 10, "accuracy": shares, "paper": shares, "comparisons": rows}
    measured |= {"oracle": 0.9, "oracle_coin_flippers": 0.9}
    right = [1] * round(10 * deployed) + [0] * (10 - round(10 * deployed))
    return {
        "bank": condition, "seed": seed, "head": head, "selected": True, "experts": ["judge"], "best_single": "judge",
        **measured, "without": {**measured, "accuracy": dict.fromkeys(shares, 0.6)}, "zero_scores": ["p1"],
        "right": {"pair": [f"p{k}" for k in range(10)], "question": [f"q{k}" for k in range(10)], "stack": right},
        "scores": {part: {"s": [1.0] * 10, "reliability": None} for part in ("test", "development")},
        "development": development_of(0.5, None),
        "swap": {"pairs": 10, "not_negated": 0}, "descriptors": {"flip_rate_mean": deployed},
        "explained_by": ["hard"], "inverted": {"experts": [], "categories": [], "points": 0.0},
        "transfer_gap": [1.0 + seed, -3.0, 5.0], "calibration": {"stack": {"brier": 0.2, "ece": 0.1}},
    }  # fmt: skip


# ---------------------------------------------------------------- Table 1


def test_only_the_declared_split_enters_holm_and_only_the_development_row_earns_a_star():
    p = {"x / 1": 0.01, "x / 2": 0.03, "x / 3": 0.2}
    figures = [figures_of(name, 0, value, 0.7) for name, value in p.items()]
    figures += [figures_of(name, 1, 1e-9, 0.9) for name in p]
    table = tables.margin_table(figures)
    assert np.allclose(table.xs("development", level="named_on")["holm"], holm(list(p.values())))
    assert table["star"].tolist() == [True, False, False, False, False, False]
    assert (
        np.allclose(table["matched"], 10) and np.allclose(table["mean"], 20) and np.allclose(table["sd"], 20 / 2**0.5)
    )


def test_a_lead_that_every_subset_explains_leaves_nothing_to_average_over():
    nothing = figures_of("x / 1", 1, 1, 0.8) | {"without": None}
    summary = tables.summary_table([figures_of("x / 1", 0, 1, 0.7), nothing]).loc["x / 1"]
    assert (summary["seeds_without"], summary["deployed_without"], summary["best_single_without"]) == (1, 0.6, 0.6)
    summary = tables.summary_table([nothing]).loc["x / 1"]
    assert summary["seeds_without"] == 0 and np.isnan(summary["deployed_without"])


def test_cells_show_mean_spread_and_the_declared_split_and_a_head_without_runs_says_so():
    figures = [figures_of("x / 1", 0, 1, 0.7), figures_of("x / 1", 1, 1, 0.8)]
    table = tables.accuracy_table(figures)
    assert table.loc["deployed", "x / 1"] == "75.0 ±7.1 [70.0]" and table.loc["route", "x / 1"] == "not evaluated"
    assert list(table.index)[:2] == ["judge", tables.BEST]
    summary = tables.summary_table([figures_of("x / 1", 0, 1, 0.7), figures_of("x / 1", 1, 1, 0.8, "route")])
    assert summary.loc["x / 1", "heads"] == "stack 1, route 1" and summary.loc["x / 1", "zero_scores"] == 2
    assert summary.loc["x / 1", "seeds_without"] == 2 and summary.loc["x / 1", "deployed_without"] == 0.6
    assert summary.loc["x / 1", "swap_violations"] == 0 and np.isclose(summary.loc["x / 1", "best_single"], 0.6)


def test_columns_are_led_strictly_counted_on_the_declared_split_and_again_over_all_seeds_under_each_rule():
    accuracy = {(name, seed): share for seed, shares in enumerate([(0.7, 0.6, 0.5), (0.8, 0.8, 0.5)])
                for name, share in zip("abc", shares, strict=True)}  # fmt: skip
    figures = [figures_of(f"x / {name}", seed, 1, share) for (name, seed), share in accuracy.items()]
    for one in figures:
        one["paper"] = one["paper"] | {"judge": 0.3}
    figures[0]["accuracy"] = figures[0]["accuracy"] | {"other": 0.65}  # an expert that no other condition has
    figures[0]["paper"] = figures[0]["paper"] | {"other": 0.2}
    figures[0]["experts"] = ["judge", "other"]
    table = tables.leads_table(figures)
    stack = table.loc[("matched", "stack")]
    assert (stack["leads"], stack["conditions"], stack["leads_mean"]) == (1, 3, 1.5)  # .6 against .6 is no lead
    assert np.allclose(stack[["mean_margin", "least_margin", "largest_margin"]], [-5 / 3, -10, 5])
    assert np.allclose(stack[["margin_mean", "margin_sd"]], [(-5 / 3 + 10) / 2, (10 + 5 / 3) / 2**0.5])
    assert table.loc[("paper", "stack"), "leads"] == 3 and np.isclose(table.loc[("paper", "stack"), "mean_margin"], 30)
    assert ("matched", "route") not in table.index and table.index.unique("rule").tolist() == ["matched", "paper"]
    row = tables.accuracy_table(figures).loc[tables.AHEAD]
    assert row.tolist() == ["stack", "none", "none"]
    assert tables.accuracy_table(figures, "paper").loc[tables.AHEAD].tolist() == ["stack"] * 3


# ---------------------------------------------------------------- abstention


def able_condition(seed: int, head: str, wrong: float) -> dict:
    """300 questions; the head errs on a share of the pairs that it is unsure of, and never on the others."""
    rng = np.random.default_rng(seed)
    sure = rng.uniform(0.05, 1, 300)
    right = (rng.random(300) > wrong) | (sure > 0.5)
    of = {"s": (sure if head == "stack" else np.ones(300)).tolist()}
    of["reliability"] = None if head == "stack" else sure.tolist()
    one = figures_of("x / 1", seed, 1, 0.5, head) | {"scores": {"test": of, "development": of}}
    names = [f"{seed}-{k}" for k in range(300)]
    return one | {"right": {"pair": names, "question": names, head: right.astype(int).tolist()}}


@pytest.mark.parametrize("head", ["stack", "route"])
def test_a_condition_answers_where_its_head_is_sure_by_score_or_by_reliability(
    head,
):
    figures = [able_condition(0, head, 0.9), able_condition(1, head, 0.9)]
    row = abstention_table(figures).loc[("x / 1", 0.1)]
    assert row["head"] == head and (row["seeds"], row["certified"]) == (2, 2)
    assert 0.4 < row["threshold"] < 0.6 and 0.35 < row["coverage"] < 0.7 and row["risk"] < 0.2
    first, second = (abstention_table([one | {"seed": 0}]).loc[("x / 1", 0.1)] for one in figures)
    expected = selective_table(
        pd.DataFrame({"pair_id": figures[0]["right"]["pair"], "group_id": figures[0]["right"]["question"]}),
        np.array(figures[0]["scores"]["test"]["reliability" if head == "route" else "s"]),
        1 - np.array(figures[0]["right"][head]),
        figures[0]["scores"]["development"]["reliability" if head == "route" else "s"],
    ).query("alpha == 0.1")
    tested, scope = (expected[expected["rule"] == rule].iloc[0] for rule in ("learn then test", "SCOPE"))
    shown = ["threshold", "fit_pairs", "fit_accepted", "fit_errors", "coverage", "risk", "risk_low", "risk_high"]
    assert np.allclose(row[shown].astype(float), tested[shown].astype(float))
    assert np.allclose(first[["scope_coverage", "scope_risk"]].astype(float), scope[["coverage", "risk"]].astype(float))
    assert second["certified"] == 1 and "shown on the other" in rendered_abstention(figures)


def test_a_head_that_can_promise_nothing_is_silent_in_every_split():
    row = abstention_table([able_condition(seed, "stack", 1.0) | {"right": able_condition(seed, "stack", 1.0)["right"]
                            | {"stack": [0, 1] * 150}} for seed in (0, 1)]).loc[("x / 1", 0.1)]  # fmt: skip
    assert (row["certified"], row["coverage"], row["coverage_mean"]) == (0, 0, 0) and np.isnan(row["risk_mean"])


# ---------------------------------------------------------------- the head that was not chosen


def split_of_two(seed: int, stack: list[int], route: list[int], development: dict, head: str = "stack") -> dict:
    one = figures_of("x / 1", seed, 1, 0.5, head) | {"development": development, "pairs": len(stack)}
    one["right"] = {"question": [f"q{k}" for k in range(len(stack))], "stack": stack, "route": route}
    shares = {"stack": float(np.mean(stack)), "route": float(np.mean(route))}
    one["accuracy"] = one["accuracy"] | shares | {"deployed": shares[head]}
    return one


def test_a_choice_is_told_by_what_the_gates_saw_refused_and_what_that_was_worth():
    splits = [
        split_of_two(0, [0, 0, 1, 1], [1, 1, 1, 1], development_of(0.5, 0.6, (-1.0, 2.0))),  # held back on selection
        split_of_two(1, [0, 1, 1, 1], [1, 1, 1, 0], development_of(0.5, 0.7, (0.0, None))),  # on both
        split_of_two(2, [1, 0, 1, 1, 1], [1, 1, 1, 1, 1], development_of(0.6, 0.6)),  # not ahead
        split_of_two(3, [0, 1], [1, 1], development_of(0.5, 0.8), "route"),  # deployed
    ]
    row = choice_table(splits).loc["x / 1"]
    assert row["better"] == "route" and row["splits"] == 4
    assert row[["deployed", "not_ahead", "held_back", "by_selection", "by_calibration", "nor_deployed"]].tolist() == [
        1, 1, 2, 2, 1, 2,
    ]  # fmt: skip
    assert np.isclose(row["behind"], 100 * (0.5 + 0 + 0.2 + 0) / 4)  # every split has one weight
    assert row["low"] <= row["behind"] <= row["high"]
    assert np.isclose(row["held_back_worth"], 25) and np.isclose(row["ungated"], (50 + 0 + 0 + 0) / 4)
    assert np.isclose(row["lead"], 100 * (0.1 + 0.2 + 0 + 0) / 4) and row["questions"] == 25


def test_the_interval_of_a_choice_resamples_questions_with_all_their_splits():
    rng = np.random.default_rng(0)
    right = {head: rng.random(80) < share for head, share in (("stack", 0.5), ("route", 0.7))}
    splits = [
        split_of_two(seed, right["stack"], right["route"], development_of(0.5, 0.6, (-1, 1))) for seed in range(9)
    ]
    once = choice_table(splits[:1]).loc["x / 1"]
    again = choice_table(splits).loc["x / 1"]
    assert np.isclose(once["behind"], again["behind"])
    assert np.isclose(once["high"] - once["low"], again["high"] - again["low"], rtol=0.05)  # and not a third of it


def test_only_conditions_that_are_behind_have_a_sentence_and_it_follows_the_counts():
    held = split_of_two(0, [0, 1] * 20, [1, 1] * 20, development_of(0.5, 0.6, (-1.0, 2.0)))
    near = held | {"bank": "x / 2", "right": held["right"] | {"route": held["right"]["stack"]}}
    near["accuracy"] = near["accuracy"] | {"route": near["accuracy"]["stack"]}
    lines = choice_sentences(choice_table([held, near]))
    assert len(lines) == 1 and lines[0].startswith("x / 1: the deployed head is 50.00 points behind route")
    assert "hardly explains" in lines[0] and "In 1 it was ahead and a gate held it back" in lines[0]
    assert "on selection in 1, on calibration in 0 (one of about 25 selection questions is 4.0 points)" in lines[0]
    behind = split_of_two(0, [0, 1, 1, 1], [1, 1, 1, 1], development_of(0.6, 0.5))
    (line,) = choice_sentences(choice_table([behind]))
    assert "may be luck" in line and "held it back" not in line and "in 1 it was not ahead out of fold" in line


# ---------------------------------------------------------------- what stands behind it


def test_what_a_lead_rests_on_and_who_is_turned_around_are_named_with_numbers_of_seeds():
    one, two, three = (figures_of("x / 1", seed, 1, 0.7) for seed in range(3))
    two["inverted"] = {"experts": ["loud"], "categories": [], "points": 3.0}
    three["inverted"] = {"experts": ["loud", "early"], "categories": ["hard"], "points": 6.0}
    three["explained_by"] = []
    row = behind_table([one, two, three]).loc["x / 1"]
    assert row.tolist() == ["hard 2", "loud 2, early 1", "hard 1", 3.0]
    assert behind_table([one]).loc["x / 1", "inverted_experts"] == "none"


def test_development_shows_the_ablations_and_the_simple_rules_beside_the_heads_and_the_gap_with_its_interval():
    figures = [
        figures_of("x / 1", seed, 1, 0.7) | {"development": development_of(0.5 + seed / 10, 0.6)} for seed in (0, 1)
    ]
    row = development_table([*figures, figures_of("x / 2", 0, 1, 0.7)]).loc["x / 1"]
    assert np.allclose(row[["stack", "route", "nonnegative"]].astype(float), [0.55, 0.6, 0.33])
    assert np.allclose(row[["confidence_switching", "subset_lookup", "reliability_error"]], [0.31, 0.32, 0.05])
    assert np.allclose(row[["best_single", "majority", "longer"]], [0.4, 0.5, 0.6])
    assert np.allclose(row[["transfer_gap", "gap", "gap_low", "gap_high"]], [1.5, 1, -3, 5])
    bare = development_table([figures_of("x / 2", 0, 1, 0.7)]).loc["x / 2"]
    assert bare[["route", "reference", "subset_lookup", "reliability_error"]].isna().all()
    calibration = calibration_table(figures)
    assert calibration.columns.tolist() == ["stack brier", "stack ece"] and np.isclose(calibration.iloc[0, 0], 0.2)


def test_pairs_without_a_score_are_counted_over_all_seeds_and_listed_for_the_declared_split():
    silent = figures_of("x / 2", 0, 1, 0.7) | {"zero_scores": []}
    figures = [figures_of("x / 1", 0, 1, 0.7), figures_of("x / 1", 1, 1, 0.7) | {"zero_scores": ["p2", "p3"]}, silent]
    assert zero_lines(figures) == ["x / 1: 3 of 20 over all seeds; seed 0: p1", "x / 2: 0 of 10 over all seeds"]


@pytest.mark.parametrize("conditions", [1, 3])
def test_the_whole_text_has_a_section_for_every_table(conditions):
    figures = [figures_of(f"x / {k}", seed, 0.5, 0.7 + seed / 10) for seed in (0, 1) for k in range(conditions)]
    text = rendered(figures)
    for title in ("matched rule: accuracy", "paper rule: accuracy", "Column leads", "Star: Holm", "Summary", "rests on",
                  "without them", "Development: out of fold", "Brier score", "better of the condition's own heads",
                  "points behind\nnone", "(s = 0)\nx / 0: 2 of 20"):  # fmt: skip
        assert title in text, title
    assert ("Unseen condition" in text) == (conditions > 2)
    nothing = [one | {"without": None} for one in figures]
    assert "without them" not in rendered(nothing)
