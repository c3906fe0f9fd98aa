"""All three heads through development, the gates, the freeze and the opening."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import brier_score_loss

from baer_utils import metrics
from baer_utils.deployment import (
    Frozen,
    describe_condition,
    develop,
    explaining_subsets,
    fit_heads,
    freeze,
    head_curves,
    inversions,
    open_test,
    question_folds,
)
from baer_utils.deployment.candidates import candidate_evidence, right_or_wrong, routing_features
from baer_utils.deployment.fitting import features_of
from baer_utils.deployment.measuring import measure
from baer_utils.evidence import run_array, summarize
from baer_utils.gates import HEADS, select_head
from baer_utils.judging import judge_pairs
from baer_utils.protocols import PROTOCOLS, Settings
from baer_utils.records import swap_pairs, swap_runs
from baer_utils.routing import confidence_switch, out_of_fold_routes, routed_score
from baer_utils.stacking import Stack
from baer_utils.store import open_store, openings, seal
from baer_utils.verification import pointwise_evidence, reference_evidence
from tests.strategies import make_pairs, make_runs, run_rows, same
from tests.test_deployment import HashJudge

EXPERTS = ("direct", "chain_of_thought", "rubric")
SUBSETS = ("sums", "dates", "words")
TAG = Settings().tag


@pytest.fixture(autouse=True, scope="module")
def two_small_models():
    """Two models to compare, and forests of 16 trees: the comparison itself is tested in test_routing.py."""
    patch = pytest.MonkeyPatch()
    patch.setattr("baer_utils.routing.models.TREES", 16)
    patch.setattr("baer_utils.deployment.evaluating.MODELS", ("logistic", "random_forest"))
    yield
    patch.undo()


def alone(pairs: pd.DataFrame, protocol: str, strength: float, seed: int = 0) -> pd.DataFrame:
    """Reads of one response at a time: noise, and `strength` for the better one."""
    rng = np.random.default_rng(seed)
    value = {
        side: sign * pairs["label"] * strength + rng.normal(size=len(pairs)) for side, sign in (("a", 1), ("b", -1))
    }
    rows = [
        (name, protocol, side, 0, v)
        for side in ("a", "b")
        for name, v in zip(pairs["pair_id"], value[side], strict=True)
    ]
    return run_rows(rows)


def specialists(n: int, seed: int = 0) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Pairs of three subsets, and three experts each of which is right on one subset and a coin on the others."""
    rng = np.random.default_rng(seed)
    pairs = make_pairs(n, seed)
    home = rng.integers(0, 3, n)
    pairs["subset"], pairs["task_type"] = np.array(SUBSETS, dtype=object)[home], "all"
    blocks = []
    for k, expert in enumerate(EXPERTS):
        side = np.where(home == k, pairs["label"], rng.choice([1.0, -1.0], n))
        size = rng.uniform(0.2, 2.0, n)
        blocks += [
            pd.DataFrame({"pair_id": pairs["pair_id"], "protocol": expert, "view": view, "log_odds": side * size})
            for view in ("ab", "ba")
        ]
    rows = pd.concat(blocks)
    rows = [(r.pair_id, r.protocol, r.view, 0, r.log_odds) for r in rows.itertuples()]
    return pairs, run_rows(rows)


def in_store(folder: Path, labelled: pd.DataFrame, runs: pd.DataFrame) -> SimpleNamespace:
    store = open_store("test", "table", root=folder / "store")
    pairs = seal(labelled, store)
    store.write_runs(runs, TAG)
    return SimpleNamespace(labelled=labelled, store=store, pairs=pairs, runs=runs)


def frozen_in(c: SimpleNamespace, path: Path, heads=HEADS) -> Frozen:
    c.development = develop(c.pairs, c.runs, EXPERTS, heads=heads)
    c.decision = select_head(c.development)
    return freeze(c.decision, fit_heads(c.pairs, c.runs, c.decision, describe_condition(c.store, EXPERTS)), path)


def deploying(head: str):
    """A decision for one head, whatever the gates say: to look at it frozen."""
    return lambda development: dataclasses.replace(select_head(development), head=head)


