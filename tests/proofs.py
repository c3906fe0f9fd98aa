"""The long checks behind the promises: `python -m tests.proofs [NAME ...] [--again] [--once]`.

Each check writes its measured numbers into outputs/reference/proofs.json when it ends, with date, commit, machine;
what was proven for this very state of the module is not run again unless asked. A failing check exits with code 1.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from tests import chromium
from tests.banks_proof import banks
from tests.browser_proof import browser
from tests.grid_proof import grid
from tests.luck_proofs import bootstrap_coverage, null_route, null_stack
from tests.panels_proof import panels_real, panels_scale, panels_speed
from tests.peak_memory import peak
from tests.scale_proof import scale
from tests.server_proof import server
from tests.tokenizers import tiny_judge

REPOSITORY = Path(__file__).parents[1]
SHARED = REPOSITORY.parent / "shared" / "data"
RESULTS = REPOSITORY / "outputs" / "reference" / "proofs.json"


def kill(once: bool = False) -> dict:
    """SIGKILL while judging, start again: the same table, and no finished batch computed twice.

    Ten moments are drawn at random; `once` kills as soon as the first answers are kept, whatever the machine's speed.
    """
    rng = random.Random(0)
    with tempfile.TemporaryDirectory() as scratch:
        start = time.monotonic()
        whole = _judge(Path(scratch) / "whole").wait()
        duration = time.monotonic() - start
        expected, _ = _table(Path(scratch) / "whole")
        moments, alive = [], 0
        for number in range(1 if once else 10):
            store = Path(scratch) / f"run{number}"
            moment = rng.uniform(0.3, 0.98) * duration
            process = _judge(store)
            began = time.monotonic()
            while process.poll() is None and not (_kept(store) if once else time.monotonic() - began > moment):
                time.sleep(0.1)
            alive += process.poll() is None
            process.send_signal(signal.SIGKILL)
            process.wait()
            seconds = time.monotonic() - began
            _, kept = _table(store)
            again = _judge(store).wait()
            table, keys = _table(store)
            assert whole == again == 0, "judging must end with exit code 0"
            pd.testing.assert_frame_equal(table, expected, check_exact=True)
            assert len(keys) == len(set(keys)) and keys[: len(kept)] == kept, "a finished batch was computed twice"
            moments.append({"killed_after_seconds": round(seconds, 2), "answers_kept": len(kept), "answers": len(keys)})
    assert any(0 < m["answers_kept"] < m["answers"] for m in moments), "no kill came between the first and last batch"
    return {"kills": alive, "moments": moments}


def _kept(store: Path) -> bool:
    return any(store.rglob("calls/*.parquet"))


def _judge(store: Path) -> subprocess.Popen:
    what = "judge --benchmark starter_correctness --backbone smollm2-135m --n-pairs 40"
    command = [sys.executable, "-m", "baer_utils", *what.split(), "--experts", *MEASURED_EXPERTS]
    return subprocess.Popen(
        command, cwd=REPOSITORY, env={**os.environ, "BAER_STORE": str(store)}, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip


def _table(store: Path) -> tuple[pd.DataFrame | None, list[str]]:
    """The run table but for what may differ, and the keys of every kept answer in the order they were kept."""
    runs = [pd.read_parquet(f).drop(columns=["seconds", "cached_tokens"]) for f in store.rglob("runs/*/*.parquet")]
    files = sorted(store.rglob("calls/*.parquet"))
    return (runs[0] if runs else None), [key for f in files for key in pd.read_parquet(f, columns=["key"])["key"]]


# (source, N_PAIRS) per benchmark; of 167 pairs 100 are development pairs
MEASURED_EXPERTS = ("direct", "chain_of_thought", "pointwise")
MEASURED = {
    "starter_correctness": (None, 0),
    "starter_preference": (None, 0),
    "llmbar": (SHARED / "llmbar" / "Dataset-LLMBar.tar.xz", 167),
    "hh_rlhf": (SHARED / "hh_rlhf", 167),
    "judgebench": (SHARED / "judgebench", 167),
}


def development(name: str) -> dict:
    """Accuracy under both rules, flip rate and coverage of the book's three experts on one set's development pairs."""
    from baer_utils import metrics
    from baer_utils.backbones import open_backbone
    from baer_utils.benchmarks import load_pairs
    from baer_utils.evidence import native_decisions, run_array
    from baer_utils.judging import judge_pairs
    from baer_utils.store import open_store
    from baer_utils.verification import pointwise_evidence

    source, n_pairs = MEASURED[name]
    judge = open_backbone("smollm2-135m")
    pairs = load_pairs(name, source, n_pairs=n_pairs)
    pairs = pairs[pairs["split"] != "test"].reset_index(drop=True)
    runs, report = judge_pairs(pairs, judge, MEASURED_EXPERTS, store=open_store(judge.name, name, n_pairs=n_pairs))
    print(report)
    answers = native_decisions(runs, pairs, MEASURED_EXPERTS[:2])
    answers["pointwise"] = pointwise_evidence(runs, pairs["pair_id"])
    rates = metrics.flip_rate(run_array(runs, MEASURED_EXPERTS[:2]))  # pointwise judging has no order to flip with
    flips = {expert: {"flip_rate": rate} for expert, rate in zip(MEASURED_EXPERTS[:2], rates, strict=True)}
    ledgers = {
        expert: metrics.ledger(answers[expert], pairs["label"], pairs["group_id"]) for expert in MEASURED_EXPERTS
    }
    return {"pairs": len(pairs)} | {
        expert: {key: round(float(value), 4) for key, value in (entry | flips.get(expert, {})).items()}
        for expert, entry in ledgers.items()
    }


def memory() -> dict:
    """Peak memory does not grow with the number of pairs: reads of 200 and 2,000, texts of 16 and 64, within 10 %."""
    measured = {}
    with tempfile.TemporaryDirectory() as scratch:
        folder = tiny_judge(Path(scratch))
        for protocol, few, many in (("direct", 200, 2000), ("chain_of_thought", 16, 64)):
            small, large = (peak(folder, protocol, n) for n in (few, many))
            measured[protocol] = [small, large]
            assert large["peak_mib"] <= 1.1 * small["peak_mib"], f"{protocol}: {large} against {small}"
    return measured


def quantisation() -> dict:
    """What 8 and 4 bits change: direct reads of the embedded judge against float32, and in a batch against alone.

    And that its GGUF file itself, a third kind of quantised weights, loads as the plain ones it was converted to.
    """
    import torch

    from baer_utils.backbones import open_backbone
    from baer_utils.backbones.embedded import _gguf
    from baer_utils.backbones.weights import load_model, source_of
    from baer_utils.benchmarks import load_pairs
    from baer_utils.protocols import Settings, direct

    pairs = load_pairs("starter_preference", n_pairs=20)
    prompts = [call.prompt for pair in pairs.itertuples() for call in next(direct(pair, Settings()))]
    measured: dict = {"pairs": len(pairs)}
    file = load_model(source_of(_gguf()), dtype="float32", device="cpu", quantization=None).state_dict()
    converted = open_backbone("smollm2-135m?device=cpu").model.state_dict()
    assert all(torch.equal(file[name], weight) for name, weight in converted.items()), "the GGUF file loads otherwise"
    plain = None
    for bits in ("", "?quantization=8bit", "?quantization=4bit"):
        judge = open_backbone(f"smollm2-135m{bits}")
        reads = np.array([read.log_odds for read in judge.read(prompts)])
        alone = np.array([judge.read([prompt])[0].log_odds for prompt in prompts])
        assert np.isfinite(reads).all(), f"{judge.name}: a read is no number"
        plain = reads if plain is None else plain
        evidence, expected = (odds[::2] - odds[1::2] for odds in (reads, plain))  # one order against the other
        measured[bits.rpartition("=")[2] or "float32"] = {
            "correlation": round(float(np.corrcoef(reads, plain)[0, 1]), 3),
            "correlation_of_evidence": round(float(np.corrcoef(evidence, expected)[0, 1]), 3),
            "signs_of_evidence_kept": round(float((np.sign(evidence) == np.sign(expected)).mean()), 3),
            "most_that_a_batch_moves_a_read": float(f"{np.abs(reads - alone).max():.2g}"),
        }
    return measured


def reference() -> dict:
    """The book at its defaults: its time, and that it finds what the executed copy in outputs/reference found."""
    from baer_utils.batch.book import run_book
    from baer_utils.batch.execution import environment
    from baer_utils.batch.reference import FOLDER, differences
    from baer_utils.reports import load_results

    with tempfile.TemporaryDirectory() as scratch, environment(BAER_STORE=str(Path(scratch) / "store")):
        start = time.monotonic()
        out = run_book({}, out=Path(scratch) / "book")
        seconds = time.monotonic() - start
        names = sorted(path.parent.name for path in out.glob("*/results.json"))
        pages = {path.name: path.stat().st_size for path in out.glob("*.html")}
        found = [
            f"{name}: {line}"
            for name in names
            for line in differences(load_results(FOLDER / "book", name), load_results(out, name))
        ]
    assert not found, "a rerun differs from outputs/reference/book:\n" + "\n".join(found[:20])
    return {"notebooks": len(names), "book_seconds": round(seconds, 1), "largest_page_bytes": max(pages.values())}


CHECKS: dict[str, Callable[..., dict]] = {
    "bootstrap_coverage": bootstrap_coverage,
    "banks": banks,
    "browser": browser,
    "kill": kill,
    "memory": memory,
    "null_route": null_route,
    "null_stack": null_stack,
    "quantisation": quantisation,
    "scale": scale,
    "server": server,
    "grid": grid,
    "reference": reference,
    "panels_real": panels_real,
    "panels_speed": panels_speed,
    "panels_scale": panels_scale,
    **{f"development_{name}": partial(development, name) for name in MEASURED},
}


def main() -> int:
    """Run the named checks, or all that were not proven for this state of the module."""
    parser = argparse.ArgumentParser(prog="python -m tests.proofs", description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(CHECKS)}; default: all")
    parser.add_argument("--again", action="store_true", help="also what is proven already")
    parser.add_argument("--once", action="store_true", help="one kill, one precision; nothing is written")
    args = parser.parse_args()
    unknown = [name for name in args.names if name not in CHECKS]
    if unknown:
        parser.error(f"a check must be one of {', '.join(CHECKS)}; {', '.join(unknown)} is not")
    state = _git("rev-parse", "HEAD:baer_utils")
    proofs = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for name in args.names or CHECKS:
        if proofs.get(name, {}).get("module") == state and not (args.again or args.once):
            print(f"{name}: proven {proofs[name]['date']} at {proofs[name]['commit']}")
            continue
        source = SHARED if name == "banks" else MEASURED.get(name.removeprefix("development_"), (None, 0))[0]
        if source is not None and not source.exists():
            print(f"{name}: not measured, {source} is absent")
            continue
        if name == "browser" and chromium.missing():
            print(f"{name}: not measured, {chromium.missing()}")
            continue
        start = time.monotonic()
        measured = CHECKS[name](**({"once": True} if args.once else {}))
        seconds = time.monotonic() - start
        print(f"{name}: holds ({seconds:.0f} s)\n{json.dumps(measured, indent=1)}")
        if not args.once:
            proofs[name] = {
                "date": datetime.now(UTC).date().isoformat(),
                "commit": _git("rev-parse", "--short", "HEAD"),
                "module": state,
                "machine": f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}",
                "seconds": round(seconds, 1),
                "measured": measured,
            }
            RESULTS.parent.mkdir(parents=True, exist_ok=True)
            scratch = RESULTS.with_suffix(".part")
            scratch.write_text(json.dumps(proofs, indent=1, sort_keys=True) + "\n")
            scratch.replace(RESULTS)
    return 0


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=REPOSITORY, capture_output=True, text=True).stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
