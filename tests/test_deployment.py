"""From run table to opened test: out-of-fold figures, a frozen head, one opening, and scores for new pairs."""

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
from scipy.special import expit
from scipy.stats import binom, binomtest
from sklearn.metrics import brier_score_loss

from baer_utils import metrics, prompts, scores
from baer_utils.backbones.base import Generation, Read
from baer_utils.benchmarks import load_pairs
from baer_utils.debias import Debias, IncreasingMap
from baer_utils.deployment import (
    Condition,
    Frozen,
    TestReport,
    baselines_of,
    deployed_score,
    describe_condition,
    fit_heads,
    freeze,
    open_test,
    out_of_fold,
    question_folds,
)
from baer_utils.deployment import develop as develop_heads
from baer_utils.deployment.corrections import debias_arrays, debias_figures
from baer_utils.deployment.counting import order_rows, rule_answers
from baer_utils.deployment.fitting import features_of, represent
from baer_utils.deployment.measuring import measure
from baer_utils.evidence import run_array, summarize
from baer_utils.gates import select_head
from baer_utils.judging import judge_pairs
from baer_utils.metrics import as_answers
from baer_utils.protocols import Settings
from baer_utils.records import swap_pairs, swap_runs, unit_hash
from baer_utils.stacking import choose_lambda, fit_stack
from baer_utils.store import open_store, openings, seal
from tests.strategies import banks, make_pairs, make_runs, same

EXPERTS = ("direct", "chain_of_thought")
JUDGEBENCH = Path(__file__).parents[2] / "shared" / "data" / "judgebench"
FEW = settings(max_examples=25, deadline=None)


def develop(*tables, **options):
    """Development of the stack alone; the three heads together have a file of their own (test_heads.py)."""
    return develop_heads(*tables, **{"heads": ("stack",)} | options)


class HashJudge:
    """A judge whose answers are a hash of what it is shown: deterministic, biased by order, blind to the rest."""

    name, context = "hash-judge", 100_000

    def render(self, prompt):
        return list(prompt.sha.encode())

    def count(self, text):
        return len(text)

    def share(self, prompts):
        pass

    label_mass = 0.9
    budgets: tuple[int, ...] = ()

    def read(self, prompts, labels=("A", "B")):
        return [Read(10 * unit_hash(prompt.sha) - 4, self.label_mass, 50, new_tokens=1) for prompt in prompts]

    def generate(self, prompts, *, max_new_tokens, temperature=0.0, top_p=1.0, seeds=None):
        self.budgets += (max_new_tokens,)
        letters = ["A" if unit_hash(prompt.sha) < 0.6 else "B" for prompt in prompts]
        return [Generation(f"The better response is {letter}.", (1,), "stop", 60, new_tokens=4) for letter in letters]


def condition_in(folder: Path, n: int = 400, seed: int = 0, experts=EXPERTS, **kwargs) -> SimpleNamespace:
    """A sealed store with judged pairs, and the labelled table it was sealed from."""
    labelled = make_pairs(n, seed)
    store = open_store("test", "table", root=folder / "store")
    pairs = seal(labelled, store)
    runs = make_runs(labelled, experts, seed, **kwargs)
    store.write_runs(runs, Settings().tag)
    return SimpleNamespace(labelled=labelled, store=store, pairs=pairs, runs=runs, experts=experts)


def frozen_in(c: SimpleNamespace, path: Path, clip: float = 1e-4) -> Frozen:
    decision = select_head(develop(c.pairs, c.runs, c.experts, clip=clip))
    return freeze(
        decision, fit_heads(c.pairs, c.runs, decision, describe_condition(c.store, c.experts, clip=clip)), path
    )


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> SimpleNamespace:
    c = condition_in(tmp_path_factory.mktemp("home"))
    c.frozen = frozen_in(c, c.store.folder.parent / "frozen")
    return c


@pytest.fixture
def fresh(home, tmp_path) -> SimpleNamespace:
    """A copy of the store and the frozen head that nobody has opened."""
    c = condition_in(tmp_path)
    shutil.copytree(home.frozen.path, tmp_path / "frozen")
    c.frozen = Frozen.load(tmp_path / "frozen")
    return c


# ---------------------------------------------------------------- development


def test_what_stands_in_test_rows_cannot_matter(home, tmp_path):
    pairs, runs = home.pairs.copy(), home.runs.copy()
    test = pairs["split"] == "test"
    of_test = runs["pair_id"].isin(pairs.loc[test, "pair_id"])
    pairs.loc[test, "label"] = 1.0
    pairs.loc[test, ["subset", "task_type"]] = "never seen"
    runs.loc[of_test, "log_odds"] = -runs.loc[of_test, "log_odds"]
    store = dataclasses.replace(home.store, pairs=pairs)
    poisoned = SimpleNamespace(pairs=pairs, runs=runs[~of_test | (runs["view"] == "ab")], store=store, experts=EXPERTS)
    before, after = develop(home.pairs, home.runs, EXPERTS), develop(poisoned.pairs, poisoned.runs, EXPERTS)
    assert before == after
    pd.testing.assert_frame_equal(before.out_of_fold, after.out_of_fold, check_exact=True)
    assert frozen_in(poisoned, tmp_path / "poisoned").sha256 == home.frozen.sha256


@FEW
@given(st.lists(st.integers(0, 12), min_size=1, max_size=40), st.integers(0, 3), st.randoms(use_true_random=False))
def test_whole_questions_are_dealt_to_folds_round_robin_whatever_the_row_order(numbers, seed, random):
    groups = [f"q{number}" for number in numbers]
    dealt = sorted(set(groups), key=lambda group: unit_hash(f"{seed}|fold|{group}"))
    expected = {group: place % min(5, len(dealt)) for place, group in enumerate(dealt)}
    assert question_folds(groups, seed=seed).tolist() == [expected[group] for group in groups]
    random.shuffle(groups)
    assert question_folds(groups, seed=seed).tolist() == [expected[group] for group in groups]


