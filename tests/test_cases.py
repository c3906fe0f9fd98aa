"""What went wrong for users of other judging tools: every report has a test here that guards against its kind.

The numbers are those of the collection of public reports that this project was built from (sections B parsing, C tokens
and templates, D truncation, E cache and resume, J seen in other tools' code); the comments say each in a few words.
"""

from __future__ import annotations

import ast
import re

import numpy as np
import pytest

from baer_utils.backbones.base import Failure
from baer_utils.backbones.replay import ReplayBackbone
from baer_utils.evidence import native_decisions, run_array, summarize
from baer_utils.judging import judge_pairs
from baer_utils.judging.planning import BLOCK_PAIRS
from baer_utils.metrics import ledger
from baer_utils.protocols import Settings
from tests.conftest import REPOSITORY
from tests.test_judging import Touchy

REPORTS = REPOSITORY.parent / "shared" / "reference" / "cases.md"
SECTIONS = {
    "B": (13, 14, 15, 17, 18, 19, 20, 21, 23, 24, 26, 27),
    "C": (29, 30, 31, 33, 34, 35, 36, 38, 39, 40, 42, 43, 44),
    "D": (46, 47, 48, 50, 51, 52, 53),
    "E": (55, 56, 58, 59, 61, 63, 64, 65, 66),
    "J": (104, 105, 107),
}
CASES: dict[int, tuple[str, ...]] = {
    # every row dropped, the rate NaN
    13: ("test_cases.py::test_a_judge_that_hardly_ever_decides_is_told_of_once_with_its_first_text_and_judged_on",),
    # two verdicts in one answer; a context too small for the prompt
    14: (
        "test_prompts.py::test_a_verdict_is_read_only_where_one_is_clearly_given",
        "test_judging.py::test_bad_input_is_refused_before_anything_is_asked",
    ),
    # a proxy that answers in a shape of its own
    15: (
        "test_server.py::test_answers_of_the_wrong_shape_never_become_numbers",
        "test_server.py::test_a_read_that_cannot_be_trusted_is_a_failure_that_says_what_to_change",
    ),
    # no verdict after many attempts: lengths are known before the run, attempts are few and end with a reason
    17: (
        "test_judging.py::test_bad_input_is_refused_before_anything_is_asked",
        "test_server.py::test_faults_that_last_end_in_a_failure_with_the_reason",
    ),
    # a free text that cannot be graded where one token would do
    18: ("test_judging.py::test_every_expert_fills_its_rows_for_every_pair",),
    # no answer counted as a wrong one
    19: (
        "test_metrics.py::test_a_ledger_counts_ties_and_missing_answers_under_each_rule_by_hand",
        "test_protocols.py::test_verdicts_ties_unparsed_cut_and_failed_calls_are_told_apart",
    ),
    # an error message scored as a judgment
    20: ("test_cases.py::test_an_error_message_that_reads_like_a_verdict_is_never_one",),
    # no answer counted as a right one
    21: (
        "test_evidence.py::test_missing_evidence_is_neutral_and_a_single_run_is_stable",
        "test_metrics.py::test_a_ledger_counts_ties_and_missing_answers_under_each_rule_by_hand",
    ),
    # a judged text that gives orders to the judge's parser or template
    23: (
        "test_hostile.py::test_a_response_never_becomes_a_verdict_whatever_it_says",
        "test_hostile.py::test_a_hostile_response_changes_nothing_else_in_any_prompt",
        "test_hostile.py::test_no_control_token_comes_from_a_response_or_from_what_a_judge_wrote",
        "test_hostile.py::test_every_score_of_hostile_pairs_negates_with_the_swap_to_the_last_bit_and_nothing_is_parsed",
    ),
    # structured output that a budget cut in two
    24: ("test_protocols.py::test_verdicts_ties_unparsed_cut_and_failed_calls_are_told_apart",),
    # a margin is wanted, not only a winner
    26: (
        "test_backbones.py::test_a_batched_read_is_the_plain_forward_pass",
        "test_evidence.py::test_evidence_is_the_papers_mean_spread_and_shrunk_logit",
    ),
    # votes with ties and errors among them
    27: (
        "test_native.py::test_self_consistency_takes_the_majority_of_all_parsed_votes_of_both_orders",
        "test_native.py::test_five_votes_against_five_are_a_tie_and_a_missing_vote_breaks_it",
    ),
    # "A" or " A"
    29: (
        "test_backbones.py::test_labels_are_single_tokens_in_spellings_that_both_labels_have",
        "test_models.py::test_both_spellings_are_found_where_a_tokenizer_puts_a_space_before_every_text",
    ),
    # the token of the letter is another one than was thought
    30: ("test_models.py::test_the_probe_says_which_token_is_the_letter_and_warns_where_it_is_not_one_that_counts",),
    # a space before the letter that nobody expected
    31: ("test_models.py::test_a_run_shows_the_probe_and_warns_of_a_letter_that_does_not_count",),
    # a label beyond the twenty likeliest tokens
    33: (
        "test_server.py::test_a_server_that_neither_constrains_nor_lists_labels_gives_bounds_on_the_safe_side",
        "test_server.py::test_labels_that_a_server_does_not_list_are_asked_for_one_by_one",
    ),
    # the probability of each class is wanted
    34: ("test_server.py::test_reads_are_the_local_judges_reads",),
    # log-probabilities of -inf
    35: (
        "test_server.py::test_a_label_of_no_probability_gives_a_finite_bound",
        "test_evidence.py::test_only_the_clip_makes_a_hard_verdict_finite_and_it_is_symmetric",
        "test_backbones.py::test_a_read_that_overflows_is_a_failure_and_never_an_answer",
    ),
    # one way to constrain an answer differs from the next
    36: (
        "test_server.py::test_reads_are_the_local_judges_reads",
        "test_server.py::test_greedy_texts_are_the_local_judges_texts",
    ),
    # a chat interface has no likelihoods
    38: (
        "test_server.py::test_experts_that_a_judge_cannot_answer_are_refused_before_any_call",
        "test_server.py::test_the_table_of_capabilities_covers_every_verb_and_interface",
    ),
    # the prompt differs from one source of answers to the next
    39: (
        "test_server.py::test_the_same_prompt_is_the_same_token_ids_here_and_there",
        "test_prompts.py::test_the_sha_sees_words_and_version_but_neither_the_row_nor_the_cut",
        "test_backbones.py::test_replayed_answers_are_the_recorded_ones",
    ),
    # the beginning token is missing, or there twice
    40: (
        "test_models.py::test_a_prompt_has_one_beginning_token_where_the_tokenizer_has_one_and_none_where_not",
        "test_backbones.py::test_a_model_without_a_chat_template_gets_plain_text_and_one_beginning_token",
        "test_backbones.py::test_a_tokenizer_that_ends_texts_by_itself_does_not_end_a_prompt_before_it_begins",
    ),
    # somebody else's template by default
    42: ("test_backbones.py::test_the_rendered_prompt_is_the_models_own_chat_template_with_the_stub_behind_it",),
    # one way to compute attention spoils a model
    43: (
        "test_models.py::test_a_run_shows_the_probe_and_warns_of_a_letter_that_does_not_count",
        "test_models.py::test_batched_and_shared_reads_are_the_plain_forward_pass_alone",
    ),
    # a template that ignores the switch for thinking
    44: ("test_models.py::test_thinking_is_refused_where_the_template_ignores_it",),
    # texts that are too long are cut without a word
    46: ("test_judging.py::test_both_responses_are_cut_at_one_length_in_every_protocol_and_counted",),
    # a cut text is judged like a finished one
    47: (
        "test_backbones.py::test_a_text_that_ends_exactly_at_its_budget_has_ended",
        "test_judging.py::test_an_answer_becomes_a_row_toward_a_with_its_status",
    ),
    # nearly all texts run out of budget
    48: (
        "test_cases.py::test_a_judge_that_hardly_ever_decides_is_told_of_once_with_its_first_text_and_judged_on",
        "test_judging.py::test_limits_stop_after_the_first_block_where_asked_and_only_warn_otherwise",
    ),
    # what a judge thought is read as its answer
    50: (
        "test_models.py::test_what_a_judge_thought_is_taken_out_of_what_it_said",
        "test_models.py::test_a_thought_is_kept_in_the_table_and_never_parsed",
    ),
    # the judge saw the first 200 characters only
    51: (
        "test_judging.py::test_both_responses_are_cut_at_one_length_in_every_protocol_and_counted",
        "test_hostile.py::test_beside_50_000_characters_both_responses_are_cut_at_one_length_and_shown_whole_up_to_it",
    ),
    # the context of a local judge is exceeded
    52: ("test_judging.py::test_an_instruction_that_leaves_no_room_makes_errors_and_loses_no_other_pair",),
    # length in characters or in tokens: each says which
    53: (
        "test_metrics.py::test_the_longer_response_is_counted_in_characters_and_negates_with_the_swap",
        "test_backbones.py::test_a_cut_keeps_the_first_tokens_of_each_response_and_touches_nothing_else",
    ),
    # no way to go on after a crash; answers kept by place instead of by content
    55: (
        "test_judging.py::test_whatever_answers_are_lost_the_run_that_goes_on_makes_the_same_batches",
        "test_judging.py::test_a_call_is_named_by_judge_verb_labels_budget_trial_and_tokens_and_by_no_protocol",
    ),
    # the model changed and the old answers stayed
    56: (
        "test_backbones.py::test_a_changed_weight_file_changes_the_name",
        "test_backbones.py::test_a_layer_trained_on_in_the_middle_of_a_large_file_changes_the_name",
        "test_models.py::test_quantised_weights_are_what_the_name_says_and_their_reads_are_numbers",
    ),
    # judgments are paid for again
    58: ("test_judging.py::test_judging_again_finds_every_call_and_gives_the_same_table",),
    # what was made before a crash is lost
    59: (
        "test_judging.py::test_a_run_that_dies_has_kept_every_batch_that_it_had_finished",
        "test_store.py::test_a_writer_killed_before_the_rename_has_written_nothing_that_is_read",
    ),
    # a dead port is asked again for ever
    61: (
        "test_server.py::test_a_run_whose_server_dies_keeps_its_answers_and_goes_on_at_another_address",
        "test_server.py::test_the_name_tells_the_model_and_no_address",
    ),
    # outputs that belong to other rows
    63: (
        "test_evidence.py::test_rows_follow_the_pair_ids_asked_for_and_by_default_the_sorted_ones",
        "test_records.py::test_a_repeated_run_and_a_missing_or_foreign_column_are_refused",
    ),
    # 280 of 805 were judged
    64: ("test_judging.py::test_an_instruction_that_leaves_no_room_makes_errors_and_loses_no_other_pair",),
    # scoring anew means judging anew
    65: ("test_backbones.py::test_replayed_answers_are_the_recorded_ones",),
    # a failed notebook run starts from the beginning
    66: ("test_batch.py::test_a_stopped_run_goes_on_where_it_was_and_leaves_no_kernel_behind",),
    # token ids of one tokenizer, for all
    104: ("test_models.py::test_labels_of_the_real_tokenizers_are_single_tokens_with_and_without_their_space",),
    # a judge that hardly says a label looks as sure as any
    105: (
        "test_server.py::test_a_bound_never_says_more_than_the_whole_vocabulary_would",
        "test_backbones.py::test_a_batched_read_is_the_plain_forward_pass",
        "test_judging.py::test_a_protocol_whose_labels_the_judge_never_says_is_refused_with_the_reason",
    ),
    # three policies for errors, three numbers from the same rows
    107: ("test_metrics.py::test_a_ledger_counts_ties_and_missing_answers_under_each_rule_by_hand",),
}


