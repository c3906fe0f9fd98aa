"""Real conditions from other people's judges: every judge or protocol an expert, through the whole pipeline.

Six judge models on LLMBar, each with its protocols as the bank, and a pool of judges on JudgeBench go through develop,
gates, freeze and the one opening, for several split seeds. Seed 0 is the declared split; the others show how far the
split was luck. What is done for one condition and seed is kept in a folder and not done again while data and code stay
the same; a head that other code makes differently is refused by the opened seal and wants another folder. This file
fits nothing itself, and how the figures are laid out is not its business.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

from baer_utils.benchmarks import load_pairs
from baer_utils.deployment.conditions import describe_condition
from baer_utils.deployment.developing import develop
from baer_utils.deployment.figures import condition_figures
from baer_utils.deployment.files import plain_values, write_whole
from baer_utils.deployment.fitting import fit_heads
from baer_utils.deployment.freezing import freeze
from baer_utils.deployment.frozen import Frozen
from baer_utils.deployment.opening import open_test
from baer_utils.deployment.unseen import descriptors
from baer_utils.gates import HEADS, select_head
from baer_utils.importers import import_runs
from baer_utils.protocols import Settings
from baer_utils.records import split_of, swap_pairs, swap_runs
from baer_utils.scores import decision as decide
from baer_utils.store import open_store, seal


@dataclass(frozen=True)
class Bank:
    """A condition of imported judges: pairs of a benchmark, runs, and the experts in the order of the features."""

    name: str
    benchmark: str
    backbone: str
    pairs: pd.DataFrame = field(repr=False)
    runs: pd.DataFrame = field(repr=False)
    experts: tuple[str, ...]

    def split(self, seed: int) -> pd.DataFrame:
        """The pairs under another split seed: what ``load_pairs(..., seed=seed)`` gives."""
        return self.pairs.assign(split=[split_of(group, seed) for group in self.pairs["group_id"]])


# ---------------------------------------------------------------- the conditions


def llmbar_banks(path: str | Path) -> list[Bank]:
    """One bank for each judge model of LLMBar's outputs, its protocols in alphabetical order."""
    pairs, (runs, _) = load_pairs("llmbar", path), import_runs("llmbar", path)
    return [_bank("llmbar", model, pairs, of_model) for model, of_model in runs.groupby("backbone", sort=True)]


def judgebench_bank(path: str | Path, verdicts: str | Path | None = None) -> Bank:
    """One bank of all judges on JudgeBench, whatever model is behind each.

    Parameters
    ----------
    path : JudgeBench's folder, with ``data/`` and, where `verdicts` is left out, ``outputs/``.
    verdicts : long table with the columns pair_id, judge, order, verdict (`importers.FORMATS`, table); pairs on which
        no judge of it has a row are left out of the condition.
    """
    if verdicts is None:
        runs, _ = import_runs("judgebench", path)
        runs["protocol"] = runs["protocol"] + ":" + runs["backbone"]
    else:
        runs, _ = import_runs("table", verdicts, benchmark="judgebench", protocol="judge", view="order")
    return _bank("judgebench", f"{runs['protocol'].nunique()} judges", load_pairs("judgebench", path), runs)


def _bank(benchmark: str, backbone: str, pairs: pd.DataFrame, runs: pd.DataFrame) -> Bank:
    runs = runs.assign(backbone=backbone, text="").reset_index(drop=True)
    pairs = pairs[pairs["pair_id"].isin(runs["pair_id"])].reset_index(drop=True)
    experts = tuple(sorted(runs["protocol"].unique()))
    return Bank(f"{benchmark} / {backbone}", benchmark, backbone, pairs, runs, experts)


# ---------------------------------------------------------------- one condition, one seed


def run_banks(
    banks: Sequence[Bank], seeds: Sequence[int], folder: str | Path, heads: Sequence[str] = HEADS
) -> Iterator[dict]:
    """The figures of every bank under every seed, seed by seed; those kept in the folder are read, not made again.

    `heads` are those to evaluate, as in `develop`: the stack always is, and the router takes most of the time.
    """
    for seed in seeds:
        for bank in banks:
            yield kept_or_run(bank, seed, Path(folder), heads)


