"""Imported judges as conditions: the native net of the orders, the pipeline from runs to an opened test, Table 1."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings

from baer_utils.deployment import banks as conditions
from baer_utils.deployment import open_test
from baer_utils.deployment.banks import Bank, judgebench_bank, kept_or_run, llmbar_banks
from baer_utils.deployment.figures import BOUNDED, condition_figures
from baer_utils.deployment.printing import rendered
from baer_utils.deployment.unseen import descriptors, leave_one_condition_out
from baer_utils.evidence import native_decisions
from baer_utils.records import split_of, swap_runs
from tests.conftest import SHARED
from tests.strategies import banks, make_pairs, make_runs, run_rows, same

needs_shared = pytest.mark.skipif(not SHARED.exists(), reason="real data is not beside this checkout (../shared/data)")
LLMBAR = SHARED / "llmbar" / "Dataset-LLMBar.tar.xz"
TIDY = SHARED / "tidy" / "judgebench_gpt.verdicts.csv.gz"
A, B, TIE, NONE = math.inf, -math.inf, 0.0, math.nan


# ---------------------------------------------------------------- the native rule


@pytest.mark.parametrize(
    "ab, ba, verdict",
    [
        (A, A, 1), (B, B, -1), (A, B, 0), (TIE, A, 1), (B, TIE, -1), (A, NONE, 1), (NONE, NONE, NONE), (TIE, TIE, 0),
        (TIE, NONE, 0),
    ],
)  # fmt: skip
def test_an_imported_judge_answers_by_the_net_of_its_orders(ab, ba, verdict):
    pairs = make_pairs(1)
    runs = run_rows([(pairs["pair_id"][0], "their judge", view, 0, x) for view, x in (("ab", ab), ("ba", ba))])
    assert same(native_decisions(runs, pairs, ["their judge"])["their judge"], [verdict])


def test_a_judge_of_one_combined_run_answers_by_it_and_one_without_runs_is_refused():
    pairs = make_pairs(2)
    runs = run_rows([(pair_id, "pool", "net", 0, x) for pair_id, x in zip(pairs["pair_id"], (B, TIE), strict=True)])
    assert same(native_decisions(runs, pairs, ["pool"])["pool"], [-1, 0])
    with pytest.raises(ValueError, match="not known: absent. An imported judge must have runs"):
        native_decisions(runs, pairs, ["pool", "absent"])
    with pytest.raises(ValueError, match="not known: deliberate"):
        native_decisions(runs.assign(protocol="deliberate"), pairs, ["deliberate"])


# ---------------------------------------------------------------- a made condition


def made_bank(n: int = 260, seed: int = 0, name: str = "made / bank") -> Bank:
    """Two fair judges, one that is always wrong, and one whose orders are combined already; hard verdicts."""
    pairs = make_pairs(n, seed, benchmark="made")
    skills = {"fair": 1.5, "other": 1.0, "wrong": -2.0, "pool": 1.0}
    runs = pd.concat([make_runs(pairs, [judge], k, skill=skill) for k, (judge, skill) in enumerate(skills.items())])
    runs = runs[~((runs["protocol"] == "pool") & (runs["view"] == "ba"))].reset_index(drop=True)
    runs["view"] = runs["view"].where(runs["protocol"] != "pool", "net")
    runs["log_odds"] = np.sign(runs["log_odds"]) * math.inf
    return Bank(name, "made", "bank", pairs, runs.assign(backbone="bank"), tuple(sorted(skills)))


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made")
    bank = made_bank()
    return bank, folder, kept_or_run(bank, 0, folder, ("stack",))


def test_a_condition_goes_from_runs_to_an_opened_test_and_its_swap_negates_everything(made):
    bank, _, figures = made
    names = ("not_negated", "not_flipped", "choice_changed", "native_not_negated")
    assert figures["swap"] == {"pairs": figures["pairs"]} | dict.fromkeys(names, 0)
    accuracy = figures["accuracy"]
    assert (
        accuracy["deployed"] > max(accuracy[name] for name in ("fair", "other", "pool", "majority")) > accuracy["wrong"]
    )
    assert accuracy["deployed"] > accuracy[BOUNDED] and "wrong" in figures["inverted"]["experts"]
    assert accuracy[figures["head"]] == accuracy["deployed"]
    assert figures["oracle"] < accuracy["deployed"]  # where all are wrong together, only an inverted judge is right
    assert set(bank.experts) < set(accuracy) and all(accuracy[name] >= figures["paper"][name] for name in bank.experts)
    assert accuracy["reference"] is None


def test_what_is_kept_agrees_with_the_report_and_says_what_is_left_without_the_subsets_of_a_lead(made, tmp_path):
    bank, _, figures = made
    assert np.isclose(np.mean(figures["right"]["stack"]), figures["accuracy"]["stack"])
    assert len(figures["right"]["question"]) == figures["pairs"] and set(figures["calibration"]) == {"stack"}
    assert figures["development"]["heads"]["stack"]["accuracy"]["pooled"] > 0.5
    of_test, of_rest = figures["scores"]["test"], figures["scores"]["development"]
    assert len(of_test["s"]) == figures["pairs"] and len(of_rest["s"]) == len(bank.pairs) - figures["pairs"]
    assert of_test["reliability"] is None and len(figures["zero_scores"]) == of_test["s"].count(0)
    frozen, store = conditions.deploy_bank(bank, 1, tmp_path, ("stack",))
    report = open_test(frozen, store)
    bare = {name: replace(report, summary=report.summary | {"explained_by": names}, without=None)
            for name, names in (("no lead", []), ("everywhere", ["all of it"]))}  # fmt: skip
    told = frozen.head_scores(store.pairs[store.pairs["split"] != "test"], bank.runs)
    kept = {name: condition_figures(frozen, one, told) for name, one in bare.items()}
    assert kept["no lead"]["without"]["accuracy"] == kept["no lead"]["accuracy"]
    assert kept["everywhere"]["without"] is None
    gap = report.summary["transfer_gap"]
    assert kept["no lead"]["transfer_gap"][0] == gap and kept["no lead"]["inverted"]["experts"] == ["wrong"]


def test_what_is_kept_is_not_computed_again_unless_the_data_changed(made, monkeypatch):
    bank, folder, figures = made
    monkeypatch.setattr(conditions, "run_bank", lambda *_: pytest.fail("computed again"))
    assert kept_or_run(bank, 0, folder, ("stack",)) == figures
    other = Bank(bank.name, bank.benchmark, bank.backbone, bank.pairs, swap_runs(bank.runs), bank.experts)
    for changed, seed, heads in ((bank, 1, ("stack",)), (other, 0, ("stack",)), (bank, 0, ("stack", "route"))):
        with pytest.raises(pytest.fail.Exception, match="computed again"):
            kept_or_run(changed, seed, folder, heads)


def test_another_seed_deals_the_same_pairs_to_other_splits(made):
    bank = made[0]
    assert list(bank.split(3)["split"]) == [split_of(group, 3) for group in bank.pairs["group_id"]]
    assert bank.split(0).equals(bank.pairs)


# ---------------------------------------------------------------- real conditions


@pytest.fixture(scope="module")
def llmbar():
    return llmbar_banks(LLMBAR)


@needs_shared
def test_llmbar_gives_six_banks_and_judgebench_one_of_seventeen_judges(llmbar):
    sizes = {"ChatGPT": 12, "ChatGPT-0301": 10, "Falcon": 10, "GPT-4": 15, "LLaMA2": 10, "PaLM2": 8}
    assert {bank.backbone: len(bank.experts) for bank in llmbar} == sizes
    assert all(len(bank.pairs) == 419 for bank in llmbar)
    pool, three = judgebench_bank(SHARED / "judgebench", TIDY), judgebench_bank(SHARED / "judgebench")
    assert len(pool.experts) == 17 and len(three.experts) == 3 and len(pool.pairs) == len(three.pairs) == 350
    assert (pool.runs["view"] == "net").sum() == 6 * 350


@needs_shared
def test_on_llama2_the_deployed_head_leads_the_best_single_protocol_by_far_and_negates_with_the_swap(llmbar, tmp_path):
    bank = next(bank for bank in llmbar if bank.backbone == "LLaMA2")
    figures = kept_or_run(bank, 0, tmp_path, ("stack",))
    best = figures["accuracy"][f"best single ({figures['best_single']})"]
    assert figures["accuracy"]["deployed"] >= best + 0.15
    assert sum(count for name, count in figures["swap"].items() if name != "pairs") == 0
    text = rendered([figures])
    assert "llmbar, matched rule" in text and "not evaluated" in text and "Vanilla_2shot" in text
    assert "Column leads" in text and "ahead of every expert" in text


# ---------------------------------------------------------------- unseen conditions


@settings(max_examples=25)
@given(banks())
def test_descriptors_are_the_same_for_a_condition_and_its_swap_to_the_last_bit(bank):
    pairs, runs, experts = bank
    here, there = (descriptors(table, experts, pairs["pair_id"]) for table in (runs, swap_runs(runs)))
    assert here == there and all(math.isfinite(value) for value in here.values())


def test_agreeing_steady_judges_and_two_that_contradict_each_other_look_as_they_should():
    rows = [("p", judge, view, 0, A) for judge in ("j", "k") for view in ("ab", "ba")]
    found = descriptors(run_rows(rows), ["j", "k"], ["p"])
    assert (found["flip_rate_mean"], found["agreement"], found["margin"], found["confidence"]) == (0, 1, 1, 1)
    turned = run_rows([("p", "j", "ab", 0, A), ("p", "j", "ba", 0, A), ("p", "k", "ab", 0, B), ("p", "k", "ba", 0, B)])
    found = descriptors(turned, ["j", "k"], ["p"])
    assert (found["agreement"], found["margin"]) == (-1, 0)


def test_a_head_that_pays_where_judges_flip_is_predicted_for_a_condition_left_out():
    names = [f"c{k}" for k in range(8) for _ in range(3)]
    flips = np.repeat([0.1, 0.9] * 4, 3)
    accuracy = pd.DataFrame({"stack": 0.7, "route": 0.7 + 0.2 * (flips - 0.5), "reference": np.nan})
    features = pd.DataFrame({"flip_rate_mean": flips, "constant": 1.0}, index=names)
    table = leave_one_condition_out(features, accuracy.set_axis(names), ["stack"] * 24)
    assert table["predicted"].tolist() == ["stack", "route"] * 4
    assert np.allclose(table["predicted_regret"], 0) and np.allclose(table["gated_regret"], [0, 8] * 4)
    assert (table["gated_regret"] == table["default_regret"]).all() and (table["rows"] == 3).all()
    with pytest.raises(ValueError, match="default must be evaluated in every row; 'reference'"):
        leave_one_condition_out(features, accuracy.set_axis(names), ["stack"] * 24, default="reference")