def test_every_report_has_a_test():
    reports = {number for numbers in SECTIONS.values() for number in numbers}
    assert len(reports) == 44 and set(CASES) == reports


def test_the_numbers_are_those_of_the_collection():
    if not REPORTS.exists():
        pytest.skip("the collection of reports is not beside the repository")
    parts = re.split(r"(?m)^## ", REPORTS.read_text(encoding="utf-8"))
    found = {part[0]: tuple(map(int, re.findall(r"(?m)^(\d+)\. ", part))) for part in parts if part[1:2] == "."}
    assert {name: found.get(name) for name in SECTIONS} == SECTIONS


@pytest.mark.parametrize("number", CASES)
def test_the_tests_of_a_report_are_there(number):
    for name in CASES[number]:
        file, _, function = name.partition("::")
        tree = ast.parse((REPOSITORY / "tests" / file).read_text(encoding="utf-8"))
        assert function.startswith("test_") and function in {getattr(node, "name", "") for node in tree.body}, name


# ---------------------------------------------------------------- reports that have no other home


@pytest.mark.parametrize("budget, told", [(12, "verdicts parsed"), (1, "texts ran out of budget")])
def test_a_judge_that_hardly_ever_decides_is_told_of_once_with_its_first_text_and_judged_on(tiny, sums, budget, told):
    bank = ("chain_of_thought",)
    runs, report = judge_pairs(sums, tiny, bank, settings=Settings(max_new_tokens=budget), progress=False)
    assert len(runs) == 2 * len(sums) > 2 * BLOCK_PAIRS  # more than the block after which it might have stopped
    status = runs["status"]
    share = (status == "truncated").mean() if budget == 1 else status.isin(["ok", "tie"]).mean()
    (warning,) = (text for text in report.warnings if told in text)
    assert warning.startswith(f"chain_of_thought: {share:.0%} of {len(runs)}") and warning in str(report)
    assert any(repr(text[:120]) in warning for text in runs.loc[status.isin(["unparsed", "truncated"]), "text"])
    answers = native_decisions(runs, sums, bank)["chain_of_thought"]
    counted = ledger(answers, sums["label"])
    assert answers.isna().all() and (counted["strict"], counted["coverage"], counted["missing"]) == (0, 0, len(sums))
    assert counted["matched_rule"] == (sums["label"] == 1).mean() and np.isnan(counted["covered_only"])


def test_an_error_message_that_reads_like_a_verdict_is_never_one(sums):
    said = "The better response is Response A."

    class Down(Touchy):
        def _failures(self, asked, answers):
            return [Failure(said)] * len(answers)

    bank = ("direct", "chain_of_thought", "score_then_choose", "prepair", "pointwise")
    runs, report = judge_pairs(sums.head(6), Down(), bank, progress=False)
    assert set(runs["status"]) == {"error"} and set(runs["text"]) == {said} and runs["log_odds"].isna().all()
    assert report.errors == report.runs == len(runs) == 6 * 2 * len(bank) and not report.warnings
    assert native_decisions(runs, sums.head(6), bank[:4]).isna().all(axis=None)
    assert not summarize(run_array(runs, bank[:4]), bank[:4]).available.any()
    again, replayed = judge_pairs(sums.head(6), ReplayBackbone(runs), bank, progress=False)
    assert again.drop(columns="backbone").equals(runs.drop(columns="backbone")) and replayed.errors == len(runs)
