"""What experts cost: alone, together as a judge that shares really computes it, and before anything is asked."""

from __future__ import annotations

import dataclasses
import itertools
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import baer_utils.judging as judging
from baer_utils.__main__ import main
from baer_utils.costs import TOGETHER, TOKENS, dry_run, native_calls, price, priced, standalone
from baer_utils.debias import bank_runs, fit_debias, protocols_for
from baer_utils.judging import judge_pairs
from baer_utils.judging.planning import ResponseLimit
from baer_utils.prompts import Key, two_responses
from baer_utils.protocols import EXPERTS, EXTRA_CANDIDATES, PROTOCOLS, Settings
from baer_utils.records import unit_hash
from tests.conftest import SHARED, make_pairs
from tests.strategies import run_rows

SHORT = Settings(max_new_tokens=6, criteria_tokens=6, reference_tokens=6, letter_tokens=6, trials=3)
BANK = (*EXPERTS, *EXTRA_CANDIDATES, "reference")
# Calls of one pair when each expert is asked alone, five trials (shared/reference/protocols.md, section A.0; native:
# PriDe one order, CalibraEval three prompts).
ALONE = {
    "direct": 2, "self_consistency": 10, "chain_of_thought": 2, "rubric": 3, "score_then_choose": 2, "prepair": 4,
    "pride": 2, "calibraeval": 2, "deliberate": 4, "pointwise": 2, "likelihood_mean": 2, "likelihood_sum": 2,
    "likelihood_pmi": 4, "reference": 3,
}  # fmt: skip
NATIVE = {name: ALONE[name] for name in EXPERTS if name != "deliberate"} | {"pride": 1, "calibraeval": 3}


@pytest.fixture(scope="module", autouse=True)
def nothing_refused():
    """A judge with random weights may give labels little mass; here only calls and tokens count."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(judging, "LEAST_LABEL_MASS", 0.0)
        yield


@pytest.fixture(scope="module")
def few():
    """Eight pairs: two of one question, one with identical responses."""
    rows = [
        (f"What is {n} plus {n + 3}?", f"It is {2 * n + 3}.", f"{n} and {n + 3} make {2 * n + 4}.") for n in range(5)
    ]
    rows += [
        ("What is 0 plus 3?", "three", "It is 30."),
        ("Say yes.", "yes", "yes"),
        ("Name a colour.", "Red.", "Dog."),
    ]
    return make_pairs(rows).assign(split="selection")


@pytest.fixture(scope="module")
def whole(few, tiny):
    """Every expert's calls by the tiny judge, and what it reported."""
    runs, report = judge_pairs(few, tiny, protocols_for(BANK), settings=SHORT, progress=False)
    return SimpleNamespace(runs=runs, report=report, debias=fit_debias(runs, few))


# ---------------------------------------------------------------- alone


def test_each_expert_alone_costs_the_calls_of_its_definition_and_corrections_cost_directs_reads(few, tiny):
    pairs = few.iloc[[1, 2, 3]]  # different questions, different responses
    runs, _ = judge_pairs(
        pairs, tiny, protocols_for(BANK), settings=dataclasses.replace(SHORT, trials=5), progress=False
    )
    table = standalone(runs, BANK)
    assert table["calls"].to_dict() == ALONE
    assert table.loc["pride"].tolist() == table.loc["calibraeval"].tolist() == table.loc["direct"].tolist()
    by_hand = runs[runs["protocol"] == "prepair"]
    assert table.loc["prepair", TOKENS].tolist() == [by_hand[name].sum() / 3 for name in TOKENS]
    assert table.loc["deliberate", "new_tokens"] <= 2 * SHORT.max_new_tokens
    native = {name: len(native_calls(runs, pairs, name)) / 3 for name in NATIVE}
    assert native == NATIVE


def test_the_rows_of_corrections_change_no_bill(few, whole):
    with_rows = bank_runs(whole.runs, EXPERTS, whole.debias)
    assert len(with_rows) > len(whole.runs)
    pd.testing.assert_frame_equal(standalone(with_rows, BANK), standalone(whole.runs, BANK))
    for experts in (EXPERTS, ("pride",), ("pride", "calibraeval"), BANK):
        assert price(with_rows, experts) == price(whole.runs, experts)
    for name in NATIVE:
        assert len(native_calls(with_rows, few, name)) == len(native_calls(whole.runs, few, name))


