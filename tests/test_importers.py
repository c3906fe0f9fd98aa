"""`import_runs`: LLMBar's and JudgeBench's own published numbers from their files, and every way to be refused."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from baer_utils import metrics
from baer_utils.benchmarks import load_pairs
from baer_utils.benchmarks.files import read_files
from baer_utils.evidence import run_array
from baer_utils.importers import import_runs
from baer_utils.records import check_runs, first_is_a, swap_runs
from tests.conftest import SHARED
from tests.strategies import same

needs_shared = pytest.mark.skipif(not SHARED.exists(), reason="real data is not beside this checkout (../shared/data)")
LLMBAR = SHARED / "llmbar" / "Dataset-LLMBar.tar.xz"
JUDGEBENCH = SHARED / "judgebench"
TIDY = {"protocol": "judge", "view": "order"}
A, B, TIE, NONE = math.inf, -math.inf, 0.0, math.nan


@pytest.fixture(scope="module")
def llmbar():
    return import_runs("llmbar", LLMBAR)


@pytest.fixture(scope="module")
def judgebench():
    return import_runs("judgebench", JUDGEBENCH)


# ---------------------------------------------------------------- LLMBar's statistics.json


def upstream_winners(runs: pd.DataFrame, raw: pd.DataFrame) -> pd.DataFrame:
    """Upstream's `winner` in both orders (1, 2, 0 for null), by (subset, backbone, protocol, pair)."""
    first = raw["first_is_a"].to_numpy()
    toward = np.where(first, 1, -1) * runs["log_odds"].to_numpy()
    winner = np.select([toward > 0, toward < 0], [1, 2], 0)
    view = np.where(first, runs["view"], runs["view"].map({"ab": "ba", "ba": "ab", "net": "net"}))
    cut = (runs["status"] == "truncated").to_numpy()  # upstream counts what it found in a cut text
    winner[cut] = raw["verdict"][cut].map({"1": 1, "2": 2, "None": 0})
    rows = runs[["pair_id", "backbone", "protocol", "status"]].assign(winner=winner, view=view)
    net = rows[rows["view"] == "net"]
    shown = {"ab": (1, 2), "ba": (2, 1)}
    both = [
        net.assign(view=view, winner=np.select([net["status"] == "tie", net["status"] == "ok"], [b, net["winner"]], a))
        for view, (a, b) in shown.items()  # upstream: equal scores prefer the second shown, no score the first
    ]
    rows = pd.concat([rows[rows["view"] != "net"], *both])
    rows["subset"] = rows["pair_id"].str.rpartition("/")[0]
    return rows.pivot(index=["subset", "backbone", "protocol", "pair_id"], columns="view", values="winner")


def kappa(one: np.ndarray, two: np.ndarray) -> float:
    kinds = np.arange(3)[:, None]
    by_chance = ((one == kinds).mean(axis=1) * (two == kinds).mean(axis=1)).sum()
    return ((one == two).mean() - by_chance) / (1 - by_chance) if by_chance < 1 else math.nan


def statistics(winners: pd.DataFrame, label: np.ndarray) -> dict:
    """The nine numbers of a statistics.json; its kappas code a winner as 1 or else 0, a label as 1 or 2."""
    ab, ba, n = winners["ab"].to_numpy(), winners["ba"].to_numpy(), len(winners)
    share = {
        "correct_False": (ab == label).sum(),
        "correct_True": (ba == label).sum(),
        "correct_both": ((ab == label) & (ba == label)).sum(),
        "equal": (ab == ba).sum(),
    }
    texts = {name: f"{count} / {n} = {count / n * 100}%" for name, count in share.items()}
    texts["correct_average"] = f"{(share['correct_False'] + share['correct_True']) / 2 / n * 100}%"
    one, two = (ab == 1).astype(int), (ba == 1).astype(int)
    kappas = {"kappa_False": kappa(one, label), "kappa_True": kappa(two, label), "kappa_agreement": kappa(one, two)}
    return texts | kappas | {"kappa_average": (kappas["kappa_False"] + kappas["kappa_True"]) / 2}


@needs_shared
def test_all_numbers_of_llmbars_325_statistics_files_follow_from_the_imported_runs(llmbar):
    runs, report = llmbar
    winners = upstream_winners(runs, report.raw)
    turned = np.array([1 if first_is_a("llmbar", pair_id) else -1 for pair_id in report.labels.index])
    labels = pd.Series(np.where(report.labels * turned > 0, 1, 2), report.labels.index)
    found, compared = dict(list(winners.groupby(level=[0, 1, 2]))), 0
    for file in read_files(LLMBAR, lambda name: name.endswith("/statistics.json"), "statistics"):
        subset, rest = file.path.partition("/LLMBar/")[2].split("/evaluators/")
        rows = found[(subset, *rest.split("/")[:2])]
        mine = statistics(rows, labels[rows.index.get_level_values("pair_id")].to_numpy())
        theirs = json.loads(file.data)
        assert mine.keys() == theirs.keys()
        for name, value in theirs.items():
            alike = value == mine[name] if isinstance(value, str) else np.isclose(value, mine[name], 1e-12, 1e-12, True)
            assert alike, f"{file.place}, {name}: {value} there, {mine[name]} here"
            compared += 1
    assert compared == 1625 + 1300