@pytest.fixture(scope="module")
def routed(tmp_path_factory) -> SimpleNamespace:
    """Planted specialists, with weak reads of one response beside them; the router's head, frozen and opened."""
    folder = tmp_path_factory.mktemp("routed")
    labelled, runs = specialists(420)
    runs = pd.concat([runs, alone(labelled, "pointwise", 0.1), alone(labelled, "reference", 0.2, 1)])
    c = in_store(folder, labelled, runs.reset_index(drop=True))
    c.frozen = frozen_in(c, folder / "frozen")
    c.test = c.pairs[c.pairs["split"] == "test"].sort_values("pair_id").reset_index(drop=True)
    c.report = open_test(c.frozen, c.store)
    return c


# ---------------------------------------------------------------- who is chosen


def test_planted_specialists_make_the_router_win_and_be_chosen_frozen_and_right_on_the_test(routed):
    assert routed.decision.head == routed.frozen.head == routed.report.head == "route"
    assert "route replaces stack" in str(routed.decision)
    methods = routed.report.methods
    assert list(methods.index[methods["kind"] == "head"]) == ["BAER (route)"]
    assert methods.loc["BAER (route)", "strict"] > methods.loc["stack", "strict"] + 0.05
    assert methods.loc["BAER (route)", "strict"] > methods.loc[list(EXPERTS), "strict"].max() + 0.1
    table = routed.report.pairs
    home = routed.test.set_index("pair_id")["subset"].map(dict(zip(SUBSETS, EXPERTS, strict=True)))
    assert (table["route_expert"] == home.reindex(table.index)).mean() > 0.5


def test_a_strong_reference_replaces_the_others_and_one_without_runs_is_not_evaluated(tmp_path):
    labelled = make_pairs(260, 3)
    weak = make_runs(labelled, EXPERTS, 3, skill=0.05)
    c = in_store(tmp_path / "with", labelled, pd.concat([weak, alone(labelled, "reference", 2.0)], ignore_index=True))
    frozen = frozen_in(c, tmp_path / "frozen", ("stack", "reference"))
    assert frozen.head == "reference" and "reference replaces" in str(c.decision)
    test = c.pairs[c.pairs["split"] == "test"].sort_values("pair_id")
    by_hand = pointwise_evidence(c.runs, test["pair_id"], protocol="reference")
    assert frozen.score_runs(test, c.runs) == pytest.approx(by_hand, abs=1e-9)
    report = open_test(frozen, c.store)
    assert report.summary["accuracy"] > 0.9 and report.methods.loc["stack", "kind"] == "variant"
    assert report.summary["calls"] == report.methods.loc["BAER (reference)", "calls"] == 2
    assert report.methods.loc["stack", "calls"] > 5

    without = develop(c.pairs, weak, EXPERTS, heads=("reference",))
    assert without.heads["reference"] is None
    assert "reference was not evaluated: its runs are missing on selection" in str(select_head(without))
    only = c.pairs.loc[c.pairs["split"] == "selection", "pair_id"]
    half = c.runs[(c.runs["protocol"] != "reference") | c.runs["pair_id"].isin(only)]
    assert develop(c.pairs, half, EXPERTS, heads=("reference",)).heads["reference"] is None


def test_only_the_heads_asked_for_are_evaluated_and_a_lone_expert_is_no_choice(routed):
    development = develop(routed.pairs, routed.runs, EXPERTS, heads=("stack",))
    assert [head for head in HEADS if development.heads[head]] == ["stack"]
    assert "route was not evaluated: it was left out" in str(select_head(development))
    assert development.heads["stack"] == routed.development.heads["stack"]
    bare = routed.runs[routed.runs["protocol"].isin(EXPERTS)]
    lone = develop(routed.pairs, bare, ("direct",))
    assert lone.heads["route"] is None and "nothing to choose" in lone.not_evaluated["route"]


# ---------------------------------------------------------------- development