def test_corrections_add_nothing_to_a_bank_that_has_direct_and_its_other_views_are_nobodys(few, whole):
    rest = [name for name in EXPERTS if name not in ("pride", "calibraeval")]
    assert price(whole.runs, EXPERTS) == price(whole.runs, rest)
    assert (
        price(whole.runs, ("calibraeval",)) == price(whole.runs, ("pride", "direct")) == price(whole.runs, ("direct",))
    )
    exchanged = whole.runs[whole.runs["view"] == "ba_BA"].assign(protocol="direct")
    assert len(exchanged) and standalone(pd.concat([whole.runs, exchanged]), ["direct"]).equals(
        standalone(whole.runs, ["direct"])
    )
    # asked by direct itself, and by CalibraEval again, the third prompt is one call
    assert len(native_calls(pd.concat([whole.runs, exchanged]), few, "calibraeval")) == 3 * len(few)


def test_prides_one_order_is_the_one_whose_first_text_has_the_smaller_hash(few, whole):
    rows = native_calls(whole.runs, few, "pride").set_index("pair_id")["view"]
    for pair in few.itertuples():
        first = min((pair.response_a, "ab"), (pair.response_b, "ba"), key=lambda shown: unit_hash(shown[0]))[1]
        assert rows[pair.pair_id] == first or pair.response_a == pair.response_b
    assert set(rows) == {"ab", "ba"}


def test_numbers_are_per_pair_of_those_asked_for_and_an_expert_that_never_ran_costs_nothing(few, whole):
    ids = list(few["pair_id"][:2]) + ["never judged"]
    mine = whole.runs[whole.runs["pair_id"].isin(ids) & (whole.runs["protocol"] == "direct")]
    bill = standalone(whole.runs, ["direct", "GPT-9"], ids)
    assert bill.loc["direct"].tolist() == [4 / 3, mine["prompt_tokens"].sum() / 3, 0]
    assert bill.loc["GPT-9"].tolist() == [0, 0, 0]
    assert price(whole.runs, ["GPT-9"], ids) == price(whole.runs, [], ids) == dict.fromkeys([*price(mine, [])], 0.0)


def test_a_price_table_prices_tokens_calls_and_time_of_every_backbone(whole, few):
    runs, names = whole.runs, ["direct", "pride", "chain_of_thought", "pointwise"]
    alone = standalone(runs, names, few["pair_id"])
    for prices in ({"prompt_tokens": 2e-6, "new_tokens": 8e-6}, {"calls": 3.0}):
        by_hand = sum(alone[name] * price for name, price in prices.items())
        assert priced(runs, names, prices, few["pair_id"]) == pytest.approx(by_hand.to_dict())
    seconds = runs[runs["protocol"] == "pointwise"]["seconds"].sum() / len(few)
    assert priced(runs, ["pointwise"], {"seconds": 1.0})["pointwise"] == pytest.approx(seconds) and seconds > 0
    two = runs.assign(backbone=np.where(runs["protocol"] == "direct", "large", "small"))
    table = pd.DataFrame({"calls": [5.0, 1.0], "new_tokens": [0.0, 0.5]}, index=["large", "small"])
    by_model = priced(two, names, table, few["pair_id"])
    assert by_model["direct"] == by_model["pride"] == 5 * alone.at["direct", "calls"]
    other = alone.loc["chain_of_thought"]
    assert by_model["chain_of_thought"] == pytest.approx(other["calls"] + 0.5 * other["new_tokens"])
    wrong = ({}, {"tokens": 1.0}, {"calls": -1.0}, {"calls": float("nan")}, table.drop("small"))
    for prices in wrong:
        with pytest.raises(ValueError, match="prices must be numbers of at least 0"):
            priced(two, names, prices)
    with pytest.raises(ValueError, match="every call must have new_tokens to be priced"):
        priced(two.assign(new_tokens=np.nan), names, table)


# ---------------------------------------------------------------- together


SETS = [
    BANK, EXPERTS, ("direct",), ("chain_of_thought",), ("self_consistency",), ("chain_of_thought", "self_consistency"),
    ("likelihood_mean", "likelihood_sum"), ("likelihood_sum", "likelihood_pmi"), ("rubric", "reference"),
    ("prepair", "pointwise"), ("deliberate",), ("pride", "score_then_choose"), ("direct", "calibraeval", "rubric"),
]  # fmt: skip