def test_out_of_fold_scores_are_those_of_the_lambda_rule_redone_by_hand(home):
    table = home.pairs[home.pairs["split"] != "test"].sort_values("pair_id").reset_index(drop=True)
    phi, _ = features_of(table, home.runs, home.frozen.condition)
    y, split = table["label"].to_numpy(), table["split"].to_numpy()
    fold = question_folds(table["group_id"], seed=0)
    development = develop(home.pairs, home.runs, EXPERTS)
    assert development.questions["selection"] >= 20
    for held in range(5):
        train = fold != held
        sel, cal = train & (split == "selection"), train & (split == "calibration")
        lam = choose_lambda(phi[sel], y[sel], phi[cal], y[cal])
        assert development.heads["stack"].notes["lambda_by_fold"][held] == lam
        expected = fit_stack(phi[train], y[train], lam).score(phi[~train])
        assert same(development.out_of_fold.loc[fold == held, "stack"], expected)


def test_a_pairs_own_label_never_touches_its_out_of_fold_score(home):
    before = develop(home.pairs, home.runs, EXPERTS).out_of_fold
    fold = before["fold"] == 2
    pairs = home.pairs.copy()
    turned = pairs["pair_id"].isin(before.loc[fold, "pair_id"])
    pairs.loc[turned, "label"] = -pairs.loc[turned, "label"]
    after = develop(pairs, home.runs, EXPERTS).out_of_fold
    assert same(before.loc[fold, "stack"], after.loc[fold, "stack"])
    assert not same(before.loc[~fold, "stack"], after.loc[~fold, "stack"])


def test_development_figures_are_those_counted_by_hand_under_both_rules(tmp_path):
    c = condition_in(tmp_path, seed=3, skill=0.3)
    c.runs.loc[c.runs["protocol"] == "direct", "log_odds"] *= np.inf  # hard verdicts, so that orders tie
    development = develop(c.pairs, c.runs, EXPERTS)
    table = development.out_of_fold
    for part, rows in (("selection", table[table["split"] == "selection"]), ("pooled", table)):
        y, figures = rows["label"], development.heads["stack"]
        right = np.where(rows["stack"] >= 0, 1, -1) == y
        matched = {name: (np.where(rows[name] < 0, -1, 1) == y).sum() for name in EXPERTS}
        best = min(matched, key=lambda name: (-matched[name], name))
        assert development.baselines[part] == best
        assert figures.accuracy[part] == right.mean()
        assert figures.margin[part] == pytest.approx(100 * (right.sum() - matched[best]) / len(rows), abs=1e-12)
        strict = (rows[best] == y).sum()
        assert figures.paper_margin[part] == pytest.approx(100 * (right.sum() - strict) / len(rows), abs=1e-12)
        b, c_ = figures.discordant[part]
        assert b - c_ == right.sum() - matched[best]
        assert figures.mcnemar_p[part] == pytest.approx(binomtest(b, b + c_).pvalue, abs=1e-12)
    gap = figures.accuracy["calibration"] - figures.accuracy["selection"]
    assert figures.transfer_gap == pytest.approx(100 * gap) and gap != 0
    assert figures.paper_margin["pooled"] > figures.margin["pooled"]  # ties: the paper's rule flatters


def test_rules_that_any_head_should_beat_have_the_same_figures_as_a_head_and_stand_in_every_table(opened):
    development = develop(opened.pairs, opened.runs, EXPERTS)
    rows = development.out_of_fold.set_index("pair_id")
    table, known = development.table(), opened.labelled.set_index("pair_id").loc[rows.index]
    names = [f"best single ({development.best_single})", "majority", "longer response"]
    assert list(development.rules) == names and list(table["method"].unique()) == ["stack", *names]
    right = np.where(known["response_a"].str.len() < known["response_b"].str.len(), -1, 1) == known["label"]
    for split in ("selection", "calibration", "pooled"):
        part = (known["split"] == split) | (split == "pooled")
        row = table.set_index(["method", "split"]).loc[("longer response", split)]
        theirs = as_answers(rows.loc[part, row["baseline"]]) == rows.loc[part, "label"]
        assert row["accuracy"] == right[part].mean() and row["pairs"] == part.sum()
        assert row["margin"] == pytest.approx(100 * (right[part].mean() - theirs.mean()))
        assert row["discordant"] == ((right[part] & ~theirs).sum(), (~right[part] & theirs).sum())
    evidence = summarize(run_array(opened.runs, EXPERTS, known.index), EXPERTS)
    best = as_answers(evidence.z[:, EXPERTS.index(development.best_single)]) == known["label"]
    votes = as_answers(metrics.majority(evidence.z, EXPERTS)) == known["label"]
    assert development.rules[names[0]].accuracy["pooled"] == best.mean()
    assert development.rules["majority"].accuracy["pooled"] == votes.mean() != 0.5
    kept = opened.frozen.content["development"]["rules"]
    assert {name: kept[name]["accuracy"] for name in kept} == {name: development.rules[name].accuracy for name in names}


def tiny(labels, splits, experts=EXPERTS, questions=None) -> tuple[pd.DataFrame, pd.DataFrame]:
    pairs = make_pairs(len(labels), 1).assign(label=np.array(labels, float), split=splits)
    pairs["group_id"] = questions or [f"question {i}" for i in range(len(labels))]
    return pairs, make_runs(pairs, experts, 1)


