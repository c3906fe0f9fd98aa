"""The whole bank, K = 9: corrections fitted without labels, frozen with the head, never fitted again."""

from __future__ import annotations

import dataclasses
import json
import shutil
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from baer_utils import metrics
from baer_utils.backbones.base import Failure, Generation
from baer_utils.benchmarks import load_pairs
from baer_utils.costs import price, standalone
from baer_utils.debias import bank_runs, fit_debias, protocols_for
from baer_utils.deployment import (
    Frozen,
    baseline_table,
    baselines_of,
    describe_condition,
    fit_heads,
    freeze,
    open_test,
)
from baer_utils.deployment.corrections import debias_arrays
from baer_utils.deployment.fitting import features_of
from baer_utils.evidence import NATIVE, native_decisions, run_array, summarize
from baer_utils.gates import select_head
from baer_utils.judging import judge_pairs
from baer_utils.protocols import DERIVED, EXPERTS, Settings
from baer_utils.records import STATUSES, swap_pairs, swap_runs, unit_hash
from baer_utils.store import open_store, openings, seal
from tests.strategies import make_pairs, make_runs, same
from tests.test_deployment import HashJudge, develop, in_memory, sealed_condition

ASKED = protocols_for(EXPERTS)
TAG = Settings().tag
JUDGEBENCH = Path(__file__).parents[2] / "shared" / "data" / "judgebench"
TWIN = "a28a8dae-78a7-51a7-a46f-84a6e502068d"


class MixedJudge(HashJudge):
    """A hash judge some of whose texts say nothing, run out of budget, or fail; it remembers what it was asked."""

    name = "mixed-judge"

    def __init__(self):
        self.asked = Counter()

    def read(self, asked, labels=("A", "B")):
        self.asked.update((prompt.key.protocol, prompt.key.view) for prompt in asked)
        return super().read(asked, labels)

    def generate(self, asked, **options):
        self.asked.update((prompt.key.protocol, prompt.key.view) for prompt in asked)
        answers = []
        for prompt, said in zip(asked, super().generate(asked, **options), strict=True):
            u = unit_hash(f"{prompt.sha}|mood|{prompt.key.trial}")
            silent = Generation("Who knows.", (1,), "length" if u < 0.1 else "stop", 60, new_tokens=4)
            answers.append(Failure("503") if u > 0.98 else silent if u < 0.2 else said)
        return answers


def frozen_bank(c: SimpleNamespace, path: Path, **options) -> Frozen:
    """All nine experts, developed and frozen; corrections fitted on the way."""
    debias = options.pop("debias", None) or fit_debias(c.runs, c.pairs)
    decision = select_head(develop(c.pairs, c.runs, EXPERTS, debias=debias))
    condition = describe_condition(c.store, EXPERTS, debias=debias, **options)
    return freeze(decision, fit_heads(c.pairs, c.runs, decision, condition), path)


@pytest.fixture(scope="module")
def bank(tmp_path_factory) -> SimpleNamespace:
    """A sealed store with all calls for nine experts, and the head frozen from them."""
    folder = tmp_path_factory.mktemp("bank")
    c = sealed_condition(folder, MixedJudge(), ASKED, make_pairs(170, 5))
    c.folder, c.debias = folder, fit_debias(c.runs, c.pairs)
    c.frozen = frozen_bank(c, folder / "frozen")
    c.test = c.pairs[c.pairs["split"] == "test"].sort_values("pair_id").reset_index(drop=True)
    return c


@pytest.fixture
def fresh(bank, tmp_path) -> SimpleNamespace:
    """A copy of store and head that nobody has opened."""
    store = open_store(MixedJudge.name, "table", root=tmp_path / "store")
    pairs = seal(bank.labelled, store)
    store.write_runs(bank.runs, TAG)
    shutil.copytree(bank.frozen.path, tmp_path / "frozen")
    return SimpleNamespace(**vars(bank) | {"store": store, "pairs": pairs, "frozen": Frozen.load(tmp_path / "frozen")})


# ---------------------------------------------------------------- what is asked, what is derived


