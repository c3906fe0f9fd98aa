"""Call plans: agreement with a plain implementation, brute force, what must never change one, what deployment reads."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from baer_utils.calibrators import Audit, split_audit
from baer_utils.panels import (
    GLOBAL,
    CallPolicy,
    RolePolicy,
    Search,
    StablePolicy,
    apply_plan,
    build_policy,
    evaluate,
    measure,
    summarize_splits,
)
from tests.test_calibrators import small_audit, tidy, vanilla
from tests.test_roles import specialist_audit, table_risk


def with_copies(audit: Audit, judge: str, number: int = 4) -> Audit:
    """The audit with exact copies of one judge, named so that they sort after it."""
    column = audit.columns([judge])
    names = [f"{judge}#copy{n}" for n in range(1, number + 1)]
    Z = np.concatenate([audit.Z, audit.Z[:, column * number]], axis=1)
    return Audit(Z, audit.y, (*audit.judges, *names), audit.slices, audit.groups)


def plain_greedy(fit: Audit, validation: Audit, panel: list[str], tau: float, lam: float, costs: dict) -> list[str]:
    """Section 2 of the method by dictionaries and loops."""
    panel = list(panel)
    while True:
        base = table_risk(fit, validation, panel)
        tried = []
        for judge in fit.judges:
            if judge not in panel:
                gain = round(base - table_risk(fit, validation, [*panel, judge]), 12)
                tried.append((-round(gain - lam * costs[judge], 12), -gain, judge))
        if not tried or not -min(tried)[0] > tau:
            return panel
        panel.append(min(tried)[2])


@settings(max_examples=12)
@given(st.integers(0, 10_000), st.sampled_from([0.0, 0.002]), st.sampled_from([0.001, 0.005, 0.02]))
def test_a_plan_is_what_a_plain_loop_over_dictionaries_finds(seed, lam, tau):
    slices = np.array(["x", "y", "x", None, "y"] * 44, dtype=object)
    audit = small_audit(220, 4, seed, slices=slices)
    fit, validation, _ = split_audit(audit, seed)
    costs = {"j0": 1.0, "j1": 0.1, "j2": 3.0, "j3": 1.0}
    plan = build_policy(fit, validation, costs=costs, tau_global=tau, tau_slice=tau, lam=lam, lam_slice=lam)
    panel = plain_greedy(fit, validation, [], tau, lam, costs)
    assert plan.global_panel == tuple(panel)
    for name in ("x", "y"):
        inside = [part.take(part.route_names == name) for part in (fit, validation)]
        if len(inside[0]) >= 20:
            assert list(plan.panel_of(name)) == plain_greedy(*inside, panel, tau, lam, costs)
        else:
            assert plan.stopping_report.skipped[name] == len(inside[0]) and name not in plan.routes
    left = {(GLOBAL, judge) for judge in fit.judges if judge not in panel}
    assert {(step.scope, *step.judges) for step in plan.stopping_report.failed if step.scope == GLOBAL} == left
    assert not any(step.clears for step in plan.stopping_report.failed) and all(step.clears for step in plan.steps)


def independent_judges(n: int, accuracies: list[float], seed: int) -> Audit:
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n).astype(float)
    Z = np.stack([np.where(rng.random(n) < a, y, 1 - y) for a in accuracies], axis=1).astype(object)
    return Audit(Z, y, tuple(f"j{k}" for k in range(len(accuracies))))


def best_of_at_most_three(fit: Audit, validation: Audit) -> tuple[float, tuple[str, ...]]:
    panels = [panel for size in range(4) for panel in itertools.combinations(fit.judges, size)]
    tried = {panel: round(table_risk(fit, validation, list(panel)), 12) for panel in panels}
    best = min(tried, key=lambda panel: (tried[panel], len(panel), panel))
    return tried[best], best


def test_brute_force_over_panels_of_three_agrees_where_greedy_is_optimal():
    fit, validation, _ = split_audit(independent_judges(1600, [0.9, 0.8, 0.72, 0.55, 0.5, 0.5], 3), 0)
    risk, panel = best_of_at_most_three(fit, validation)
    plan = build_policy(fit, validation, tau_global=0.004)
    assert set(plan.global_panel) == set(panel) and len(panel) == 3
    assert plan.stopping_report.risk[GLOBAL] == pytest.approx(risk, abs=1e-12)


def exclusive_or_audit() -> Audit:
    """Two judges that are worthless alone and perfect together, beside four coins."""
    rng = np.random.default_rng(0)
    Z = rng.integers(0, 2, (800, 6))
    return Audit(Z.astype(object), (Z[:, 2] ^ Z[:, 4]).astype(float), tuple(f"j{k}" for k in range(6)))


def test_the_pair_audit_finds_what_single_steps_miss():
    fit, validation, _ = split_audit(exclusive_or_audit(), 0)
    greedy = build_policy(fit, validation, tau_global=0.01)
    assert greedy.global_panel == ()
    assert best_of_at_most_three(fit, validation) == (0.0, ("j2", "j4"))
    paired = build_policy(fit, validation, tau_global=0.01, search=Search(pairs=True))
    assert paired.global_panel == ("j2", "j4")
    assert paired.steps[0].judges == ("j2", "j4") and paired.steps[0].threshold == 0.02


@settings(max_examples=15)
@given(st.integers(0, 1000))
def test_a_beam_never_ends_above_the_greedy_panels_objective(seed):
    fit, validation, _ = split_audit(small_audit(240, 5, seed), 0)
    greedy, wide = (build_policy(fit, validation, tau_global=0.001, search=Search(beam=b)) for b in (1, 4))
    assert wide.stopping_report.risk[GLOBAL] <= greedy.stopping_report.risk[GLOBAL] + 1e-12


BROAD_FIRST = {"seed_panel": ("broad",), "tau_global": 0.1}  # leaves `special` to the slice that it knows


# ---------------------------------------------------------------- what must not change a plan


@pytest.mark.parametrize("pool", ["llmbar", "jbb_judges", "made"])
def test_four_copies_change_neither_plan_nor_risk_nor_cost_to_the_last_digit(pool):
    audit = specialist_audit(600) if pool == "made" else tidy(pool, vanilla() if pool == "llmbar" else None)
    audit = audit.complete()[0]
    best = min(audit.judges, key=lambda judge: (table_risk(audit, audit, [judge]), judge))
    costs = {judge: 0.1 + 0.7 * place for place, judge in enumerate(audit.judges)}
    copied = with_copies(audit, best)
    more = costs | {name: costs[best] for name in copied.judges if "#copy" in name}
    policy = {"role": RolePolicy(lam=0.001, lam_slice=0.001)}
    before = evaluate(audit, policy, costs=costs, seeds=range(4))
    after = evaluate(copied, policy, costs=more, seeds=range(4))
    pd.testing.assert_frame_equal(before, after, check_exact=True)
    assert before["plan"].str.len().max() > 2


def test_labels_of_the_test_items_change_no_plan():
    audit = specialist_audit(600)
    rows = np.flatnonzero(np.isin(audit.groups, split_audit(audit, 3).test.groups))
    y = audit.y.copy()
    y[rows] = np.random.default_rng(0).permutation(y[rows])
    shuffled = Audit(audit.Z, y, audit.judges, audit.slices, audit.groups)
    one, other = (RolePolicy().fit(*split_audit(a, 3)[:2], costs=None, seed=3) for a in (audit, shuffled))
    assert one.plan_.to_json() == other.plan_.to_json()
    assert (
        measure(one, split_audit(audit, 3).test, one.plan_.costs)["risk"]
        != measure(other, split_audit(shuffled, 3).test, one.plan_.costs)["risk"]
    )


def test_outputs_that_were_not_paid_for_are_never_read():
    audit = specialist_audit(600)
    fit, validation, test = split_audit(audit, 0)
    plan = RolePolicy(**BROAD_FIRST).fit(fit, validation).plan_
    assert plan.routes == {"hard": ("special",)}
    probability, called = plan.predict(test.Z, test.slices)
    assert 0 < called[:, 1].mean() < 1 and not called[:, 2:].any()
    poisoned = np.where(called, test.Z, object())
    again, same = plan.predict(poisoned, test.slices)
    assert (again == probability).all() and (same == called).all()


@settings(max_examples=10)
@given(st.integers(0, 1000), st.randoms())
def test_the_order_of_items_and_of_judges_changes_no_plan(seed, random):
    fit, validation, _ = split_audit(small_audit(240, 5, seed, slices=np.array(["x", "y"] * 120, dtype=object)), 1)
    plan = build_policy(fit, validation)
    order = random.sample(range(len(fit)), len(fit))
    names = random.sample(fit.judges, len(fit.judges))
    again = build_policy(fit.take(order).select(names), validation.select(names))
    assert (again.global_panel, again.routes) == (plan.global_panel, plan.routes)


# ---------------------------------------------------------------- rules


def test_the_threshold_is_strict_and_ties_go_by_name():
    fit, validation, _ = split_audit(with_copies(specialist_audit(400), "broad", 1), 0)
    gain = build_policy(fit, validation, slices=()).steps[0].gain
    assert build_policy(fit, validation, slices=(), tau_global=gain).global_panel == ()
    assert build_policy(fit, validation, slices=(), tau_global=gain - 1e-11).global_panel == ("broad",)
    cheaper = dict.fromkeys(fit.judges, 1.0) | {"twin": 0.5}
    assert build_policy(fit, validation, slices=(), costs=cheaper, lam=1e-3).global_panel[0] == "twin"


def test_an_empty_plan_costs_nothing_and_predicts_the_label_mean():
    audit = Audit(np.ones((80, 2), dtype=object), np.arange(80) % 2, ("one", "other"))
    plan = build_policy(*split_audit(audit, 0)[:2]).refit(audit)
    probability, called = plan.predict(audit.Z)
    assert plan.global_panel == () and not called.any() and (probability == 0.5).all()
    assert measure(plan, audit, plan.costs) | {"plan": ""} == {
        "risk": 0.25, "accuracy": 0.5, "ties": 80, "cost": 0.0, "calls": 0.0, "fallback": 0.0, "cells": 1, "plan": "",
    }  # fmt: skip
    assert "does not exceed" in str(plan.stopping_report) and "nothing: a constant" in plan.table()["calls"].item()


def test_a_slice_seen_only_in_the_test_gets_the_global_table():
    fit, validation, test = split_audit(specialist_audit(600), 0)
    plan = build_policy(fit, validation, **BROAD_FIRST)
    new = np.full(len(test), "never seen", dtype=object)
    probability, called = plan.predict(test.Z, new)
    expected = plan.predict(test.Z, np.full(len(test), None, dtype=object))
    assert (probability == expected[0]).all() and (called == expected[1]).all()
    assert plan.judges_for("never seen") == plan.global_panel


def test_of_overlapping_slices_the_first_declared_is_the_route():
    audit = specialist_audit(600)
    hard = audit.route_names == "hard"
    frame = pd.DataFrame({"hard": hard, "any": np.ones(len(audit), dtype=bool)})
    routes = {}
    for columns in (["hard", "any"], ["any", "hard"]):
        overlapping = Audit(audit.Z, audit.y, audit.judges, slices=frame[columns])
        fit, validation, _ = split_audit(overlapping, 0)
        plan = build_policy(fit, validation, **BROAD_FIRST)
        routes[columns[0]] = [*plan.routes]
    assert routes["hard"] == ["hard"] and "hard" not in routes["any"]


@pytest.mark.parametrize("names", [["harmless", "harmful"], [None, "harmful"], ["mild", "odd", "harmful", "grave"]])
def test_slices_made_from_the_labels_are_refused_as_routes(names):
    audit = specialist_audit(400)
    kinds = len(names) // 2
    place = audit.y.astype(int) * kinds + np.arange(400) % kinds
    leaky = Audit(audit.Z, audit.y, audit.judges, slices=np.array(names, dtype=object)[place])
    fit, validation, _ = split_audit(leaky, 0)
    with pytest.raises(ValueError, match="made from the labels"):
        build_policy(fit, validation)
    assert build_policy(fit, validation, slices=()).routes == {}
    costs = dict.fromkeys(fit.judges, 1.0) | {"metadata": 0.0}
    assert build_policy(fit, validation, route_key="metadata", costs=costs).route_key == ("metadata",)
    study = build_policy(fit, validation, audit_only=True)
    with pytest.raises(ValueError, match="audit_only"):
        apply_plan(study, [], {})


def test_a_route_key_is_paid_on_every_item_as_soon_as_anything_is_routed():
    fit, validation, test = split_audit(specialist_audit(600), 0)
    costs = dict.fromkeys(fit.judges, 1.0) | {"topic": 0.25}
    free, outside, inside = (
        build_policy(fit, validation, **BROAD_FIRST, route_key=key, costs=costs) for key in (None, "topic", "constant")
    )
    share = (test.route_names == "hard").mean()
    assert measure(free, test, costs)["cost"] == pytest.approx(1 + share)
    assert measure(outside, test, costs)["cost"] == pytest.approx(1 + share + 0.25)
    key = measure(inside, test, costs)
    assert key["cost"] == key["calls"] == pytest.approx(2 + share)
    nothing = build_policy(fit, validation, tau_slice=1.0, route_key="topic", costs=costs)
    assert nothing.routes == {} and measure(nothing, test, costs)["cost"] == len(nothing.global_panel)


def test_a_misspelt_route_key_is_refused_and_what_is_free_is_priced_at_nothing():
    fit, validation, test = split_audit(specialist_audit(600), 0)
    costs = dict.fromkeys(fit.judges, 1.0) | {"topic": 0.25, "subset": 0.0}
    words = r"a judge or have a price in costs; tpoic came.*broad.*add its price \(0 "
    for prices in (None, costs):
        with pytest.raises(ValueError, match=words):
            build_policy(fit, validation, route_key=("constant", "tpoic"), costs=prices)
    free = build_policy(fit, validation, **BROAD_FIRST, route_key="subset", costs=costs)
    assert free.routes and free.route_key_cost == 0
    assert measure(free, test, costs)["cost"] == pytest.approx(1 + (test.route_names == "hard").mean())
    saved = json.loads(free.to_json())
    with pytest.raises(ValueError, match="a cost of every judge and route key"):
        CallPolicy.from_json(json.dumps(saved | {"route_key": ["tpoic"]}))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"costs": {"broad": 1}}, "special"),
        ({"costs": {"broad": -1, "special": 1, "twin": 1, "constant": 1}}, "at least 0"),
        ({"costs": {"broad": "cheap", "special": None, "twin": 1, "constant": 1}}, "wrong: .*cheap.*None"),
        ({"slices": ["nowhere"]}, "nowhere"),
        ({"seed_panel": ["nobody"]}, "nobody"),
        ({"slices": ["(all)"]}, "stands for all items"),
    ],
)
def test_settings_that_cannot_be_meant_are_refused(settings, words):
    fit, validation, _ = split_audit(specialist_audit(200), 0)
    with pytest.raises(ValueError, match=words):
        build_policy(fit, validation, **settings)


# ---------------------------------------------------------------- use


def test_a_plan_survives_json_and_predicts_the_same_bits():
    fit, validation, test = split_audit(tidy("jbb_judges"), 1)
    plan = build_policy(fit, validation, route_key="gpt4_cf", tau_global=0.01).refit(fit.join(validation))
    again = CallPolicy.from_json(plan.to_json())
    assert again.to_json() == plan.to_json()
    for one, other in zip(plan.predict(test.Z, test.slices), again.predict(test.Z, test.slices), strict=True):
        assert (one == other).all()
    assert str(again.stopping_report) == str(plan.stopping_report) and again.steps == plan.steps
    saved = json.loads(plan.to_json())
    edits = ({"global_panel": ["nobody"]}, {"routes": {"nowhere": []}}, {"format": "x"})
    for wrong in (
        *(json.dumps(saved | edit) for edit in edits),
        "not json",
        "[]",
        plan.to_json().replace("global_panel", "panel"),
    ):
        with pytest.raises(ValueError, match="a call plan must"):
            CallPolicy.from_json(wrong)


texts = st.text(min_size=1).filter(str.strip)
legal = texts | st.integers() | st.floats(allow_nan=False) | st.booleans() | st.sampled_from(["inf", "NaN", "null"])


@settings(max_examples=40)
@given(st.lists(st.lists(legal, min_size=1, max_size=4), min_size=1, max_size=3), st.data())
def test_every_legal_symbol_and_threshold_survives_strict_json(symbols, data):
    n, tau = 24, data.draw(st.sampled_from([-1.0, -np.inf, 0.0, np.inf]))
    picks = [data.draw(st.lists(st.sampled_from(own), min_size=n, max_size=n)) for own in symbols]
    picks = [[data.draw(st.sampled_from([np.inf, -np.inf, True])) if place == 0 else one
              for place, one in enumerate(own)] for own in picks]  # fmt: skip
    Z = np.empty((n, len(picks)), dtype=object)
    for column, own in enumerate(picks):
        Z[:, column] = own
    audit = Audit(Z, np.arange(n) % 2, tuple(f"judge {k}" for k in range(len(picks))))
    plan = build_policy(audit, audit, tau_global=tau).refit(audit)
    text = plan.to_json()
    json.loads(text, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))
    again = CallPolicy.from_json(text)
    assert again.to_json() == text and again.steps == plan.steps
    assert again.stopping_report == plan.stopping_report
    for name, table in plan.tables.items():
        assert again.tables[name].levels_ == table.levels_ and again.tables[name].patterns_ == table.patterns_
        kinds = [[[type(symbol) for symbol in own] for own in each.levels_] for each in (table, again.tables[name])]
        assert kinds[0] == kinds[1]
    assert (again.predict(Z)[0] == plan.predict(Z)[0]).all() and again.fallback_rate_ == 0


def test_a_slice_or_a_judge_called_float_is_not_taken_for_a_number_and_words_for_numbers_are_refused():
    audit = specialist_audit(600)
    names = ("float", *audit.judges[1:])
    renamed = Audit(audit.Z, audit.y, names, np.where(audit.slices == "hard", "float", "easy").astype(object))
    fit, validation, test = split_audit(renamed, 0)
    plan = build_policy(fit, validation, seed_panel=("float",), tau_global=0.1)
    again = CallPolicy.from_json(plan.to_json())
    assert [*plan.routes] == ["float"] and again.routes == plan.routes and again.costs == plan.costs
    for text in (plan.to_json().replace('"mean": 0.', '"mean": NaN, "old": 0.', 1), '{"format": Infinity}'):
        with pytest.raises(ValueError, match="is no JSON"):
            CallPolicy.from_json(text)


def test_a_stream_asks_only_whom_the_plan_calls_and_says_the_same_as_predict():
    fit, validation, test = split_audit(specialist_audit(600), 0)
    plan = build_policy(fit, validation, **BROAD_FIRST).refit(fit.join(validation))
    plan = CallPolicy.from_json(plan.to_json())
    asked: list[tuple[str, int]] = []

    def judge(name):
        column = test.columns([name])[0]
        return lambda item: asked.append((name, item)) or test.Z[item, column]

    items = range(len(test))
    ask = {name: judge(name) for name in ("broad", "special")}
    judged = list(apply_plan(plan, items, ask, route=lambda item, _: test.route_names[item]))
    probability, called = plan.predict(test.Z, test.slices)
    assert [j.probability for j in judged] == probability.tolist()
    assert sorted(asked) == sorted((test.judges[c], row) for row, c in zip(*np.nonzero(called), strict=True))
    assert [j.cost for j in judged] == called.sum(axis=1).tolist()
    with pytest.raises(ValueError, match="special"):
        apply_plan(plan, items, {"broad": judge("broad")}, route=lambda *_: None)
    with pytest.raises(ValueError, match="route must"):
        apply_plan(plan, items, ask)


def test_a_judge_that_fails_does_so_at_its_item_and_does_not_end_the_stream():
    plan = build_policy(*split_audit(specialist_audit(600), 0)[:2], seed_panel=("broad",), slices=(), tau_global=1.0)

    def broad(item):
        if item == 1:
            raise TimeoutError("no answer")
        return 1.0

    stream = apply_plan(plan, range(3), {"broad": broad})
    assert next(stream).item == 0
    with pytest.raises(TimeoutError):
        next(stream)
    assert [judged.item for judged in stream] == [2]


def test_slices_that_are_numbers_are_the_same_slices_in_a_plan_a_prediction_and_a_stream():
    audit = specialist_audit(600)
    numbered = Audit(audit.Z, audit.y, audit.judges, slices=(audit.slices == "hard").astype(int))
    fit, validation, test = split_audit(numbered, 0)
    plan = build_policy(fit, validation, **BROAD_FIRST).refit(fit.join(validation))
    assert plan.routes == {"1": ("special",)} and plan.judges_for(1) == plan.judges_for("1") == ("broad", "special")
    ask = {name: lambda item, name=name: test.table.at[item, name] for name in ("broad", "special")}
    judged = list(apply_plan(plan, range(20), ask, route=lambda item, _: test.slices[item]))
    probability, called = plan.predict(test.Z[:20], test.slices[:20])
    assert [j.probability for j in judged] == probability.tolist()
    assert [len(j.outputs) for j in judged] == called.sum(axis=1).tolist()
    unknown = next(apply_plan(plan, [0], ask, route=lambda *_: float("nan")))
    assert unknown.slice is None and [*unknown.outputs] == ["broad"]


def test_a_frame_needs_the_columns_that_the_plan_may_call_and_no_others():
    fit, validation, test = split_audit(specialist_audit(600), 0)
    plan = build_policy(fit, validation, **BROAD_FIRST)
    frame = pd.DataFrame(test.Z, columns=list(test.judges))
    expected = plan.predict(test.Z, test.slices)[0]
    assert (plan.predict(frame[["special", "broad"]], test.slices)[0] == expected).all()
    with pytest.raises(ValueError, match="special"):
        plan.predict(frame[["broad"]], test.slices)


def test_settings_of_numpy_types_and_a_single_validation_item_are_written_as_plain_json():
    fit, validation, _ = split_audit(specialist_audit(200), 0)
    settings = {"tau_global": np.float32(0.005), "lam": np.float32(0.001), "audit_only": np.bool_(True)}
    plan = build_policy(fit, validation.take([0]), search=Search(smoothing=np.int64(1)), **settings)
    text = plan.to_json()
    json.loads(text, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))
    assert CallPolicy.from_json(text).to_json() == text and CallPolicy.from_json(text).steps == plan.steps
    assert plan.stopping_report.failed[0].error == np.inf


def test_slices_that_cannot_be_measured_are_counted_and_a_seed_named_twice_is_called_once():
    audit = specialist_audit(600)
    fit, validation, _ = split_audit(audit, 0)
    apart = Audit(fit.Z, fit.y, fit.judges, slices=np.full(len(fit), "easy", dtype=object))
    ours = Audit(validation.Z, validation.y, validation.judges, slices=validation.slices)
    assert build_policy(apart, ours).stopping_report.skipped == {"hard": 0}  # declared by the validation items alone
    few = Audit(fit.Z, fit.y, fit.judges, slices=np.where(np.arange(len(fit)) < 9, "few", "many").astype(object))
    assert StablePolicy(repeats=2).fit(few, few).plan_.stopping_report.skipped == {"few": 9}
    groups = np.where(audit.slices == "hard", -1, np.arange(600))
    halves = (slice(300), slice(300, 600))
    parts = [Audit(audit.Z[half], audit.y[half], audit.judges, audit.slices[half], groups[half]) for half in halves]
    folded = build_policy(*parts, search=Search(folds=3))
    assert [*folded.stopping_report.skipped] == ["hard"] and "two groups for folds" in str(folded.stopping_report)
    with pytest.raises(ValueError, match="at least 2 groups"):
        build_policy(*(part.take(part.slices == "hard") for part in parts), slices=(), search=Search(folds=3))
    assert build_policy(fit, validation, seed_panel=("broad", "broad"), tau_global=1.0).global_panel == ("broad",)


def test_evaluation_reports_t_intervals_over_splits():
    frame = evaluate(specialist_audit(400), {"role": RolePolicy(), "none": RolePolicy(tau_global=1.0, tau_slice=1.0)},
                     costs=None, seeds=range(5))  # fmt: skip
    assert len(frame) == 10 and (frame.loc[frame["policy"] == "none", "calls"] == 0).all()
    risk = frame.loc[frame["policy"] == "role", "risk"]
    row = summarize_splits(frame).loc[("role", "risk")]
    low, high = stats.t.interval(0.95, 4, loc=risk.mean(), scale=stats.sem(risk))
    assert (row["mean"], row["low"], row["high"]) == pytest.approx((risk.mean(), low, high))
    wide = summarize_splits(frame, nadeau_bengio=True).loc[("role", "risk")]
    assert (wide["high"] - wide["mean"]) / (high - risk.mean()) == pytest.approx(np.sqrt(1 + 5 * 200 / 200))


def test_small_changes_of_the_threshold_that_change_the_plan_are_called_unstable():
    fit, validation, _ = split_audit(independent_judges(400, [0.9, 0.6, 0.6, 0.6], 1), 0)
    steady = build_policy(fit, validation, tau_global=0.05)
    assert steady.stopping_report.stability == (1.0, 1.0) and "stable" in str(steady.stopping_report)
    gain = steady.steps[0].gain
    shaky = build_policy(fit, validation, tau_global=gain * 0.6)
    assert shaky.stopping_report.stability[1] == 0.0 and "unstable" in str(shaky.stopping_report)


def test_a_report_says_when_one_call_settles_everything():
    y = np.arange(400) % 2
    audit = Audit(np.stack([y, 1 - y, np.ones(400)], axis=1).astype(object), y, ("verifier", "inverse", "constant"))
    plan = build_policy(*split_audit(audit, 0)[:2])
    assert len(plan.global_panel) == 1 and "nothing is left to gain" in str(plan.stopping_report)


# ---------------------------------------------------------------- real pools against an independent implementation

REFERENCE = {  # panels.md, section 7: mean risk, its standard error, accuracy, calls, over ten splits
    "llmbar without GPT-4": (0.169, 0.006, 0.758, 2.3),
    "llmbar with GPT-4": (0.097, 0.004, 0.872, 2.4),
    "jbb_judges": (0.085, 0.005, 0.894, 2.0),
}


@pytest.mark.parametrize("pool", REFERENCE)
def test_real_pools_give_the_reference_figures(pool):
    judges = {"llmbar without GPT-4": vanilla(), "llmbar with GPT-4": [*vanilla(), "GPT-4/Vanilla"]}.get(pool)
    frame = evaluate(tidy(pool.split()[0], judges), {"role": RolePolicy()}, costs=None)
    got = summarize_splits(frame).loc["role"]["mean"]
    risk, error, accuracy, calls = REFERENCE[pool]
    assert abs(got["risk"] - risk) < 2 * error
    assert abs(got["accuracy"] - accuracy) < 0.02 and abs(got["calls"] - calls) < 0.3
