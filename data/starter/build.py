"""Write the two starter benchmarks and their table in data/README.md.

    python data/starter/build.py            rewrite the two JSONL files and the table
    python data/starter/build.py --check    compare instead, and exit with 1 where anything differs
    python data/starter/build.py --out DIR  write only the two JSONL files, into another folder

Nothing is written unless every label and every promise of `audit.py` holds.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import arithmetic
import code_pairs
import constraints
import dates
import facts
import formats
import helpfulness
import logic
import safety
import tables
from audit import failures, table
from common import HERE, Draft

README = HERE.parent / "README.md"
BEGIN, END = "<!-- starter tables: begin (written by data/starter/build.py) -->", "<!-- starter tables: end -->"
BENCHMARKS = {
    "starter_correctness": (arithmetic, facts, tables, code_pairs, logic, dates),
    "starter_preference": (constraints, formats, helpfulness, safety),
}


def rows(benchmark: str, drafts: list[Draft]) -> list[dict]:
    """Drafts as records, numbered within their subset."""
    counts: dict[str, int] = {}
    records = []
    for draft in drafts:
        counts[draft.subset] = counts.get(draft.subset, 0) + 1
        pair_id = f"{benchmark.removeprefix('starter_')}/{draft.subset}/{counts[draft.subset]:04d}"
        records.append(
            {
                "pair_id": pair_id,
                "subset": draft.subset,
                "task_type": draft.task_type,
                "instruction": draft.instruction,
                "chosen": draft.chosen,
                "rejected": draft.rejected,
                "check": draft.check,
            }
        )
    return records


def build() -> dict[str, str]:
    """The text of every file by name; a ValueError says everything that does not hold."""
    files, wrong, shown = {}, [], []
    for benchmark, modules in BENCHMARKS.items():
        drafts = [draft for module in modules for draft in module.build()]
        records = rows(benchmark, drafts)
        wrong += failures(benchmark, drafts, records)
        files[f"{benchmark}.jsonl"] = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
        shown.append(table(benchmark, records))
    if wrong:
        raise ValueError("the starter sets must hold what they promise; nothing was written:\n  " + "\n  ".join(wrong))
    files["README.md"] = "\n\n".join(shown)
    return files


def with_tables(text: str, shown: str) -> str:
    """The README with new tables between its two markers."""
    if text.count(BEGIN) != 1 or text.count(END) != 1:
        raise ValueError(f"{README.name} must hold the markers {BEGIN!r} and {END!r} once each")
    return f"{text.partition(BEGIN)[0]}{BEGIN}\n\n{shown}\n\n{END}{text.partition(END)[2]}"


def main(arguments: list[str] | None = None) -> int:
    """Build, then write or compare; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare with what is on disk, write nothing")
    parser.add_argument("--out", type=Path, help="folder for the JSONL files; leaves the README alone")
    options = parser.parse_args(arguments)
    try:
        files = build()
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    shown, folder = files.pop("README.md"), options.out or HERE
    wanted = {folder / name: text for name, text in files.items()}
    if options.out is None:
        wanted[README] = with_tables(README.read_text(encoding="utf-8"), shown)
    stale = [path for path, text in wanted.items() if not path.exists() or path.read_bytes() != text.encode()]
    if options.check:
        print(
            "\n".join(f"{path.name} differs from what build.py makes; run it without --check" for path in stale)
            or "up to date"
        )
        return 1 if stale else 0
    folder.mkdir(parents=True, exist_ok=True)
    for path, text in wanted.items():
        path.write_bytes(text.encode())
    print(f"wrote {', '.join(path.name for path in wanted)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