def test_what_is_asked_for_a_bank_is_direct_in_the_place_of_its_corrections_each_protocol_once():
    assert tuple(name for name in EXPERTS if name != "pride") == ASKED
    assert protocols_for(EXPERTS, native=False) == tuple(name for name in EXPERTS if name not in DERIVED)
    assert protocols_for(("rubric", "pride")) == ("rubric", "direct")
    assert protocols_for(("calibraeval",)) == protocols_for(("pride", "calibraeval")) == ("direct", "calibraeval")
    assert protocols_for(("GPT-9",)) == ("GPT-9",) == protocols_for(("GPT-9",), native=False)
    assert protocols_for(ASKED) == ASKED


def test_the_rows_of_a_bank_are_its_calls_and_those_of_the_given_corrections_whatever_stood_there(bank):
    whole = bank_runs(bank.runs, EXPERTS, bank.debias)
    rows = whole[whole["protocol"].isin(DERIVED) & whole["view"].isin(["ab", "ba"])]
    expected = bank.debias.apply(bank.runs)
    pd.testing.assert_frame_equal(rows.reset_index(drop=True), expected)
    assert len(whole) == len(bank.runs) + len(expected)
    third = whole[(whole["protocol"] == "calibraeval") & (whole["view"] == "ba_BA")]
    assert len(third) == len(bank.pairs)
    other = fit_debias(swap_runs(bank.runs).assign(log_odds=bank.runs["log_odds"] + 1), bank.pairs)
    stale = bank_runs(bank.runs, EXPERTS, other)
    pd.testing.assert_frame_equal(bank_runs(stale, EXPERTS, bank.debias), whole)
    one = bank_runs(bank.runs, ("pride", "rubric"), bank.debias)
    assert set(one.loc[~one.index.isin(bank.runs.index), "protocol"]) == {"pride"}
    assert bank_runs(bank.runs, ("direct", "rubric"), None) is bank.runs


@pytest.mark.parametrize("experts", [EXPERTS, ("pride",), ("direct", "calibraeval")])
def test_a_bank_with_corrections_and_none_fitted_is_refused_everywhere(bank, experts):
    refused = pytest.raises(ValueError, match="must come with fitted corrections.*fit_debias")
    with refused:
        bank_runs(bank.runs, experts, None)
    with refused:
        develop(bank.pairs, bank.runs, experts)
    with refused:
        describe_condition(bank.store, experts)
    with refused:
        baseline_table(bank.runs, bank.pairs, baselines_of(experts))


def test_corrections_fitted_on_other_pairs_or_on_test_inputs_are_refused(bank):
    everything = fit_debias(bank.runs, bank.pairs.assign(split="calibration"))
    with pytest.raises(ValueError, match=rf"fitted on {len(bank.test)} others, first {bank.test['pair_id'][0]}"):
        describe_condition(bank.store, EXPERTS, debias=everything)


def test_without_a_correction_in_the_bank_fitted_ones_leave_no_trace(bank, tmp_path):
    few = ("direct", "chain_of_thought")
    names = set()
    for number, debias in enumerate((None, bank.debias)):
        decision = select_head(develop(bank.pairs, bank.runs, few, debias=debias))
        condition = describe_condition(bank.store, few, debias=debias)
        frozen = freeze(decision, fit_heads(bank.pairs, bank.runs, decision, condition), tmp_path / str(number))
        assert frozen.debias is None and "debias" not in frozen.content and len(frozen.arrays) == 4
        names.add(frozen.sha256)
    assert len(names) == 1


# ---------------------------------------------------------------- frozen


def test_the_frozen_corrections_come_back_to_the_last_bit_and_a_person_can_read_what_they_are(bank):
    again = Frozen.load(bank.frozen.path)
    assert again.debias == bank.debias == again.condition.debias
    assert again.condition == describe_condition(bank.store, EXPERTS, debias=bank.debias)
    content = json.loads((bank.frozen.path / "deployment.json").read_text())["content"]
    shown, fitted = content["debias"], bank.debias
    assert (shown["prior"], shown["mode"]) == (fitted.prior, "ecdf") and 0 < fitted.prior < 1
    assert shown["expert"] == {"knots": len(fitted.expert.knots), "pairs": len(fitted.expert.pairs)}
    assert shown["three_prompts"]["knots"] == len(fitted.three_prompts.knots) > len(fitted.expert.knots) > 100
    assert shown["prior_pairs"] == len(fitted.prior_pairs)
    assert "debias" not in content["condition"] and len(json.dumps(shown)) < 500
    assert same(again.arrays["debias_expert_knots"], fitted.expert.knots)


