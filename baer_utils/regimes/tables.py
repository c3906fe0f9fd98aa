"""Settings from files: long tables of labels and of verdicts, as anybody's judges may have left them.

It reads what is there and drops nothing; which items every judge answered is the business of `Audit.complete`.
"""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd

from baer_utils.calibrators import audit_from_tables
from baer_utils.regimes.settings import Setting

ENDINGS = (".csv", ".csv.gz", ".parquet")
SIGNAL = "the column slice of the labels"


def table_settings(place: str | Path) -> dict[str, Setting]:
    """Every audit in a folder of long tables, or the one that is named.

    Parameters
    ----------
    place : a folder that holds `<name>.labels.csv` and `<name>.verdicts.csv` (or `.csv.gz`, `.parquet`) for one or more
        names, or the folder and one name, `<folder>/<name>`. Columns as `audit_from_tables` reads them: pair_id, y,
        group and slice of the labels; pair_id, judge, order and verdict of the verdicts. After a question mark a
        regular expression may say which judges to take: ``tables/llmbar?judges=Vanilla$``.

    Returns
    -------
    dict, name -> Setting, by name. All calls cost 1; outputs are verdicts (scores: `audit_from_tables`). Slices are
    taken to be known before the label unless the labels decide them (`build_policy` refuses those).

    Raises
    ------
    FileNotFoundError
        where no labels are found, or labels without verdicts.
    ValueError
        where no judge matches, or a column is missing.
    """
    text, _, wanted = str(place).partition("?judges=")
    place = Path(text)
    folder, name = (place, "*") if place.is_dir() else (place.parent, place.name)
    found = sorted(path for end in ENDINGS for path in folder.glob(f"{name}.labels{end}"))
    if not found:
        raise FileNotFoundError(
            f"an audit needs <name>.labels and <name>.verdicts, ending in {', '.join(ENDINGS)}; none at {place}."
        )
    return {path.name.partition(".labels")[0]: _setting(path, wanted) for path in found}


def _setting(path: Path, wanted: str) -> Setting:
    labels = _read(path, ("pair_id", "y", "group", "slice"))
    verdicts = _read(
        path.with_name(path.name.replace(".labels", ".verdicts")), ("pair_id", "judge", "order", "verdict")
    )
    judges = [judge for judge in sorted(verdicts["judge"].unique()) if re.search(wanted, judge)]
    if not judges:
        raise ValueError(f"{path.name}: judges must match {wanted!r}; none of {verdicts['judge'].nunique()} does.")
    return Setting(audit_from_tables(labels, verdicts, judges), why=f"judge outputs in {path.name}", signal=SIGNAL)


def _read(path: Path, columns: tuple[str, ...]) -> pd.DataFrame:
    if not path.exists():
        raise FileNotFoundError(f"labels and verdicts come together; {path.name} is not in {path.parent}.")
    table = pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path)
    missing = [name for name in columns if name not in table.columns]
    if missing:
        raise ValueError(f"{path.name} must have the columns {', '.join(columns)}; {', '.join(missing)} are not there.")
    return table