@pytest.mark.parametrize("experts", SETS, ids=" ".join)
def test_the_price_of_a_set_is_what_judging_that_set_afresh_really_computes(experts, few, tiny, whole):
    """Independent: the judge's own count of distinct calls and of tokens that it computed, for this set alone.

    A question that two pairs ask is computed once, which no run table shows: it is priced with each pair.
    """
    _, report = judge_pairs(few, tiny, protocols_for(experts, native=False), settings=SHORT, progress=False)
    bill = {name: value * len(few) for name, value in price(whole.runs, experts).items()}
    assert bill["calls"] == pytest.approx(report.distinct)
    assert bill["prompt_tokens"] == pytest.approx(report.prompt_tokens)
    assert bill["new_tokens"] == pytest.approx(report.new_tokens)
    repeated = few[few["instruction"].duplicated()].itertuples()
    again = [
        tiny._renderer.ids_and_shared(two_responses(pair, "ab", "direct", Key("p", "direct", "ab")))[1][0]
        for pair in repeated
    ]
    apart = 0 if experts[0].startswith("likelihood") else sum(again)  # which asks without a content
    assert bill["unique_tokens"] == pytest.approx(report.prompt_tokens - report.cached_tokens + apart) and again


def test_a_larger_set_never_costs_less_and_never_more_than_its_parts_together(whole):
    names = (
        "direct",
        "self_consistency",
        "chain_of_thought",
        "rubric",
        "pointwise",
        "likelihood_sum",
        "likelihood_pmi",
    )
    sets = [frozenset(chosen) for size in (1, 2, 3) for chosen in itertools.combinations(names, size)]
    bills = {chosen: np.array([*price(whole.runs, sorted(chosen)).values()]) for chosen in sets}
    calls, prompt_tokens, _, unique_tokens = np.array([*bills.values()]).T
    alone = standalone(whole.runs, names)["calls"]
    assert (unique_tokens <= prompt_tokens).all()
    assert all(calls[n] <= alone[sorted(chosen)].sum() + 1e-9 for n, chosen in enumerate(sets))
    unions = [(one, two, one | two) for one, two in itertools.combinations(sets, 2) if one | two in bills]
    assert len(unions) > 300
    for one, two, both in unions:
        assert (np.maximum(bills[one], bills[two]) - 1e-9 <= bills[both]).all()
        assert (bills[both] <= bills[one] + bills[two] + 1e-9).all()
    greedy, sampled = frozenset(["chain_of_thought"]), frozenset(["self_consistency"])
    assert bills[greedy | sampled][0] == bills[greedy][0] + bills[sampled][0]  # one prompt, decoded in two ways


def test_a_table_that_shows_no_sharing_is_priced_in_full(few, whole):
    silent = whole.runs.assign(cached_tokens=0)
    bill = price(silent, EXPERTS)
    assert bill["unique_tokens"] == bill["prompt_tokens"] > price(whole.runs, EXPERTS)["unique_tokens"]


def test_after_a_resumed_run_every_prompt_still_costs_its_own_tokens_once(few, whole):
    """Regression: where only trials were asked again, the fewest tokens taken over are a whole prompt's."""
    trials = whole.runs["protocol"] == "self_consistency"
    resumed = whole.runs.assign(cached_tokens=whole.runs["cached_tokens"].where(trials & (whole.runs["trial"] > 0), 0))
    ids = few.loc[few["response_a"] != few["response_b"], "pair_id"]
    for experts in (("direct", "self_consistency"), ("self_consistency", "rubric"), ("direct", "deliberate")):
        mine = whole.runs[whole.runs["protocol"].isin(experts) & whole.runs["pair_id"].isin(ids)]
        longest = mine.drop_duplicates("prompt_sha").groupby(["pair_id", "view"])["prompt_tokens"].max().sum() / len(
            ids
        )
        bill = price(resumed, experts, ids)
        assert longest <= bill["unique_tokens"] <= bill["prompt_tokens"]


def test_imported_rows_name_no_prompt_and_are_calls_of_their_own():
    runs = run_rows([(pair, "GPT-9", view, 0, 1.0) for pair in "pq" for view in ("ab", "ba")])
    expected = {"calls": 2.0, "prompt_tokens": 20.0, "new_tokens": 0.0, "unique_tokens": 20.0}
    assert price(runs, ["GPT-9"]) == expected
    assert standalone(runs, ["GPT-9"]).loc["GPT-9"].to_dict() == {k: expected[k] for k in ("calls", *TOKENS)}


# ---------------------------------------------------------------- before


class Unasked:
    """A judge that renders and counts, and must not be asked."""

    def __init__(self, judge):
        self.name, self.context, self.render, self.count = judge.name, judge.context, judge.render, judge.count


