"""Other tools' judge outputs as one checked run table, in the frame of `load_pairs`.

`import_runs` names pairs as `load_pairs` does, turns every verdict into the canonical frame and says what it turned,
what it could not read and where each row came from. What the fields of a format mean is in the files beside it. It
knows nothing about evidence, heads or accuracy; labels go into the report, never into the runs.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from baer_utils.importers.framing import ImportReport, framed
from baer_utils.importers.judgebench import judgebench
from baer_utils.importers.llmbar import llmbar
from baer_utils.importers.table import table

__all__ = ["FORMATS", "ImportReport", "import_runs"]

FORMATS = {"llmbar": llmbar, "judgebench": judgebench, "table": table}
OWN_BENCHMARK = {"llmbar": "llmbar", "judgebench": "judgebench", "table": None}


def import_runs(
    format: str, path: str | Path, *, benchmark: str | None = "", **columns: str
) -> tuple[pd.DataFrame, ImportReport]:
    """Runs that another tool has made, as a run table, and a report of what was done to them.

    Parameters
    ----------
    format : one of `FORMATS`; what each reads is said in the docstring of its function (``FORMATS[format]``).
    path : folder, file or archive (`.tar.xz`, `.zip`, `.gz` are read without unpacking beside it).
    benchmark : whose orientation hash decides which response is *a*, as in ``load_pairs(benchmark, ...)``. Left out,
        that of the format; `table` has none. None keeps the file's own first response as *a*, and the report says so.
    columns : only for `table`: our name = the file's name, such as ``protocol="judge"``.

    Returns
    -------
    runs : run table (`records.check_runs`), in the order of the files. The judge's name is the `protocol`, and its
        model the `backbone` where the file names both. All rows have the stage ``verdict``, trial 0, no token counts
        and no hash of a prompt: what other tools do not store is not guessed.
    report : `ImportReport` with the labels, the turned rows and the counts.

    Raises
    ------
    FileNotFoundError : the path, or what it should hold, is not there.
    ValueError : anything else that is not as it must be, naming file and row. Nothing is half-loaded.
    """
    if format not in FORMATS:
        raise ValueError(f"the format must be one of {', '.join(FORMATS)}; it is {format!r}. Other tools: use 'table'.")
    if columns and format != "table":
        raise ValueError(f"columns belong to 'table'; {format} has its own names. Leave out {', '.join(columns)}.")
    if not isinstance(path, (str, Path)) or not str(path):
        raise ValueError(f"path must name a folder, a file or an archive of {format} outputs; it is {path!r}.")
    verdicts = list(table(path, columns) if format == "table" else FORMATS[format](path))
    if not verdicts:
        raise ValueError(f"{path}: must hold at least one verdict; it holds none.")
    own = OWN_BENCHMARK[format] if benchmark == "" else benchmark
    return framed(verdicts, format=format, source=str(path), benchmark=own)