@pytest.mark.parametrize("mode", ["ecdf", "optimised"])
@pytest.mark.parametrize("third", [True, False])
def test_every_kind_of_correction_survives_the_freeze(bank, tmp_path, mode, third):
    runs = bank.runs if third else bank.runs[bank.runs["view"] != "ba_BA"]
    c = SimpleNamespace(**vars(bank) | {"runs": runs})
    debias = fit_debias(runs, bank.pairs, mode, epochs=3)
    assert (debias.three_prompts is not None) == third
    frozen = frozen_bank(c, tmp_path / "frozen", debias=debias)
    assert frozen.debias == debias
    assert frozen.sha256 != bank.frozen.sha256 or (mode == "ecdf" and third)


def test_the_name_of_a_head_follows_every_number_of_its_corrections(bank, tmp_path):
    decision = select_head(develop(bank.pairs, bank.runs, EXPERTS, debias=bank.debias))
    heads = fit_heads(bank.pairs, bank.runs, decision, bank.frozen.condition)

    def up(numbers, n):
        return (*numbers[:n], float(np.nextafter(numbers[n], 1)), *numbers[n + 1 :])

    expert, three, fitted = bank.debias.expert, bank.debias.three_prompts, bank.debias
    changed = [
        {"prior": float(np.nextafter(fitted.prior, 1))},
        {"mode": "optimised"},
        {"three_prompts": None},
        {"prior_pairs": fitted.prior_pairs[1:]},
        {"expert": dataclasses.replace(expert, knots=up(expert.knots, 7))},
        {"expert": dataclasses.replace(expert, values=up(expert.values, 7))},
        {"three_prompts": dataclasses.replace(three, values=up(three.values, 7))},
        {"three_prompts": dataclasses.replace(three, pairs=three.pairs[1:])},
    ]
    names = {bank.frozen.sha256}
    for number, change in enumerate(changed):
        condition = dataclasses.replace(heads.condition, debias=dataclasses.replace(fitted, **change))
        names.add(freeze(decision, dataclasses.replace(heads, condition=condition), tmp_path / str(number)).sha256)
    assert len(names) == 1 + len(changed)


@settings(max_examples=60)
@given(st.sampled_from(["deployment.json", "arrays.npz"]), st.floats(0, 1, exclude_max=True), st.integers(1, 255))
def test_one_changed_byte_of_a_head_with_corrections_is_refused(bank, file, place, change):
    folder = bank.frozen.path.with_name("edited")
    shutil.copytree(bank.frozen.path, folder, dirs_exist_ok=True)
    data = bytearray((folder / file).read_bytes())
    data[int(place * len(data))] ^= change
    (folder / file).write_bytes(bytes(data))
    with pytest.raises(ValueError, match="byte for byte"):
        Frozen.load(folder)


def test_every_array_of_the_corrections_is_guarded_and_so_is_the_prior_in_the_json(fresh):
    path = fresh.frozen.path / "arrays.npz"
    whole = path.read_bytes()
    for name, values in debias_arrays(fresh.frozen.debias).items():
        place = whole.find(values.tobytes())
        assert place > 0, name
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with pytest.raises(ValueError, match="byte for byte"):
            Frozen.load(path.parent)
    path.write_bytes(whole)
    text = path.with_name("deployment.json").read_text()
    assert text.count(repr(fresh.frozen.debias.prior)) == 1
    path.with_name("deployment.json").write_text(text.replace(repr(fresh.frozen.debias.prior), "0.5"))
    with pytest.raises(ValueError, match="byte for byte"):
        Frozen.load(path.parent)


# ---------------------------------------------------------------- the swap, labels


