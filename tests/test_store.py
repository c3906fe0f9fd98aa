"""Answers, runs and sealed labels on disk: nothing half written is read, nothing sealed is seen or rewritten."""

from __future__ import annotations

import os
import subprocess
import sys

import pandas as pd
import pyarrow as pa
import pytest

import baer_utils.store.files as files
from baer_utils.records import swap_runs
from baer_utils.store import COMPACT_ABOVE, open_store, openings, record_opening, seal, sealed_labels
from tests.strategies import run_rows

ANSWER = {"verb": "read", "log_odds": 0.5, "label_mass": 0.9, "prompt_tokens": 3, "cached_tokens": 0, "new_tokens": 0,
          "seconds": 0.1}  # fmt: skip


def answer(key: str, **values) -> dict:
    return {"key": key, **ANSWER, **values}


def run(pair_id: str, **values) -> pd.DataFrame:
    return run_rows([(pair_id, "direct", "ab", 0, 0.5)], **values)


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


def test_a_file_is_on_disk_before_it_has_its_name_and_leaves_nothing_behind_where_it_does_not_fit(store, monkeypatch):
    done = []
    for name in ("fsync", "replace"):
        real = getattr(os, name)
        monkeypatch.setattr(files.os, name, lambda *a, real=real, name=name: (done.append(name), real(*a))[1])
    store.add_calls([answer("k1")])
    assert done == ["fsync", "replace"]

    def full(table, path, **options):
        path.write_bytes(b"PAR1 half of it")
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr(files.pq, "write_table", full)
    with pytest.raises(OSError, match="No space left"):
        store.add_calls([answer("k2")])
    assert set(store.calls()) == {"k1"} and len(list((store.folder / "calls").iterdir())) == 1


def test_a_writer_killed_before_the_rename_has_written_nothing_that_is_read(store):
    code = (
        "import os, signal, sys; from baer_utils.store import files, open_store; from tests.test_store import answer\n"
        "files.os.replace = lambda *a: os.kill(os.getpid(), signal.SIGKILL)\n"
        "open_store('judge', 'made', root=sys.argv[1]).add_calls([answer('k1')])\n"
    )
    killed = subprocess.run([sys.executable, "-c", code, str(store.folder.parents[1])])
    assert killed.returncode == -9
    left = list((store.folder / "calls").iterdir())
    assert len(left) == 1 and left[0].name.startswith(".") and store.calls() == {}


def test_a_damaged_file_is_named_with_what_to_do_and_the_others_stay_good(store, sums):
    for key in ("k1", "k2"):
        store.add_calls([answer(key)])
    bad = min((store.folder / "calls").glob("*.parquet"))
    for damage in (b"", bad.read_bytes()[:-20], b"PAR1" + bytes(50) + b"PAR1"):
        bad.write_bytes(damage)
        with pytest.raises(ValueError, match=f"{bad.name} is not.*Delete it"):
            store.calls()
    bad.unlink()
    assert set(store.calls()) == {"k2"}


def test_two_writers_at_once_lose_nothing(store, tmp_path, sums):
    code = (
        "import sys; from baer_utils.store import open_store; from tests.test_store import answer, run\n"
        "store = open_store('judge', 'made', root=sys.argv[1])\n"
        "for n in range(120):\n    store.add_calls([answer(f'{sys.argv[2]}{n}'), answer(f'both{n}')])\n"
        "for n in range(25):\n    store.write_runs(run(f'{sys.argv[2]}{n}'), 'tag')\n"
        "store.compact()\n"
    )
    writers = [subprocess.Popen([sys.executable, "-c", code, str(tmp_path), name]) for name in ("x", "y")]
    assert [writer.wait() for writer in writers] == [0, 0]
    assert set(store.calls()) == {f"{name}{n}" for name in ("x", "y", "both") for n in range(120)}
    assert set(store.runs("tag")["pair_id"]) == {f"{name}{n}" for name in ("x", "y") for n in range(25)}


def test_compacting_keeps_every_answer_once_even_if_it_is_killed_before_it_has_cleaned_up(store, monkeypatch):
    import baer_utils.store.keeping as keeping

    monkeypatch.setattr(keeping, "COMPACT_ABOVE", 4)
    for n in range(5):
        store.add_calls([answer(f"k{n // 2}", log_odds=float(n))])
    before = store.calls()
    with monkeypatch.context() as killed:
        killed.setattr(keeping, "remove_files", lambda paths: None)
        store.compact()
    assert store.calls() == before and len(list((store.folder / "calls").glob("*"))) == 6
    store.compact()
    assert len(list((store.folder / "calls").glob("*"))) == 1 and COMPACT_ABOVE > 100
    assert store.calls() == before and before["k1"]["log_odds"] == 2.0


