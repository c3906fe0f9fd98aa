"""From upstream's frame to that of `load_pairs`, and the report of an import.

Which response is *a* is the hash's decision (`records.first_is_a`); rows whose response order it reverses are negated
and change their view. It counts what it finds and refuses what contradicts itself; it drops nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from baer_utils.importers.verdicts import Verdict
from baer_utils.records import RUN_COLUMNS, STATUSES, check_runs, first_is_a, swap_runs

EMPTY = {
    "stage": "verdict", "trial": 0, "label_mass": np.nan, "prompt_tokens": 0, "cached_tokens": 0, "new_tokens": 0,
    "seconds": np.nan, "prompt_sha": "",
}  # fmt: skip


@dataclass(frozen=True)
class ImportReport:
    """What was read, what it was turned into, and what could not be read.

    Attributes
    ----------
    format, source, benchmark : as asked; `benchmark` None where the file's own first response stayed *a*.
    labels : series by pair_id, in the frame of the runs: +1, -1, NaN where the file has none or calls it a tie.
    swapped : boolean series, row for row the runs: the rows that were turned.
    counts : frame, one row per (backbone, protocol): pairs, then rows by status.
    raw : frame, row for row the runs: `place` (file and row), `verdict` (upstream's own word), `first_is_a`.
    label_ties : pairs that the file labels as ties.
    """

    format: str
    source: str
    benchmark: str | None
    labels: pd.Series = field(repr=False)
    swapped: pd.Series = field(repr=False)
    counts: pd.DataFrame = field(repr=False)
    raw: pd.DataFrame = field(repr=False)
    label_ties: int = 0

    def __str__(self) -> str:
        total = self.counts[list(STATUSES)].sum()
        kinds = ", ".join(f"{total[name]:,} {name}" for name in STATUSES)
        turned = (
            f"{int(self.swapped.sum()):,} rows were turned into the frame of load_pairs({self.benchmark!r})."
            if self.benchmark
            else "No benchmark was named: a is the response that the file lists first."
        )
        unlabelled = int(self.labels.isna().sum())
        return (
            f"{len(self.swapped):,} verdicts of {len(self.counts)} judges on {len(self.labels):,} pairs "
            f"({self.format}): {kinds}. {turned} {unlabelled:,} pairs without a label"
            f"{f', {self.label_ties:,} of them ties' if self.label_ties else ''}."
        )


def framed(
    verdicts: list[Verdict], *, format: str, source: str, benchmark: str | None
) -> tuple[pd.DataFrame, ImportReport]:
    """The run table in the canonical frame, and its report."""
    rows = pd.DataFrame(verdicts, columns=list(Verdict._fields))
    labels = _labels(rows)
    _refuse_repeats(rows)
    first = {pair_id: benchmark is None or first_is_a(benchmark, pair_id) for pair_id in labels.index}
    is_a = rows["pair_id"].map(first).astype(bool)
    rows["log_odds"] = rows["log_odds"].where(rows["status"].isin(["ok", "tie"]))  # a hard verdict of a cut text: none
    runs = rows.assign(**EMPTY)[list(RUN_COLUMNS)]
    runs = check_runs(runs.where(is_a, swap_runs(runs)))
    labels = labels * np.where([first[pair_id] for pair_id in labels.index], 1.0, -1.0)
    counts = pd.crosstab([rows["backbone"], rows["protocol"]], rows["status"]).reindex(columns=STATUSES, fill_value=0)
    counts.insert(0, "pairs", rows.groupby(["backbone", "protocol"])["pair_id"].nunique())
    return runs, ImportReport(
        format=format,
        source=source,
        benchmark=benchmark,
        labels=labels.where(labels != 0) + 0.0,
        swapped=(~is_a).rename("swapped"),
        counts=counts.rename_axis(columns=None),
        raw=pd.DataFrame({"place": rows["place"], "verdict": rows["raw"], "first_is_a": is_a}),
        label_ties=int((labels == 0).sum()),
    )


def _labels(rows: pd.DataFrame) -> pd.Series:
    """Label of every pair toward the response listed first; two files that contradict each other are refused."""
    known = rows[rows["label"].notna()]
    agreed = known.groupby("pair_id")["label"].first()
    wrong = known[known["label"] != known["pair_id"].map(agreed)]
    if len(wrong):
        row = wrong.iloc[0]
        raise ValueError(
            f"{row['place']}: a pair must have one label; {row['pair_id']} is {row['label']:+.0f} here and "
            f"{agreed[row['pair_id']]:+.0f} before ({len(wrong)} such). Are the files of the same version?"
        )
    return agreed.reindex(rows["pair_id"].unique()).rename("label").rename_axis("pair_id")


def _refuse_repeats(rows: pd.DataFrame) -> None:
    key = ["backbone", "protocol", "pair_id", "view"]
    repeated = rows[rows.duplicated(key)]
    if len(repeated):
        row = repeated.iloc[0]
        earlier = rows[(rows[key] == row[key]).all(axis=1)].iloc[0]
        raise ValueError(
            f"{row['place']}: each judge must answer a pair once in each order; {row['protocol']} of "
            f"{row['backbone']} on {row['pair_id']} ({row['view']}) was seen at {earlier['place']} "
            f"({len(repeated)} such). Drop one."
        )
