"""Judges behind servers: the local judge's answers over a wire, every transport fault counted, nothing asked twice."""

from __future__ import annotations

import math
import signal
import threading
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from baer_utils.backbones import completions, open_backbone, transport
from baer_utils.backbones.base import Failure, Generation, Likelihood, Read
from baer_utils.backbones.bounds import LEAST, read_listed
from baer_utils.backbones.capabilities import CAPABILITIES, verbs_of
from baer_utils.backbones.chat import Chat, pack, unpack
from baer_utils.backbones.replay import ReplayBackbone
from baer_utils.backbones.server import ServerBackbone
from baer_utils.judging import judge_pairs
from baer_utils.prompts import CORRECTNESS, LABELS, thought_through
from baer_utils.protocols import PROTOCOLS, Settings, chain_of_thought, direct, pointwise
from baer_utils.protocols.bank import likelihood_sum, score_then_choose
from baer_utils.store import open_store
from tests.conftest import make_pairs
from tests.openai_server import MODEL, OpenAIServer, wait_until
from tests.test_backbones import HOSTILE, pair_of, pairs_of_many_lengths, plain_logits, prompts_of

SHORT = Settings(max_new_tokens=12, criteria_tokens=8, reference_tokens=8)
GREEDY = tuple(name for name in PROTOCOLS if name not in ("self_consistency", "orbit"))
MADE_OF = ("pair_id", "protocol", "view", "stage", "trial", "status", "prompt_tokens", "new_tokens", "prompt_sha")


@pytest.fixture
def quick(monkeypatch):
    """Servers that failed rest for milliseconds."""
    monkeypatch.setattr(transport, "FIRST_REST", 0.005)
    monkeypatch.setattr(transport, "LONGEST_REST", 0.1)


@pytest.fixture
def served(tiny, quick):
    with OpenAIServer(tiny) as server:
        yield server


def judge_of(*servers, tokenizer, **options):
    return ServerBackbone([server.url for server in servers], MODEL, tokenizer=str(tokenizer), **options)


@pytest.fixture
def judge(served, tiny_folder):
    return judge_of(served, tokenizer=tiny_folder)


@pytest.fixture
def make(tiny, tiny_folder, quick):
    """Judges behind servers of one's own kind; the servers end with the test."""
    servers: list[OpenAIServer] = []

    def make_one(**options):
        servers.append(OpenAIServer(tiny, **options).__enter__())
        return judge_of(servers[-1], tokenizer=tiny_folder), servers[-1]

    yield make_one
    for server in servers:
        server.stop()


def assert_same_reads(reads, expected, within=1e-4):
    for read, other in zip(reads, expected, strict=True):
        assert isinstance(read, Read), read
        assert abs(read.log_odds - other.log_odds) < within and abs(read.label_mass - other.label_mass) < within
        assert (read.prompt_tokens, read.new_tokens, read.text) == (other.prompt_tokens, 0, "")


# ---------------------------------------------------------------- the local judge's answers


def test_the_same_prompt_is_the_same_token_ids_here_and_there(judge, served, tiny):
    prompts = prompts_of(pairs_of_many_lengths()) + prompts_of(pairs_of_many_lengths(), pointwise)
    judge.read(prompts)
    assert [judge.render(p) for p in prompts] == [tiny.render(p) for p in prompts]
    assert sorted(served.prompts()) == sorted(tiny.render(p) for p in prompts)
    assert judge.context == served.context and judge.count("one two") == tiny.count("one two")


@pytest.mark.parametrize("lacks", [(), ("logprob_token_ids",), ("logprob_token_ids", "token_names"), ("token_names",)])
def test_reads_are_the_local_judges_reads(make, tiny, lacks):
    judge, server = make(lacks=lacks)
    for labels, asked in ((LABELS, direct), (CORRECTNESS, pointwise)):
        prompts = prompts_of(pairs_of_many_lengths()[:4], asked)
        assert_same_reads(judge.read(prompts, labels), tiny.read(prompts, labels))
    assert len(server.requests) == 2 or "logprob_token_ids" in lacks  # eight prompts go together


def test_labels_that_a_server_does_not_list_are_asked_for_one_by_one(make, tiny, monkeypatch):
    monkeypatch.setattr(completions, "LISTED", 2)
    judge, server = make(lacks=("logprob_token_ids",))
    prompts = prompts_of(pairs_of_many_lengths())
    assert_same_reads(judge.read(prompts), tiny.read(prompts))
    assert {1, 4} == {len(body["allowed_token_ids"]) for body in server.requests}