@needs_shared
def test_llmbars_65_judges_answer_419_pairs_each_and_its_failures_are_counted(llmbar):
    runs, report = llmbar
    assert len(report.counts) == 65 and (report.counts["pairs"] == 419).all()
    assert report.counts.groupby("backbone").size().to_dict() == {
        "ChatGPT": 12, "ChatGPT-0301": 10, "Falcon": 10, "GPT-4": 15, "LLaMA2": 10, "PaLM2": 8,
    }  # fmt: skip
    assert runs.groupby("view").size().to_dict() == {"ab": 24302, "ba": 24302, "net": 2933}
    assert report.counts.drop(columns="pairs").sum().sum() == len(runs) == len(report.raw) == len(report.swapped)
    null = report.raw["verdict"] == "None"
    assert null.sum() == 134 and runs.loc[null, "status"].value_counts().to_dict() == {
        "unparsed": 116, "error": 14, "truncated": 4,
    }  # fmt: skip
    cut = runs["status"] == "truncated"
    assert cut.sum() == 10 and runs.loc[cut, "log_odds"].isna().all()


@needs_shared
def test_labels_and_ids_of_an_import_are_those_of_load_pairs(llmbar, judgebench):
    for name, source, (_, report) in (("llmbar", LLMBAR, llmbar), ("judgebench", JUDGEBENCH, judgebench)):
        pairs = load_pairs(name, source).set_index("pair_id")
        assert report.labels.index.isin(pairs.index).all()
        assert (report.labels == pairs.loc[report.labels.index, "label"]).all()


@needs_shared
def test_the_same_verdicts_in_long_form_differ_only_where_a_text_was_cut_or_two_scores_are_equal(llmbar, judgebench):
    tidy, _ = import_runs("table", SHARED / "tidy" / "llmbar.verdicts.csv.gz", benchmark="llmbar", **TIDY)
    runs = llmbar[0].assign(judge=llmbar[0]["backbone"] + "/" + llmbar[0]["protocol"])
    ratings = runs[runs["view"] == "net"].drop(columns="view")  # long form repeats a rating in both orders
    shared = pd.concat([ratings.assign(view="ab"), ratings.assign(view="ba"), runs[runs["view"] != "net"]])
    both = shared.merge(tidy, left_on=["pair_id", "judge", "view"], right_on=["pair_id", "protocol", "view"])
    alike = (both["log_odds_x"] == both["log_odds_y"]) | (both["log_odds_x"].isna() & both["log_odds_y"].isna())
    assert len(both) == len(shared) == 54_470
    # long form takes upstream's `winner`: of 6 cut texts, of 714 equal scores, of 5 that a content filter stopped
    assert both.loc[~alike, "status_x"].value_counts().to_dict() == {"tie": 1428, "error": 10, "truncated": 6}
    tidy, _ = import_runs("table", SHARED / "tidy" / "judgebench_gpt.verdicts.csv.gz", benchmark="judgebench", **TIDY)
    o1 = judgebench[0][judgebench[0]["backbone"] == "o1-mini-2024-09-12"]
    pair_ids = sorted(set(o1["pair_id"]))
    theirs = run_array(tidy, ["arena_hard:o1-mini-2024-09-12"], pair_ids)
    assert same(run_array(o1, ["arena_hard"], pair_ids), theirs)


# ---------------------------------------------------------------- JudgeBench's published accuracies


@needs_shared
def test_judgebenchs_published_accuracies_follow_from_the_net_of_the_orders(judgebench):
    runs, report = judgebench
    subset = load_pairs("judgebench", JUDGEBENCH).set_index("pair_id")["task_type"]
    published = {"o1-mini-2024-09-12": 65.71, "Skywork/Skywork-Reward-Llama-3.1-8B": 62.29}
    published |= {"internlm/internlm2-7b-reward": 59.43}  # JudgeBench's leaderboard, GPT-4o pairs
    for model, accuracy in published.items():
        mine = runs[runs["backbone"] == model]
        net = np.sign(np.sign(mine["log_odds"]).groupby(mine["pair_id"]).sum())
        ledger = metrics.ledger(net, report.labels[net.index])
        assert round(100 * ledger["strict"], 2) == accuracy
        if model.startswith("o1"):
            right = (net == report.labels[net.index]).groupby(subset[net.index]).mean()
            shares = {"knowledge": 58.44, "reasoning": 62.24, "math": 82.14, "coding": 78.57}
            assert (100 * right).round(2).to_dict() == shares and round(100 * ledger["half_credit"], 2) == 77.29


