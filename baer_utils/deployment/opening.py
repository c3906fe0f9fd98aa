"""The one opening of the test: sealed labels meet one frozen head, and the log says so for ever.

The same head may look again and is shown the stored report. Another head is refused unless a reason is given, which
then stands in every later report of the seal. This guards against accident, not malice: the sealed file is plain
Parquet, and whoever wants to cheat reads it.
"""

from __future__ import annotations

from pathlib import Path

from baer_utils.debias import protocols_for
from baer_utils.deployment.frozen import Frozen
from baer_utils.deployment.measuring import measure
from baer_utils.deployment.report import TestReport
from baer_utils.store import Store, openings, record_opening, sealed_labels


def open_test(frozen: Frozen, store: Store, *, reopen: str | None = None) -> TestReport:
    """Open the sealed test labels for a frozen head.

    Parameters
    ----------
    frozen : the head; its files on disk are verified again.
    store : the sealed store of its condition, with the test pairs judged.
    reopen : a reason, needed where another head has opened this seal before; logged. Empty counts as none.

    Returns
    -------
    TestReport
        fresh at the first opening by this head, afterwards the stored one beside the log as it is now.

    Raises
    ------
    ValueError
        when the frozen files changed, the store is not sealed or belongs to another condition, test pairs were never
        judged, the sealed labels do not match their seal, or another head has opened the seal and no reason is given.
        Until all of that holds, no label is looked at and nothing is logged.
    """
    frozen.verify()
    _refuse_another_condition(frozen, store)
    log = openings(store)
    mine = any(entry["sha256"] == frozen.sha256 for entry in log)
    path = _report_path(store, frozen.sha256)
    if mine and path.exists():
        return TestReport.load(path, log)
    if log and not mine and not reopen:
        first = log[0]
        raise ValueError(
            f"the test of this seal was opened on {first['time']} by head {first['sha256'][:12]}; "
            f"this head is {frozen.sha256[:12]}. Report that one, or give a reason: "
            'open_test(frozen, store, reopen="why"), which every later report will print.'
        )
    test = store.pairs[store.pairs["split"] == "test"].sort_values("pair_id").reset_index(drop=True)
    runs = store.runs(frozen.settings.tag)
    _refuse_unjudged(test["pair_id"], runs, protocols_for(frozen.protocols_of(frozen.head), native=False))
    s = frozen.score_runs(test, runs)
    frozen.native_decisions(test, runs)  # what cannot be decided is refused before a label is looked at
    labels = sealed_labels(store)
    if not mine:
        entry = {"sha256": frozen.sha256, "head": frozen.head, "reopen": reopen if log else None}
        record_opening(store, entry)
    report = measure(frozen, test, runs, s, labels.reindex(test["pair_id"]).to_numpy(float))
    report.save(path)
    return TestReport.load(path, openings(store))


def _refuse_another_condition(frozen: Frozen, store: Store) -> None:
    if store.pairs is None or store.seal_id is None:
        raise ValueError("open_test needs a sealed store; this one is not. Call store.seal(pairs, store) first.")
    for name in ("benchmark", "backbone", "seed", "n_pairs"):
        theirs, ours = getattr(store, name), getattr(frozen.condition, name)
        if theirs != ours:
            raise ValueError(
                f"a frozen head opens the test of its own condition; its {name} is {ours!r}, the store's {theirs!r}. "
                "Open the store it was developed in."
            )


def _refuse_unjudged(pair_ids, runs, experts) -> None:
    judged = runs.loc[runs["protocol"].isin(experts), "pair_id"]
    unjudged = pair_ids[~pair_ids.isin(judged.unique())]
    if len(unjudged) or not len(pair_ids):
        raise ValueError(
            f"the test opens once, so it must hold pairs and all of them must have been judged; {len(unjudged)} of "
            f"{len(pair_ids)} have no run of any expert: {list(unjudged[:3])}. Judge the test pairs first."
        )


def _report_path(store: Store, sha256: str) -> Path:
    return store.folder / "sealed" / f"{store.seal_id}.{sha256[:16]}.report.json"