@pytest.mark.parametrize(
    "case",
    [
        tiny([1] * 60, ["selection"] * 30 + ["calibration"] * 30),  # one class only
        tiny([1, -1] * 6, ["calibration"] * 12),  # no selection row in any fold
        tiny([1, -1] * 6, ["selection"] * 12),  # no calibration row
        tiny([1, -1, 1], ["selection", "calibration", "calibration"], questions=["q1", "q2", "q2"]),  # two questions
        tiny([1, -1], ["selection", "selection"], questions=["q", "q"]),  # one question: nothing to learn from
        tiny([1, -1] * 20, ["selection"] * 19 + ["calibration"] * 21),  # too few questions in selection
        tiny([1, -1] * 20, ["selection", "calibration"] * 20, experts=("direct",)),
    ],
    ids=["one class", "no selection", "no calibration", "two questions", "one question", "few", "one expert"],
)
def test_poor_development_data_still_give_finite_scores_and_the_default_head(case):
    pairs, runs = case
    experts = tuple(runs["protocol"].unique())
    development = develop(pairs, runs, experts)
    assert np.isfinite(development.out_of_fold["stack"]).all()
    decision = select_head(development)
    assert decision.head == "stack"
    assert decision.selected is (development.questions["selection"] >= 20)
    if not decision.selected:
        assert {lam for lam in development.heads["stack"].notes["lambda_by_fold"] if lam == lam} <= {10.0}


def test_experts_that_never_answered_leave_every_score_at_zero(tmp_path):
    c = condition_in(tmp_path, 60)
    c.runs = c.runs[:0]
    development = develop(c.pairs, c.runs, EXPERTS)
    assert (development.out_of_fold["stack"] == 0).all()
    assert development.heads["stack"].zero_scores == len(development.out_of_fold)
    assert development.heads["stack"].margin["pooled"] == 0  # the matched rule: everybody answers a
    assert same(frozen_in(c, tmp_path / "frozen").score_runs(c.pairs, c.runs), np.zeros(len(c.pairs)))


def test_pairs_that_nobody_labelled_are_left_out_and_counted(home):
    pairs = home.pairs.copy()
    some = pairs.index[pairs["split"] == "calibration"][:7]
    pairs.loc[some, "label"] = np.nan
    development = develop(pairs, home.runs, EXPERTS)
    assert development.unlabelled == 7
    assert not development.out_of_fold["pair_id"].isin(pairs.loc[some, "pair_id"]).any()
    with pytest.raises(ValueError, match="labelled selection or calibration pairs"):
        develop(pairs.assign(label=np.nan), home.runs, EXPERTS)


# ---------------------------------------------------------------- the swap, the order of rows


MADE_UP = Debias(0.7, (), IncreasingMap((0.2, 0.5, 0.9), (0.1, 0.6, 0.8)), None, "ecdf", 0, 0.0)


def in_memory(pairs: pd.DataFrame, runs: pd.DataFrame, experts) -> Frozen:
    """A stack fitted on all rows of a small bank, never written; corrections that nobody fitted."""
    categories = tuple(sorted(set(pairs["subset"]) - {""}))
    condition = Condition("table", "test", 0, 0, tuple(experts), 1e-4, {}, {}, {}, categories, "0")
    content = {"head": "stack", "condition": dataclasses.asdict(condition), "stack": {"lambda": 0.01}}
    content["debias"] = debias_figures(MADE_UP)
    phi, _ = features_of(pairs, runs, dataclasses.replace(condition, debias=MADE_UP))
    stack = fit_stack(phi, pairs["label"].to_numpy(), 0.01)
    arrays = {"stack_weights": stack.weights, "stack_scale": stack.scale} | debias_arrays(MADE_UP)
    return Frozen(Path(), "", content, arrays)


@settings(max_examples=60, deadline=None)
@given(banks(), st.randoms(use_true_random=False))
def test_swapping_from_the_run_table_on_negates_every_deployed_score_bit_for_bit(bank, random):
    pairs, runs, experts = bank
    frozen = in_memory(pairs, runs, experts)
    s = frozen.score_runs(pairs, runs)
    assert same(frozen.score_runs(swap_pairs(pairs), swap_runs(runs)), -s)
    order, shuffled = list(range(len(pairs))), list(range(len(runs)))
    random.shuffle(order), random.shuffle(shuffled)
    assert same(frozen.score_runs(pairs.iloc[order], runs.iloc[shuffled]), s[order])
    identical = (pairs["response_a"] == pairs["response_b"]).to_numpy()
    assert (s[identical & both_orders(pairs, runs)] == 0).all()


def both_orders(pairs, runs) -> np.ndarray:
    """Pairs on which every expert that answered did so in both orders equally often."""
    known = runs[runs["log_odds"].notna()].groupby(["pair_id", "protocol", "view"]).size().unstack(fill_value=0)
    known = known.reindex(columns=["ab", "ba"], fill_value=0)
    even = (known["ab"] == known["ba"]).groupby("pair_id").all()
    return pairs["pair_id"].map(even).ne(False).to_numpy()


def test_swapped_training_pairs_and_shuffled_rows_freeze_the_same_head(home, tmp_path):
    order = np.random.default_rng(0).permutation(len(home.runs))
    shuffled = vars(home) | {"pairs": home.pairs.iloc[::-1], "runs": home.runs.iloc[order]}
    assert frozen_in(SimpleNamespace(**shuffled), tmp_path / "shuffled").sha256 == home.frozen.sha256
    swapped = vars(home) | {"pairs": swap_pairs(home.pairs), "runs": swap_runs(home.runs)}
    turned = frozen_in(SimpleNamespace(**swapped), tmp_path / "swapped")
    assert same(turned.stack.weights, home.frozen.stack.weights)


def test_the_deployed_score_is_one_heads_for_every_pair():
    table = {"stack": np.array([1.0, -2.0]), "route": np.array([3.0, 4.0])}
    assert same(deployed_score(table, "route"), [3, 4])
    with pytest.raises(ValueError, match="'reference' has none"):
        deployed_score(table, "reference")


# ---------------------------------------------------------------- freezing


def test_a_frozen_head_comes_back_from_disk_as_it_was(home):
    again = Frozen.load(home.frozen.path)
    assert again == dataclasses.replace(home.frozen, arrays=again.arrays)
    assert all(same(again.arrays[name], values) for name, values in home.frozen.arrays.items())
    assert again.condition == describe_condition(home.store, EXPERTS)
    test = home.pairs[home.pairs["split"] == "test"]
    assert same(again.score_runs(test, home.runs), home.frozen.score_runs(test, home.runs))