def test_a_server_that_neither_constrains_nor_lists_labels_gives_bounds_on_the_safe_side(make, tiny, monkeypatch):
    judge, server = make(lacks=("logprob_token_ids", "allowed_token_ids"))
    prompts, seen = prompts_of(pairs_of_many_lengths()), set()
    expected = tiny.read(prompts)
    for listed in (1, 2, 3):
        monkeypatch.setattr(completions, "LISTED", listed)
        for read, exact in zip(judge.read(prompts), expected, strict=True):
            seen.add(type(read) if isinstance(read, Failure) else read.text[:5])
            if isinstance(read, Failure):
                assert "is not known" in read.reason or "neither 'A' nor 'B'" in read.reason
            elif read.text:
                assert 0 < read.log_odds / exact.log_odds <= 1 + 1e-6 and read.label_mass <= exact.label_mass + 1e-6
    assert seen >= {Failure, "bound"}
    asked = len(server.requests)
    judge.read(prompts[:1])
    assert len(server.requests) == asked + 1  # what a server cannot do is tried once


@pytest.mark.parametrize("kind", ["exact", "after the constraint", "another tokenizer", "none"])
def test_a_read_that_cannot_be_trusted_is_a_failure_that_says_what_to_change(kind, make, tiny, monkeypatch):
    lacks = {"after the constraint": ("raw_logprobs",), "none": ("logprobs",)}.get(kind, ())
    told = {"exact": None, "after the constraint": "raw_logprobs", "another tokenizer": "tokenizer=",
            "none": "must give log-probabilities"}[kind]  # fmt: skip
    judge, server = make(lacks=lacks)
    if kind == "another tokenizer":
        monkeypatch.setattr(judge._api._tokenizer, "decode", lambda ids, **_: "?")
        monkeypatch.setattr(server.judge.tokenizer, "decode", lambda ids, **_: "!")
    for old in (False, True):  # also where labels are not asked for by name
        server.lacks |= {"logprob_token_ids"} if old else set()
        answers = judge.read(prompts_of(pairs_of_many_lengths()[:2]))
        assert all(isinstance(a, Failure) and told in a.reason if told else isinstance(a, Read) for a in answers)


def test_greedy_texts_are_the_local_judges_texts(make, tiny_folder):
    from baer_utils.backbones.local import TransformersBackbone

    abrupt = TransformersBackbone(tiny_folder)  # its texts end early, some with words of their own, at different steps
    words = [abrupt.tokenizer(word)["input_ids"][0] for word in (" incorrect", ".", " B")]
    abrupt.model.generation_config.eos_token_id = [2, *words]
    judge, server = make()
    server.judge = abrupt
    prompts = prompts_of(pairs_of_many_lengths(), chain_of_thought)
    for budget in (1, 16):
        got, expected = judge.generate(prompts, max_new_tokens=budget), abrupt.generate(prompts, max_new_tokens=budget)
        for text, other in zip(got, expected, strict=True):
            assert (text.text, text.ids, text.finish_reason) == (other.text, other.ids, other.finish_reason)
            assert (text.prompt_tokens, text.new_tokens) == (other.prompt_tokens, other.new_tokens)
    assert {text.finish_reason for text in got} == {"stop", "length"} and judge.notes() == []


def test_a_models_own_generation_settings_are_overruled(judge, served):
    judge.read(prompts_of([pair_of()]))
    judge.generate(prompts_of([pair_of()], chain_of_thought), max_new_tokens=2)
    for body in served.requests:
        assert body["temperature"] == 0 and body["repetition_penalty"] == 1 and body["top_k"] == 0


def test_sampled_texts_depend_on_their_own_seed_alone(judge, served):
    prompts = prompts_of(pairs_of_many_lengths()[:3], chain_of_thought)
    seeds = [5, 5, 2**60 + 1, 7, 8, 9]
    options = {"max_new_tokens": 8, "temperature": 3.0, "top_p": 0.95}
    one = judge.generate(prompts, seeds=seeds, **options)
    other = judge.generate(prompts[::-1], seeds=seeds[::-1], **options)[::-1]
    assert [t.ids for t in one] == [t.ids for t in other]
    assert [t.ids for t in one] != [t.ids for t in judge.generate(prompts, seeds=[s + 1 for s in seeds], **options)]
    assert all(len(body["prompt"]) == 1 and 0 <= body["seed"] < 2**31 for body in served.requests)
    with pytest.raises(ValueError, match="one seed per prompt"):
        judge.generate(prompts, **options)


def test_texts_without_their_ids_are_tokenised_again_and_counted(make, tiny):
    judge, _ = make(lacks=("return_token_ids",))
    prompts = prompts_of(pairs_of_many_lengths()[:3], chain_of_thought)
    texts = judge.generate(prompts, max_new_tokens=12)
    assert [t.text for t in texts] == [t.text for t in tiny.generate(prompts, max_new_tokens=12)]
    assert all(tiny.tokenizer.decode(t.ids) == t.text for t in texts)
    assert judge.notes() == ["6 texts came without their token ids and were tokenised again."]


