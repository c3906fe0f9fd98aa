"""Answers, runs and sealed labels on disk: nothing half written is read, nothing sealed is seen or rewritten."""

from __future__ import annotations

import subprocess
import sys

import pandas as pd
import pytest

from baer_utils.records import swap_runs
from baer_utils.store import COMPACT_ABOVE, open_store, openings, record_opening, seal, sealed_labels

ANSWER = {"verb": "read", "log_odds": 0.5, "label_mass": 0.9, "prompt_tokens": 3, "cached_tokens": 0, "new_tokens": 0,
          "seconds": 0.1}  # fmt: skip


def answer(key: str, **values) -> dict:
    return {"key": key, **ANSWER, **values}


@pytest.fixture
def store(tmp_path):
    return open_store("judge", "made", seed=0, n_pairs=0, root=tmp_path)


def test_answers_come_back_as_they_were_kept(store):
    store.add_calls([answer("k1"), answer("k2", verb="generate", text="hü\x00", ids=[1, 2], finish_reason="stop")])
    store.add_calls([])
    found = store.calls()
    assert found["k1"]["log_odds"] == 0.5 and found["k1"]["text"] is None
    assert found["k2"]["text"] == "hü\x00" and found["k2"]["ids"] == [1, 2]


def test_a_file_that_a_killed_writer_left_half_written_is_not_read(store):
    store.add_calls([answer("k1")])
    whole = next((store.folder / "calls").glob("*.parquet"))
    (whole.parent / f".{whole.name}.0000.part").write_bytes(whole.read_bytes()[:100])
    assert set(store.calls()) == {"k1"}


def test_two_writers_at_once_lose_nothing(store, tmp_path):
    code = (
        "import sys; from baer_utils.store import open_store; from tests.test_store import answer\n"
        "store = open_store('judge', 'made', root=sys.argv[1])\n"
        "for n in range(150):\n    store.add_calls([answer(f'{sys.argv[2]}{n}'), answer(f'both{n}')])\n"
        "store.compact()\n"
    )
    writers = [subprocess.Popen([sys.executable, "-c", code, str(tmp_path), name]) for name in ("x", "y")]
    assert [writer.wait() for writer in writers] == [0, 0]
    assert set(store.calls()) == {f"{name}{n}" for name in ("x", "y", "both") for n in range(150)}


def test_compacting_keeps_every_answer_once(store):
    for n in range(COMPACT_ABOVE + 1):
        store.add_calls([answer(f"k{n // 2}", log_odds=float(n))])
    before = store.calls()
    store.compact()
    assert len(list((store.folder / "calls").glob("*"))) == 1
    assert store.calls() == before and before["k3"]["log_odds"] == 6.0


def test_stores_of_different_judges_benchmarks_and_names_with_slashes_stay_apart(tmp_path):
    names = ["hf:a/b@1?dtype=x", "hf:a_b@1?dtype=x", "hf:a/b@1?dtype=y"]
    assert len({open_store(name, "made", root=tmp_path).folder for name in names}) == 3
    assert open_store("judge", "made").folder.parts[-4:] == ("outputs", "store", "judge", "made")


def test_rows_of_the_same_run_key_are_replaced_and_others_kept(store, tiny, sums):
    from baer_utils.judging import judge_pairs

    first, _ = judge_pairs(sums.head(3), tiny, ("direct",), store=store, progress=False)
    tag = next((store.folder / "runs").glob("*.parquet")).stem
    store.write_runs(swap_runs(first).assign(view=first["view"]), tag)
    assert store.runs(tag)["log_odds"].tolist() == (-first["log_odds"]).tolist()
    judge_pairs(sums.iloc[3:5], tiny, ("direct",), store=store, progress=False)
    assert store.runs(tag)["pair_id"].nunique() == 5
    with pytest.raises(FileNotFoundError, match="Judge the pairs first"):
        store.runs("other")


# ---------------------------------------------------------------- the seal


def test_sealing_hides_exactly_the_test_labels_and_remembers_them(store, sums):
    sealed = seal(sums, store)
    test = sums["split"] == "test"
    assert sealed.loc[test, "label"].isna().all() and sealed.loc[~test].equals(sums.loc[~test])
    assert store.pairs is sealed
    expected = sums.loc[test].set_index("pair_id")["label"].sort_index()
    assert sealed_labels(store).equals(expected)


def test_an_existing_sealed_file_is_neither_read_nor_rewritten(store, sums):
    before = seal(sums, store)
    path = next((store.folder / "sealed").glob("*.parquet"))
    path.write_bytes(b"poison")
    again = open_store("judge", "made", root=store.folder.parents[1])
    pd.testing.assert_frame_equal(seal(sums, again), before)
    assert path.read_bytes() == b"poison"
    with pytest.raises(ValueError, match="must be readable"):
        sealed_labels(again)


def test_changed_labels_are_refused_at_the_opening(store, sums):
    seal(sums, store)
    path = next((store.folder / "sealed").glob("*.parquet"))
    labels = pd.read_parquet(path)
    labels["label"] = -labels["label"]
    labels.to_parquet(path, index=False)
    with pytest.raises(ValueError, match="must match their seal"):
        sealed_labels(store)


def test_the_seal_is_named_by_labels_backbone_seed_and_size(store, sums, tmp_path):
    def name(pairs, backbone="judge", seed=0, n_pairs=0):
        other = open_store(backbone, "made", seed=seed, n_pairs=n_pairs, root=tmp_path)
        seal(pairs, other)
        return other.seal_id

    turned = sums.assign(label=-sums["label"])
    names = [name(sums), name(turned), name(sums, "other"), name(sums, seed=1), name(sums, n_pairs=40)]
    assert len(set(names)) == 5
    assert name(sums.sample(frac=1, random_state=0)) == names[0]


def test_labels_cannot_be_opened_before_they_are_sealed(store):
    with pytest.raises(ValueError, match="must be sealed"):
        sealed_labels(store)
    with pytest.raises(ValueError, match="this store has none yet"):
        openings(store)


def test_openings_are_logged_in_order_with_their_time(store, sums):
    seal(sums, store)
    assert openings(store) == []
    record_opening(store, {"head": "x"})
    record_opening(store, {"head": "y", "reopen": "a reason"})
    log = openings(store)
    assert [entry["head"] for entry in log] == ["x", "y"] and all("time" in entry for entry in log)
