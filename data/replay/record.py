"""Record the embedded judge on the starter pairs: `python data/replay/record.py [--n-pairs 200] [--only NAME]`.

Every protocol of the bank, every extra candidate, the reference head and the four views of the label orbit are asked
about every pair. The other screening families are asked about the selection pairs of seed 0, and about its calibration
pairs where the selection margin is positive. `--seed` adds the few pairs that only the split of another seed takes. It
goes on where it was stopped: answers are kept in the store, and pairs that a file has already are not asked again. One
Parquet file per benchmark goes into `data/replay/smollm2-135m/`, and a table into `data/README.md`.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
from pathlib import Path

import pandas as pd

from baer_utils.backbones import open_backbone
from baer_utils.backbones.replay import FOLDER
from baer_utils.benchmarks import load_pairs
from baer_utils.debias import bank_runs, fit_debias
from baer_utils.evidence import NATIVE, native_decisions
from baer_utils.gates import screen
from baer_utils.judging import judge_pairs
from baer_utils.protocols import BOOK_BANK, EXPERTS, PROTOCOLS, SCREENED, Settings
from baer_utils.records import RUN_COLUMNS, RUN_KEY
from baer_utils.reports import versions
from baer_utils.screening import screened_score
from baer_utils.store import open_store

JUDGE = "smollm2-135m"
BENCHMARKS = ("starter_correctness", "starter_preference")
SCREENED_FIRST = tuple(name for name in SCREENED if name != "orbit")
README = Path(__file__).parents[1] / "README.md"
BEGIN, END = "<!-- replay tables: begin (written by data/replay/record.py) -->", "<!-- replay tables: end -->"


def record(benchmark: str, n_pairs: int, seed: int, before: pd.DataFrame) -> pd.DataFrame:
    """Runs of one benchmark, sorted by run key; what was recorded before is kept and not asked again."""
    judge = open_backbone(JUDGE)
    pairs = load_pairs(benchmark, seed=seed, n_pairs=n_pairs)
    store = open_store(judge.name, benchmark, seed=seed, n_pairs=n_pairs)

    def ask(experts: tuple[str, ...], split: str | None = None) -> pd.DataFrame:
        asked = pairs if split is None else pairs[pairs["split"] == split]
        kept = before[before["protocol"].isin(experts) & before["pair_id"].isin(asked["pair_id"])]
        whole = kept.groupby("pair_id")["protocol"].nunique() == len(experts)
        kept = kept[kept["pair_id"].isin(whole[whole].index)]
        missing = asked[~asked["pair_id"].isin(kept["pair_id"])].reset_index(drop=True)
        if missing.empty:
            return kept
        runs, report = judge_pairs(missing, judge, experts, store=store)
        print(f"{benchmark}, {split or 'all pairs'}: {report}", flush=True)
        return pd.concat([kept, runs])

    tables = [before, ask(BOOK_BANK)]
    if seed:
        return _sorted(tables)
    tables.append(ask(SCREENED_FIRST, "selection"))
    runs = _sorted(tables)
    scores = {head: screened_score(runs, pairs["pair_id"], head) for head in SCREENED_FIRST}
    debias = fit_debias(runs, pairs)
    native = native_decisions(bank_runs(runs, EXPERTS, debias), pairs, tuple(NATIVE), debias=debias)
    gated = screen(pairs, scores, native.reset_index(drop=True))
    onward = tuple(gated.index[gated["selection_margin"] > 0])
    print(gated[["selection_pairs", "selection_margin"]].round(1).to_string(), flush=True)
    if onward:
        tables.append(ask(onward, "calibration"))
    return _sorted(tables)


def _sorted(tables: list[pd.DataFrame]) -> pd.DataFrame:
    runs = pd.concat([table for table in tables if len(table)]).drop_duplicates(RUN_KEY)
    return runs.sort_values(RUN_KEY).reset_index(drop=True)


def described(benchmark: str, runs: pd.DataFrame) -> str:
    """What a record holds, as a Markdown table: calls, tokens, and what became of them."""
    lines = [
        f"**`{benchmark}`**: {runs['pair_id'].nunique()} pairs, {len(runs):,} calls by {runs['backbone'].iloc[0]}",
        "| protocol | pairs | calls | prompt tokens | new tokens | cut | unparsed | errors |\n" + 8 * "|---" + "|",
    ]
    for name in [name for name in PROTOCOLS if (runs["protocol"] == name).any()]:
        mine = runs[runs["protocol"] == name]
        became = [int((mine["status"] == status).sum()) for status in ("truncated", "unparsed", "error")]
        counts = [mine["pair_id"].nunique(), len(mine), mine["prompt_tokens"].sum(), mine["new_tokens"].sum(), *became]
        lines[-1] += f"\n| {name} | " + " | ".join(f"{count:,}" for count in counts) + " |"
    return "\n\n".join(lines)


def budgets() -> str:
    """The settings of every record, and the versions that it was made with."""
    how = ", ".join(f"`{name}={value}`" for name, value in dataclasses.asdict(Settings()).items())
    used = versions()
    made = ", ".join(f"{name} {used[name]}" for name in ("python", "torch", "transformers") if name in used)
    return f"Settings: {how}. Made with {made}, float32, on a CPU."


def main() -> int:
    """Record what is asked for, write the files, and describe every file that is there."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n-pairs", type=int, default=0, help="pairs of each benchmark; 0, the default, means all")
    parser.add_argument("--seed", type=int, default=0, help="of the split that says which pairs these are (default: 0)")
    parser.add_argument("--only", choices=BENCHMARKS, help="one benchmark instead of both")
    args = parser.parse_args()
    folder = FOLDER / JUDGE
    folder.mkdir(parents=True, exist_ok=True)
    for benchmark in [args.only] if args.only else BENCHMARKS:
        file = folder / f"{benchmark}.parquet"
        before = pd.read_parquet(file) if file.exists() else pd.DataFrame(columns=list(RUN_COLUMNS))
        record(benchmark, args.n_pairs, args.seed, before).to_parquet(file, index=False, compression="zstd")
    tables = [described(file.stem, pd.read_parquet(file)) for file in sorted(folder.glob("*.parquet"))]
    head, _, rest = README.read_text(encoding="utf-8").partition(BEGIN)
    body = "\n\n".join([BEGIN, budgets(), *tables, END])
    README.write_text(head + body + rest.partition(END)[2], encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