def test_swapping_all_pairs_and_runs_negates_every_score_of_the_frozen_bank_bit_for_bit(bank):
    there, turned = swap_runs(bank.runs), swap_pairs(bank.pairs)
    phi, _ = features_of(bank.pairs, bank.runs, bank.frozen.condition)
    psi, _ = features_of(turned, there, bank.frozen.condition)
    assert phi.shape[1] == 2 * 9 + len(bank.frozen.condition.categories) and same(psi, -phi)
    s = bank.frozen.score_runs(bank.pairs, bank.runs)
    assert same(bank.frozen.score_runs(turned, there), -s) and len(set(s)) > 100
    assert same(bank.frozen.nonnegative_stack.score(psi), -bank.frozen.nonnegative_stack.score(phi))
    order = np.random.default_rng(0).permutation(len(bank.runs))
    assert same(bank.frozen.score_runs(bank.pairs.iloc[::-1], bank.runs.iloc[order]), s[::-1])
    # the corrections are fitted anew on swapped inputs: the same, and so are the weights
    again = fit_debias(there, turned)
    assert (again.prior, again.expert) == (bank.debias.prior, bank.debias.expert)
    decision = select_head(develop(turned, there, EXPERTS, debias=again))
    heads = fit_heads(turned, there, decision, dataclasses.replace(bank.frozen.condition, debias=again))
    assert same(heads.stack.weights, bank.frozen.stack.weights)


def test_identical_responses_score_exactly_zero_under_every_expert_and_both_stacks(bank):
    phi, evidence = features_of(bank.pairs, bank.runs, bank.frozen.condition)
    failed = bank.runs.loc[bank.runs["status"] == "error", "pair_id"]
    alike = (bank.pairs["response_a"] == bank.pairs["response_b"]) & ~bank.pairs["pair_id"].isin(failed)
    assert alike.sum() > 5
    assert (evidence.z[alike] == 0).all() and (phi[alike] == 0).all()
    for stack in (bank.frozen.stack, bank.frozen.nonnegative_stack):
        assert (stack.score(phi)[alike] == 0).all()


def test_poisoned_test_rows_and_labels_change_nothing_before_the_opening(fresh, tmp_path):
    sealed = next((fresh.store.folder / "sealed").glob("*.parquet"))
    sealed.write_bytes(b"poison")
    pairs, runs = seal(fresh.labelled, fresh.store), fresh.runs.copy()
    of_test = runs["pair_id"].isin(fresh.test["pair_id"])
    runs.loc[of_test, "log_odds"] = -3 * runs.loc[of_test, "log_odds"]
    pairs.loc[pairs["split"] == "test", "label"] = 1.0
    store = dataclasses.replace(fresh.store, pairs=pairs)
    poisoned = SimpleNamespace(pairs=pairs, runs=runs, store=store)
    assert fit_debias(runs, pairs) == fresh.debias
    assert frozen_bank(poisoned, tmp_path / "poisoned").sha256 == fresh.frozen.sha256


def test_labels_reach_the_weights_of_a_fold_and_never_the_corrections(bank):
    turned = bank.pairs.assign(label=-bank.pairs["label"])
    assert fit_debias(bank.runs, turned) == bank.debias
    before, after = (develop(p, bank.runs, EXPERTS, debias=bank.debias).out_of_fold for p in (bank.pairs, turned))
    pd.testing.assert_frame_equal(before[list(NATIVE)], after[list(NATIVE)], check_exact=True)
    assert not same(before["stack"], after["stack"])


def test_development_decides_by_the_corrections_it_is_given_and_fits_none_itself(bank):
    optimised = fit_debias(bank.runs, bank.pairs, "optimised", epochs=100)
    shown = develop(bank.pairs, bank.runs, EXPERTS, debias=optimised).out_of_fold.set_index("pair_id")
    known = bank.pairs[bank.pairs["label"].notna()]
    for debias in (optimised, bank.debias):
        native = native_decisions(bank_runs(bank.runs, EXPERTS, debias), known, list(NATIVE), debias=debias)
        assert same(shown["calibraeval"], native["calibraeval"].reindex(shown.index)) == (debias is optimised)