def test_a_dry_run_counts_what_the_run_then_takes_and_asks_nothing(few, tiny, whole):
    table = dry_run(few, Unasked(tiny), BANK, SHORT)
    assert list(table.index) == [*protocols_for(BANK), TOGETHER]
    taken = whole.runs.groupby("protocol").agg(calls=("view", "size"), **{name: (name, "sum") for name in TOKENS})
    assert table["calls"].drop(TOGETHER).to_dict() == taken["calls"].to_dict()
    exact = [
        name
        for name in PROTOCOLS
        if name in table.index and name not in ("rubric", "prepair", "deliberate", "reference")
    ]
    assert table.loc[exact, "prompt_tokens"].to_dict() == taken.loc[exact, "prompt_tokens"].to_dict()
    planned = table.drop(TOGETHER)
    assert (planned["new_tokens"] >= taken["new_tokens"].reindex(planned.index)).all()
    likelihoods = [name for name in EXTRA_CANDIDATES if name != "pointwise"]
    assert table.loc[likelihoods, "new_tokens"].to_dict() == taken.loc[likelihoods, "new_tokens"].to_dict()
    assert table.loc[TOGETHER, "calls"] == whole.report.distinct
    assert table.attrs["unfit"] == 0


def test_a_dry_run_cuts_long_responses_as_the_run_does_and_leaves_out_pairs_that_do_not_fit(tiny):
    pairs = make_pairs([("Say yes.", "yes " * 900, "no"), ("word " * 900, "yes", "no"), ("Say no.", "no", "yes")])
    experts = ("direct", "pointwise", "likelihood_sum")
    table = dry_run(pairs, tiny, experts, SHORT, cut=ResponseLimit(tiny, experts, SHORT).cut)
    runs, report = judge_pairs(pairs, tiny, experts, settings=SHORT, progress=False)
    made = runs[runs["status"] != "error"].groupby("protocol")[TOKENS].sum()
    assert table.attrs["unfit"] == 1 and report.cut_responses == 1
    pd.testing.assert_frame_equal(table.loc[list(experts), TOKENS], made.loc[list(experts)], check_dtype=False)
    whole = dry_run(pairs, tiny, experts, SHORT)
    assert (whole["prompt_tokens"] > table["prompt_tokens"])[["direct", "pointwise"]].all()


def test_a_judge_that_renders_nothing_has_calls_and_no_tokens_and_an_unknown_expert_is_refused(few, tiny):
    record = SimpleNamespace(name="replay:x", context=0, render=lambda prompt: [], count=lambda text: 0)
    table = dry_run(few, record, ("direct", "pride"))
    assert table.loc["direct", "calls"] == 2 * len(few) and np.isnan(table.loc["direct", "prompt_tokens"])
    with pytest.raises(ValueError, match="GPT-9 cannot be asked"):
        dry_run(few, record, ("direct", "GPT-9"))
    nothing = dry_run(few[:0], tiny, ("direct",))
    assert (nothing == 0).all(axis=None)


def test_the_command_line_says_what_judging_would_take_and_stores_nothing(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("BAER_STORE", str(tmp_path / "store"))
    assert main(["judge", "--dry-run", "--n-pairs", "10", "--experts", "direct", "pride", "likelihood_mean"]) == 0
    printed = capsys.readouterr().out
    assert "nothing was asked" in printed and TOGETHER in printed and "likelihood_mean" in printed
    assert not (tmp_path / "store").exists()
    assert main(["judge", "--dry-run", "--experts", "GPT-9"]) == 2


@pytest.mark.skipif(not SHARED.exists(), reason="the real data are not beside the repository")
def test_criteria_and_references_of_a_question_count_once_for_all_its_pairs(tiny):
    """JudgeBench asks 91 of its questions twice (shared/reference/protocols.md, E31)."""
    from baer_utils.benchmarks import load_pairs

    pairs = load_pairs("judgebench", SHARED / "judgebench")
    twice = pairs[pairs["group_id"].duplicated(keep=False)]
    short = twice[twice["instruction"].str.len() < 600].sort_values("group_id").head(4)
    short = short.assign(response_a=short["response_a"].str[:200], response_b=short["response_b"].str[:200])
    assert short["group_id"].nunique() == 2
    runs, report = judge_pairs(short, tiny, ["reference"], settings=SHORT, progress=False)
    assert price(runs, ["reference"])["calls"] * 4 == report.distinct == 2 + 4 * 2
    assert standalone(runs, ["reference"]).loc["reference", "calls"] == 3
