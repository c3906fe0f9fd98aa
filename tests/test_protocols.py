"""What every protocol asks: the same of a pair and its swap, blind where it must be blind, one row for every call."""

from __future__ import annotations

import dataclasses
import hashlib
import math
from types import SimpleNamespace

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from baer_utils.backbones.base import Failure, Generation, Likelihood, Read
from baer_utils.prompts import claim_graph, two_scores
from baer_utils.protocols import DERIVED, EXPERTS, EXTRA_CANDIDATES, PROTOCOLS, Settings, rehearse, run_row
from baer_utils.records import RUN_KEY, check_runs, swap_runs

TEXTS = st.text(alphabet="abc AB\n.", max_size=12)
SAID = [
    "The better response is Response A.",
    "The better response is Response B.",
    "Response A is shorter. The better response is Response A.",
    "Response B adds 2. The better response is Response B.",
    "Who knows.",
    " 7\nResponse B: 3",
    " 4\nResponse B: 4",
    " One thing.\n2. Another thing [1].\n3. So it is five [1, 2].",
    "",
]


def pair_of(q: str, a: str, b: str) -> SimpleNamespace:
    return SimpleNamespace(pair_id="p", instruction=q, response_a=a, response_b=b)


def answer(call):
    """An answer that depends on what is asked and nothing else, as a model's does; every kind of text comes up."""
    asked = repr((call.prompt.segments, call.prompt.stub, call.prompt.continue_ids, call.prompt.key.trial, call.text))
    number = int(hashlib.sha256(asked.encode()).hexdigest()[:8], 16)
    if call.verb == "read":
        return Read(number / 2**32 - 0.5, 0.9, 5)
    if call.verb == "likelihood":
        return Likelihood(-number / 2**30, 5, new_tokens=3)
    text = SAID[number % len(SAID)]
    return Generation(text, tuple(map(ord, text)), "length" if number % 7 == 0 else "stop", 5)


def conversation(name: str, pair, answer=answer) -> list[tuple]:
    """Every call of a protocol about a pair, with the answer it was given."""
    asking = PROTOCOLS[name](pair, Settings())
    calls, made = next(asking), []
    while calls:
        answers = [answer(call) for call in calls]
        made += zip(calls, answers, strict=True)
        try:
            calls = asking.send(answers)
        except StopIteration:
            calls = []
    return made


def calls_and_rows(name: str, pair) -> tuple[list, pd.DataFrame]:
    made = conversation(name, pair)
    return [call for call, _ in made], check_runs(pd.DataFrame([run_row(*told, "judge") for told in made]))


# CalibraEval's own baseline asks one prompt of the other letters, not both: it alone is not closed under the swap
CLOSED = sorted(set(PROTOCOLS) - {"calibraeval"})


@given(TEXTS, TEXTS, TEXTS, st.sampled_from(CLOSED))
def test_a_swap_changes_only_signs_and_views_in_what_a_protocol_makes(q, a, b, name):
    _, rows = calls_and_rows(name, pair_of(q, a, b))
    _, swapped = calls_and_rows(name, pair_of(q, b, a))
    back = swap_runs(swapped).sort_values(RUN_KEY).reset_index(drop=True)
    pd.testing.assert_frame_equal(rows.sort_values(RUN_KEY).reset_index(drop=True), back, check_exact=True)


@given(TEXTS, TEXTS, TEXTS, st.sampled_from(sorted(PROTOCOLS)))
def test_a_prompt_shows_only_what_its_view_says(q, a, b, name):
    """Rubrics, references and anchors are functions of the question; one-response prompts never see the other."""
    calls, _ = calls_and_rows(name, pair_of(q, a, b))
    for other in (pair_of(q, a, b + " changed"), pair_of(q, a + " changed", b)):
        again, _ = calls_and_rows(name, other)
        changed = "b" if other.response_a == a else "a"
        blind = [c for c in calls if changed not in c.prompt.key.view]
        same = [c for c in again if changed not in c.prompt.key.view]
        assert [(c.prompt, c.text) for c in blind] == [(c.prompt, c.text) for c in same]


@pytest.mark.parametrize("name", sorted(PROTOCOLS))
def test_responses_are_marked_as_such_and_nothing_that_is_not_ours_is_trusted(name):
    pair = pair_of("THE QUESTION", "THE FIRST", "THE SECOND")
    for call in rehearse(name, Settings(), pair):
        prompt = call.prompt
        for text in ("THE QUESTION", "THE FIRST", "THE SECOND"):
            assert all(text not in s.text for s in prompt.segments if s.trusted)
        shown = [n for n, s in enumerate(prompt.segments) if s.text in ("THE FIRST", "THE SECOND")]
        assert list(prompt.responses) == shown


def test_an_analysis_of_one_response_is_asked_without_a_letter_or_a_place():
    for name, stage in (("prepair", "analysis"), ("audit", "audit"), ("claim_graph", "claims")):
        for call in rehearse(name, Settings(), pair_of("q", "x", "y")):
            if call.prompt.key.stage == stage:
                ours = " ".join(s.text for s in call.prompt.segments if s.trusted)
                assert not set(ours.replace(",", " ").split()) & {"A", "B", "first", "second"}


def test_every_expert_of_the_paper_can_be_asked_or_is_derived_and_their_order_is_fixed():
    assert len(EXPERTS) == 9 and EXPERTS[0] == "direct" and EXPERTS[-1] == "deliberate"
    assert set(EXPERTS) - {"pride"} < set(PROTOCOLS) and "pride" in DERIVED and set(EXTRA_CANDIDATES) < set(PROTOCOLS)