def test_k_is_the_declared_bank_and_an_expert_missing_on_a_pair_counts_as_zero_in_the_mean(bank):
    condition = dataclasses.replace(bank.frozen.condition, categories=("arithmetic", "math"))
    lost = bank.runs["pair_id"].isin(bank.pairs["pair_id"][:40]) & bank.runs["protocol"].isin(["rubric", "direct"])
    runs = bank.runs[~lost & (bank.runs["protocol"] != "prepair")]
    phi, evidence = features_of(bank.pairs, runs, condition)
    missing = ~evidence.available
    assert missing[:40, [0, 3, 6, 7]].all()  # direct, rubric, and what is read from direct
    assert missing[:, EXPERTS.index("prepair")].all()
    assert (phi[:, :18].reshape(-1, 2, 9).transpose(0, 2, 1)[missing] == 0).all()
    member = bank.pairs["task_type"].eq("math").to_numpy()
    assert phi[:, 19] == pytest.approx(member * evidence.z.sum(axis=1) / 9, abs=1e-12)
    assert np.abs(phi[member, 19]).max() > 0.1


# ---------------------------------------------------------------- new pairs, the opened test


def test_scoring_new_pairs_asks_direct_for_its_corrections_and_never_the_baselines_third_prompt(bank):
    new, judge = make_pairs(30, 6).assign(label=np.nan), MixedJudge()
    table = bank.frozen.score(new, judge)
    assert {name for name, _ in judge.asked} == set(EXPERTS) - set(DERIVED)
    assert not {view for _, view in judge.asked} & {"ab_BA", "ba_BA"}
    assert table["calls"].max() == 27  # 2 + 10 + 2 + 3 + 2 + 4 + 4; a call that fails ends its protocol
    assert same(bank.frozen.score(swap_pairs(new), MixedJudge())["s"], -table["s"])
    runs, _ = judge_pairs(new, MixedJudge(), ASKED, progress=False)
    by_hand = summarize(run_array(pd.concat([runs, bank.debias.apply(runs)]), EXPERTS, new["pair_id"]), EXPERTS).z
    assert same(features_of(new, runs, bank.frozen.condition)[0][:, :9], by_hand)
    assert (by_hand[:, 6] != by_hand[:, 0]).any() and (by_hand[:, 7] != by_hand[:, 0]).any()


def test_the_frozen_bank_scores_judged_pairs_as_in_the_test_whatever_corrections_the_table_holds(bank):
    s = bank.frozen.score_runs(bank.test, bank.runs)
    assert same(bank.frozen.score(bank.test, MixedJudge())["s"], s)
    assert same(Frozen.load(bank.frozen.path).score_runs(bank.test, bank.runs), s)
    other = dataclasses.replace(bank.debias, prior=0.01)
    assert same(bank.frozen.score_runs(bank.test, bank_runs(bank.runs, EXPERTS, other)), s)
    moved = dataclasses.replace(bank.frozen.condition, debias=other)
    assert not same(
        features_of(bank.test, bank.runs, moved)[0], features_of(bank.test, bank.runs, bank.frozen.condition)[0]
    )


def test_the_opened_test_is_measured_with_the_frozen_corrections_and_nothing_is_fitted_again(fresh):
    runs = fresh.runs.copy()
    development = ~runs["pair_id"].isin(fresh.test["pair_id"])
    runs.loc[development, "log_odds"] = 5.0
    assert fit_debias(runs, fresh.pairs) != fresh.debias  # what would be fitted now is another
    fresh.store.write_runs(runs, TAG)
    report = open_test(fresh.frozen, fresh.store)
    own = bank_runs(fresh.runs, EXPERTS, fresh.debias)
    native = native_decisions(own, fresh.test, list(NATIVE), debias=fresh.debias)
    assert list(report.methods.index[report.methods["kind"] == "baseline"]) == list(NATIVE)
    for name in NATIVE:
        assert same(report.pairs[name], native[name])
    assert same(report.pairs["s"], fresh.frozen.score_runs(fresh.test, fresh.runs))
    assert (report.pairs["calibraeval"] != report.pairs["direct"]).any()
    flips = metrics.flip_rate(run_array(own, EXPERTS, fresh.test["pair_id"]))
    assert same(report.experts["flip_rate"], flips) and flips[6] != flips[0]