# ---------------------------------------------------------------- the frame


def write_table(folder: Path, rows: list[dict], name: str = "verdicts.jsonl") -> Path:
    path = folder / name
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


verdicts = st.sampled_from([1, 0, 0.5, "", None, "A>B", "b", "tie", 0.9])


@settings(max_examples=10)
@given(st.lists(st.tuples(st.sampled_from("pqrst"), st.sampled_from(["x", "y"]), verdicts), min_size=1, max_size=12))
def test_the_orientation_hash_turns_whole_pairs_and_nothing_else(tmp_path_factory, rows):
    rows = list({(pair, judge): value for pair, judge, value in rows}.items())
    folder = tmp_path_factory.mktemp("table")
    path = write_table(
        folder,
        [
            {"pair_id": pair, "protocol": judge, "view": view, "verdict": value, "label": "A>B"}
            for (pair, judge), value in rows
            for view in ("ab", "ba")
        ],
    )
    upstream, plain = import_runs("table", path)
    runs, report = import_runs("table", path, benchmark="mine")
    first = upstream["pair_id"].map(lambda pair: first_is_a("mine", pair)).astype(bool)
    pd.testing.assert_frame_equal(runs, check_runs(upstream.where(first, swap_runs(upstream))))
    assert (report.swapped == ~first).all() and not plain.swapped.any() and "No benchmark" in str(plain)
    assert all(label == (1 if first_is_a("mine", pair) else -1) for pair, label in report.labels.items())
    assert (plain.labels == 1).all()


def test_a_table_under_the_files_own_names_says_what_each_verdict_means(tmp_path):
    words = [1, 0, "0.5", "A>B", "second", "", None, 0.75]
    rows = [{"id": n, "who": "j", "said": word, "shown": "pt"} for n, word in enumerate(words)]
    runs, report = import_runs(
        "table", write_table(tmp_path, rows), pair_id="id", protocol="who", verdict="said", view="shown"
    )
    np.testing.assert_allclose(runs["log_odds"], [A, B, TIE, A, B, NONE, NONE, math.log(3)], rtol=1e-15)
    assert runs["status"].tolist() == ["ok", "ok", "tie", "ok", "ok", "unparsed", "unparsed", "ok"]
    assert set(runs["view"]) == {"net"} and set(runs["backbone"]) == {"verdicts"}
    assert report.labels.isna().all() and report.counts.loc[("verdicts", "j"), "unparsed"] == 2


def test_log_odds_of_a_table_are_taken_as_they_are(tmp_path):
    rows = [{"pair_id": "p", "protocol": "j", "view": v, "log_odds": x} for v, x in (("ab", 0.25), ("ba", "-inf"))]
    runs, _ = import_runs("table", write_table(tmp_path, rows))
    assert same(run_array(runs, ["j"], ["p"])[0, 0], [0.25, B])


# ---------------------------------------------------------------- refusals


GOOD = {"pair_id": "p", "protocol": "j", "view": "ab", "verdict": 1}


@pytest.mark.parametrize(
    "rows, message",
    [
        ([GOOD, GOOD | {"verdict": 2}], r"line 2: verdict must be a share .* it is 2"),
        ([GOOD | {"verdict": -1}], r"line 1: verdict must be a share"),
        ([GOOD | {"verdict": "maybe"}], r"line 1: verdict must be a number or empty; it is 'maybe'"),
        ([GOOD, GOOD | {"view": "BA"}], r"line 2: view must be one of ab, ba, net"),
        ([GOOD, GOOD], r"line 2: each judge must answer a pair once in each order; .* line 1"),
        ([GOOD | {"label": 1}, GOOD | {"view": "ba", "label": 2}], r"line 2: a pair must have one label; p is -1"),
        ([{"pair_id": "p", "verdict": 1}], r"line 1: the field 'protocol' must be there"),
        ([], r"must hold at least one verdict"),
    ],
)
def test_a_table_that_is_not_as_it_must_be_is_refused_with_file_and_line(tmp_path, rows, message):
    with pytest.raises(ValueError, match=message):
        import_runs("table", write_table(tmp_path, rows))