def test_deployment_json_tells_a_person_every_number_the_decision_used(home):
    text = (home.frozen.path / "deployment.json").read_text()
    content = json.loads(text)["content"]
    development = develop(home.pairs, home.runs, EXPERTS)
    stack = dataclasses.asdict(development.heads["stack"])
    assert content["development"]["heads"]["stack"] == json.loads(json.dumps(stack))
    assert content["development"]["heads"]["route"] is None
    assert content["development"]["baselines"] == development.baselines
    assert content["condition"]["prompt_versions"] == {name: prompts.TEMPLATES[name].version for name in EXPERTS}
    assert "{response_a}" in content["condition"]["templates"]["direct"]
    assert content["head"] == "stack" and content["reasons"]
    assert len(text.splitlines()) > 100  # one entry a line, not one line


def test_without_a_selection_the_frozen_stack_has_the_largest_lambda(tmp_path):
    frozen = frozen_in(condition_in(tmp_path, 40), tmp_path / "frozen")
    assert not frozen.content["selected"]
    assert frozen.stack.lam == 10.0
    assert "largest lambda" in " ".join(frozen.content["reasons"])


def test_the_name_of_a_head_follows_everything_it_was_fitted_under(home, tmp_path):
    decision = select_head(develop(home.pairs, home.runs, EXPERTS))
    heads = fit_heads(home.pairs, home.runs, decision, describe_condition(home.store, EXPERTS))
    names = {home.frozen.sha256}
    changes = {"backbone": "other", "clip": 0.01, "settings": {"max_new_tokens": 9}, "package": "9", "seed": 5}
    changes |= {"prompt_versions": {"direct": "direct/0"}, "categories": ("x",) * len(heads.condition.categories)}
    for number, (name, value) in enumerate(changes.items()):
        condition = dataclasses.replace(heads.condition, **{name: value})
        names.add(freeze(decision, dataclasses.replace(heads, condition=condition), tmp_path / str(number)).sha256)
    assert len(names) == 1 + len(changes)
    nudged = dataclasses.replace(heads.stack, weights=np.nextafter(heads.stack.weights, 1))
    assert freeze(decision, dataclasses.replace(heads, stack=nudged), tmp_path / "w").sha256 not in names


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(["deployment.json", "arrays.npz"]), st.floats(0, 1, exclude_max=True), st.integers(1, 255))
def test_one_changed_byte_anywhere_in_a_frozen_file_is_refused(home, file, place, change):
    folder = home.frozen.path.with_name("edited")
    shutil.copytree(home.frozen.path, folder, dirs_exist_ok=True)
    data = bytearray((folder / file).read_bytes())
    data[int(place * len(data))] ^= change
    (folder / file).write_bytes(bytes(data))
    with pytest.raises(ValueError, match="byte for byte"):
        Frozen.load(folder)


@pytest.mark.parametrize("file", ["deployment.json", "arrays.npz"])
@pytest.mark.parametrize("change", [lambda data: data[:-1], lambda data: data + b"\n", lambda data: b""])
def test_a_cut_longer_or_empty_frozen_file_is_refused(fresh, file, change):
    path = fresh.frozen.path / file
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(ValueError, match="byte for byte"):
        Frozen.load(fresh.frozen.path)
    with pytest.raises(ValueError, match="byte for byte"):
        open_test(fresh.frozen, fresh.store)
    path.unlink()
    with pytest.raises(FileNotFoundError, match=file):
        Frozen.load(fresh.frozen.path)
    assert openings(fresh.store) == []


# ---------------------------------------------------------------- the one opening


def test_opening_a_head_whose_folder_now_holds_another_is_refused(fresh):
    before = fresh.frozen
    assert frozen_in(fresh, before.path, clip=0.05).sha256 != before.sha256
    with pytest.raises(ValueError, match="must be the one on disk"):
        open_test(before, fresh.store)


def test_the_same_head_gets_the_stored_report_and_another_needs_a_reason_that_every_later_report_prints(
    fresh, tmp_path
):
    first = open_test(fresh.frozen, fresh.store)
    assert len(openings(fresh.store)) == 1 and "REOPENED" not in str(first)
    fresh.store.write_runs(swap_runs(fresh.runs), Settings().tag)  # the stored report is read, not made again
    again = open_test(fresh.frozen, fresh.store, reopen="no reason needed")
    assert again.to_json() == first.to_json()
    pd.testing.assert_frame_equal(again.pairs, first.pairs, check_exact=True)
    assert len(openings(fresh.store)) == 1

    other = frozen_in(fresh, tmp_path / "other", clip=0.05)
    for none in (None, ""):
        with pytest.raises(ValueError, match="opened on .* by head"):
            open_test(other, fresh.store, reopen=none)
    assert len(openings(fresh.store)) == 1
    reopened = open_test(other, fresh.store, reopen="clip <0.05> was meant")
    assert [entry["reopen"] for entry in openings(fresh.store)] == [None, "clip <0.05> was meant"]
    for report in (reopened, open_test(fresh.frozen, fresh.store), open_test(other, fresh.store)):
        assert "clip <0.05> was meant" in str(report)
        assert "clip &lt;0.05&gt; was meant" in report._repr_html_()
        assert report.to_json()["openings"][1]["reopen"] == "clip <0.05> was meant"
    assert len(openings(fresh.store)) == 2


def test_a_head_that_died_between_log_and_report_may_look_again_without_a_reason(fresh):
    report = open_test(fresh.frozen, fresh.store)
    next((fresh.store.folder / "sealed").glob("*.report.json")).unlink()
    assert open_test(fresh.frozen, fresh.store).to_json() == report.to_json()
    assert len(openings(fresh.store)) == 1