def test_the_bill_counts_every_call_once_and_the_experts_what_each_would_cost_alone(fresh):
    report = open_test(fresh.frozen, fresh.store)
    experts, summary, ids = report.experts, report.summary, fresh.test["pair_id"]
    assert experts.loc["pride", "calls"] == experts.loc["calibraeval", "calls"] == experts.loc["direct", "calls"] == 2
    pd.testing.assert_frame_equal(
        experts[["calls", "prompt_tokens", "new_tokens"]], standalone(fresh.runs, EXPERTS, ids), check_dtype=False
    )
    mine = fresh.runs[fresh.runs["pair_id"].isin(ids) & ~fresh.runs["protocol"].isin(DERIVED)]
    assert summary["calls"] < experts["calls"].sum()  # the corrections' reads are direct's
    once = mine.drop_duplicates(["prompt_sha", "trial", "protocol", "stage"])
    assert summary["calls"] == pytest.approx(len(once) / len(ids))
    bill = {name: summary[name] for name in ("calls", "prompt_tokens", "unique_tokens", "new_tokens")}
    assert bill == price(fresh.runs, EXPERTS, ids)
    costs = report.methods["calls"]
    assert (costs["pride"], costs["direct"], costs["calibraeval"], costs["longer response"]) == (1, 2, 3, 0)
    assert costs["BAER (stack)"] == costs["majority"] == summary["calls"]
    assert f"{summary['calls']:.1f} calls" in str(report) and "order_inconsistent" in str(report)


def test_an_opening_that_could_not_decide_a_baseline_is_refused_before_a_label_is_looked_at(fresh, tmp_path):
    """CalibraEval's third prompt was asked of the test pairs only, after the corrections had been fitted without it."""
    without = fresh.runs[fresh.runs["view"] != "ba_BA"]
    c = SimpleNamespace(**vars(fresh) | {"runs": without})
    frozen = frozen_bank(c, tmp_path / "without")
    assert frozen.debias.three_prompts is None
    with pytest.raises(ValueError, match="debias has none"):
        open_test(frozen, fresh.store)
    assert openings(fresh.store) == []


@pytest.mark.skipif(not JUDGEBENCH.exists(), reason="JudgeBench's files are not beside the repository")
def test_judgebenchs_pair_of_identical_responses_is_zero_under_every_expert_and_head_of_the_bank(tmp_path):
    pairs = load_pairs("judgebench", JUDGEBENCH, n_pairs=120)
    whole = load_pairs("judgebench", JUDGEBENCH)
    twin = whole[whole["pair_id"] == TWIN]
    assert len(twin) == 1 and twin["response_a"].iloc[0] == twin["response_b"].iloc[0]
    pairs = pd.concat([pairs[pairs["pair_id"] != TWIN], twin], ignore_index=True)
    store = open_store(HashJudge.name, "judgebench", n_pairs=120, root=tmp_path / "store")
    pairs = seal(pairs, store)
    runs, _ = judge_pairs(pairs, HashJudge(), ASKED, store=store, progress=False)
    frozen = frozen_bank(SimpleNamespace(pairs=pairs, runs=runs, store=store), tmp_path / "frozen")
    phi, evidence = features_of(twin, runs, frozen.condition)
    assert evidence.available.all() and (evidence.z == 0).all() and evidence.experts == EXPERTS
    assert phi.shape == (1, 36)  # published: 36 features on JudgeBench (BAER, section 2.2)
    assert frozen.score_runs(twin, runs).tolist() == frozen.nonnegative_stack.score(phi).tolist() == [0.0]
    s = frozen.score_runs(pairs, runs)
    assert same(frozen.score_runs(swap_pairs(pairs), swap_runs(runs)), -s) and (s != 0).sum() > 100


def test_a_head_with_corrections_of_imported_judges_still_cannot_be_asked():
    pairs, runs = make_pairs(20, 9), make_runs(make_pairs(20, 9), ("GPT-9", "direct"), 9)
    frozen = in_memory(pairs, runs, ("GPT-9", "pride"))
    with pytest.raises(ValueError, match="GPT-9 cannot"):
        frozen.score(pairs, SimpleNamespace(name="test"))
    assert frozen.score_runs(pairs, runs).shape == (20,)


# ---------------------------------------------------------------- the table of baselines