def test_out_of_fold_routes_are_those_of_the_module_on_development_rows_redone_by_hand(routed):
    table = routed.labelled[routed.labelled["split"] != "test"].sort_values("pair_id").reset_index(drop=True)
    evidence = summarize(run_array(routed.runs, EXPERTS, table["pair_id"]), EXPERTS)
    candidates = candidate_evidence(evidence, table, routed.runs, ("pointwise",), clip=1e-4)
    rho = routing_features(candidates, table, "table", routed.frozen.condition.categories)
    correct = right_or_wrong(candidates.z, table["label"].to_numpy())
    found = out_of_fold_routes(rho, correct, table["group_id"], seed=0, models=("logistic", "random_forest"))
    development, shown = routed.development.heads["route"], routed.development.out_of_fold
    assert same(shown["route"], routed_score(candidates.z, found.chosen))
    assert list(shown["route_expert"]) == [candidates.experts[k] for k in found.chosen]
    assert same(shown["route_reliability"], found.reliability.max(axis=1))
    notes = development.notes
    assert (notes["model"], notes["model_by_fold"]) == (found.model, found.model_by_fold)
    assert notes["chosen"] == {name: (found.chosen == k).sum() for k, name in enumerate(candidates.experts)}
    switch = np.where(routed_score(candidates.z, confidence_switch(candidates.z)) >= 0, 1, -1) == table["label"]
    assert notes["confidence_switching"]["pooled"] == switch.mean()
    assert development.accuracy["pooled"] > switch.mean() + 0.1
    assert notes["subset_lookup"]["pooled"] > 0.9  # here the subset says it all
    has = ~np.isnan(correct)
    told = pd.DataFrame({"said": found.reliability[has], "was": correct[has]})
    distance = told.groupby((told["said"] * 10).astype(int).clip(upper=9)).sum().eval("(was - said).abs()")
    assert notes["reliability_error"] == pytest.approx(distance.sum() / has.sum()) and notes["reliability_error"] < 0.2


def test_a_pairs_own_label_never_touches_its_out_of_fold_route(routed):
    before = routed.development.out_of_fold
    fold = before["fold"] == 3
    pairs = routed.pairs.copy()
    turned = pairs["pair_id"].isin(before.loc[fold, "pair_id"])
    pairs.loc[turned, "label"] = -pairs.loc[turned, "label"]
    after = develop(pairs, routed.runs, EXPERTS, heads=("route", "reference")).out_of_fold
    for name in ("route", "route_reliability", "reference"):
        assert same(before.loc[fold, name], after.loc[fold, name])
    assert same(before["reference"], after["reference"])
    assert not same(before.loc[~fold, "route_reliability"], after.loc[~fold, "route_reliability"])
    assert (before["fold"] == question_folds(before["group_id"], seed=0)).all()


def test_with_too_few_questions_nothing_is_compared_and_the_simplest_model_is_frozen(tmp_path):
    labelled, runs = specialists(40)
    c = in_store(tmp_path, labelled, runs)
    frozen = frozen_in(c, tmp_path / "frozen")
    notes = c.development.heads["route"].notes
    assert (notes["model"], notes["accuracy_by_model"]) == ("logistic", {})
    assert frozen.head == "stack" and frozen.content["route"]["model"] == "logistic"
    assert np.isfinite(frozen.head_scores(c.pairs, runs)[["stack", "route"]]).all(axis=None)


def test_what_stands_in_test_rows_cannot_matter_to_any_head(routed, tmp_path):
    pairs, runs = routed.pairs.copy(), routed.runs.copy()
    test = pairs["split"] == "test"
    of_test = runs["pair_id"].isin(pairs.loc[test, "pair_id"])
    pairs.loc[test, "label"] = 1.0
    runs.loc[of_test, "log_odds"] = -runs.loc[of_test, "log_odds"]
    more = alone(routed.labelled[routed.labelled["split"] == "test"], "likelihood_sum", 1.0)  # an extra on test only
    store = dataclasses.replace(routed.store, pairs=pairs)
    poisoned = SimpleNamespace(pairs=pairs, runs=pd.concat([runs, more], ignore_index=True), store=store)
    assert frozen_in(poisoned, tmp_path / "poisoned").sha256 == routed.frozen.sha256
    assert poisoned.development == routed.development


# ---------------------------------------------------------------- candidates