def test_nothing_is_logged_when_an_opening_is_refused(fresh, tmp_path):
    unsealed = open_store("test", "table", root=tmp_path / "store")
    with pytest.raises(ValueError, match="needs a sealed store"):
        open_test(fresh.frozen, unsealed)
    for name, value in {"backbone": "other", "seed": 1, "n_pairs": 9, "benchmark": "other"}.items():
        with pytest.raises(ValueError, match=f"its {name} is"):
            open_test(fresh.frozen, dataclasses.replace(fresh.store, **{name: value}))
    whole = fresh.store.runs(Settings().tag)
    one = fresh.pairs.loc[fresh.pairs["split"] == "test", "pair_id"].iloc[0]
    runs_file = next((fresh.store.folder / "runs").rglob("*.parquet"))
    runs_file.unlink()
    fresh.store.write_runs(whole[whole["pair_id"] != one], Settings().tag)
    with pytest.raises(ValueError, match=f"1 of .* have no run of any expert.*{one}"):
        open_test(fresh.frozen, fresh.store)
    fresh.store.write_runs(whole, Settings().tag)
    sealed = next((fresh.store.folder / "sealed").glob("*.parquet"))
    labels = pd.read_parquet(sealed)
    labels.assign(label=-labels["label"]).to_parquet(sealed, index=False)
    with pytest.raises(ValueError, match="must match their seal"):
        open_test(fresh.frozen, fresh.store)
    assert openings(fresh.store) == []


def test_a_poisoned_label_file_changes_nothing_before_the_opening(fresh, home, tmp_path):
    sealed = next((fresh.store.folder / "sealed").glob("*.parquet"))
    sealed.write_bytes(b"poison")
    fresh.pairs = seal(fresh.labelled, fresh.store)
    assert sealed.read_bytes() == b"poison"
    assert frozen_in(fresh, tmp_path / "again").sha256 == home.frozen.sha256


# ---------------------------------------------------------------- the report


@pytest.fixture(scope="module")
def opened(tmp_path_factory) -> SimpleNamespace:
    folder = tmp_path_factory.mktemp("opened")
    c = condition_in(folder, 260, 4, skill=0.4)
    c.runs.loc[c.runs["protocol"] == "direct", "log_odds"] *= -np.inf  # hard, and mostly wrong
    c.silent = c.labelled.loc[c.labelled["split"] == "test", "pair_id"].iloc[:6]
    c.runs.loc[c.runs["pair_id"].isin(c.silent), "log_odds"] = 0.0  # nobody has an opinion: s = 0
    c.store.write_runs(c.runs, Settings().tag)
    c.frozen = frozen_in(c, folder / "frozen")
    c.report = open_test(c.frozen, c.store)
    c.test = c.labelled[c.labelled["split"] == "test"].set_index("pair_id")
    return c


def test_the_report_counts_what_can_be_counted_by_hand(opened):
    report, table = opened.report, opened.report.pairs
    assert list(table.index) == sorted(opened.test.index)
    assert same(table["label"], opened.test["label"].reindex(table.index))
    y, head = table["label"], report.methods.loc["BAER (stack)"]
    assert head["paper_rule"] == head["matched_rule"] == (np.where(table["s"] >= 0, 1, -1) == y).mean()
    zero = table["s"] == 0
    assert set(opened.silent) <= set(table.index[zero])
    assert report.summary["zero_scores"] == head["ties"] == zero.sum()
    assert head["half_credit"] == pytest.approx(((np.sign(table["s"]) == y) + 0.5 * zero).mean())
    assert head["coverage"] == 1
    direct = report.methods.loc["direct"]
    assert direct["ties"] == (table["direct"] == 0).sum() > 0
    assert direct["strict"] == (table["direct"] == y).mean()
    assert direct["matched_rule"] == (np.where(table["direct"] < 0, -1, 1) == y).mean()
    assert direct["half_credit"] == pytest.approx(((table["direct"] == y) + 0.5 * (table["direct"] == 0)).mean())
    longer = np.sign(opened.test["response_a"].str.len() - opened.test["response_b"].str.len()).reindex(table.index)
    assert report.methods.loc["longer response", "strict"] == (longer == y).mean()
    assert list(report.methods["kind"]) == ["head", "variant", "baseline", "baseline", *["reference"] * 3]
    assert report.summary["pairs"] == len(y)
    assert report.summary["questions"] == opened.test["group_id"].nunique() < len(y)
    assert report.summary["clustered"]


def test_both_baselines_are_compared_and_only_the_one_named_on_development_can_earn_a_star(opened):
    rows = opened.report.comparisons.set_index(["named_on", "rule"])
    table, y = opened.report.pairs, opened.report.pairs["label"]
    right = np.where(table["s"] >= 0, 1, -1) == y
    named = {"development": opened.frozen.content["development"]["baselines"]["pooled"]}
    on_test = {name: (np.where(table[name] < 0, -1, 1) == y).sum() for name in EXPERTS}
    named["test"] = min(on_test, key=lambda name: (-on_test[name], name))
    for where, name in named.items():
        matched, strict = np.where(table[name] < 0, -1, 1) == y, table[name] == y
        for rule, theirs in (("matched", matched), ("paper", strict)):
            row = rows.loc[(where, rule)]
            b, c = (right & ~theirs).sum(), (~right & theirs).sum()
            assert (row["baseline"], row["head_only"], row["baseline_only"]) == (name, b, c)
            assert row["p"] == pytest.approx(binomtest(b, b + c).pvalue, abs=1e-12)
            assert row["mid_p"] == pytest.approx(
                2 * binom.cdf(min(b, c), b + c, 0.5) - binom.pmf(b, b + c, 0.5), abs=1e-12
            )
            effect = 100 * metrics.minimum_detectable_effect(len(y), (b + c) / len(y))
            assert row["detectable"] == pytest.approx(effect, nan_ok=True)
            assert row["margin"] == pytest.approx(100 * (right.mean() - theirs.mean()))
            interval = metrics.paired_bootstrap(right, theirs, table["group_id"])
            assert [row["margin"], row["low"], row["high"]] == pytest.approx([100 * end for end in interval])
            assert not row["star"] or ((where, rule) == ("development", "matched") and row["p"] < 0.05)