def test_the_table_of_baselines_counts_failures_accuracies_and_costs_by_hand(bank):
    methods = baselines_of(EXPERTS)
    assert methods == tuple(NATIVE)
    table = baseline_table(bank.runs, bank.pairs, methods, bank.debias)
    known = bank.pairs[bank.pairs["label"].notna()]
    assert table.attrs["unlabelled"] == len(bank.test) and (table["n"] == len(known)).all()
    mine = bank.runs[bank.runs["pair_id"].isin(known["pair_id"])]
    for name in ("self_consistency", "chain_of_thought", "rubric", "score_then_choose", "prepair"):
        own = mine[mine["protocol"] == name]
        assert table.loc[name, list(STATUSES)].to_dict() == {s: (own["status"] == s).sum() for s in STATUSES}
        cut = (own["status"] == "truncated") & (own["stage"] != "verdict")
        assert table.loc[name, "cut_notes"] == cut.sum()
        assert table.loc[name, "calls"] * len(known) == pytest.approx(len(own))
        assert table.loc[name, "new_tokens"] * len(known) == pytest.approx(own["new_tokens"].sum())
    assert table.loc["prepair", "cut_notes"] > 0 and table.loc["chain_of_thought", "cut_notes"] == 0
    assert (table.loc["self_consistency", ["ok", "unparsed", "truncated", "error"]] > 0).all()
    assert np.allclose(table[list(STATUSES)].sum(axis=1), table["calls"] * len(known))
    assert table.loc[["direct", "pride", "calibraeval"], "calls"].tolist() == [2, 1, 3]
    sides = (
        mine[mine["protocol"] == "chain_of_thought"].pivot(index="pair_id", columns="view", values="log_odds").dropna()
    )
    assert (
        table.loc["chain_of_thought", "order_inconsistent"] == (np.sign(sides["ab"]) != np.sign(sides["ba"])).sum() > 0
    )
    assert np.isnan(table.loc["pride", "order_inconsistent"])

    y = known.set_index("pair_id")["label"]
    answers = native_decisions(bank_runs(mine, EXPERTS, bank.debias), known, methods, debias=bank.debias)
    for name in methods:
        row, answer = table.loc[name], answers[name]
        tied, silent = answer == 0, answer.isna()
        assert (row["ties"], row["missing"]) == (tied.sum(), silent.sum())
        assert row["strict"] == row["paper_rule"] == (answer == y).mean()
        assert row["matched_rule"] == (np.where(answer < 0, -1, 1) == y).mean()
        assert row["half_credit"] == pytest.approx(((answer == y) + 0.5 * (tied | silent)).mean())
        assert row["covered_only"] == pytest.approx((answer == y)[~tied & ~silent].mean())
        assert row["coverage"] == pytest.approx(1 - (tied | silent).mean())
        assert row["matched_rule_low"] <= row["matched_rule"] <= row["matched_rule_high"]


def test_the_table_of_baselines_needs_no_refit_on_test_pairs_alone(bank):
    opened = bank.labelled[bank.labelled["split"] == "test"]
    table = baseline_table(bank.runs, opened, list(NATIVE), bank.debias)
    assert (table["n"] == len(opened)).all() and table.loc["calibraeval", "coverage"] == 1
    one = baseline_table(bank.runs, opened, ["chain_of_thought"])
    pd.testing.assert_series_equal(one.loc["chain_of_thought"], table.loc["chain_of_thought"], check_dtype=False)
    with pytest.raises(ValueError, match="native rule"):
        baseline_table(bank.runs, opened, ["deliberate"])


def test_a_real_judges_eight_baselines_stand_in_one_table(sums, tiny, monkeypatch):
    monkeypatch.setattr("baer_utils.judging.LEAST_LABEL_MASS", 0.0)  # random weights say their labels rarely
    brief = Settings(max_new_tokens=6, criteria_tokens=6, letter_tokens=6, trials=2)
    pairs = sums.iloc[[*range(8), 38]]
    runs, _ = judge_pairs(pairs, tiny, protocols_for(tuple(NATIVE)), settings=brief, progress=False)
    table = baseline_table(runs, pairs, list(NATIVE), fit_debias(runs, pairs))
    assert list(table.index) == list(NATIVE)
    assert table["calls"].tolist() == [2, 4, 2, 3, 2, 4, 1, 3]
    assert table[list(STATUSES)].sum(axis=1).tolist() == (table["calls"] * 9).tolist()
    assert (table[["strict", "matched_rule", "half_credit", "coverage"]].stack().between(0, 1)).all()
    assert (table["prompt_tokens"] > 0).all() and (table.loc[["direct", "pride"], "new_tokens"] == 0).all()