def test_calls_per_pair_are_those_of_the_paper():
    pair = pair_of("q", "x", "y")
    number = {name: len(rehearse(name, Settings(), pair)) for name in PROTOCOLS}
    assert number["direct"] == 2 and number["self_consistency"] == 10 and number["reference"] == 3
    assert (number["rubric"], number["prepair"], number["deliberate"], number["orbit"]) == (3, 4, 4, 4)


@given(st.integers(0, 1000), st.sampled_from(["ab", "ba"]), st.sampled_from([0, 1]))
def test_the_seed_of_a_trial_follows_the_prompt_and_no_two_trials_share_it(number, view, turned):
    pair = pair_of(f"question {number}", "x", "y")
    calls = rehearse("self_consistency", Settings(), pair)
    assert len({call.seed for call in calls}) == len(calls) == 10
    swapped = rehearse("self_consistency", Settings(), pair_of(f"question {number}", "y", "x"))
    other = {"ab": "ba", "ba": "ab"}[view]
    mine = [c.seed for c in calls if c.prompt.key.view == view]
    assert mine == [c.seed for c in swapped if c.prompt.key.view == other]


def test_settings_that_differ_have_names_that_differ():
    other = {f.name: 0.5 if f.type == "float" else 3 for f in dataclasses.fields(Settings)}
    tags = {dataclasses.replace(Settings(), **{name: value}).tag for name, value in other.items()}
    assert len(tags | {Settings().tag}) == 1 + len(dataclasses.fields(Settings))


@pytest.mark.parametrize("wrong", [{"max_new_tokens": 0}, {"trials": 0}, {"temperature": 0.0}, {"top_p": 1.5}])
def test_settings_without_room_or_chance_are_refused(wrong):
    with pytest.raises(ValueError, match="must be at least 1|sampling needs"):
        Settings(**wrong)


# ---------------------------------------------------------------- rows


def one_call(name: str, view: str):
    return next(c for c in rehearse(name, Settings(), pair_of("q", "x", "y")) if c.prompt.key.view == view)


def text_answer(text: str, reason: str = "stop") -> Generation:
    return Generation(text, (), reason, 4, new_tokens=2)


@pytest.mark.parametrize("view, sign", [("ab", 1), ("ba", -1), ("ab_BA", -1), ("ba_BA", 1)])
def test_the_letter_a_is_mapped_to_the_response_that_wears_it(view, sign):
    row = run_row(one_call("orbit", view), Read(0.25, 0.5, 4), "judge")
    assert row["log_odds"] == sign * 0.25 and row["status"] == "ok" and row["label_mass"] == 0.5


def test_verdicts_ties_unparsed_cut_and_failed_calls_are_told_apart():
    hard, scores = one_call("chain_of_thought", "ba"), one_call("score_then_choose", "ab")
    said = "The better response is Response A."
    rows = [
        run_row(hard, text_answer(said), "judge"),
        run_row(hard, text_answer(said, "length"), "judge"),
        run_row(hard, text_answer("Both."), "judge"),
        run_row(scores, text_answer(" 5\nResponse B: 5"), "judge"),
        run_row(hard, Failure("503"), "judge"),
    ]
    assert [row["status"] for row in rows] == ["ok", "truncated", "unparsed", "tie", "error"]
    values = [row["log_odds"] for row in rows]
    assert values[0] == -math.inf and values[3] == 0.0 and all(map(math.isnan, (values[1], values[2], values[4])))


def test_likelihoods_are_summed_averaged_and_compared_with_an_empty_request():
    rows = {}
    for name in ("likelihood_sum", "likelihood_mean", "likelihood_pmi"):
        calls, table = calls_and_rows(name, pair_of("q", "x", "y"))
        rows[name] = table.set_index(["stage", "view"])["log_odds"]
        assert [float(text) for text in table["text"]] == [answer(call).log_likelihood for call in calls]
    total = rows["likelihood_sum"]["verdict"]
    assert (rows["likelihood_mean"]["verdict"] == total / 3).all()
    assert (rows["likelihood_pmi"]["verdict"] == total - rows["likelihood_pmi"]["empty"]).all()


# ---------------------------------------------------------------- parsing

SCORES = [
    (" 7\nResponse B: 5\nThe better response is Response A.", "A"),
    (" 7\nResponse B: 5\nThe better response is Response B.", "B"),  # the letter counts, even against the scores
    (" 3\nResponse B: 5", "B"),
    (" 8/10\nResponse B: 6/10", "A"),
    (" 5\nResponse B: 5", "tie"),
    (" 7", None),
    ("", None),
    (" seven\nResponse B: five", None),
    (" 7.5\nResponse B: 3.5", None),
    (" 10\nResponse B: 3", None),  # outside the scale that was asked for
    (" 7\nResponse B: 5\nResponse B: 9", None),
    (" It adds 2 and 3.\nResponse B: 5", None),
]


@pytest.mark.parametrize("text, letter", SCORES)
def test_two_scores_are_read_only_where_both_are_clear(text, letter):
    assert two_scores(text) == letter


def test_claims_rest_on_earlier_claims_only():
    text = " Two is even.\n2. Three is odd [1, 2, 9].\n3. The sum is odd [1,2].\n4. Done [5]"
    assert claim_graph(text) == [
        ("Two is even.", ()),
        ("Three is odd.", (0,)),
        ("The sum is odd.", (0, 1)),
        ("Done", ()),
    ]
    assert claim_graph(" Only one.") == [] and claim_graph("") == []
    assert len(claim_graph("\n".join(f"{n}. c{n}" for n in range(1, 9)))) <= 4


@given(st.text(max_size=60))
def test_parsing_claims_never_fails_and_never_makes_a_cycle(text):
    for number, (claim, parents) in enumerate(claim_graph(text)):
        assert claim and all(parent < number for parent in parents)