def test_the_baseline_of_the_valid_comparison_is_the_one_that_the_frozen_head_names(opened):
    content = json.loads(json.dumps(opened.frozen.content))
    other = next(name for name in EXPERTS if name != content["development"]["baselines"]["pooled"])
    content["development"]["baselines"]["pooled"] = other
    table = opened.report.pairs
    test = opened.pairs[opened.pairs["split"] == "test"].set_index("pair_id").loc[table.index].reset_index()
    frozen = dataclasses.replace(opened.frozen, content=content)
    report = measure(frozen, test, opened.runs, table["s"].to_numpy(), table["label"].to_numpy())
    assert set(report.comparisons.loc[report.comparisons["named_on"] == "development", "baseline"]) == {other}


def test_the_sign_constrained_stack_stands_beside_and_inverted_features_are_named(opened):
    table, bounded = opened.report.pairs, opened.frozen.nonnegative_stack
    assert (bounded.weights >= 0).all()
    test = opened.pairs[opened.pairs["split"] == "test"].set_index("pair_id").loc[table.index].reset_index()
    s = bounded.score(features_of(test, opened.runs, opened.frozen.condition)[0])
    row = opened.report.methods.loc["stack, no weight below 0"]
    assert row["strict"] == (np.where(s >= 0, 1, -1) == table["label"]).mean()
    named = opened.frozen.content["stack"]
    below = [name for name, weight in named["weights_rounded"].items() if weight < 0]
    assert sorted(named["weights_below_zero"]) == sorted(below) != []
    assert opened.frozen.content["nonnegative_stack"]["weights_below_zero"] == []


def test_the_books_own_expert_is_no_external_baseline():
    assert baselines_of(("direct", "deliberate", "GPT-9")) == ("direct", "GPT-9")


def test_the_bill_and_the_conflicts_are_those_of_the_test_runs(opened):
    summary, experts = opened.report.summary, opened.report.experts
    runs = opened.runs[opened.runs["pair_id"].isin(opened.test.index)]
    assert summary["calls"] == pytest.approx(len(runs) / len(opened.test))
    assert summary["prompt_tokens"] == pytest.approx(runs["prompt_tokens"].sum() / len(opened.test))
    sides = np.sign(
        runs[runs["protocol"] == "direct"].pivot(index="pair_id", columns="view", values="log_odds").dropna()
    )
    assert experts.loc["direct", "flip_rate"] == (sides["ab"] != sides["ba"]).mean()
    shares = [summary[name] for name in ("disagree", "agree_right", "agree_wrong", "silent")]
    assert sum(shares) == pytest.approx(1)
    assert summary["oracle"] == pytest.approx(1 - summary["agree_wrong"] - summary["silent"])  # two experts
    assert 0.5 < summary["oracle_coin_flippers"] <= 0.75


def test_the_transfer_gap_is_test_minus_out_of_fold_calibration(opened):
    before = develop(opened.pairs, opened.runs, EXPERTS).heads["stack"].accuracy["calibration"]
    after = opened.report.methods.loc["BAER (stack)", "strict"]
    assert opened.report.summary["transfer_gap"] == pytest.approx(100 * (after - before))


def test_the_interval_of_the_transfer_gap_is_that_of_the_pairs_themselves(opened):
    before = develop(opened.pairs, opened.runs, EXPERTS).out_of_fold.query("split == 'calibration'")
    after, summary = opened.report.pairs, opened.report.summary
    right = [
        np.where(s >= 0, 1, -1) == y for s, y in ((before["stack"], before["label"]), (after["s"], after["label"]))
    ]
    expected = metrics.transfer_gap(*right, before["group_id"], after["group_id"])
    names = ("transfer_gap", "transfer_gap_low", "transfer_gap_high")
    assert [summary[name] for name in names] == pytest.approx([100 * end for end in expected])
    assert f"({summary['transfer_gap_low']:+.1f} to {summary['transfer_gap_high']:+.1f})" in str(opened.report)


def test_a_missing_verdict_is_no_tie_of_the_best_single_expert(opened):
    best, test = opened.frozen.content["development"]["best_single"], opened.report.pairs.reset_index()
    lost = opened.runs["pair_id"].isin(test["pair_id"][:3]) & (opened.runs["protocol"] == best)
    evidence = summarize(run_array(opened.runs[~lost], EXPERTS, test["pair_id"]), EXPERTS)
    pairs = opened.test.loc[test["pair_id"]].reset_index()
    answers = rule_answers(opened.frozen, pairs, evidence)[f"best single ({best})"]
    assert answers[:3].isna().all() and same(answers[3:], np.sign(evidence.z[3:, EXPERTS.index(best)]))


def test_intervals_on_both_sides_of_the_transfer_gap_know_which_pairs_share_a_question(tmp_path):
    once = make_pairs(80, 6).drop_duplicates("group_id")
    runs, copies = make_runs(once, EXPERTS, 6), [f"/{number}" for number in range(4)]
    labelled = pd.concat([once.assign(pair_id=once["pair_id"] + copy) for copy in copies], ignore_index=True)
    store = open_store("test", "table", root=tmp_path / "store")
    c = SimpleNamespace(pairs=seal(labelled, store), store=store, experts=EXPERTS)
    c.runs = pd.concat([runs.assign(pair_id=runs["pair_id"] + copy) for copy in copies], ignore_index=True)
    store.write_runs(c.runs, Settings().tag)
    report = open_test(frozen_in(c, tmp_path / "frozen"), store)
    before, after = develop(c.pairs, c.runs, EXPERTS).out_of_fold.query("split == 'calibration'"), report.pairs
    right = [as_answers(before["stack"]) == before["label"], as_answers(after["s"]) == after["label"]]
    of = [before["group_id"], after["group_id"]]
    wide, half, narrow = (metrics.transfer_gap(*right, *groups)[1] for groups in (of, (None, of[1]), (None, None)))
    assert report.summary["transfer_gap_low"] == pytest.approx(100 * wide)
    assert wide < half < narrow