def llmbar_files(folder: Path, change=None) -> Path:
    """Two judges of two Natural records."""
    for judge in ("m/Vanilla", "m/Rating"):
        records = []
        for n in range(2):
            answer = {"swap = False": {"completion": ["x", "stop"], "winner": "1"}}
            answer["swap = True"] = {"completion": ["y", ""], "winner": None}
            if judge == "m/Rating":
                answer |= {"score_1": ["7", "stop"], "score_2": [str(7 + n), "stop"]}
            records.append({"input": f"q{n}", "output_1": "a", "output_2": "b", "label": 1, "results": [answer]})
        if change:
            change(judge, records)
        path = folder / "Natural" / "evaluators" / judge / "result.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(records), encoding="utf-8")
    return folder


def test_ratings_are_read_from_the_scores_and_stand_as_one_net_verdict(tmp_path):
    runs, report = import_runs("llmbar", llmbar_files(tmp_path), benchmark=None)
    rating = runs[runs["protocol"] == "Rating"]
    assert rating["view"].tolist() == ["net", "net"] and same(rating["log_odds"], [TIE, B])
    assert rating["status"].tolist() == ["tie", "ok"] and rating["text"].tolist() == ["7 / 7", "7 / 8"]
    assert report.counts.loc[("m", "Vanilla"), ["ok", "unparsed"]].tolist() == [2, 2]


def reversed_records(judge, records):
    if judge == "m/Vanilla":
        records.reverse()


def third_winner(judge, records):
    records[1]["results"][-1]["swap = True"]["winner"] = "3"


def no_results(judge, records):
    records[0]["results"] = []


@pytest.mark.parametrize(
    "change, message",
    [
        (reversed_records, r"Vanilla/result.json, row 1: every judge's file must repeat the records"),
        (third_winner, r"Vanilla/result.json, row 2, swap = True: winner must be .* it is '3'"),
        (no_results, r"row 1: results must be a list that ends in an object"),
    ],
)
def test_llmbar_files_that_break_their_format_are_refused_with_file_and_row(tmp_path, change, message):
    with pytest.raises(ValueError, match=message):
        import_runs("llmbar", llmbar_files(tmp_path, change))


def test_a_result_file_outside_its_folders_has_no_judge(tmp_path):
    path = llmbar_files(tmp_path) / "Natural" / "evaluators" / "m" / "Vanilla" / "result.json"
    assert len(import_runs("llmbar", path)[0]) == 4
    alone = tmp_path / "result.json"
    alone.write_bytes(path.read_bytes())
    with pytest.raises(ValueError, match="must lie in <subset>/evaluators"):
        import_runs("llmbar", alone)


JUDGED = {"pair_id": "p", "label": "A>B", "judge_name": "j"}
SAID = {"judgment": {"judge_model": "m", "response": "words"}, "decision": "A>B"}


@pytest.mark.parametrize(
    "rows, message",
    [
        ([JUDGED | {"judgments": [SAID] * 3}], "judgments must be a list of one or two"),
        ([JUDGED | {"judgments": [SAID, SAID | {"decision": "A>>B"}]}], "judgment 2: decision must be one of"),
        ([JUDGED | {"judgments": [SAID]}, {**JUDGED, "pair_id": "q", "judgments": [
            {"judgment": {"judge_model": "n"}, "decision": None}]}], "one judge_model; it names m, n"),
    ],
)  # fmt: skip
def test_judgebench_files_that_break_their_format_are_refused(tmp_path, rows, message):
    with pytest.raises(ValueError, match=message):
        import_runs("judgebench", write_table(tmp_path, rows, "judge_name=j.jsonl"))


def test_a_null_judgment_is_an_error_a_null_decision_unparsed_and_the_second_frame_is_turned(tmp_path):
    rows = [
        JUDGED | {"judgments": [SAID, SAID]},
        JUDGED | {"pair_id": "q", "judgments": [None, SAID | {"decision": None}]},
    ]
    path = write_table(tmp_path, rows, "judge_name=j,judge_model=m.jsonl")
    runs, report = import_runs("judgebench", path, benchmark=None)
    assert same(runs["log_odds"], [A, B, NONE, NONE]) and runs["status"].tolist() == ["ok", "ok", "error", "unparsed"]
    assert runs["view"].tolist() == ["ab", "ba"] * 2 and report.raw["verdict"].tolist() == [
        "A>B",
        "A>B",
        "None",
        "None",
    ]


def test_what_is_not_supported_is_answered_with_what_is(tmp_path):
    with pytest.raises(ValueError, match="one of llmbar, judgebench, table; it is 'alpaca_eval'"):
        import_runs("alpaca_eval", tmp_path)
    with pytest.raises(ValueError, match="columns belong to 'table'"):
        import_runs("llmbar", tmp_path, verdict="v")
    with pytest.raises(ValueError, match="columns must map some of"):
        import_runs("table", write_table(tmp_path, [GOOD]), judge="j")
    with pytest.raises(FileNotFoundError, match="Give LLMBar's folder"):
        import_runs("llmbar", tmp_path / "nowhere")