def test_likelihoods_are_the_local_judges_likelihoods(judge, tiny):
    calls = [call for pair in pairs_of_many_lengths() for call in next(likelihood_sum(pair, SHORT))]
    prompts, texts = [call.prompt for call in calls], [call.text for call in calls]
    for got, expected in zip(judge.likelihood(prompts, texts), tiny.likelihood(prompts, texts), strict=True):
        assert abs(got.log_likelihood - expected.log_likelihood) < 1e-3
        assert (got.prompt_tokens, got.new_tokens) == (expected.prompt_tokens, expected.new_tokens)


def test_likelihoods_from_a_server_that_gives_none_are_failures(make):
    judge, _ = make(lacks=("prompt_logprobs",))
    calls = next(likelihood_sum(pair_of(), SHORT))
    answers = judge.likelihood([call.prompt for call in calls], [call.text for call in calls])
    assert all(isinstance(a, Failure) and "prompt_logprobs" in a.reason for a in answers)


def test_all_protocols_fill_the_table_that_the_local_judge_fills(judge, tiny):
    pairs = make_pairs([(p.instruction, p.response_a, p.response_b) for p in pairs_of_many_lengths()[:2]])
    runs, report = judge_pairs(pairs, judge, GREEDY, settings=SHORT, progress=False)
    expected, _ = judge_pairs(pairs, tiny, GREEDY, settings=SHORT, progress=False)
    pd.testing.assert_frame_equal(runs[list(MADE_OF)], expected[list(MADE_OF)])
    np.testing.assert_allclose(runs["log_odds"], expected["log_odds"], atol=1e-3)
    assert report.errors == report.bounds == 0 and report.warnings == [w for w in report.warnings if "server" not in w]


# ---------------------------------------------------------------- bounds


@st.composite
def lists_of_tokens(draw):
    """Every token's log-probability, the k likeliest of them, and the tokens of two labels in two spellings."""
    logits = draw(st.lists(st.floats(-30, 30), min_size=8, max_size=30))
    weights = np.array(logits) - np.logaddexp.reduce(logits)
    order = np.argsort(-weights)
    k = draw(st.integers(1, len(order)))
    sides = {str(n): int(n >= 2) for n in range(4)}
    tokens = [str(n) for n in range(len(weights))]
    return dict(zip(tokens, weights, strict=True)), {tokens[n]: float(weights[n]) for n in order[:k]}, sides


@given(lists_of_tokens())
def test_a_bound_never_says_more_than_the_whole_vocabulary_would(drawn):
    whole, listed, sides = drawn
    odds, mass, remark = read_listed(whole, sides.get, ("A", "B"))
    assert remark == "" or max(whole[t] for t in ("0", "1")) <= LEAST or max(whole[t] for t in ("2", "3")) <= LEAST
    read = read_listed(listed, sides.get, ("A", "B"))
    seen = {sides[token] for token in listed if token in sides}
    if isinstance(read, Failure):
        assert len(seen) < 2
    else:
        assert seen and read[1] <= mass + 1e-9 and math.isfinite(read[0])
        assert bool(read[2]) == (len(seen) == 1)
        if read[2]:
            assert np.sign(read[0]) == np.sign(odds) and abs(read[0]) <= abs(odds) + 1e-6  # the rest is 1 - a sum
    mirrored = read_listed(listed, lambda token: 1 - sides[token] if token in sides else None, ("B", "A"))
    if not isinstance(read, Failure):
        assert mirrored[:2] == (-read[0], read[1])


@pytest.mark.parametrize(
    "listed, told",
    [
        ({"The": -0.1, "I": -3.0}, "neither 'A' nor 'B'.*would rather say 'The'"),
        ({}, "neither 'A' nor 'B' is among the 0"),
        ({"A": -9999.0, "B": -9999.0, "The": 0.0}, "neither"),
        ({"The": -0.1, "I": -3.0, "A": -4.0}, "'B' is not among the 3 .* is not known"),
    ],
)
def test_a_list_that_says_nothing_about_the_labels_is_no_answer(listed, told):
    found = read_listed(listed, {"A": 0, "B": 1}.get, LABELS)
    assert isinstance(found, Failure)
    assert pytest.raises(AssertionError, lambda: (_ for _ in ()).throw(AssertionError(found.reason))).match(told)


def test_a_bound_is_as_tight_as_what_the_list_leaves_over():
    listed = {"A": math.log(0.9), "x": math.log(0.08)}  # at most 0.02 is left for B, less than two like x
    odds, mass, _ = read_listed(listed, {"A": 0, "B": 1}.get, LABELS)
    assert abs(odds - math.log(0.9 / 0.02)) < 1e-9 and abs(mass - 0.9) < 1e-9