def test_heads_are_measured_for_calibration_by_the_probability_of_their_score(opened):
    table, methods = opened.report.pairs, opened.report.methods
    p, better = expit(table["s"]), table["label"] > 0
    row = methods.loc["BAER (stack)"]
    assert row["brier"] == pytest.approx(brier_score_loss(better, p))
    confidence, right = np.maximum(p, 1 - p), np.where(p == 0.5, 0.5, (p > 0.5) == better)
    bins = np.minimum(np.digitize(confidence, np.linspace(0.5, 1, 11)), 10)
    distance = (
        pd.DataFrame({"right": right, "said": confidence.to_numpy()}).groupby(bins).sum().eval("(right - said).abs()")
    )
    assert row["ece"] == pytest.approx(distance.sum() / len(table))
    heads = methods["kind"].isin(["head", "variant"])
    assert methods.loc[heads, ["brier", "ece"]].notna().all(axis=None)
    assert methods.loc[~heads, ["brier", "ece"]].isna().all(axis=None)


def test_single_reads_are_measured_by_display_order_and_net_verdicts_have_none(opened):
    orders, table = opened.report.orders, opened.report.pairs
    assert list(orders.index) == [(name, order) for name in EXPERTS for order in ("ab", "ba", "both")]
    mine = opened.runs[opened.runs["protocol"] == "chain_of_thought"]
    read = mine.pivot(index="pair_id", columns="view", values="log_odds").reindex(table.index)
    for view, side in (("ab", 1), ("ba", -1)):
        has = read[view].notna()
        p, first = expit(side * read.loc[has, view]), side * table.loc[has, "label"] > 0
        row = orders.loc[("chain_of_thought", view)]
        assert (row["reads"], row["brier"]) == (has.sum(), pytest.approx(brier_score_loss(first, p)))
        assert row["bias"] == pytest.approx(p.mean() - first.mean())
    net = opened.runs[(opened.runs["protocol"] != "direct") | (opened.runs["view"] == "ab")]
    net = net.assign(view=net["view"].mask(net["protocol"] == "direct", "net"))
    test, y = table.reset_index(), table["label"].to_numpy()
    assert set(order_rows(opened.frozen, test, net, y).index.get_level_values("expert")) == {"chain_of_thought"}
    nobody = net.assign(view="net").drop_duplicates(["pair_id", "protocol"])
    assert order_rows(opened.frozen, test, nobody, y).empty


def test_a_report_survives_json_and_shows_every_method_as_text_and_as_html(opened):
    assert all(reason in str(opened.report) for reason in opened.frozen.content["reasons"])
    plain = json.loads(json.dumps(opened.report.to_json(), allow_nan=False))
    assert plain == opened.report.to_json()
    for shown in (str(opened.report), opened.report._repr_html_()):
        assert all(name in shown for name in opened.report.methods.index)
    assert not Counter(opened.report.methods.index).most_common(1)[0][1] > 1


def test_test_pairs_that_nobody_labelled_are_left_out_of_the_report_and_counted(tmp_path):
    labelled = make_pairs(120, 2)
    test = labelled.index[labelled["split"] == "test"]
    labelled.loc[test[:5], "label"] = np.nan
    store = open_store("test", "table", root=tmp_path / "store")
    runs = make_runs(labelled, EXPERTS, 2)
    runs = runs[(runs["protocol"] == "direct") | (runs["view"] == "ab")]  # nothing that could flip
    c = SimpleNamespace(pairs=seal(labelled, store), runs=runs, store=store, experts=EXPERTS)
    store.write_runs(runs, Settings().tag)
    report = open_test(frozen_in(c, tmp_path / "frozen"), store)
    assert (report.summary["unlabelled"], report.summary["pairs"]) == (5, len(test) - 5)
    assert "5 test pairs have no label" in str(report)
    assert np.isnan(report.experts["flip_rate"]["chain_of_thought"])
    again = TestReport.load(next((store.folder / "sealed").glob("*.report.json")), openings(store))
    assert again.experts.dtypes.eq(float).all()


# ---------------------------------------------------------------- new pairs


def sealed_condition(folder: Path, judge, asked, labelled: pd.DataFrame) -> SimpleNamespace:
    """Pairs sealed in a store of their own, and a judge's runs about them."""
    store = open_store(judge.name, "table", root=folder / "store")
    pairs = seal(labelled, store)
    runs, _ = judge_pairs(pairs, judge, asked, store=store, progress=False)
    return SimpleNamespace(labelled=labelled, store=store, pairs=pairs, runs=runs, experts=asked)


@pytest.fixture(scope="module")
def judged(tmp_path_factory) -> SimpleNamespace:
    """A head for the hash judge."""
    folder = tmp_path_factory.mktemp("judged")
    c = sealed_condition(folder, HashJudge(), EXPERTS, make_pairs(150, 5))
    c.frozen = frozen_in(c, folder / "frozen")
    return c


def test_new_pairs_get_a_signed_score_and_their_swap_its_exact_negative(judged):
    new = make_pairs(40, 6).assign(label=np.nan)
    table = judged.frozen.score(new, HashJudge())
    assert list(table.columns) == ["pair_id", "s", "probability", "decision", "calls"]
    assert list(table["pair_id"]) == list(new["pair_id"])
    assert (table["calls"] == 4).all()
    assert same(table["probability"], scores.probability(table["s"]))
    assert same(table["decision"], np.where(table["s"] >= 0, 1, -1))
    assert same(judged.frozen.score(swap_pairs(new), HashJudge())["s"], -table["s"])
    identical = (new["response_a"] == new["response_b"]).to_numpy()
    assert identical.any() and (table["s"][identical] == 0).all()
    assert table.attrs["zero_scores"] == (table["s"] == 0).sum()


def test_labels_of_new_pairs_are_not_looked_at(judged):
    new = make_pairs(20, 7)
    unlabelled = judged.frozen.score(new.assign(label=np.nan), HashJudge())
    pd.testing.assert_frame_equal(judged.frozen.score(new, HashJudge()), unlabelled, check_exact=True)


def test_the_frozen_head_scores_judged_pairs_as_it_did_in_the_test(judged):
    test = judged.pairs[judged.pairs["split"] == "test"].reset_index(drop=True)
    assert same(judged.frozen.score(test, HashJudge())["s"], judged.frozen.score_runs(test, judged.runs))