def test_an_answer_that_counted_still_counts_after_another_process_merged_the_files(store, monkeypatch):
    import baer_utils.store.keeping as keeping

    monkeypatch.setattr(keeping, "COMPACT_ABOVE", 1)
    store.add_calls([answer("k1", log_odds=1.0)])
    store.add_calls([answer("k2")])
    read = store.calls
    # another process keeps a second answer to k1 after these files were listed and before they are merged
    late = lambda: (read(), store.add_calls([answer("k1", log_odds=9.0)]))[0]  # noqa: E731
    monkeypatch.setattr(store, "calls", late)
    store.compact()
    monkeypatch.undo()
    assert store.calls()["k1"]["log_odds"] == 1.0


def test_stores_of_different_judges_benchmarks_and_names_with_slashes_stay_apart(tmp_path):
    names = ["hf:a/b@1?dtype=x", "hf:a_b@1?dtype=x", "hf:a/b@1?dtype=y"]
    assert len({open_store(name, "made", root=tmp_path).folder for name in names}) == 3
    assert open_store("judge", "made").folder.parts[-4:] == ("outputs", "store", "judge", "made")


def test_rows_of_the_same_run_key_are_replaced_and_others_kept(store, tiny, sums):
    from baer_utils.judging import judge_pairs

    first, _ = judge_pairs(sums.head(3), tiny, ("direct",), store=store, progress=False)
    tag = next((store.folder / "runs").iterdir()).name
    store.write_runs(swap_runs(first).assign(view=first["view"]), tag)
    assert store.runs(tag)["log_odds"].tolist() == (-first["log_odds"]).tolist()
    judge_pairs(sums.iloc[3:5], tiny, ("direct",), store=store, progress=False)
    assert store.runs(tag)["pair_id"].nunique() == 5
    with pytest.raises(FileNotFoundError, match="Judge the pairs first"):
        store.runs("other")


def test_a_run_table_written_by_another_process_during_a_merge_still_replaces_what_it_should(store, monkeypatch):
    import baer_utils.store.keeping as keeping

    store.write_runs(run("p", log_odds=1.0))
    append, real = keeping.append_table, keeping.read_tables

    def late(folder):
        found = real(folder)
        monkeypatch.setattr(keeping, "read_tables", real)
        append(folder, pa.Table.from_pandas(run("p", log_odds=3.0)))
        return found

    monkeypatch.setattr(keeping, "read_tables", late)
    store.write_runs(run("p", log_odds=2.0))
    assert store.runs()["log_odds"].tolist() == [3.0]


# ---------------------------------------------------------------- the seal


def test_sealing_hides_exactly_the_test_labels_and_remembers_them(store, sums):
    sealed = seal(sums, store)
    test = sums["split"] == "test"
    assert sealed.loc[test, "label"].isna().all() and sealed.loc[~test].equals(sums.loc[~test])
    assert store.pairs.equals(sealed)
    expected = sums.loc[test].set_index("pair_id")["label"].sort_index()
    assert sealed_labels(store).equals(expected)


def test_sealing_again_what_is_sealed_changes_nothing_and_what_a_caller_does_to_it_stays_his(store, sums):
    sealed = seal(sums, store)
    name = store.seal_id
    again = seal(sealed, store)  # a notebook cell that runs twice
    assert store.seal_id == name and again.equals(sealed) and sealed_labels(store).notna().all()
    sealed["label"] = 1.0
    assert store.pairs.loc[store.pairs["split"] == "test", "label"].isna().all()


def test_a_table_without_test_pairs_or_without_labels_can_be_sealed(store, sums):
    development = sums[sums["split"] != "test"].assign(extra=1)
    development.attrs["loaded"] = {"pairs": 3}
    sealed = seal(development, store)
    assert sealed.equals(development) and sealed.attrs == development.attrs and len(sealed_labels(store)) == 0
    unlabelled = sums.assign(label=sums["label"].where(sums["split"] != "test"))
    assert seal(unlabelled, store).equals(unlabelled) and sealed_labels(store).isna().all()


def test_two_seeds_in_one_process_have_two_seals_and_each_its_labels(tmp_path, sums):
    other = sums.assign(split=["test" if split == "selection" else "selection" for split in sums["split"]])
    stores = [open_store("judge", "made", seed=seed, root=tmp_path) for seed in (0, 1)]
    for pairs, store in zip((sums, other), stores, strict=True):
        seal(pairs, store)
    for pairs, store in zip((sums, other), stores, strict=True):
        test = pairs[pairs["split"] == "test"].set_index("pair_id")["label"].sort_index()
        assert sealed_labels(store).equals(test)


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


def test_a_line_of_the_log_that_is_not_whole_is_shown_with_what_to_do(store, sums):
    seal(sums, store)
    record_opening(store, {"head": "x"})
    path = next((store.folder / "sealed").glob("*.openings.jsonl"))
    path.write_text(path.read_text() + '{"head": "y", "ti')
    with pytest.raises(ValueError, match=r"line 2 of .* is .*delete that line"):
        openings(store)
