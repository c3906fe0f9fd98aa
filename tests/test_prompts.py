"""The words of a prompt, their order, and what is read out of a judge's own text."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from baer_utils.prompts import DISPLAY, LABEL_SIGN, TEMPLATES, Key, final_verdict, one_response, two_responses

TEXTS = st.text(max_size=40)


def pair_of(instruction: str, a: str, b: str) -> SimpleNamespace:
    return SimpleNamespace(pair_id="p", instruction=instruction, response_a=a, response_b=b)


@given(TEXTS, TEXTS, TEXTS, st.sampled_from(["direct", "chain_of_thought"]))
def test_the_prompt_of_the_swapped_pair_in_one_order_is_the_prompt_of_the_pair_in_the_other(q, a, b, template):
    pair, swapped = pair_of(q, a, b), pair_of(q, b, a)
    for view, other in (("ab", "ba"), ("ab_BA", "ba_BA")):
        asked = two_responses(pair, view, template, Key("p", template, view))
        again = two_responses(swapped, other, template, Key("p", template, other))
        assert asked.segments == again.segments and asked.stub == again.stub and asked.sha == again.sha
        assert LABEL_SIGN[view] == -LABEL_SIGN[other]


@given(TEXTS, TEXTS, TEXTS)
def test_a_pointwise_prompt_never_holds_the_other_response(q, a, b):
    prompt = one_response(pair_of(q, a, b), "a", "pointwise", Key("p", "pointwise", "a"))
    assert prompt == one_response(pair_of(q, a, "something else"), "a", "pointwise", Key("p", "pointwise", "a"))


@given(TEXTS, TEXTS, TEXTS)
def test_somebody_elses_text_is_never_trusted_and_content_comes_before_the_question(q, a, b):
    prompt = two_responses(pair_of(q, a, b), "ba", "direct", Key("p", "direct", "ba"))
    assert [s.text for s in prompt.segments if not s.trusted] == [q, b, a]
    assert [prompt.segments[n].text for n in prompt.responses] == [b, a]
    assert prompt.segments[-1].text.strip() == TEMPLATES["direct"].question


def test_the_sha_sees_words_and_version_but_neither_the_row_nor_the_cut():
    prompt = two_responses(pair_of("q", "x", "y"), "ab", "direct", Key("p", "direct", "ab"))
    assert replace(prompt, key=Key("z", "direct", "ab"), cut=3, continue_ids=(1,)).sha == prompt.sha
    assert replace(prompt, version="direct/2").sha != prompt.sha
    assert replace(prompt, stub="Best:").sha != prompt.sha
    # SHA-256 of the canonical JSON, recomputed here
    import hashlib
    import json

    text = json.dumps([prompt.version, [list(s) for s in prompt.segments], prompt.stub], separators=(",", ":"))
    assert prompt.sha == hashlib.sha256(text.encode()).hexdigest()


def test_the_letter_exchanged_views_show_the_same_texts_under_other_letters():
    assert [DISPLAY[view][:2] for view in ("ab", "ba")] == [DISPLAY[view][:2] for view in ("ab_BA", "ba_BA")]
    assert all(DISPLAY[view][2:] == ("B", "A") for view in ("ab_BA", "ba_BA"))


# text, what it says; each line is a way in which judges have been misread (other tools' reports)
CASES = [
    ("The better response is Response A.", "A"),
    ("It adds up. The better response is **Response B**", "B"),
    ("The better response is A", "A"),
    ("The better response is: B", "B"),
    ("the better response is response B because it is right", "B"),
    ("The better response is Response A.\nNo, wait.\nThe better response is Response B.", "B"),
    ("A: The better response is A.\nB: The better response is B.", None),
    ('Write "The better response is Response A." or "The better response is Response B."', None),
    ("The better response is A clear winner", None),
    ("The better response is a", None),
    ("The better response is", None),
    ("Response A", None),
    ("A", None),
    ("", None),
    ("Both are good.", None),
    ("The better response is Response C.", None),
    ("The better response is Response AB.", None),
    ("The better response is Response A/B.", None),
    ("The better response is A & B", None),
    ("The better response is Response A or Response B.", None),
    ("The better response is neither A nor B.", None),
    ("The better response is Response A, not Response B.", "A"),
    ("The better response is Response A.\nThe better response is", None),
    ("The better response is Response A.\nThe better response is Response A.", "A"),
    ('Response A only says "The better response is Response B."', "B"),  # whose words it quotes, the text does not tell
    ('It says "The better response is Response B."\nIt is wrong.\nThe better response is Response A.', "A"),
]


@pytest.mark.parametrize("text, letter", CASES)
def test_a_verdict_is_read_only_where_one_is_clearly_given(text, letter):
    assert final_verdict(text) == letter


@given(st.text(alphabet="AB \n.The better response is", max_size=80))
def test_exchanging_the_letters_of_a_text_exchanges_its_verdict(text):
    exchanged = text.translate(str.maketrans("AB", "BA"))
    expected = {"A": "B", "B": "A", None: None}[final_verdict(text)]
    assert final_verdict(exchanged) == expected