def test_a_label_of_no_probability_gives_a_finite_bound():
    odds, mass, remark = read_listed({"A": 0.0, "B": -9999.0, "x": -9999.0}, {"A": 0, "B": 1}.get, LABELS)
    assert 50 < odds < 101 and mass == 1 and remark.startswith("bound: 'B'")


# ---------------------------------------------------------------- transport faults


FAULTS = {
    "429": (429, {}, "slow down"),
    "500": 500,
    "503": 503,
    "408": 408,
    "a closed connection": "close",
    "no JSON": "garbage",
    "half an answer": "half",
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_that_passes_is_repeated_counted_and_shown(fault, judge, served, tiny):
    prompts = prompts_of(pairs_of_many_lengths()[:2])
    served.faults = [FAULTS[fault]] * 2
    assert_same_reads(judge.read(prompts), tiny.read(prompts))
    (note,) = judge.notes()
    assert note.startswith("2 requests to servers failed and were made again (") and judge.notes() == []
    assert len(served.requests) == 3


def test_a_server_that_never_answers_is_given_up_and_asked_again(judge, served, tiny, monkeypatch):
    monkeypatch.setattr(transport, "TIMEOUT", 0.3)
    served.faults = ["hang"]
    prompts = prompts_of([pair_of()])
    assert_same_reads(judge.read(prompts), tiny.read(prompts))
    assert "timeout: 1" in judge.notes()[0]


@pytest.mark.parametrize("as_date", [False, True])
def test_a_server_that_names_a_time_is_left_alone_that_long(as_date, judge, served, monkeypatch):
    monkeypatch.setattr(transport, "LONGEST_REST", 2.0)
    wait = format_datetime(datetime.now(UTC) + timedelta(seconds=2), usegmt=True) if as_date else "0.7"
    served.faults = [(429, {"Retry-After": wait}, "{}")]
    began = time.monotonic()
    assert isinstance(judge.read(prompts_of([pair_of()]))[0], Read)
    assert 0.7 <= time.monotonic() - began < 4
    served.faults = [(503, {"Retry-After": "86400"}, "{}")]  # nobody waits for a day
    judge.read(prompts_of([pair_of()]))
    assert time.monotonic() - began < 8


def test_faults_that_last_end_in_a_failure_with_the_reason(judge, served):
    served.poison = lambda body: True
    (answer, *_) = judge.read(prompts_of([pair_of()]))
    assert isinstance(answer, Failure) and "answers 500: injected 500" in answer.reason
    assert len(served.requests) == transport.ATTEMPTS
    assert "2 calls to servers failed, the last because" in judge.notes()[-1]


def test_a_prompt_that_is_refused_costs_itself_only_and_is_not_asked_again(judge, served, tiny):
    pairs = [*pairs_of_many_lengths()[:3], pair_of("long " * 600)]
    prompts = prompts_of(pairs)
    answers, expected = judge.read(prompts), tiny.read(prompts[:6])
    assert_same_reads(answers[:6], expected)
    assert all(isinstance(a, Failure) and "the context is 512 tokens" in a.reason for a in answers[6:])
    assert len(served.requests) == 1 + len(prompts) and "2 calls" in judge.notes()[0]


@pytest.mark.parametrize("fault", ["few", "shuffled"])
def test_answers_are_told_apart_by_their_index_and_their_number_must_fit(fault, judge, served, tiny):
    prompts = prompts_of(pairs_of_many_lengths()[:3])
    served.faults = [fault]
    answers = judge.read(prompts)
    if fault == "few":
        assert all(
            isinstance(a, Failure) and "one choice for each of 6 prompts; it gave 5" in a.reason for a in answers
        )
    else:
        assert_same_reads(answers, tiny.read(prompts))


def test_many_requests_are_on_their_way_together_but_not_more_than_allowed(judge, served, monkeypatch):
    monkeypatch.setattr(transport, "CONCURRENCY", 4)
    now, most = [0], [0]
    answer, lock = served.answer, threading.Lock()

    def count(path, body):
        with lock:
            now[0] += 1
            most[0] = max(most[0], now[0])
        time.sleep(0.05)
        with lock:
            now[0] -= 1
        return answer(path, body)

    monkeypatch.setattr(served, "answer", count)
    monkeypatch.setattr(served, "_lock", threading.RLock())
    served._lock = _Free()
    judge.generate(prompts_of(pairs_of_many_lengths(), chain_of_thought), max_new_tokens=1, temperature=1.0,
                   seeds=range(16))  # fmt: skip
    assert most[0] == 4


class _Free:
    """A lock that locks nothing: the server answers several requests at once."""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None


def test_ctrl_c_stops_what_is_on_its_way(judge, served):
    served.faults = ["hang"] * 20
    threading.Timer(0.5, signal.pthread_kill, (threading.main_thread().ident, signal.SIGINT)).start()
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        judge.read(prompts_of(pairs_of_many_lengths()))
    assert time.monotonic() - began < 5


# ---------------------------------------------------------------- several servers, dead ones, moved ones


def test_servers_take_turns_and_a_dead_one_is_left_and_tried_again(tiny, tiny_folder, quick):
    prompts = prompts_of(pairs_of_many_lengths(), chain_of_thought)
    sampled = {"max_new_tokens": 2, "temperature": 1.0, "seeds": range(len(prompts))}
    with OpenAIServer(tiny) as one, OpenAIServer(tiny) as other:
        judge = judge_of(one, other, tokenizer=tiny_folder)
        expected = [text.ids for text in judge.generate(prompts, **sampled)]
        assert len(one.requests) == len(other.requests) == len(prompts) / 2
        other.stop()
        assert [text.ids for text in judge.generate(prompts, **sampled)] == expected
        assert "connection" in judge.notes()[0]
        with OpenAIServer(tiny, port=other.port) as back:
            wait_until(lambda: [judge.generate(prompts[:2], **sampled | {"seeds": [0, 1]})] and bool(back.requests))


def test_when_all_servers_are_gone_the_rest_fails_at_once_and_recovers_by_itself(tiny, tiny_folder, monkeypatch):
    monkeypatch.setattr(transport, "FIRST_REST", 0.05)
    monkeypatch.setattr(transport, "LONGEST_REST", 1.0)
    with OpenAIServer(tiny) as server:
        judge = judge_of(server, tokenizer=tiny_folder)
    prompts = prompts_of(pairs_of_many_lengths())
    first = judge.read(prompts)
    began = time.monotonic()
    for _ in range(20):  # each would wait for seconds if it were patient
        assert all(isinstance(answer, Failure) for answer in first + judge.read(prompts))
    assert time.monotonic() - began < 15 and "no connection" in first[0].reason
    with OpenAIServer(tiny, port=server.port):
        wait_until(lambda: all(isinstance(answer, Read) for answer in judge.read(prompts)))


@pytest.fixture
def some_pairs():
    return make_pairs([(f"What is {n} plus {n}?", f"It is {2 * n}.", f"It is {2 * n + 1}.") for n in range(12)])


def test_a_run_whose_server_dies_keeps_its_answers_and_goes_on_at_another_address(
    some_pairs, tiny, tiny_folder, quick, tmp_path, monkeypatch
):
    from baer_utils.judging import answering

    monkeypatch.setattr(answering, "BATCH_ROWS", 5)
    bank = ("direct", "deliberate", "self_consistency")
    some_pairs, settings = some_pairs.iloc[:6], Settings(max_new_tokens=4, trials=2)
    with OpenAIServer(tiny) as server:
        judge = judge_of(server, tokenizer=tiny_folder)
        whole, made = judge_pairs(some_pairs, judge, bank, settings=settings, progress=False)
    store = open_store(judge.name, "made", root=tmp_path)
    dying = OpenAIServer(tiny).__enter__()
    judge = judge_of(dying, tokenizer=tiny_folder)
    answer, served = dying.answer, []

    def answer_twenty_times(path, body):
        if len(served) == 20:
            threading.Thread(target=dying.stop).start()
            dying.faults = ["close"] * 1000
            wait_until(lambda: dying._open.is_set())
        served.append(body)
        return answer(path, body)

    monkeypatch.setattr(dying, "answer", answer_twenty_times)
    runs, report = judge_pairs(some_pairs, judge, bank, store=store, settings=settings, progress=False)
    kept = store.calls()
    assert report.errors == (runs["status"] == "error").sum() > 0 and len(kept) >= 15
    assert "calls to servers failed" in report.warnings[-1] and "no connection" in str(report)
    for text in runs.loc[runs["status"] == "error", "text"]:
        assert "connection" in text
    with OpenAIServer(tiny) as back:
        judge = judge_of(back, tokenizer=tiny_folder)
        again, resumed = judge_pairs(some_pairs, judge, bank, store=store, settings=settings, progress=False)
        assert len(back.prompts()) == resumed.made == made.distinct - len(kept) == resumed.distinct - resumed.found
    assert resumed.errors == 0 and set(kept) < set(store.calls()) and len(store.calls()) == made.distinct
    compared = [name for name in whole if name not in ("seconds", "cached_tokens", "log_odds", "label_mass")]
    pd.testing.assert_frame_equal(again[compared], whole[compared])
    np.testing.assert_allclose(again["log_odds"], whole["log_odds"], atol=1e-4)


def test_failures_are_errors_in_the_table_and_never_kept(some_pairs, judge, served, tmp_path):
    store = open_store(judge.name, "made", root=tmp_path)
    bad = judge.render(prompts_of(some_pairs.itertuples())[0])
    served.poison = lambda body: bad in body["prompt"]
    runs, report = judge_pairs(some_pairs, judge, ("direct",), store=store, progress=False)
    assert 0 < report.errors == (runs["status"] == "error").sum() and len(store.calls()) == len(runs) - report.errors
    served.poison = lambda body: False
    _, report = judge_pairs(some_pairs, judge, ("direct",), store=store, progress=False)
    assert report.errors == 0 and report.warnings == []


# ---------------------------------------------------------------- opening, names, keys


def test_the_name_tells_the_model_and_no_address(tiny, tiny_folder):
    with OpenAIServer(tiny) as one, OpenAIServer(tiny, root="/models/judge-7f3a") as other:
        line = f"server:{{}}#{MODEL}?tokenizer={tiny_folder}"
        assert open_backbone(line.format(one.url)).name == "server:judge@org/judge?api=completions&thinking=false"
        assert open_backbone(line.format(other.url + "/v1/")).name.startswith("server:judge@judge-7f3a?")
        with pytest.raises(ValueError, match="must serve the same model; judge is /models/judge-7f3a and org/judge"):
            open_backbone(line.format(f"{one.url},{other.url}"))
    with OpenAIServer(tiny, root=MODEL) as server:
        chat = open_backbone(f"server:{server.url}#{MODEL}?api=chat")
        assert chat.name == "server:judge?api=chat&thinking=false"


def test_a_server_that_is_not_there_or_serves_something_else_is_refused_with_the_remedy(tiny, tiny_folder):
    with (
        OpenAIServer(tiny, models=("one", "two")) as server,
        pytest.raises(ValueError, match="must serve judge; it serves one, two"),
    ):
        judge_of(server, tokenizer=tiny_folder)
    with pytest.raises(ConnectionError, match="none answers.*no connection.*correct its address"):
        judge_of(server, tokenizer=tiny_folder)
    with OpenAIServer(tiny) as there:
        judge = judge_of(server, there, tokenizer=tiny_folder)
        assert "did not answer when it was first met" in judge.notes()[0]


def test_what_a_server_does_not_say_is_taken_from_the_tokenizers_folder_or_asked_for(tiny, tiny_folder):
    with OpenAIServer(tiny, lacks=("models",)) as server:
        judge = judge_of(server, tokenizer=tiny_folder)
        assert judge.context == 512 and judge.name.startswith("server:judge?")
        with pytest.raises(ValueError, match="context of judge must be known.*context=<tokens>"):
            open_backbone(f"server:{server.url}#{MODEL}?api=chat")
        assert open_backbone(f"server:{server.url}#{MODEL}?api=chat&context=700").context == 700
    with (
        OpenAIServer(tiny, root="/nowhere/here") as server,
        pytest.raises(ValueError, match="/nowhere/here and judge is neither.*tokenizer="),
    ):
        open_backbone(f"server:{server.url}#{MODEL}")


@pytest.mark.parametrize(
    "text, told",
    [
        ("server:http://h:1#m?api=soap", "api must be one of completions, chat"),
        ("server:http://h:1#m?dtype=float16", "options here are api, tokenizer, context, thinking"),
        ("server:http://h:1#m?context=many", "context must be a number"),
        ("server:http://h:1#m?api=chat&thinking=true", "belong to api=completions"),
        ("server:ftp://h:1#m", "like http://localhost:8000"),
        ("server:#m", "BACKBONE must be"),
        ("server:http://h:1", "BACKBONE must be"),
        ("server:http://h:1#?api=chat", "BACKBONE must be"),
    ],
)
def test_a_line_that_names_no_server_is_refused(text, told):
    with pytest.raises(ValueError, match=told):
        open_backbone(text)


def test_an_address_with_a_password_is_refused_without_showing_it():
    for url in ("http://me:hunter2@h:1", "http://h:1?key=hunter2"):
        with pytest.raises(ValueError, match="BAER_API_KEY") as refused:
            ServerBackbone(url, "m")
        assert "hunter2" not in str(refused.value)


def test_the_key_goes_along_and_is_found_nowhere_else(some_pairs, served, tiny_folder, tmp_path, monkeypatch, caplog):
    caplog.set_level("DEBUG")
    key = "sk-very-secret-9c1f"
    monkeypatch.setenv("BAER_API_KEY", key)
    judge = judge_of(served, tokenizer=tiny_folder)
    served.faults = [(429, {}, f"slow down, {key}"), (401, {}, f'{{"error": {{"message": "wrong key {key}"}}}}')]
    store = open_store(judge.name, "made", root=tmp_path)
    runs, report = judge_pairs(some_pairs, judge, ("direct", "chain_of_thought"), store=store, settings=SHORT)
    assert len(served.headers) > 4 and all(h["Authorization"] == f"Bearer {key}" for h in served.headers)
    failed = runs.loc[runs["status"] == "error", "text"]
    assert len(failed) and all("answers 401: wrong key <BAER_API_KEY>" in text for text in failed)
    assert "environment variable BAER_API_KEY" in failed.iloc[0]
    shown = [judge.name, str(report), runs.to_csv(), caplog.text, str(vars(judge)), str(vars(judge._transport))]
    assert not [text for text in shown if key in text]
    written = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert written and not [file for file in written if key.encode() in file.read_bytes()]


def test_without_a_key_none_is_sent(judge, served):
    judge.read(prompts_of([pair_of()]))
    assert not [headers for headers in served.headers if "Authorization" in headers]


# ---------------------------------------------------------------- capabilities and chat


def test_the_table_of_capabilities_covers_every_verb_and_interface(judge, served):
    assert {verb for api in CAPABILITIES for verb in verbs_of(api)} == {"read", "generate", "likelihood"}
    assert CAPABILITIES["completions"].read == "exact" and CAPABILITIES["chat"].read == "bounds"
    assert judge.verbs == verbs_of("completions")
    assert ServerBackbone(served.url, MODEL, api="chat").verbs == verbs_of("chat") == {"read", "generate"}


def test_experts_that_a_judge_cannot_answer_are_refused_before_any_call(some_pairs, served):
    chat = ServerBackbone(served.url, MODEL, api="chat")
    with pytest.raises(ValueError, match="cannot answer.*likelihood_sum needs likelihood. Leave them out"):
        judge_pairs(some_pairs, chat, ("direct", "likelihood_sum"), progress=False)
    with pytest.raises(ValueError, match="has no likelihoods"):
        chat.likelihood([], [])
    assert served.requests == []


def test_chat_messages_hold_the_whole_prompt_and_ask_in_words_for_what_a_stub_does():
    prompt = prompts_of([pair_of()])[0]
    system, user = Chat().row(prompt)
    assert (system["role"], user["role"]) == ("system", "user")
    assert system["content"] == prompt.segments[0].text
    assert user["content"] == "".join(s.text for s in prompt.segments[1:]) + (
        '\n\nGo on right after these words, without repeating them: "Answer:"'
    )
    thought = thought_through(prompt, tuple(pack("A is right.")), "\n\nThe better response is Response", prompt.key)
    *_, said, asked = Chat().row(thought)
    assert said["role"] == "assistant" and said["content"].rstrip() == "A is right."
    assert asked["role"] == "user" and asked["content"].endswith('"The better response is Response"')
    assert Chat().units(thought) != Chat().units(prompt)


@given(HOSTILE)
def test_text_survives_being_packed_into_numbers(text):
    sendable = text.encode("utf-8", "replace").decode()
    packed = pack(text)
    assert unpack(packed).rstrip(" ") == sendable.rstrip(" ") and pack(unpack(packed)) == packed
    assert all(0 <= number < 2**31 for number in packed) and Chat().count(text) == len(packed)
    assert sendable.startswith(unpack(packed[: len(packed) // 2]))


@given(HOSTILE, HOSTILE, HOSTILE)
def test_a_cut_in_a_chat_shortens_responses_only(instruction, a, b):
    from dataclasses import replace

    prompt = prompts_of([pair_of(instruction, a, b)])[0]
    whole, cut = (Chat().row(replace(prompt, cut=cut))[1]["content"] for cut in (None, 2))
    for text in (instruction, *prompt.segments[-1].text.splitlines()):
        assert text.encode("utf-8", "replace").decode() in cut
    assert len(whole) - len(cut) == sum(max(0, len(t) - len(unpack(pack(t)[:2]))) for t in (a, b) if len(pack(t)) > 2)


def test_a_chat_judge_writes_reads_and_counts_as_the_server_says(served, tiny):
    chat = ServerBackbone(served.url, MODEL, api="chat")
    prompts = prompts_of([pair_of()], chain_of_thought)
    texts = chat.generate(prompts, max_new_tokens=12)
    messages = [Chat().row(p) for p in prompts]
    ids = [tiny.tokenizer.apply_chat_template(m, add_generation_prompt=True)["input_ids"] for m in messages]
    for text, row in zip(texts, ids, strict=True):
        assert isinstance(text, Generation) and text.prompt_tokens == len(row) and text.text
        assert unpack(text.ids).rstrip() == text.text.rstrip() and text.new_tokens <= 12
    for prompt, read in zip(prompts, chat.read(prompts), strict=True):
        row = tiny.tokenizer.apply_chat_template(Chat().row(prompt), add_generation_prompt=True)["input_ids"]
        likely = plain_logits(tiny, row)[-1].double().log_softmax(0)
        listed = set(likely.topk(20).indices.tolist())
        odds = [likely[[t for t in ids if t in listed]].logsumexp(0) for ids in tiny.label_ids(LABELS)]
        if all(map(math.isfinite, odds)):
            assert abs(read.log_odds - float(odds[0] - odds[1])) < 1e-4 and read.prompt_tokens == len(row)
        else:
            assert isinstance(read, Failure) or read.text.startswith("bound:")


def test_a_chat_text_that_repeats_the_words_it_goes_on_from_is_read_without_them():
    prompt = prompts_of([pair_of()], score_then_choose)[0]
    for written in ("Response A: 7\nResponse B: 5", " 7\nResponse B: 5"):
        choice = {"finish_reason": "stop", "message": {"content": written}}
        text, _, _ = Chat().text(choice, prompt)
        call = next(score_then_choose(pair_of(), SHORT))[0]
        assert call.parse(text) == "A"


@pytest.mark.parametrize("token, side", [("A", 0), (" B", 1), ("a", None), ("", None), (" ", None), ("AB", None)])
def test_a_listed_token_stands_for_the_label_that_alone_begins_with_it(token, side):
    assert Chat().side(LABELS)(token) == side


def test_a_label_of_two_tokens_is_known_by_its_first():
    assert Chat().side(("correct", "cow"))("co") is None  # both begin so
    side = Chat().side(CORRECTNESS)
    assert [side(token) for token in ("in", " incorrect", "cor", "correct", "correctly", "i n")] == [
        1,
        1,
        0,
        0,
        None,
        None,
    ]


def test_bounds_are_flagged_in_the_table_counted_and_shown(some_pairs, make, monkeypatch, tmp_path):
    monkeypatch.setattr(completions, "LISTED", 2)
    judge, _ = make(lacks=("logprob_token_ids", "allowed_token_ids"))
    store = open_store(judge.name, "made", root=tmp_path)
    runs, report = judge_pairs(some_pairs, judge, ("direct",), store=store, progress=False)
    flagged = runs["text"].str.startswith("bound:")
    assert 0 < flagged.sum() == report.bounds and f"{report.bounds} reads are bounds" in str(report)
    assert np.isfinite(runs.loc[flagged, "log_odds"]).all()
    found, again = judge_pairs(some_pairs, judge, ("direct",), store=store, progress=False)
    assert again.bounds == report.bounds and again.found >= report.bounds
    repeated, _ = judge_pairs(some_pairs, ReplayBackbone(runs), ("direct",), progress=False)
    assert list(repeated["text"]) == list(runs["text"])


MISSHAPEN = [
    {}, {"logprobs": None}, {"logprobs": {"tokens": []}}, {"text": None}, {"prompt_logprobs": [None, {}]},
    {"logprobs": {"tokens": ["x"], "token_logprobs": [None], "top_logprobs": [{}]}},
    {"logprobs": {"tokens": ["x"], "token_logprobs": ["much"], "top_logprobs": [{}]}},
    {"logprobs": {"content": [{"token": "A", "logprob": "x", "top_logprobs": []}]}}, {"logprobs": {"content": [None]}},
    {"finish_reason": "error"}, {"finish_reason": None}, {"finish_reason": "stop", "message": "A", "token_ids": "A"},
    {"finish_reason": "stop", "text": 5, "message": {"content": 5}},
]  # fmt: skip


@pytest.mark.parametrize("api", CAPABILITIES)
def test_answers_of_the_wrong_shape_never_become_numbers(api, served, tiny_folder, monkeypatch):
    judge = ServerBackbone(
        served.url, MODEL, api=api, **({"tokenizer": str(tiny_folder)} if api == "completions" else {})
    )
    likely = next(likelihood_sum(pair_of(), SHORT))
    asking = {
        "read": lambda: judge.read(prompts_of([pair_of()])),
        "generate": lambda: judge.generate(prompts_of([pair_of()], chain_of_thought), max_new_tokens=3),
        "likelihood": lambda: judge.likelihood([call.prompt for call in likely], [call.text for call in likely]),
    }
    for verb in judge.verbs:
        for choice in MISSHAPEN:

            def answer(_, body, shown=choice):
                return 200, {"choices": [{"index": n} | shown for n in range(len(body.get("prompt", [0])))]}

            monkeypatch.setattr(served, "answer", answer)
            assert all(isinstance(answer, Failure) for answer in asking[verb]()), (verb, choice)
        for whole in (
            {"choices": "none"},
            {"choices": [5]},
            {"choices": [{"index": "x"}]},
            {"error": {"message": "no"}},
        ):
            monkeypatch.setattr(served, "answer", lambda *_, whole=whole: (200, whole))
            assert all(isinstance(answer, Failure) for answer in asking[verb]()), (verb, whole)


def test_an_answer_is_one_of_the_four_kinds(judge):
    calls = next(likelihood_sum(pair_of(), SHORT))
    assert isinstance(judge.likelihood([calls[0].prompt], [calls[0].text])[0], Likelihood)
    assert judge.read([]) == judge.generate([], max_new_tokens=1) == judge.likelihood([], []) == []
    judge.share(prompts_of([pair_of()]))
