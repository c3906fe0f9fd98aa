"""`load_pairs`: the real files of ../shared/data, upstream schemas written here, and every way to be refused."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import sys
import tarfile
import types
import unicodedata
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from baer_utils.benchmarks import BENCHMARKS, CATEGORIES, TASK_TYPES, load_pairs, sources
from baer_utils.records import PAIR_COLUMNS, SPLITS, check_pairs

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"
needs_shared = pytest.mark.skipif(not SHARED.exists(), reason="real data is not beside this checkout (../shared/data)")
JUDGEBENCH = SHARED / "judgebench"
LLMBAR = SHARED / "llmbar" / "Dataset-LLMBar.tar.xz"
HH_RLHF = SHARED / "hh_rlhf"


# ---------------------------------------------------------------- an independent reading of design section 3


def h(text: str) -> float:
    return int(hashlib.sha256(text.encode("utf-8")).hexdigest()[:16], 16) / 2**64


def group(question: str) -> str:
    words = unicodedata.normalize("NFC", question).lower().split()
    return hashlib.sha256(" ".join(words).encode("utf-8")).hexdigest()[:16]


def content(question: str, one: str, two: str) -> str:
    return hashlib.sha256("\x1f".join([question, *sorted([one, two])]).encode("utf-8")).hexdigest()[:16]


def as_upstream(pairs: pd.DataFrame) -> pd.DataFrame:
    """first, second, and the label toward the first: the orientation hash undone."""
    is_a = np.array([h(f"orient|{b}|{p}") < 0.5 for b, p in zip(pairs["benchmark"], pairs["pair_id"], strict=True)])
    return pd.DataFrame(
        {
            "first": np.where(is_a, pairs["response_a"], pairs["response_b"]),
            "second": np.where(is_a, pairs["response_b"], pairs["response_a"]),
            "label": np.where(is_a, 1, -1) * pairs["label"],
        }
    ).set_index(pairs["pair_id"])


def preferred(pairs: pd.DataFrame) -> dict[str, str]:
    texts = np.where(pairs["label"] == 1, pairs["response_a"], pairs["response_b"])
    return dict(zip(pairs["pair_id"], texts, strict=True))


def assert_follows_the_rules(pairs: pd.DataFrame, seed: int = 0) -> None:
    assert tuple(pairs.columns) == PAIR_COLUMNS
    assert list(pairs["group_id"]) == [group(question) for question in pairs["instruction"]]
    u = np.array([h(f"{seed}|split|{g}") for g in pairs["group_id"]])
    assert list(pairs["split"]) == list(np.where(u < 0.2, "selection", np.where(u < 0.6, "calibration", "test")))
    pd.testing.assert_frame_equal(check_pairs(pairs), pairs)


def write_lines(path: Path, rows: list[dict]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path


# ---------------------------------------------------------------- real files


@needs_shared
def test_judgebench_has_620_pairs_528_questions_and_its_shipped_labels():
    pairs = load_pairs("judgebench", JUDGEBENCH)
    assert_follows_the_rules(pairs)
    rows = [json.loads(line) for path in (JUDGEBENCH / "data").iterdir() for line in path.open(encoding="utf-8")]
    upstream = as_upstream(pairs)
    for row in rows:
        mine = upstream.loc[row["pair_id"]]
        assert (mine["first"], mine["second"]) == (row["response_A"], row["response_B"])
        assert mine["label"] == {"A>B": 1, "B>A": -1}[row["label"]]
    assert len(pairs) == len(rows) == 620 and pairs["group_id"].nunique() == 528
    assert (upstream["label"] == 1).sum() == 336 and (upstream["label"] == -1).sum() == 284  # protocols.md E3
    assert pairs["task_type"].value_counts().to_dict() == {"knowledge": 308, "reasoning": 149, "math": 90, "coding": 73}
    assert pairs["subset"].nunique() == 17 and pairs.attrs["loaded"]["unknown_categories"] == 0


@needs_shared
def test_judgebench_keeps_its_pair_of_identical_responses():
    pairs = load_pairs("judgebench", JUDGEBENCH).set_index("pair_id")
    pair = pairs.loc["a28a8dae-78a7-51a7-a46f-84a6e502068d"]
    assert pair["response_a"] == pair["response_b"] and pair["subset"] == "livecodebench"


@needs_shared
def test_llmbar_is_read_from_its_archive_and_nothing_is_left_beside_it():
    before = sorted(LLMBAR.parent.iterdir())
    pairs = load_pairs("llmbar", LLMBAR)
    assert sorted(LLMBAR.parent.iterdir()) == before
    assert_follows_the_rules(pairs)
    sizes = {"Natural": 100, "GPTInst": 92, "GPTOut": 47, "Manual": 46, "Neighbor": 134}  # LLMBar, table 1
    sizes = {name if name == "Natural" else f"Adversarial/{name}": size for name, size in sizes.items()}
    assert pairs["subset"].value_counts().to_dict() == sizes and len(pairs) == 419
    assert set(pairs["pair_id"]) == {f"{name}/{index:04d}" for name, size in sizes.items() for index in range(size)}


@needs_shared
@pytest.mark.parametrize(
    "name, source, tidy", [("llmbar", LLMBAR, "llmbar"), ("judgebench", JUDGEBENCH, "judgebench_gpt")]
)
def test_ids_and_labels_agree_with_a_table_that_other_people_made(name, source, tidy):
    theirs = pd.read_csv(SHARED / "tidy" / f"{tidy}.labels.csv.gz").set_index("pair_id")["label"]
    mine = as_upstream(load_pairs(name, source))["label"]
    assert set(theirs.index) <= set(mine.index)
    assert (mine[theirs.index] == theirs).all()


@needs_shared
@pytest.mark.parametrize("part", ["", "harmless-base", "harmless-base/test.jsonl.gz"])
def test_hh_rlhf_has_2312_dialogues_and_four_blank_responses(part):
    pairs = load_pairs("hh_rlhf", HH_RLHF / part)
    assert_follows_the_rules(pairs)
    with gzip.open(HH_RLHF / "harmless-base/test.jsonl.gz", "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    loaded = pairs.attrs["loaded"]
    assert len(pairs) == len(rows) == 2312
    assert (loaded["blank_responses"], loaded["ties_dropped"], loaded["repeated_ids"]) == (4, 0, 0)
    upstream = as_upstream(pairs)
    assert (upstream["label"] == 1).all()
    dialogues = set(
        zip(
            pairs["instruction"] + upstream["first"].to_numpy(),
            pairs["instruction"] + upstream["second"].to_numpy(),
            strict=True,
        )
    )
    assert dialogues == {(row["chosen"], row["rejected"]) for row in rows}
    assert pairs["instruction"].str.endswith("\n\nAssistant:").all()
    longer = [pairs[column].str.contains("\n\nAssistant:") for column in ("response_a", "response_b")]
    assert (longer[0] ^ longer[1]).sum() == 5 and not (longer[0] & longer[1]).any()  # counted: upstream's own slips
    assert [
        content(*texts) for texts in zip(pairs["instruction"], pairs["response_a"], pairs["response_b"], strict=True)
    ] == list(pairs["pair_id"])
    assert set(pairs["subset"]) == set(pairs["task_type"]) == {"harmless"}


@needs_shared
@pytest.mark.parametrize("name, source", [("judgebench", JUDGEBENCH), ("llmbar", LLMBAR), ("hh_rlhf", HH_RLHF)])
def test_real_splits_lie_within_three_sd_of_20_40_40_over_questions(name, source):
    shares = load_pairs(name, source, seed=3).groupby("split")["group_id"].nunique()
    n, p = shares.sum(), np.array([0.2, 0.4, 0.4])
    assert np.all(abs(shares[list(SPLITS)].to_numpy() - n * p) < 3 * np.sqrt(n * p * (1 - p)))


@needs_shared
@pytest.mark.parametrize("kind", ["tar.gz", "tgz", "tar", "zip", "folder"])
def test_an_archive_a_zip_and_a_folder_of_judgebench_give_the_same_table(kind, tmp_path):
    root = tmp_path / "judgebench-main"
    for number, path in enumerate(sorted((JUDGEBENCH / "data").iterdir())):
        (root / "data").mkdir(parents=True, exist_ok=True)
        (root / "data" / f"{number}{path.suffix}").write_bytes(path.read_bytes())
    write_lines(root / "outputs" / "x,judge_name=y.jsonl", [{"not": "a pair"}])
    write_lines(root / "data" / "._0.jsonl", [{"left by": "an archiver"}])
    source = root if kind == "folder" else tmp_path / f"copy.{kind}"
    if kind == "zip":
        with zipfile.ZipFile(source, "w") as archive:
            for path in root.rglob("*.jsonl"):
                archive.write(path, path.relative_to(tmp_path))
    elif kind != "folder":
        with tarfile.open(source, "w" if kind == "tar" else "w:gz") as archive:
            archive.add(root, "./judgebench-main")
    pd.testing.assert_frame_equal(load_pairs("judgebench", source), load_pairs("judgebench", JUDGEBENCH))


def test_starter_sets_are_found_from_anywhere_and_follow_the_rules(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    for name in ("starter_correctness", "starter_preference"):
        if not (sources.STARTER / f"{name}.jsonl").exists():
            pytest.skip(f"data/starter/{name}.jsonl is not built yet")
        pairs = load_pairs(name)
        assert_follows_the_rules(pairs)
        assert set(preferred(pairs).values()) == {
            json.loads(line)["chosen"] for line in (sources.STARTER / f"{name}.jsonl").open(encoding="utf-8")
        }


# ---------------------------------------------------------------- categories


# BAER section 2: 44, 36, 20 and 28 features with K = 9, D = 2K + |G|.
@pytest.mark.parametrize(
    "name, features", [("rewardbench", 44), ("judgebench", 36), ("hh_rlhf", 20), ("ultrafeedback", 28)]
)
def test_declared_categories_give_the_published_feature_counts(name, features):
    assert 2 * 9 + len(CATEGORIES[name]) == features
    assert len(set(CATEGORIES[name])) == len(CATEGORIES[name])
    for task_type, subsets in TASK_TYPES[name].items():
        assert (task_type in CATEGORIES[name]) == (len(subsets) > 1 or subsets == (task_type,))


@needs_shared
def test_every_real_subset_is_declared():
    assert set(load_pairs("judgebench", JUDGEBENCH)["subset"]) | {"knowledge"} == set(CATEGORIES["judgebench"])


# ---------------------------------------------------------------- schemas of the Hub


def rewardbench_rows(n: int = 30) -> list[dict]:
    return [
        {
            "prompt": f"Say {number // 2}.",
            "chosen": f"It is {number}.",
            "chosen_model": "m",
            "rejected": "No\u2028no.",
            "rejected_model": "n",
            "subset": CATEGORIES["rewardbench"][number % 23],
            "id": number // 23,
        }
        for number in range(n)
    ]


def write_as(folder: Path, name: str, rows: list[dict], kind: str) -> Path:
    path = folder / f"{name}.{kind}"
    if kind == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    elif kind == "json":
        path.write_text(json.dumps(rows), encoding="utf-8")
    elif kind == "jsonl.gz":
        path.write_bytes(gzip.compress(write_lines(folder / "plain", rows).read_bytes()))
    else:
        write_lines(path, rows)
    return path


@pytest.mark.parametrize("kind", ["parquet", "json", "jsonl", "jsonl.gz"])
def test_rewardbench_is_read_in_its_upstream_schema_from_any_local_format(kind, tmp_path):
    rows = rewardbench_rows()
    pairs = load_pairs("rewardbench", write_as(tmp_path, "filtered-00000-of-00001", rows, kind), seed=5)
    assert_follows_the_rules(pairs, seed=5)
    assert list(pairs["pair_id"]) == [f"{row['subset']}/{row['id']}" for row in rows]
    assert list(preferred(pairs).values()) == [row["chosen"] for row in rows]
    assert set(pairs["task_type"]) == {"chat", "safety", "reasoning"} and set(pairs["label"]) == {1, -1}


def test_a_clone_of_rewardbench_gives_the_filtered_rows_and_unknown_subsets_are_counted(tmp_path):
    rows = rewardbench_rows(4)
    rows[1]["subset"] = "brand-new"
    write_as(tmp_path, "filtered-00000-of-00001", rows, "parquet")
    write_as(tmp_path, "raw-00000-of-00001", rewardbench_rows(20), "parquet")
    pairs = load_pairs("rewardbench", str(tmp_path))
    assert len(pairs) == 4 and pairs.attrs["loaded"]["unknown_categories"] == 1
    assert pairs["task_type"][1] == "unknown"


def test_without_upstream_ids_a_repeated_row_gets_a_numbered_content_id(tmp_path):
    row = {key: value for key, value in rewardbench_rows(1)[0].items() if key != "id"}
    turned = row | {"chosen": row["rejected"], "rejected": row["chosen"]}
    pairs = load_pairs("rewardbench", write_lines(tmp_path / "x.jsonl", [row, row, turned]))
    base = content(row["prompt"], row["chosen"], row["rejected"])
    assert list(pairs["pair_id"]) == [base, f"{base}-2", f"{base}-3"]
    assert pairs.attrs["loaded"]["repeated_ids"] == 2 and pairs["group_id"].nunique() == 1


def completion(text: str | None, overall=None, fine=None) -> dict:
    return {"model": "m", "response": text, "overall_score": overall, "fine-grained_score": fine, "critique": "..."}


def ultrafeedback_row(source: str, *completions: dict) -> dict:
    return {"source": source, "instruction": f"{source} {len(completions)}", "completions": list(completions)}


TIED = (completion("x", 5.0), completion("y", 5.0))
FOUR = (completion("top", 8.0), completion("low", 1.0), completion("also top", 8.0), completion("also low", 1.0))
ULTRAFEEDBACK = [
    ultrafeedback_row("sharegpt", completion("low", 2.0), completion("mid", 5.0), completion("top", 9.0)),
    ultrafeedback_row("flan_v2_p3", *FOUR),
    ultrafeedback_row("ultrachat", *TIED),
    ultrafeedback_row("false_qa", completion("worse", None, 2.25), completion("better", 9.0, 2.5)),
    ultrafeedback_row("sharegpt", completion("alone", 5.0)),
    ultrafeedback_row("sharegpt"),
]


@pytest.mark.parametrize("kind", ["parquet", "json", "jsonl"])
def test_ultrafeedback_takes_the_highest_against_the_lowest_and_drops_ties(kind, tmp_path):
    pairs = load_pairs("ultrafeedback", write_as(tmp_path, "train", ULTRAFEEDBACK, kind))
    assert_follows_the_rules(pairs)
    upstream = as_upstream(pairs)
    assert upstream.values.tolist() == [["low", "top", -1], ["top", "low", 1], ["worse", "better", -1]]
    assert list(pairs["subset"]) == ["sharegpt", "flan_v2_p3", "false_qa"] and set(pairs["task_type"]) == {"general"}
    loaded = pairs.attrs["loaded"]
    assert (loaded["rows"], loaded["pairs"], loaded["ties_dropped"]) == (6, 3, 3)


def stub_hub(monkeypatch, load_dataset) -> None:
    monkeypatch.setitem(sys.modules, "datasets", types.SimpleNamespace(load_dataset=load_dataset))


def test_the_hub_is_asked_for_the_filtered_set_and_for_the_training_split(monkeypatch):
    asked = []

    def load_dataset(name, split):
        asked.append((name, split))
        return ULTRAFEEDBACK if "Ultra" in name else rewardbench_rows(3)

    stub_hub(monkeypatch, load_dataset)
    assert len(load_pairs("rewardbench")) == 3 and len(load_pairs("ultrafeedback", "")) == 3
    assert len(load_pairs("rewardbench", "someone/their-copy")) == 3
    assert asked == [
        ("allenai/reward-bench", "filtered"),
        ("openbmb/UltraFeedback", "train"),
        ("someone/their-copy", "filtered"),
    ]


def test_without_the_hub_the_error_says_how_to_give_local_files(monkeypatch):
    def load_dataset(name, split):
        raise ConnectionError("offline")

    stub_hub(monkeypatch, load_dataset)
    with pytest.raises(
        ValueError, match="allenai/reward-bench: .*offline.*give local files: a Parquet, JSON or JSONL file"
    ):
        load_pairs("rewardbench")


# ---------------------------------------------------------------- orientation and labels


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(texts, texts, texts), min_size=1, max_size=8))
def test_which_text_is_preferred_follows_the_source_and_the_coin_never_sees_it(tmp_path, rows):
    def write(turned):
        records = [
            {"prompt": q, "chosen": r if turned else c, "rejected": c if turned else r, "subset": "hep-go"}
            for q, c, r in rows
        ]
        return load_pairs("rewardbench", write_lines(tmp_path / f"{turned}.jsonl", records))

    plain, turned = write(False), write(True)
    assert list(plain["pair_id"]) == list(turned["pair_id"]) and list(plain["label"]) == list(turned["label"])
    assert list(plain["response_a"]) == list(turned["response_b"]) and list(plain["response_b"]) == list(
        turned["response_a"]
    )
    assert list(preferred(plain).values()) == [c for _, c, _ in rows]


def judgebench_row(number: int, label: str = "A>B", **changes) -> dict:
    row = {
        "pair_id": f"id{number}",
        "source": "mmlu-pro-law",
        "question": f"q{number}",
        "response_A": "yes",
        "response_B": "no",
    }
    return row | {"label": label} | changes


def test_turning_the_labels_of_the_source_negates_ours_and_moves_no_text(tmp_path):
    plain = load_pairs("judgebench", write_lines(tmp_path / "p.jsonl", [judgebench_row(i) for i in range(50)]))
    turned = load_pairs("judgebench", write_lines(tmp_path / "t.jsonl", [judgebench_row(i, "B>A") for i in range(50)]))
    pd.testing.assert_frame_equal(plain.assign(label=-plain["label"]), turned)
    assert 0.2 < (plain["label"] == 1).mean() < 0.8


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(1, 60), st.integers(0, 3))
def test_a_part_of_a_benchmark_is_rows_of_the_whole(tmp_path, n, seed):
    rows = [judgebench_row(i, question=f"q{i % 40}") for i in range(60)]
    path = write_lines(tmp_path / "p.jsonl", rows)
    whole, part = load_pairs("judgebench", path, seed=seed), load_pairs("judgebench", path, seed=seed, n_pairs=n)
    pd.testing.assert_frame_equal(whole[whole["pair_id"].isin(part["pair_id"])].reset_index(drop=True), part)
    assert set(part["split"]) == set(whole["split"])
    assert part.attrs["loaded"]["pairs"] == len(part) and part.attrs["loaded"]["rows"] == 60


# ---------------------------------------------------------------- HH-RLHF by folder


def dialogue(chosen: str, rejected: str, start: str = "\n\nHuman: hi\n\nAssistant:") -> dict:
    return {"chosen": start + chosen, "rejected": start + rejected}


def test_hh_rlhf_names_subsets_by_folder_reads_test_files_only_and_drops_equal_dialogues(tmp_path):
    write_lines(tmp_path / "helpful-base" / "test.jsonl", [dialogue(" a", " b"), dialogue(" same", " same")])
    (tmp_path / "helpful-base" / "test.jsonl.gz").write_bytes(gzip.compress(b"{never read: the plain file is there}"))
    write_lines(tmp_path / "helpful-online" / "test.jsonl", [dialogue(" c", "")])
    write_lines(tmp_path / "harmless-base" / "test.jsonl", [dialogue(" so\n\nHuman: what", " so\n\nHuman: why")])
    write_lines(tmp_path / "harmless-base" / "train.jsonl", [dialogue(" x", " y")] * 5)
    write_lines(tmp_path / "red-team-attempts" / "test.jsonl", [{"transcript": "other format"}])
    pairs = load_pairs("hh_rlhf", tmp_path)
    assert sorted(pairs["subset"]) == ["harmless", "helpful", "helpful"]
    loaded = pairs.attrs["loaded"]
    assert (loaded["rows"], loaded["ties_dropped"], loaded["blank_responses"]) == (4, 1, 1)
    assert len(load_pairs("hh_rlhf", tmp_path / "harmless-base" / "train.jsonl")) == 5


# ---------------------------------------------------------------- anyone's own pairs

OWN = [
    {"q": "one", "x": "a, b", "y": 'say "no"', "win": "a", "kind": "k1", "key": "7"},
    {"q": "two", "x": "NA", "y": "None", "win": "B>A", "kind": "k2", "key": "8"},
    {"q": "three", "x": "", "y": "two\nlines", "win": "", "kind": "k1", "key": "9"},
    {"q": "four", "x": "p", "y": "q", "win": "tie", "kind": "k1", "key": "10"},
]
OWN_COLUMNS = {
    "instruction": "q",
    "response_a": "x",
    "response_b": "y",
    "label": "win",
    "subset": "kind",
    "pair_id": "key",
}


@pytest.mark.parametrize("kind", ["csv", "tsv", "json", "jsonl", "parquet", "csv.gz"])
def test_own_pairs_load_alike_from_every_format_under_their_own_column_names(kind, tmp_path):
    path = tmp_path / f"mine.{kind}"
    if "sv" in kind:
        pd.DataFrame(OWN).to_csv(path, index=False, sep="\t" if kind == "tsv" else ",")
    else:
        write_as(tmp_path, "mine", OWN, kind)
    pairs = load_pairs("table", path, columns=OWN_COLUMNS)
    assert_follows_the_rules(pairs)
    assert list(pairs["pair_id"]) == ["7", "8", "9"] and list(pairs["subset"]) == ["k1", "k2", "k1"]
    upstream = as_upstream(pairs)
    assert upstream["first"].tolist() == ["a, b", "NA", ""] and upstream["second"].tolist() == [
        'say "no"',
        "None",
        "two\nlines",
    ]
    np.testing.assert_array_equal(upstream["label"], [1, -1, np.nan])
    loaded = pairs.attrs["loaded"]
    assert (loaded["ties_dropped"], loaded["unlabelled"], loaded["blank_responses"]) == (1, 1, 1)


def test_own_pairs_without_label_subset_and_id_are_new_pairs_to_score(tmp_path):
    rows = [{"instruction": "q", "response_a": f"r{i}", "response_b": "s"} for i in range(3)]
    pairs = load_pairs("table", write_lines(tmp_path / "new.jsonl", rows))
    assert pairs["label"].isna().all() and set(pairs["subset"]) == set(pairs["task_type"]) == {"all"}
    assert list(pairs["pair_id"]) == [content("q", f"r{i}", "s") for i in range(3)]


@pytest.mark.parametrize(
    "spelling, label",
    [(1, 1), (-1, -1), (2, -1), (1.0, 1), ("+1", 1), (" -1 ", -1), ("2", -1), ("A", 1), ("b", -1)]
    + [("A>B", 1), ("b>a", -1), ("response_a", 1), ("response_b", -1), ("-1.0", -1)]
    + [(None, None), ("", None), (float("nan"), None)],
)  # fmt: skip
def test_each_documented_spelling_of_a_label_means_one_thing(spelling, label, tmp_path):
    rows = [{"instruction": "q", "response_a": "r", "response_b": "s", "label": spelling}]
    mine = as_upstream(load_pairs("table", write_lines(tmp_path / "x.jsonl", rows)))["label"].iloc[0]
    assert np.isnan(mine) if label is None else mine == label


@pytest.mark.parametrize("spelling", [0, "0", True, "true", 1.5, "left", "A<B", [1]])
def test_any_other_spelling_is_refused(spelling, tmp_path):
    rows = [{"instruction": "q", "response_a": "r", "response_b": "s", "label": spelling}]
    with pytest.raises(ValueError, match=r"x.jsonl, line 1: label must be one of 1, -1, 2, a, b"):
        load_pairs("table", write_lines(tmp_path / "x.jsonl", rows))


def test_columns_that_are_named_must_be_known_and_there(tmp_path):
    path = write_lines(tmp_path / "x.jsonl", [{"instruction": "q", "response_a": "r", "response_b": "s"}])
    with pytest.raises(ValueError, match="columns must map some of pair_id, .*it maps 'answer'"):
        load_pairs("table", path, columns={"answer": "x"})
    with pytest.raises(
        ValueError, match="line 1: the field 'gold' must be there; the fields are instruction, response_a"
    ):
        load_pairs("table", path, columns={"label": "gold"})
    with pytest.raises(ValueError, match="columns belongs to 'table'"):
        load_pairs("judgebench", path, columns={"label": "gold"})


# ---------------------------------------------------------------- refusals


def test_an_unknown_benchmark_is_answered_with_the_known_ones():
    with pytest.raises(ValueError, match="one of starter_correctness, .*, table; it is 'judge-bench'"):
        load_pairs("judge-bench")
    assert len(BENCHMARKS) == 8


def test_a_checkout_without_starter_sets_is_told_which_file_is_missing(monkeypatch, tmp_path):
    monkeypatch.setattr(sources, "STARTER", tmp_path)
    with pytest.raises(
        FileNotFoundError, match="starter_correctness.jsonl .*made by data/starter/build.py.*no such file"
    ):
        load_pairs("starter_correctness")


def test_a_starter_set_can_be_read_from_a_file_or_folder_of_its_format(tmp_path):
    row = {
        "pair_id": "p1",
        "subset": "s",
        "task_type": "t",
        "instruction": "q",
        "chosen": "c",
        "rejected": "r",
        "check": "x",
    }
    path = write_lines(tmp_path / "starter_preference.jsonl", [row])
    for source in (tmp_path, path):
        assert preferred(load_pairs("starter_preference", source)) == {"p1": "c"}


@pytest.mark.parametrize("name", ["judgebench", "llmbar", "hh_rlhf", "table"])
def test_a_source_that_is_needed_missing_or_empty_of_files_is_asked_for(name, tmp_path):
    for nothing in (None, ""):
        with pytest.raises(ValueError, match=f"{name} needs a source: .*Use load_pairs"):
            load_pairs(name, nothing)
    with pytest.raises(FileNotFoundError, match="absent: no such file or folder. Give"):
        load_pairs(name, tmp_path / "absent")
    with pytest.raises(FileNotFoundError, match="no such file is in it"):
        load_pairs(name, tmp_path)
    with pytest.raises(ValueError, match="source must be a path as text, or None; it is 3"):
        load_pairs(name, 3)


JUDGEBENCH_FAULTS = {
    "null response": ({"response_B": None}, r"x.jsonl, line 2: response_B must be text .*it is null"),
    "number for text": ({"question": 7}, r"line 2: question must be text .*it is 7 \(int\)"),
    "label outside": ({"label": "A=B"}, r"line 2: label must be one of 'A>B', 'B>A'; it is 'A=B'"),
    "null label": ({"label": None}, r"line 2: label must be one of"),
    "repeated id": ({"pair_id": "id1"}, r"line 2: the pair id must be unique; 'id1' was seen at .*x.jsonl, line 1"),
    "blank id": ({"pair_id": " "}, r"line 2: pair_id must be a text or a whole number"),
    "half a surrogate": ({"response_A": "\ud83d"}, r"line 2: response_A must be valid Unicode"),
}


@pytest.mark.parametrize("fault", JUDGEBENCH_FAULTS)
def test_a_faulty_record_is_refused_with_its_file_and_line(fault, tmp_path):
    changes, message = JUDGEBENCH_FAULTS[fault]
    rows = [judgebench_row(1), judgebench_row(2, **changes)]
    path = tmp_path / "x.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in rows))
    with pytest.raises(ValueError, match=message):
        load_pairs("judgebench", path)


def test_a_missing_field_is_refused_with_the_fields_that_are_there(tmp_path):
    row = judgebench_row(1)
    del row["response_B"]
    with pytest.raises(
        ValueError, match="line 1: the field 'response_B' must be there; the fields are pair_id, source, question"
    ):
        load_pairs("judgebench", write_lines(tmp_path / "x.jsonl", [row]))


GOOD = json.dumps(judgebench_row(1)).encode()
BYTES = {
    "malformed line": (
        "x.jsonl",
        GOOD + b"\n\n{'pair_id': 1}\n",
        r"x.jsonl, line 3: must be one JSON object; .*column 2",
    ),
    "cut off line": ("x.jsonl", GOOD + b"\n" + GOOD[:40], r"x.jsonl, line 2: must be one JSON object"),
    "a list": ("x.jsonl", b"[1, 2]\n", r"x.jsonl, line 1: must be one object with named fields; it is list"),
    "latin-1": ("x.jsonl", GOOD + b'\n{"question": "caf\xe9"}', r"x.jsonl, line 2: must be UTF-8; byte 0xe9 is not"),
    "not gzip": ("x.jsonl.gz", GOOD, r"x.jsonl.gz: must be whole and unpackable; it is damaged"),
    "cut off gzip": ("x.jsonl.gz", gzip.compress(GOOD)[:-9], r"must be whole and unpackable"),
    "not a tar": ("x.tar.xz", GOOD, r"x.tar.xz: must be whole and unpackable"),
    "not a zip": ("x.zip", GOOD, r"x.zip: must be whole and unpackable"),
    "one object": ("x.json", GOOD, r"x.json: must be one JSON list of objects; it is dict"),
    "lines called json": ("x.json", GOOD + b"\n" + GOOD, r"x.json, line 2: must be one JSON list .*is called .jsonl"),
    "not parquet": ("x.parquet", GOOD, r"x.parquet: must be a whole Parquet file"),
    "foreign format": ("x.xlsx", GOOD, r"x.xlsx: must be one of .jsonl, .*it is '.xlsx'"),
    "empty": ("x.jsonl", b"", r"judgebench: there must be at least one pair"),
    "short row": (
        "x.csv",
        b"instruction,response_a,response_b\n1,a,b\n2,a\n",
        r"x.csv, line 3: each row must have one cell per column name",
    ),
    "open quote": ("x.csv", b'instruction,response_a,response_b\n1,a,"b\n', r"x.csv, line 2: .*unexpected end"),
    "column twice": ("x.csv", b"label,label\n1,a\n", r"x.csv, line 1: .*the header names a column twice"),
}


@pytest.mark.parametrize("fault", BYTES)
def test_a_file_that_is_not_what_its_name_says_is_refused(fault, tmp_path):
    name, data, message = BYTES[fault]
    (tmp_path / name).write_bytes(data)
    with pytest.raises(ValueError, match=message):
        load_pairs("table" if name.endswith(".csv") else "judgebench", tmp_path / name)


@needs_shared
def test_an_archive_that_is_cut_off_is_refused_whole(tmp_path):
    (tmp_path / "cut.tar.xz").write_bytes(LLMBAR.read_bytes()[:200_000])
    with pytest.raises(ValueError, match="cut.tar.xz: must be whole and unpackable"):
        load_pairs("llmbar", tmp_path / "cut.tar.xz")


def test_a_line_separator_inside_a_text_does_not_end_the_line_and_a_byte_order_mark_is_no_text(tmp_path):
    row = judgebench_row(1, response_A="one\u2028two\u0085three")
    (tmp_path / "x.jsonl").write_bytes(b"\xef\xbb\xbf" + json.dumps(row, ensure_ascii=False).encode() + b"\r\n")
    pairs = load_pairs("judgebench", tmp_path / "x.jsonl")
    assert as_upstream(pairs)["first"].tolist() == ["one\u2028two\u0085three"]


LLMBAR_ROW = {"input": "q", "output_1": "x", "output_2": "y", "label": 2}


def test_llmbar_needs_folders_that_name_the_subset_and_labels_1_or_2(tmp_path):
    good = tmp_path / "Dataset" / "LLMBar" / "Adversarial" / "Manual" / "dataset.json"
    good.parent.mkdir(parents=True)
    good.write_text(json.dumps([LLMBAR_ROW]))
    other = good.parent / "evaluators" / "result.json"
    other.parent.mkdir()
    other.write_text(json.dumps([{"winner": "1"}]))
    for source in (tmp_path, good.parents[1], good):
        pairs = load_pairs("llmbar", source)
        assert list(pairs["pair_id"]) == ["Adversarial/Manual/0000"] and list(pairs["task_type"]) == ["Adversarial"]
        assert list(as_upstream(pairs)["label"]) == [-1]
    (tmp_path / "dataset.json").write_text(json.dumps([LLMBAR_ROW]))
    with pytest.raises(ValueError, match="dataset.json: the file must be one of Natural/dataset.json"):
        load_pairs("llmbar", tmp_path / "dataset.json")
    good.write_text(json.dumps([LLMBAR_ROW, LLMBAR_ROW | {"label": 0}]))
    with pytest.raises(ValueError, match="dataset.json, row 2: label must be one of 1, 2; it is 0"):
        load_pairs("llmbar", good)


def test_hh_rlhf_needs_a_folder_that_names_the_subset_and_a_shared_beginning(tmp_path):
    with pytest.raises(ValueError, match="line 1: the file's folder must be named helpful-"):
        load_pairs("hh_rlhf", write_lines(tmp_path / "mine" / "x.jsonl", [dialogue(" a", " b")]))
    path = write_lines(tmp_path / "helpful-x" / "test.jsonl", [dialogue(" a", " b"), {"chosen": "a", "rejected": "b"}])
    with pytest.raises(ValueError, match="line 2: both dialogues must share a beginning"):
        load_pairs("hh_rlhf", path)
    path = write_lines(tmp_path / "helpful-y" / "test.jsonl", [dialogue(" a", " a")])
    with pytest.raises(ValueError, match="at least one pair; .* has 1, all ties"):
        load_pairs("hh_rlhf", path)


ULTRAFEEDBACK_FAULTS = {
    "no score field": (
        [{"response": "a"}, {"response": "b"}],
        "row 1, completion 1: overall_score or fine-grained_score",
    ),
    "score is text": (
        [completion("a", "N/A"), completion("b", 2)],
        "completion 1: overall_score must be a number or null",
    ),
    "null response": ([completion("a", 1), completion(None, 2)], "row 1, completion 2: response must be text"),
    "not a list": ("text", "row 1: completions must be a list of objects; it is 'text'"),
}


@pytest.mark.parametrize("fault", ULTRAFEEDBACK_FAULTS)
def test_faulty_completions_are_refused(fault, tmp_path):
    completions, message = ULTRAFEEDBACK_FAULTS[fault]
    rows = [{"source": "sharegpt", "instruction": "q", "completions": completions}]
    with pytest.raises(ValueError, match=message):
        load_pairs("ultrafeedback", write_as(tmp_path, "x", rows, "json"))


def test_two_equal_ids_in_two_files_are_refused_with_both_places(tmp_path):
    for name in ("filtered-a.jsonl", "filtered-b.jsonl"):
        write_lines(tmp_path / name, rewardbench_rows(1))
    with pytest.raises(
        ValueError, match=r"filtered-b.jsonl, line 1: .*'alpacaeval-easy/0' was seen at .*filtered-a.jsonl, line 1"
    ):
        load_pairs("rewardbench", tmp_path)


def test_a_response_of_a_megabyte_fits_in_a_csv(tmp_path):
    buffer = io.StringIO()
    pd.DataFrame([{"instruction": "q", "response_a": "x" * 10**6, "response_b": "s"}]).to_csv(buffer, index=False)
    (tmp_path / "x.csv").write_text(buffer.getvalue())
    assert load_pairs("table", tmp_path / "x.csv")[["response_a", "response_b"]].map(len).to_numpy().max() == 10**6