def test_extra_candidates_serve_the_router_where_they_ran_and_never_the_stack(routed):
    assert routed.development.extra_candidates == ("pointwise",)
    content = routed.frozen.content
    assert content["route"]["candidates"] == [*EXPERTS, "pointwise"]
    assert routed.frozen.condition.experts == EXPERTS
    assert len(routed.frozen.stack.weights) == 2 * 3 + len(routed.frozen.condition.categories)
    assert (
        set(content["condition"]["prompt_versions"])
        == {*EXPERTS, "pointwise", "reference"}
        == {*content["condition"]["templates"]}
    )
    with_sum = pd.concat([routed.runs, alone(routed.labelled, "likelihood_sum", 9.0)], ignore_index=True)
    development = develop(routed.pairs, with_sum, EXPERTS, heads=("route",))
    assert development.extra_candidates == ("pointwise", "likelihood_sum")
    assert development.heads["stack"] == routed.development.heads["stack"]


def test_an_extra_candidate_answers_once_and_a_missing_read_is_no_opinion():
    pairs = make_pairs(6, 1)
    runs = pd.concat(
        [make_runs(pairs, EXPERTS, 1), alone(pairs, "pointwise", 30.0), alone(pairs, "likelihood_sum", 90.0)]
    )
    lost = pairs["pair_id"][2]
    runs = runs[(runs["protocol"] != "pointwise") | (runs["pair_id"] != lost) | (runs["view"] == "a")]
    evidence = summarize(run_array(runs, EXPERTS, pairs["pair_id"]), EXPERTS)
    both = candidate_evidence(evidence, pairs, runs, ("pointwise", "likelihood_sum"), clip=1e-4)
    assert both.experts == (*EXPERTS, "pointwise", "likelihood_sum") and same(both.z[:, :3], evidence.z)
    assert (both.delta[:, 3:] == 0).all() and not both.available[2, 3] and both.z[2, 3] == 0 and both.p[2, 3] == 0.5
    limit = 2 * np.log((1 - 1e-4) / 1e-4)
    assert np.abs(both.z[:, 3]).max() == limit < np.abs(both.z[:, 4]).min()  # a likelihood is not clipped
    assert candidate_evidence(evidence, pairs, runs, (), clip=1e-4) is evidence


def test_reference_scores_from_a_run_table_are_the_clipped_difference_of_two_reads():
    pairs = make_pairs(60, 2)
    runs = alone(pairs, "reference", 4.0)
    s = reference_evidence(runs, pairs["pair_id"])
    assert s == pytest.approx(pointwise_evidence(runs, pairs["pair_id"], protocol="reference"), abs=1e-9)
    assert same(reference_evidence(swap_runs(runs), pairs["pair_id"]), -s)
    assert np.isnan(reference_evidence(runs[:0], pairs["pair_id"])).all()
    with pytest.raises(ValueError, match="each response must be read once by reference"):
        reference_evidence(pd.concat([runs, runs]), pairs["pair_id"])


# ---------------------------------------------------------------- frozen


def test_a_swap_negates_the_score_of_every_frozen_head_bit_for_bit_and_keeps_the_expert(routed):
    told = routed.frozen.head_scores(routed.pairs, routed.runs)
    turned = routed.frozen.head_scores(swap_pairs(routed.pairs), swap_runs(routed.runs))
    assert routed.frozen.heads == HEADS and set(HEADS) < set(told)
    for head in HEADS:
        assert same(turned[head], -told[head]) and (told[head] != 0).sum() > 300
    assert list(turned["route_expert"]) == list(told["route_expert"])
    assert same(turned["route_reliability"], told["route_reliability"])
    assert same(routed.frozen.score_runs(routed.pairs, routed.runs), told["route"])
    order = np.random.default_rng(0).permutation(len(routed.runs))
    again = routed.frozen.head_scores(routed.pairs.iloc[::-1], routed.runs.iloc[order])
    for name in (*HEADS, "route_reliability"):
        assert same(again[name], told[name][::-1])


def test_every_head_comes_back_from_disk_and_the_same_data_in_any_order_give_the_same_name(routed, tmp_path):
    again = Frozen.load(routed.frozen.path)
    pd.testing.assert_frame_equal(
        again.head_scores(routed.test, routed.runs),
        routed.frozen.head_scores(routed.test, routed.runs),
        check_exact=True,
    )
    order = np.random.default_rng(0).permutation(len(routed.runs))
    shuffled = SimpleNamespace(**vars(routed) | {"pairs": routed.pairs.iloc[::-1], "runs": routed.runs.iloc[order]})
    assert frozen_in(shuffled, tmp_path / "shuffled").sha256 == routed.frozen.sha256
    swapped = SimpleNamespace(**vars(routed) | {"pairs": swap_pairs(routed.pairs), "runs": swap_runs(routed.runs)})
    heads = fit_heads(swapped.pairs, swapped.runs, routed.decision, describe_condition(routed.store, EXPERTS))
    turned = freeze(routed.decision, heads, tmp_path / "swapped")
    assert same(turned.arrays["route_model"], routed.frozen.arrays["route_model"])


