"""Record the embedded judge on the starter pairs: `python data/replay/record.py [--n-pairs 200] [--only NAME]`.

Every protocol of the bank, every extra candidate, the reference head and the four views of the label orbit are asked
about every pair, the other screening families about the selection pairs. It goes on where it was stopped: the answers
are kept in the store. One Parquet file per benchmark goes into `data/replay/smollm2-135m/`.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import pandas as pd

from baer_utils.backbones import open_backbone
from baer_utils.backbones.replay import FOLDER
from baer_utils.benchmarks import load_pairs
from baer_utils.judging import judge_pairs
from baer_utils.protocols import PROTOCOLS, SCREENED
from baer_utils.records import RUN_KEY
from baer_utils.store import open_store

JUDGE = "smollm2-135m"
BENCHMARKS = ("starter_correctness", "starter_preference")
EVERYWHERE = tuple(name for name in PROTOCOLS if name not in SCREENED or name == "orbit")
ON_SELECTION = tuple(name for name in SCREENED if name != "orbit")


def record(benchmark: str, n_pairs: int) -> pd.DataFrame:
    """Runs of one benchmark, sorted by run key."""
    judge = open_backbone(JUDGE)
    pairs = load_pairs(benchmark, n_pairs=n_pairs)
    store = open_store(judge.name, benchmark, n_pairs=n_pairs)
    tables = []
    for experts, asked in ((EVERYWHERE, pairs), (ON_SELECTION, pairs[pairs["split"] == "selection"])):
        runs, report = judge_pairs(asked.reset_index(drop=True), judge, experts, store=store)
        print(f"{benchmark}: {report}", flush=True)
        tables.append(runs)
    return pd.concat(tables).sort_values(RUN_KEY).reset_index(drop=True)


def main() -> int:
    """Record what is asked for and write the files."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n-pairs", type=int, default=0, help="pairs of each benchmark; 0, the default, means all")
    parser.add_argument("--only", choices=BENCHMARKS, help="one benchmark instead of both")
    args = parser.parse_args()
    folder: Path = FOLDER / JUDGE
    folder.mkdir(parents=True, exist_ok=True)
    for benchmark in [args.only] if args.only else BENCHMARKS:
        runs = record(benchmark, args.n_pairs)
        runs.to_parquet(folder / f"{benchmark}.parquet", index=False, compression="zstd")
        print(f"{benchmark}: {len(runs):,} rows, {(folder / f'{benchmark}.parquet').stat().st_size / 2**20:.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