def test_another_judge_and_other_words_are_refused(judged, monkeypatch):
    new = make_pairs(3, 8)
    other = HashJudge()
    other.name = "other-judge"
    with pytest.raises(ValueError, match="'hash-judge'; this one is 'other-judge'"):
        judged.frozen.score(new, other)
    changed = prompts.TEMPLATES["direct"]._replace(version="direct/99")
    monkeypatch.setitem(prompts.TEMPLATES, "direct", changed)
    with pytest.raises(ValueError, match="prompts must be those of the freeze.*direct/99"):
        judged.frozen.score(new, HashJudge())
    changed = prompts.TEMPLATES["direct"]._replace(version="direct/1", stub="Say:")
    monkeypatch.setitem(prompts.TEMPLATES, "direct", changed)  # new words under the old version
    with pytest.raises(ValueError, match="other words for .*direct"):
        judged.frozen.score(new, HashJudge())


def test_new_pairs_are_judged_under_the_frozen_budgets_and_by_every_frozen_expert_or_not_at_all(judged, tmp_path):
    decision = select_head(develop(judged.pairs, judged.runs, EXPERTS))
    condition = describe_condition(judged.store, EXPERTS, settings=Settings(max_new_tokens=7))
    frozen = freeze(decision, fit_heads(judged.pairs, judged.runs, decision, condition), tmp_path / "frozen")
    judge = HashJudge()
    frozen.score(make_pairs(5, 8), judge)
    assert set(judge.budgets) == {7}
    judge.label_mass = 1e-6
    with pytest.raises(ValueError, match="every frozen expert must be able to answer.*direct"):
        frozen.score(make_pairs(5, 8), judge)


def test_an_imported_judge_cannot_be_asked_about_new_pairs(tmp_path):
    pairs, runs = make_pairs(20, 9), make_runs(make_pairs(20, 9), ("GPT-9",), 9)
    frozen = in_memory(pairs, runs, ("GPT-9",))
    with pytest.raises(ValueError, match="GPT-9 cannot"):
        frozen.score(pairs, SimpleNamespace(name="test"))
    assert frozen.score_runs(pairs, runs).shape == (20,)


def test_categories_that_the_head_never_met_are_counted_and_shown(judged):
    new = make_pairs(12, 10).assign(subset="astrology", task_type="fortune")
    with pytest.warns(UserWarning, match="astrology.*12"):
        table = judged.frozen.score(new, HashJudge())
    assert table.attrs["unknown_categories"] == {"astrology": 12, "fortune": 12}
    assert np.isfinite(table["s"]).all()


@pytest.mark.skipif(not JUDGEBENCH.exists(), reason="JudgeBench's files are not beside the repository")
def test_judgebenchs_pair_of_identical_responses_scores_exactly_zero(tmp_path):
    store = open_store(HashJudge.name, "judgebench", root=tmp_path / "store")
    pairs = seal(load_pairs("judgebench", JUDGEBENCH), store)
    runs, _ = judge_pairs(pairs, HashJudge(), EXPERTS, store=store, progress=False)
    c = SimpleNamespace(pairs=pairs, runs=runs, store=store, experts=EXPERTS)
    frozen = frozen_in(c, tmp_path / "frozen")
    twin = pairs[pairs["pair_id"] == "a28a8dae-78a7-51a7-a46f-84a6e502068d"]
    assert len(twin) == 1 and twin["response_a"].iloc[0] == twin["response_b"].iloc[0]
    assert frozen.score_runs(twin, runs).tolist() == [0.0]
    s = frozen.score_runs(pairs, runs)
    assert same(frozen.score_runs(swap_pairs(pairs), swap_runs(runs)), -s)
    assert len(frozen.condition.categories) == 18  # declared, whatever was loaded


# ---------------------------------------------------------------- luck


def test_on_coin_flip_labels_the_matched_rule_hardly_ever_stars_a_stack_and_the_papers_often_does():
    labellings, rng = 200, np.random.default_rng(0)
    pairs = make_pairs(300, 11)
    runs = make_runs(pairs.assign(label=np.nan), EXPERTS, 11, bias=4.0)
    runs["log_odds"] = np.sign(runs["log_odds"]) * np.inf  # hard verdicts and a position bias: most orders tie
    phi, evidence = represent(pairs, runs, EXPERTS, "table", (), clip=1e-4)
    split = np.repeat(["selection", "calibration", "test"], [60, 120, 120])
    development, test = split != "test", split == "test"
    native = np.sign(evidence.z)
    wins = Counter()
    for _ in range(labellings):
        y = rng.choice([1.0, -1.0], len(pairs))
        lam = choose_lambda(*(x[split == part] for part in ("selection", "calibration") for x in (phi, y)))
        s = fit_stack(phi[development], y[development], lam).score(phi[test])
        rivals = metrics.as_answers(native[development]) == y[development, None]
        k = int(np.argmax(rivals.sum(axis=0)))
        head = scores.decision(s) == y[test]
        for rule, answer in (("matched", metrics.as_answers(native[test, k])), ("paper", native[test, k])):
            b, c = metrics.discordant(head, answer == y[test])
            wins[rule] += b > c and metrics.mcnemar(b, c) < 0.05
    assert wins["matched"] <= binom.ppf(0.99, labellings, 0.05)
    assert wins["paper"] > 0.25 * labellings


def test_out_of_fold_scores_of_a_swapped_table_are_the_exact_negatives(home):
    table = home.pairs[home.pairs["split"] != "test"].reset_index(drop=True)
    phi, _ = features_of(table, home.runs, home.frozen.condition)
    y, split = table["label"].to_numpy(), table["split"].to_numpy()
    fold = question_folds(table["group_id"], seed=0)
    s, lambdas = out_of_fold(phi, y, split, fold, largest=False)
    turned, same_lambdas = out_of_fold(-phi, -y, split, fold, largest=False)
    assert same(turned, -s) and same_lambdas == lambdas