def test_the_name_follows_the_router_and_a_changed_byte_of_it_is_refused(routed, tmp_path):
    heads = fit_heads(routed.pairs, routed.runs, routed.decision, describe_condition(routed.store, EXPERTS))
    fitted = heads.router.reliability.fitted
    fitted.estimators_[3].tree_.value[0, 0, 0] += 1e-9
    other = freeze(routed.decision, heads, tmp_path / "other")
    assert other.sha256 != routed.frozen.sha256
    assert freeze(routed.decision, dataclasses.replace(heads, router=None), tmp_path / "none").sha256 != other.sha256
    path = tmp_path / "other" / "arrays.npz"
    whole, model = path.read_bytes(), other.arrays["route_model"].tobytes()
    place = whole.find(model)
    assert place > 0
    for at in (place, place + len(model) // 2, place + len(model) - 1):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with pytest.raises(ValueError, match="byte for byte"):
            Frozen.load(path.parent)


def test_deployment_json_holds_every_number_that_the_choice_between_heads_used(routed):
    content = json.loads((routed.frozen.path / "deployment.json").read_text())["content"]
    shown = content["development"]
    for head in HEADS:
        figures = dataclasses.asdict(routed.development.heads[head])
        assert shown["heads"][head] == json.loads(json.dumps(figures, default=int))
    assert shown["extra_candidates"] == ["pointwise"] and shown["not_evaluated"] == {}
    assert set(shown["heads"]["route"]["notes"]["accuracy_by_model"]) == {"logistic", "random_forest"}
    assert content["route"]["settings"]["seed"] == 0 and "confidence" in content["route"]["features"]
    assert len(content["route"]["features"]) == routed.frozen.router.reliability.fitted.n_features_in_
    assert content["verdicts"]["route"]["advances"] is True
    assert content["verdicts"] == {head: dataclasses.asdict(routed.decision.verdicts[head]) for head in HEADS}
    assert not all(verdict["advances"] for verdict in content["verdicts"].values())  # one that failed stands there, too


# ---------------------------------------------------------------- the report


def test_the_report_shows_every_head_with_its_own_bill(routed):
    report, table = routed.report, routed.report.pairs
    names = ["BAER (route)", "stack", "reference", "stack, no weight below 0"]
    assert list(report.methods.index[:4]) == names
    assert list(report.methods["kind"][:4]) == ["head", "variant", "variant", "variant"]
    for head, row in zip(("route", "stack", "reference"), names, strict=False):
        assert report.methods.loc[row, "strict"] == (np.where(table[head] >= 0, 1, -1) == table["label"]).mean()
    assert same(table["s"], table["route"])
    assert report.methods["calls"][["BAER (route)", "stack", "reference"]].tolist() == [8, 6, 2]
    assert report.summary["calls"] == 8
    told = routed.frozen.head_scores(routed.test, routed.runs)
    assert same(told["route_reliability"], table["route_reliability"])
    for shown in (str(report), report._repr_html_()):
        assert all(name in shown for name in names)


def test_a_router_is_measured_for_calibration_by_the_reliability_of_the_expert_it_chose(routed):
    silent = routed.runs["pair_id"].isin(routed.test["pair_id"][:9])  # nobody speaks there, and nobody is counted
    y, fewer = routed.report.pairs["label"].to_numpy(), routed.runs[~silent]
    less = measure(routed.frozen, routed.test, fewer, routed.frozen.score_runs(routed.test, fewer), y)
    assert (less.pairs["route"] == 0).sum() == (routed.report.pairs["route"] == 0).sum() + 9
    for report in (routed.report, less):
        table, row = report.pairs, report.methods.loc["BAER (route)"]
        spoke = table["route"] != 0
        right = (np.sign(table["route"]) == table["label"])[spoke].to_numpy(float)
        said = table["route_reliability"][spoke].to_numpy(float)
        assert row["brier"] == pytest.approx(brier_score_loss(right, said))
        told = pd.DataFrame({"right": right, "said": said}).groupby((said * 10).astype(int).clip(max=9))
        assert row["ece"] == pytest.approx(told.sum().eval("(right - said).abs()").sum() / spoke.sum())
        curves = head_curves(table)
        assert list(curves) == list(HEADS) and curves["route"]["pairs"].sum() == spoke.sum()
        for head, curve in curves.items():
            distance = np.average((curve["accuracy"] - curve["confidence"]).abs(), weights=curve["pairs"])
            assert distance == pytest.approx(report.methods.loc["BAER (route)" if head == "route" else head, "ece"])
            assert np.allclose(curve["high"] - curve["low"], 0.1 if head == "route" else 0.05)  # unfolded, or folded
    assert "route" not in head_curves(less.pairs.assign(route=0.0))


def test_the_report_says_on_which_subsets_a_lead_rests_and_repeats_itself_without_them(tmp_path):
    labelled, runs = specialists(300, 5)
    weak = runs["protocol"] != "direct"  # direct knows sums; nobody knows anything else
    noise = np.random.default_rng(1).choice([1.0, -1.0], int(weak.sum()) // 2)
    runs.loc[weak, "log_odds"] = np.tile(noise.reshape(2, -1), (1, 2)).reshape(-1)[: weak.sum()]
    c = in_store(tmp_path, labelled, runs)
    frozen = frozen_in(c, tmp_path / "frozen", ("stack",))
    report = open_test(frozen, c.store)
    table, named = report.pairs, report.summary["explained_by"]
    fair = report.comparisons.iloc[0]
    if fair["margin"] <= 0:
        assert named == [] and report.without is None
        return
    kept = ~table["subset"].isin(named)
    rest = report.without
    assert list(rest.pairs.index) == list(table.index[kept]) and rest.comparisons.iloc[0]["margin"] <= 0
    assert rest.methods.loc["stack, no weight below 0", "n"] == kept.sum() == rest.summary["pairs"]
    assert list(rest.methods.index) == list(report.methods.index)
    assert f"rests on {', '.join(named)}" in str(report) and "without these subsets" in report._repr_html_()
    again = open_test(frozen, c.store)
    assert again.to_json() == report.to_json() == json.loads(json.dumps(report.to_json()))
    pd.testing.assert_frame_equal(again.without.pairs, rest.pairs, check_exact=True)


@settings(max_examples=60)
@given(st.lists(st.tuples(st.booleans(), st.booleans(), st.sampled_from("uvwx")), min_size=1, max_size=30))
def test_without_the_subsets_that_explain_a_lead_there_is_none_and_without_fewer_there_is(rows):
    head, baseline, subset = (list(column) for column in zip(*rows, strict=True))
    named = explaining_subsets(head, baseline, subset)

    def lead(left_out):
        return sum(h - b for h, b, s in rows if s not in left_out)

    assert (named == []) == (lead([]) <= 0)
    assert lead(named) <= 0
    assert all(lead(named[:n]) > 0 for n in range(len(named)))


def test_an_expert_is_inverted_only_if_its_evidence_counts_against_it_at_every_instability(routed):
    condition = dataclasses.replace(routed.frozen.condition, experts=("u", "v", "w"), categories=("c", "d"))
    weights = np.array([-1.0, -1.0, 2.0, -1.0, 3.0, -1.0, 0.5, -9.0])
    found = inversions(Stack(weights, np.ones(8), 0.1), condition)
    # u: -1 - 1 / (1 + 4 delta) is always below 0; v: -1 + 3 / (1 + 4 delta) is not; w: 2 - 1 / (...) never is
    assert found == {"experts": ["u"], "categories": ["d"]}
    scaled = inversions(Stack(weights, np.array([1, 1, 1, 1, 9, 1, 1, 9.0]), 0.1), condition)
    assert scaled == {"experts": ["u", "v"], "categories": ["c", "d"]}
    report = routed.report
    assert report.summary["inverted_experts"] == routed.frozen.content["stack"]["inverted_experts"]
    phi, _ = features_of(routed.test, routed.runs, routed.frozen.condition)
    y = routed.report.pairs["label"]
    free, held = (
        metrics.pairwise_accuracy(np.where(stack.score(phi) >= 0, 1, -1), y)
        for stack in (routed.frozen.stack, routed.frozen.nonnegative_stack)
    )
    assert report.summary["free_over_held"] == pytest.approx(100 * (free - held))


# ---------------------------------------------------------------- new pairs


@pytest.fixture(scope="module")
def judged(tmp_path_factory) -> SimpleNamespace:
    """Pairs judged by the hash judge under two experts, pointwise and reference verification."""
    folder, judge = tmp_path_factory.mktemp("judged"), HashJudge()
    store = open_store(judge.name, "table", root=folder / "store")
    pairs = seal(make_pairs(150, 5), store)
    runs, _ = judge_pairs(pairs, judge, ("direct", "rubric", "pointwise", "reference"), store=store, progress=False)
    c = SimpleNamespace(folder=folder, store=store, pairs=pairs, runs=runs)
    c.development = develop(pairs, runs, ("direct", "rubric"))
    c.condition = describe_condition(store, ("direct", "rubric"))
    return c


def frozen_for(c: SimpleNamespace, head: str, path: Path) -> Frozen:
    decision = deploying(head)(c.development)
    return freeze(decision, fit_heads(c.pairs, c.runs, decision, c.condition), path)


@pytest.mark.parametrize(
    "head, asked, calls",
    [
        ("stack", {"direct", "rubric"}, 5),
        ("route", {"direct", "rubric", "pointwise"}, 7),
        ("reference", {"reference"}, 3),
    ],
)
def test_a_frozen_head_asks_about_new_pairs_what_it_needs_and_nothing_else(judged, tmp_path, head, asked, calls):
    frozen, judge, seen = frozen_for(judged, head, tmp_path), HashJudge(), set()
    share = judge.share
    judge.share = lambda prompts: (seen.update(prompt.key.protocol for prompt in prompts), share(prompts))[1]
    new = make_pairs(20, 6).assign(label=np.nan)
    table = frozen.score(new, judge)
    assert frozen.protocols_of(head) == tuple(name for name in PROTOCOLS if name in asked)
    assert (table["calls"] == calls).all() and not seen - asked
    own = ["expert", "reliability"] if head == "route" else []
    assert list(table.columns) == ["pair_id", "s", "probability", "decision", "calls", *own]
    turned = frozen.score(swap_pairs(new), HashJudge())
    assert same(turned["s"], -table["s"]) and (table["s"] != 0).any()
    if own:
        assert list(turned["expert"]) == list(table["expert"]) and set(table["expert"]) <= asked
    test = judged.pairs[judged.pairs["split"] == "test"].reset_index(drop=True)
    assert same(frozen.score(test, HashJudge())["s"], frozen.score_runs(test, judged.runs))


def test_a_head_needs_only_its_own_runs_to_be_opened_and_its_own_words_to_be_unchanged(judged, tmp_path, monkeypatch):
    from baer_utils import prompts

    reference, stack = (frozen_for(judged, head, tmp_path / head) for head in ("reference", "stack"))
    test = judged.pairs[judged.pairs["split"] == "test"].reset_index(drop=True)
    one = judged.runs[(judged.runs["pair_id"] != test["pair_id"][0]) | (judged.runs["protocol"] != "reference")]
    next((judged.store.folder / "runs").rglob("*.parquet")).unlink()
    judged.store.write_runs(one, TAG)
    with pytest.raises(ValueError, match="1 of .* have no run of any expert"):
        open_test(reference, judged.store)
    assert openings(judged.store) == []
    assert open_test(stack, judged.store).methods.loc["reference", "n"] == len(test)  # there s = 0
    name = next(name for name in prompts.TEMPLATES if name == "pointwise")
    changed = prompts.TEMPLATES[name]._replace(version="pointwise/99")
    monkeypatch.setitem(prompts.TEMPLATES, name, changed)
    new = make_pairs(3, 8)
    assert len(stack.score(new, HashJudge())) == len(reference.score(new, HashJudge())) == 3
    with pytest.raises(ValueError, match="prompts must be those of the freeze.*pointwise/99"):
        frozen_for(judged, "route", tmp_path / "route2")
        dataclasses.replace(stack, content=stack.content | {"head": "route"}).score(new, HashJudge())