def kept_or_run(bank: Bank, seed: int, folder: Path, heads: Sequence[str] = HEADS) -> dict:
    """The figures of one bank and seed: from the folder where the same data made them, else computed and kept."""
    inputs = _inputs(bank, seed, heads)
    path = folder / "figures" / f"{inputs[:16]}.json"
    if not path.exists():
        figures = plain_values({"inputs": inputs, **run_bank(bank, seed, folder, heads)})
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, json.dumps(figures, sort_keys=True, indent=1).encode())
    return json.loads(path.read_text(encoding="utf-8"))


def run_bank(bank: Bank, seed: int, folder: Path, heads: Sequence[str] = HEADS) -> dict:
    """Develop, choose, freeze and open one condition under one split seed.

    Returns
    -------
    dict: `bank`, `seed`, `experts`; what `figures.condition_figures` keeps of the opened test; `swap` (`swap_check`);
    `descriptors` (`unseen.descriptors`) of the whole condition, without any label.
    """
    frozen, store = deploy_bank(bank, seed, folder, heads)
    report = open_test(frozen, store)
    is_test = store.pairs["split"] == "test"
    test, rest = (store.pairs[mask].reset_index(drop=True) for mask in (is_test, ~is_test))
    return {
        "bank": bank.name,
        "seed": seed,
        "experts": list(bank.experts),
        **condition_figures(frozen, report, frozen.head_scores(rest, bank.runs)),
        "swap": swap_check(frozen, test, bank.runs),
        "descriptors": descriptors(bank.runs, bank.experts, bank.pairs["pair_id"]),
    }


def deploy_bank(bank: Bank, seed: int, folder: Path, heads: Sequence[str] = HEADS):
    """Seal, develop, choose, fit and freeze; returns the frozen head and its sealed store."""
    store = open_store(bank.backbone, bank.benchmark, seed=seed, root=folder / "store" / "-".join(heads))
    pairs = seal(bank.split(seed), store)
    decision = select_head(develop(pairs, bank.runs, bank.experts, seed=seed, heads=heads))
    condition = describe_condition(store, bank.experts)
    store.write_runs(bank.runs, Settings(**condition.settings).tag)
    frozen = freeze(decision, fit_heads(pairs, bank.runs, decision, condition), store.folder / f"frozen-{seed}")
    return frozen, store


def swap_check(frozen: Frozen, pairs: pd.DataFrame, runs: pd.DataFrame) -> dict[str, int]:
    """Exchange the responses of every pair: how many scores do not negate to the last bit, how many decisions stay.

    Returns
    -------
    dict of numbers of pairs: `pairs`; `not_negated`, s(Tx) of any frozen head is not exactly -s(x); `not_flipped`, s of
    the deployed head is not 0 and its decision stays; `choice_changed`, the router lets another expert speak;
    `native_not_negated`, answers of baselines (pairs x baselines) that do not negate.
    """
    swapped, heads = (swap_pairs(pairs), swap_runs(runs)), list(frozen.heads)
    told, turned = (frozen.head_scores(*tables) for tables in ((pairs, runs), swapped))
    here, there = (frozen.native_decisions(*tables).to_numpy() for tables in ((pairs, runs), swapped))
    s, alike = told[frozen.head].to_numpy(float), (there == -here) | (np.isnan(there) & np.isnan(here))
    spoken = ["route_expert"] if "route" in heads else []
    return {
        "pairs": len(pairs),
        "not_negated": int((turned[heads].to_numpy(float) != -told[heads].to_numpy(float)).any(axis=1).sum()),
        "not_flipped": int(((decide(turned[frozen.head]) == decide(s)) & (s != 0)).sum()),
        "choice_changed": int((turned[spoken] != told[spoken]).any(axis=1).sum()),
        "native_not_negated": int((~alike).sum()),
    }


def _inputs(bank: Bank, seed: int, heads: Sequence[str]) -> str:
    """Name of what goes in: pairs with labels, verdicts, experts, heads, seed, and the source of this package."""
    rows = bank.runs[["pair_id", "protocol", "view", "log_odds"]].sort_values(["pair_id", "protocol", "view"])
    pairs = bank.pairs[["pair_id", "group_id", "subset", "label"]].sort_values("pair_id")
    source = [path.read_text(encoding="utf-8") for path in sorted(Path(__file__).parents[1].rglob("*.py"))]
    tables = [table.to_csv(index=False) for table in (rows, pairs)]
    text = json.dumps([source, bank.name, bank.experts, list(heads), seed, *tables])
    return hashlib.sha256(text.encode()).hexdigest()
