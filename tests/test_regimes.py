"""The tables about policies, and the regime map: counted by hand where that is possible, and on the real pools."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from baer_utils import regimes
from baer_utils.calibrators import Audit, split_audit
from baer_utils.juries import standard_policies
from baer_utils.panels import GLOBAL, RolePolicy, evaluate
from tests.test_juries import TIDY, made_audit, real_audit

SEEDS = range(3)


def rows(setting="made", **risks) -> pd.DataFrame:
    """Policies on three splits: risks as given; nobody costs 0, the single best judge 1, role 2, the others 5."""
    price = {"nobody_called": 0.0, "single_best": 1.0, "stopped": 2.0, "role": 2.0}
    parts = []
    for policy, risk in risks.items():
        values = np.broadcast_to(np.asarray(risk, dtype=float), 3)
        cost = price.get(policy, 5.0)
        for seed, value in enumerate(values):
            row = {"setting": setting, "policy": policy, "seed": seed, "risk": value, "accuracy": 0.8}
            parts.append({**row, "cost": cost, "calls": cost})
    return pd.DataFrame(parts)


@given(st.lists(st.floats(0, 1), min_size=2, max_size=12))
def test_intervals_over_splits_are_those_of_scipy(values):
    ours = regimes.split_interval(values)
    if np.std(values) > 1e-9:
        theirs = stats.t.interval(0.95, len(values) - 1, np.mean(values), stats.sem(values))
        np.testing.assert_allclose([ours["low"], ours["high"]], theirs, atol=1e-9)
        ratio = (ours["wide_high"] - ours["mean"]) / (ours["high"] - ours["mean"])
        assert ratio == pytest.approx(np.sqrt(1 + len(values)))  # Nadeau and Bengio, test = construction


def test_ten_splits_use_the_published_quantile():
    values = np.arange(10.0)
    interval = regimes.split_interval(values)  # t(.975, 9) = 2.262: Panels section 6
    assert interval["high"] - interval["mean"] == pytest.approx(2.262 * values.std(ddof=1) / np.sqrt(10), rel=1e-3)


NOISE = np.array([-0.001, 0.0, 0.001])
CASES = [  # risks of single_best, stopped, role, flat_all, ridge_stack beside a constant's 0.25; the action
    (0.14, 0.18, 0.175 + NOISE, 0.24, 0.24, regimes.KEEP),
    (0.00, 0.00, 0.00, 0.00, 0.00, regimes.KEEP),  # saturated
    (0.20, 0.18, 0.16 + NOISE, 0.21, 0.21, regimes.ROUTE),
    (0.20, 0.16, 0.16 + NOISE, 0.21, 0.21, regimes.STOP),
    (0.20, 0.16, 0.17 + NOISE, 0.17, 0.21, regimes.STOP),
    (0.20, 0.16, 0.16 + NOISE, 0.21, 0.12, regimes.FULL),
    (0.11, 0.16, 0.16 + NOISE, 0.21, 0.12, regimes.KEEP),
    (0.20, 0.20, 0.19 + 30 * NOISE, 0.21, 0.21, regimes.KEEP),  # not beyond chance
    (0.20, 0.20, 0.19 + 30 * NOISE, 0.21, 0.15, regimes.FULL),  # the one thing that is beyond chance
    (0.26, 0.25, 0.25 + NOISE, 0.30, 0.27, regimes.NOBODY),  # an empty plan, and nothing else is below a constant
    (0.249, 0.25, 0.25 + NOISE, 0.30, 0.27, regimes.NOBODY),  # below it, and not worth the call
    (0.24 + 30 * NOISE, 0.25, 0.25 + NOISE, 0.30, 0.27, regimes.NOBODY),  # below it, and not beyond chance
    (0.24 + 30 * NOISE, 0.23, 0.23 + NOISE, 0.30, 0.27, regimes.STOP),  # the panel is, beside a judge that is not
    (0.26, 0.25, 0.22 + NOISE, 0.30, 0.27, regimes.ROUTE),
    (0.26, 0.25, 0.25 + NOISE, 0.30, 0.22, regimes.FULL),
]


@pytest.mark.parametrize("case", CASES)
def test_the_regime_map_follows_its_rules(case):
    *risks, action = case
    policies = ("single_best", "stopped", "role", "flat_all", "ridge_stack")
    table = rows(nobody_called=0.25, **dict(zip(policies, risks, strict=True)))
    found = regimes.regime_map(table).loc["made"]
    assert found["action"] == action and found["rule"] == regimes.RULES[action]
    assert f"nobody 0.250 at 0.00, single {np.mean(risks[0]):.3f} at 1.00" in found["evidence"]
    useful = table.query("policy == 'single_best'")["risk"] + 0.002  # one call
    assert found["base"] == ("single" if regimes.split_interval(useful - 0.25)["high"] < 0 else "nobody")


def test_the_regime_map_says_what_it_compares_and_which_copies_to_drop():
    table = rows(nobody_called=0.25, single_best=0.2, stopped=0.18, role=0.16 + NOISE, flat_all=0.2)
    assert regimes.regime_map(table, copies={"made": 4}).loc["made", "also"] == "drop copies (4)"
    assert regimes.regime_map(table).loc["made", "also"] == ""
    for name in ("stopped", "nobody_called"):
        with pytest.raises(ValueError, match=f"{name} is missing"):
            regimes.regime_map(table[table["policy"] != name])
    with pytest.raises(ValueError, match="every full-call policy is missing"):
        regimes.regime_map(table[table["policy"] != "flat_all"])


def test_comparison_tables_are_means_and_paired_differences():
    table = rows(single_best=0.2, flat_all=[0.2, 0.3, 0.4], role=[0.1, 0.2, 0.3], top_k=0.15, frugal_cascade=0.18)
    wide = regimes.side_by_side(table)
    assert wide.loc["made", ("flat_all", "risk")] == pytest.approx(0.3)
    assert list(wide.columns.get_level_values("policy").unique()) == ["single_best", "flat_all", "role"]
    ends = regimes.endpoints(table)
    assert ends["kind"].tolist() == ["full call", "matched", "role"]
    assert ends["policy"].tolist() == ["flat_all", "top_k", "role"]
    gap = regimes.against_role(table, ["flat_all"]).iloc[0]
    assert gap["risk_difference"] == pytest.approx(0.1) and gap["low"] == pytest.approx(0.1)  # the same on every split
    assert gap["cost_difference"] == pytest.approx(3.0)
    assert regimes.interval_table(table).set_index("policy").at["role", "sd"] == pytest.approx(0.1)
    with pytest.raises(ValueError, match="both be measured"):
        regimes.paired_difference(table, "role", "ridge_stack")


def test_the_frontier_marks_what_a_cheaper_policy_undercuts():
    table = rows(single_best=0.2, role=[0.1, 0.2, 0.3], stopped=0.25, flat_all=0.3)
    points = regimes.frontier_points(table).set_index("policy")
    assert points["undercut"].to_dict() == {"single_best": False, "role": False, "stopped": True, "flat_all": True}
    assert points.at["role", "high"] - 0.2 == pytest.approx(stats.t.ppf(0.975, 2) * 0.1 / np.sqrt(3))


def test_settings_describe_their_audits():
    audit = made_audit(60, 3)
    Z = audit.Z.copy()
    Z[:4, 1] = None
    Z[0, 2] = None
    renamed = {"a": "left", "b": "right", "split": "split"}
    same = np.array([[None if v is None else renamed[v] for v in Z[:, 1]]], dtype=object).T
    holed = Audit(np.hstack([Z, same]), audit.y, ("one", "two", "three", "two again"), audit.slices)
    setting = regimes.Setting(holed, "sparse", "difficulty", costs={"one": 1, "two": 2, "three": 0.1, "two again": 2})
    settings = {"made": setting, "plain": regimes.Setting(Audit(audit.Z, audit.y, audit.judges))}
    matrix = regimes.experimental_matrix(settings)
    assert matrix.at["made", "slices"] == 2 and matrix.at["made", "signal"] == "difficulty"
    assert matrix.at["plain", "signal"] == "none" and matrix.at["plain", "judges"] == 3 and matrix.at["made", "binary"]
    pool = regimes.judge_pool(settings).set_index(["setting", "judge"])
    assert pool.at[("made", "two again"), "same_as"] == "two" and pool["same_as"].notna().sum() == 1
    assert pool.at[("made", "two"), "missing"] == 4 and pool.at[("made", "three"), "cost"] == 0.1
    with pytest.raises(ValueError, match="missing: two"):
        regimes.judge_pool({"made": regimes.Setting(holed, costs={"one": 1, "three": 0.1, "two again": 2})})
    filtered = regimes.complete_cases(settings)
    assert filtered.loc["made", ["rows", "judges", "complete", "dropped"]].tolist() == [60, 4, 56, 4]
    assert filtered.at["plain", "dropped"] == 0


def test_shared_errors_are_items_on_which_every_judge_errs():
    y = np.array([1, 1, 1, 1, 0, 0, 0, 0])
    first = np.array([1, 1, 1, 0, 0, 0, 0, 0])
    second = np.array([1, 1, 0, 0, 0, 0, 0, 0])
    audit = Audit(np.stack([first, second], axis=1).astype(object), y, ("first", "second"))
    shares = regimes.shared_errors({"made": regimes.Setting(audit)}).loc["made"]
    assert shares.to_dict() == pytest.approx({"agree_right": 6 / 8, "conflict": 1 / 8, "shared_error": 1 / 8})


def test_four_exact_copies_change_neither_plan_nor_risk_nor_cost_to_the_last_digit():
    table = regimes.copy_stress(made_audit(160, 4), seeds=SEEDS)
    assert "#copy" not in "".join(table["plan"])
    before, after = (
        table[(table["setting"] == name) & (table["policy"] == "role")].reset_index(drop=True)
        for name in ("original", "copied")
    )
    same = ["risk", "accuracy", "cost", "calls", "plan", "fallback", "cells"]
    pd.testing.assert_frame_equal(before[same], after[same], check_exact=True)
    jury = table[table["policy"] == "reliability_jury"].groupby("setting")["cost"].mean()
    assert jury["copied"] == jury["original"] + 4


@pytest.mark.parametrize("name", ["llmbar", "jbb"])
def test_copies_of_the_best_judge_of_a_real_pool_hurt_the_jury_alone(name):
    table = regimes.copy_stress(real_audit(name), costs=None)
    wide = table.pivot(index="seed", columns=["policy", "setting"], values=["risk", "cost", "plan"])
    for what in ("risk", "cost", "plan"):
        assert (wide[what]["role"]["original"] == wide[what]["role"]["copied"]).all()
    jury = table[table["policy"] == "reliability_jury"].groupby("setting")[["risk", "cost"]].mean()
    assert (jury.loc["copied"] > jury.loc["original"]).all()


def test_thresholds_and_prices_make_plans_leaner():
    audit = made_audit(240, 5)
    by_tau = regimes.threshold_sensitivity(audit, seeds=SEEDS).groupby("setting")["calls"].mean()
    assert by_tau["tau 0.001"] >= by_tau["tau 0.005"] >= by_tau["tau 0.02"]
    costs = dict.fromkeys(audit.judges, 5.0)
    table = regimes.price_sensitivity(audit, {"flat": None, "api": costs}, lams=(0.0, 0.05), seeds=SEEDS)
    mean = table.groupby("setting")[["cost", "calls"]].mean()
    assert mean.at["api, lambda 0", "cost"] == pytest.approx(5 * mean.at["flat, lambda 0", "cost"])
    calls = mean["calls"]
    assert calls["api, lambda 0.05"] <= calls["flat, lambda 0.05"] <= calls["flat, lambda 0"]


def test_variants_are_bought_only_where_they_gain():
    audit = regimes.with_copies(made_audit(160, 3), "judge2", 2)
    table = regimes.variant_stress(audit, {"judge2": ["judge2", "judge2#copy1", "judge2#copy2"]}, seeds=SEEDS)
    flat, role = (table[table["policy"] == name] for name in ("flat_all", "role"))
    assert set(flat.groupby("setting")["variants"].unique().map(tuple)) == {(3,), (1,)}
    assert (role["variants"] <= 1).all()  # exact copies gain nothing
    with pytest.raises(ValueError, match="judges must be among"):
        regimes.variant_stress(audit, {"x": ["judge2", "nobody"]}, seeds=SEEDS)


def test_frequencies_count_plans_and_the_whole_audit_agrees_with_itself():
    audit = made_audit(160, 4)
    table = regimes.frequency_audit(audit, seeds=SEEDS)
    plans = [policy.plan_.calls for _, policy in regimes.fitted_plans(audit, seeds=SEEDS)]
    for row in table[table["share"] == 1].itertuples():
        assert row.count == sum((row.scope, row.judge) in plan for plan in plans) and row.recurs == (row.count >= 1.5)
    pd.testing.assert_frame_equal(regimes.frequency_audit(audit, seeds=iter(SEEDS)), table)
    sizes = regimes.audit_size(audit, seeds=SEEDS)
    assert (sizes[sizes["share"] == 1]["jaccard"] == 1).all() and sizes["jaccard"].between(0, 1).all()
    direct = evaluate(audit, {"role": RolePolicy()}, costs=None, seeds=SEEDS)
    np.testing.assert_array_equal(sizes[sizes["share"] == 1]["risk"], direct["risk"])


def test_a_thinned_audit_keeps_whole_groups_and_half_of_them():
    audit = made_audit(80, 2)
    grouped = Audit(audit.Z, audit.y, audit.judges, audit.slices, np.repeat(np.arange(40), 2))
    for split, _ in regimes.fitted_plans(grouped, share=0.5, seeds=SEEDS):
        assert len(np.unique(split.fit.groups)) == 5 and len(split.fit) == 10 and len(split.test) == 40


def test_sparsity_counts_cells_and_fallbacks():
    audit = made_audit(200, 4)
    table = regimes.pattern_sparsity(audit, seeds=SEEDS, tau_global=0.001)
    assert (table[["fit", "validation", "test"]].to_numpy() == [50, 50, 100]).all()
    direct = evaluate(audit, {"role": RolePolicy(tau_global=0.001)}, costs=None, seeds=SEEDS)
    np.testing.assert_allclose(table["test_fallback"], direct["fallback"])
    np.testing.assert_allclose(table["calls"], direct["calls"])
    assert (table[["global_cells", "route_cells"]].max(axis=1) == direct["cells"]).all()
    assert table["validation_fallback"].between(0, 1).all()


def test_a_proxy_is_routed_and_paid_for_beside_an_audited_stratum():
    rng = np.random.default_rng(0)
    y, kind = rng.integers(0, 2, 800), rng.integers(0, 2, 800)
    proxy = np.where(rng.random(800) < 0.9, kind, 1 - kind)
    broad = np.where(rng.random(800) < 0.75, y, 1 - y)
    special = np.where(kind == 1, y, rng.integers(0, 2, 800))
    audit = Audit(np.stack([broad, special, proxy], axis=1).astype(object), y, ("broad", "special", "proxy"))
    routes = {
        "label": regimes.Route(np.array(["plain", "hard"], dtype=object)[kind], audit_only=True),
        "proxy": regimes.sliced_by_judge(audit, "proxy"),
    }
    table = regimes.proxy_routing(audit, routes, seeds=SEEDS, costs={"broad": 1, "special": 1, "proxy": 0.1})
    mean = table.groupby(["setting", "policy"])[["risk", "cost"]].mean()
    assert table.groupby("setting")["deployable"].first().to_dict() == {"label": False, "proxy": True}
    for name in routes:
        assert mean.at[(name, "role"), "risk"] <= mean.at[(name, "stopped"), "risk"] + 0.01
    mixed = audit.Z.copy()
    mixed[:, 2] = [float(value) if place % 2 else value for place, value in enumerate(proxy)]
    assert len({*regimes.sliced_by_judge(Audit(mixed, y, audit.judges), "proxy").slices}) == 2  # 1 and 1.0 are one
    parts = split_audit(Audit(audit.Z, y, audit.judges, routes["proxy"].slices), 0)
    plan = RolePolicy(route_key="proxy", tau_global=1.0).fit(parts.fit, parts.validation).plan_
    assert plan.routes and "proxy" in plan.judges_for("proxy=0") and "proxy" in plan.judges_for("proxy=1")


def test_a_mix_as_audited_gives_back_the_plain_figures():
    audit = made_audit(200, 4)
    policies = {"role": RolePolicy(), "single_best": standard_policies()["single_best"]}
    outcomes = regimes.slice_outcomes(audit, policies, seeds=SEEDS)
    direct = evaluate(audit, policies, costs=None, seeds=SEEDS).set_index(["policy", "seed"])
    for (policy, seed), part in outcomes.groupby(["policy", "seed"]):
        weights = dict(zip(part["slice"], part["items"], strict=True))
        mixed = regimes.slice_mix_shift(part, {"same": weights}).iloc[0]
        for metric in ("risk", "accuracy", "cost", "calls"):
            assert mixed[metric] == pytest.approx(direct.at[(policy, seed), metric], abs=1e-12)
    shifted = regimes.slice_mix_shift(outcomes)
    only = shifted[shifted["setting"] == "only hard"].set_index(["policy", "seed"])["risk"]
    hard = outcomes[outcomes["slice"] == "hard"].set_index(["policy", "seed"])["risk"]
    pd.testing.assert_series_equal(only.sort_index(), hard.sort_index())
    with pytest.raises(ValueError, match="a mix gives weights"):
        regimes.slice_mix_shift(outcomes, {"wrong": {"nowhere": 1.0}})


def test_the_pair_audit_finds_what_greedy_stopping_misses():
    rng = np.random.default_rng(0)
    Z = rng.integers(0, 2, (800, 3))
    y = (Z[:, 0] ^ Z[:, 1]).astype(float)
    parts = split_audit(Audit(Z.astype(object), y, ("left", "right", "noise")), 0)
    plan = RolePolicy().fit(parts.fit, parts.validation).plan_
    assert plan.global_panel == ()  # neither is worth anything alone
    found = regimes.pair_addition(parts.fit, parts.validation, plan)
    row = found.set_index("scope").loc[GLOBAL]
    assert row["best_pair"] == ("left", "right") and row["missed"] == 1 and row["pairs"] == 3
    assert row["gain"] == pytest.approx(0.25, abs=0.01) and row["threshold"] == 0.01


def test_the_pair_audit_covers_every_slice_that_could_be_routed():
    audit = made_audit(400, 4)
    parts = split_audit(audit, 0)
    plan = RolePolicy().fit(parts.fit, parts.validation).plan_
    table = regimes.pair_addition(parts.fit, parts.validation, plan)
    assert table["scope"].tolist() == [GLOBAL, "easy", "hard"]
    for row in table.itertuples():
        left = 4 - len(row.panel)
        assert row.pairs == left * (left - 1) // 2


def test_coins_say_call_nobody_and_only_that_is_firm_when_each_call_costs():
    rng = np.random.default_rng(0)
    audit = Audit(rng.integers(0, 2, (400, 5)).astype(object), rng.integers(0, 2, 400), tuple("abcde"))
    table = regimes.measure_settings({"coins": regimes.Setting(audit)})
    found = regimes.regime_map(table, lam=0.01).loc["coins"]
    assert found["action"] == regimes.NOBODY and found["firm"] and found["base"] == "nobody"
    nobody = table[table["policy"] == "nobody_called"]
    assert (nobody["calls"] == 0).all() and (nobody["cost"] == 0).all()
    empty = table[(table["policy"] == "role") & (table["calls"] == 0)].set_index("seed")["risk"]
    assert len(empty) and (empty == nobody.set_index("seed")["risk"].loc[empty.index]).all()


def test_judgebench_says_keep_the_single_judge():
    settings = {"JudgeBench": regimes.Setting(real_audit("judgebench"), "sparse cells", "source")}
    table = regimes.measure_settings(settings)
    found = regimes.regime_map(table).loc["JudgeBench"]
    assert found["action"] == regimes.KEEP, found["evidence"]
    assert found["single_risk"] < found["role_risk"]
    free = regimes.regime_map(table, lam=0).loc["JudgeBench"]  # sixteen more calls do lower the risk by a hundredth
    assert free["full_risk"] < free["single_risk"]


def written(folder, name, audit) -> None:
    """An audit as long tables of net verdicts; what is missing stays an empty verdict."""
    ids = [f"item{row}" for row in range(len(audit))]
    labels = pd.DataFrame({"pair_id": ids, "y": audit.y, "group": audit.groups, "slice": audit.route_names})
    said = audit.table.replace({"a": 1.0, "split": 0.5, "b": 0.0}).assign(pair_id=ids, order="agg")
    labels.to_csv(folder / f"{name}.labels.csv", index=False)
    verdicts = said.melt(["pair_id", "order"], var_name="judge", value_name="verdict")
    verdicts.to_csv(folder / f"{name}.verdicts.csv", index=False)


def test_tables_of_a_folder_come_back_as_the_audits_that_were_written(tmp_path):
    audits = {"first": made_audit(40, 3), "second": made_audit(30, 2, seed=1)}
    for name, audit in audits.items():
        written(tmp_path, name, audit)
    found = regimes.table_settings(tmp_path)
    assert list(found) == list(audits)
    for name, audit in audits.items():
        mine = found[name].audit
        assert mine.judges == audit.judges and (mine.Z == audit.Z).all() and (mine.y == audit.y).all()
        assert (mine.route_names == audit.route_names).all()
    assert list(regimes.table_settings(tmp_path / "second")) == ["second"]
    assert regimes.table_settings(f"{tmp_path}/first?judges=[12]$")["first"].audit.judges == ("judge1", "judge2")


def test_tables_that_are_not_there_or_not_whole_are_refused_with_what_is_missing(tmp_path):
    with pytest.raises(FileNotFoundError, match="needs <name>.labels"):
        regimes.table_settings(tmp_path)
    written(tmp_path, "first", made_audit(20, 2))
    with pytest.raises(ValueError, match="judges must match 'nobody'"):
        regimes.table_settings(f"{tmp_path}?judges=nobody")
    labels = pd.read_csv(tmp_path / "first.labels.csv")
    labels.drop(columns="group").to_csv(tmp_path / "first.labels.csv", index=False)
    with pytest.raises(ValueError, match="group are not there"):
        regimes.table_settings(tmp_path)
    (tmp_path / "first.verdicts.csv").unlink()
    labels.to_csv(tmp_path / "first.labels.csv", index=False)
    with pytest.raises(FileNotFoundError, match="come together"):
        regimes.table_settings(tmp_path)


def test_a_real_pool_is_read_from_its_tables_with_the_judges_asked_for():
    if not TIDY.exists():
        pytest.skip(f"real judge outputs are not here: {TIDY}")
    setting = regimes.table_settings(f"{TIDY}/llmbar?judges=/Vanilla$")["llmbar"]
    account = setting.audit.complete()[1]  # panels.md section 7: 413 of 419 items, with GPT-4 six judges
    assert (account.rows, account.judges, account.complete) == (419, 6, 413)
