"""What luck alone would show: coverage of the bootstrap, and the whole method on coin-flip labels.

On coin-flip labels nothing can be learnt, so every win is false. What does not depend on labels (evidence, features,
the baselines' answers) is prepared once; each labelling is then developed, gated and opened by the very functions that
`develop`, `fit_heads` and `measure` call, without their disk. The first labelling of every bank goes both ways and must
agree. Labellings are kept as they come, so a proof that was stopped goes on.
"""

from __future__ import annotations

import csv
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import beta, binom

from baer_utils import metrics, scores
from baer_utils.benchmarks import load_pairs
from baer_utils.debias import Debias, bank_runs, fit_debias
from baer_utils.deployment import (
    baselines_of,
    describe_condition,
    develop,
    fit_heads,
    freeze,
    open_test,
    out_of_fold,
    question_folds,
)
from baer_utils.deployment.fitting import labelled_development, lambda_for, represent
from baer_utils.evidence import NATIVE, Evidence, native_decisions
from baer_utils.features import category_columns
from baer_utils.gates import ALPHA, GATED, HEADS, MIN_QUESTIONS, advance, margin, select_head, strongest_baseline
from baer_utils.protocols import EXPERTS, Settings
from baer_utils.stacking import fit_stack
from baer_utils.store import open_store, seal
from tests.strategies import make_pairs, make_runs

REPOSITORY = Path(__file__).parents[1]
RECORD = REPOSITORY / "data" / "replay" / "smollm2-135m" / "starter_correctness.parquet"
LLMBAR = REPOSITORY.parent / "shared" / "data" / "llmbar" / "Dataset-LLMBar.tar.xz"
KEPT = REPOSITORY / "outputs" / "nulls"
LABELLINGS = {"stack": 1000, "route": 100}
GATES_AT_MOST = 0.25
RULES = ("matched", "paper")
NAMED = ("development", "test")
Labelling = Callable[[int, tuple[NDArray, NDArray]], dict]


# ---------------------------------------------------------------- the bootstrap


def coverage(simulations: int, draws: int) -> float:
    """Share of simulations of 200 questions with 1-3 pairs each whose interval holds the true difference, 0.1."""
    covered, rng = 0, np.random.default_rng(0)
    for number in range(simulations):
        groups = np.repeat(np.arange(200), rng.integers(1, 4, 200))
        ease = rng.beta(2, 2, 200)[groups]  # pairs of one question are alike
        first, second = (rng.random(len(groups)) < least + 0.8 * ease for least in (0.2, 0.1))
        _, low, high = metrics.paired_bootstrap(first, second, groups, draws=draws, seed=number)
        covered += low <= 0.1 <= high
    return covered / simulations


def bootstrap_coverage(once: bool = False) -> dict:
    """The paired bootstrap's 95 % interval holds a known difference in 93 to 97 % of 1,000 simulations."""
    simulations = 50 if once else 1000
    share = coverage(simulations, 10_000)
    assert once or 0.93 <= share <= 0.97, f"covered in {share:.1%}"
    return {
        "simulations": simulations,
        "draws": 10_000,
        "questions": 200,
        "pairs_per_question": "1-3",
        "covered": share,
    }


# ---------------------------------------------------------------- banks


@dataclass(frozen=True)
class Bank:
    """Pairs, runs and corrections of one condition; whatever labels there are will be replaced by coins."""

    pairs: pd.DataFrame
    runs: pd.DataFrame
    experts: tuple[str, ...]
    debias: Debias | None = None


def starter() -> Bank:
    """The recorded bank of the embedded judge on our own pairs: nine experts, most of their orders tied."""
    pairs, runs = load_pairs("starter_correctness", n_pairs=200), pd.read_parquet(RECORD)
    return Bank(pairs, runs, tuple(EXPERTS), fit_debias(runs, pairs))


def llmbar() -> Bank:
    """ChatGPT's protocols on LLMBar, as other people ran them."""
    from baer_utils.importers import import_runs

    runs, _ = import_runs("llmbar", LLMBAR)
    runs = runs[runs["backbone"] == "ChatGPT"].reset_index(drop=True)
    return Bank(load_pairs("llmbar", LLMBAR), runs, tuple(sorted(runs["protocol"].unique())))


def tied(n: int = 300) -> Bank:
    """Three made experts with hard verdicts and a position bias: most orders tie."""
    pairs, experts = make_pairs(n, 11), ("direct", "chain_of_thought", "prepair")
    runs = make_runs(pairs.assign(label=np.nan), experts, 11, bias=2.0)
    runs["log_odds"] = np.sign(runs["log_odds"]) * np.inf
    return Bank(pairs, runs, experts)


BANKS: dict[str, Callable[[], Bank]] = {"starter_correctness": starter, "llmbar_ChatGPT": llmbar, "order_ties": tied}
REAL_BANKS = ("starter_correctness", "llmbar_ChatGPT")  # the others are made


# ---------------------------------------------------------------- one labelling


@dataclass(frozen=True)
class Part:
    """Rows of development or of test, sorted by pair_id, and all about them that no label can change."""

    rows: pd.DataFrame
    phi: NDArray
    evidence: Evidence
    answers: Mapping[str, NDArray]


def prepared(bank: Bank) -> tuple[Part, Part]:
    """Development and test rows of a bank; for development, the same calls as in `develop`."""
    benchmark = bank.pairs["benchmark"].iloc[0]
    runs = bank_runs(bank.runs, bank.experts, bank.debias)
    development, _ = labelled_development(bank.pairs.assign(label=1.0))
    test = bank.pairs[bank.pairs["split"] == "test"].sort_values("pair_id").reset_index(drop=True)
    categories = category_columns(bank.pairs[bank.pairs["split"] != "test"], benchmark).columns
    parts = []
    for rows in (development, test):
        phi, evidence = represent(rows, runs, bank.experts, benchmark, categories, clip=1e-4)
        if set(baselines_of(bank.experts)) <= set(NATIVE):
            native = native_decisions(runs, rows, baselines_of(bank.experts), debias=bank.debias)
            answers = {name: native[name].to_numpy() for name in native}
        else:  # imported judges: the net of their orders
            net = np.where(evidence.available, np.sign(evidence.z), np.nan)
            answers = dict(zip(bank.experts, net.T, strict=True))
        parts.append(Part(rows, phi, evidence, answers))
    return parts[0], parts[1]


def right_by_rule(part: Part, y: NDArray, mask: NDArray | slice = slice(None)) -> dict[str, dict[str, NDArray]]:
    """Rule -> baseline -> whether it is right, on the rows of the mask."""
    answers = {name: answer[mask] for name, answer in part.answers.items()}
    matched = {name: metrics.as_answers(answer) == y[mask] for name, answer in answers.items()}
    return {"matched": matched, "paper": {name: answer == y[mask] for name, answer in answers.items()}}


def gated(part: Part, y: NDArray, s: NDArray) -> tuple[dict[str, float], str]:
    """Margins and gates of out-of-fold scores under both rules, and the pooled strongest baseline."""
    found, right, split = {}, scores.decision(s) == y, part.rows["split"].to_numpy()
    for name in GATED:
        mask = split == name
        rivals = right_by_rule(part, y, mask)
        best = strongest_baseline(rivals["matched"])
        found |= {f"stack_{rule}_{name}": margin(right[mask], rivals[rule][best]) for rule in RULES}
    for rule in RULES:
        found[f"stack_{rule}_gates"] = bool(advance(*(found[f"stack_{rule}_{name}"] for name in GATED)))
    return found, strongest_baseline(right_by_rule(part, y)["matched"])


def opened(part: Part, y: NDArray, s: NDArray, named: str) -> dict[str, float]:
    """Discordant pairs on test against the baseline named on development data and on test, under both rules."""
    right, rivals, found = scores.decision(s) == y, right_by_rule(part, y), {}
    names = dict(zip(NAMED, (named, strongest_baseline(rivals["matched"])), strict=True))
    for where, name in names.items():
        for rule in RULES:
            first, second = metrics.discordant(right, rivals[rule][name])
            found[f"{rule}_{where}_win"] = first > second and metrics.mcnemar(first, second) < ALPHA
            found[f"{rule}_{where}_net"] = first - second
    return found


def stack_labelling(development: Part, test: Part, labels: tuple[NDArray, NDArray], fold: NDArray) -> dict:
    """What the stack shows for one labelling: margins and gates out of fold, wins on test."""
    y, split = labels[0], development.rows["split"].to_numpy()
    few = development.rows.loc[split == "selection", "group_id"].nunique() < MIN_QUESTIONS
    s, _ = out_of_fold(development.phi, y, split, fold, largest=few)
    found, named = gated(development, y, s)
    stack = fit_stack(development.phi, y, lambda_for(development.phi, y, split, largest=few))
    return found | opened(test, labels[1], stack.score(test.phi), named)


def coins(bank: str, number: int, split: pd.Series) -> tuple[NDArray, NDArray]:
    """The labels of development and of test pairs in one labelling, always the same for its number."""
    rng, tested = np.random.default_rng([number, *bank.encode()]), int((split == "test").sum())
    return rng.choice([1.0, -1.0], len(split) - tested), rng.choice([1.0, -1.0], tested)


def through_disk(bank: Bank, labels: tuple[NDArray, NDArray], heads: Sequence[str] = HEADS) -> dict:
    """One labelling by way of seal, develop, select, freeze and the one opening: gates of these heads, wins on test."""
    development, _ = labelled_development(bank.pairs.assign(label=1.0))
    test = bank.pairs.loc[bank.pairs["split"] == "test", "pair_id"].sort_values()
    label = pd.Series(np.concatenate(labels), index=[*development["pair_id"], *test])
    pairs = bank.pairs.assign(label=bank.pairs["pair_id"].map(label))
    with tempfile.TemporaryDirectory() as scratch:
        store = open_store("coins", pairs["benchmark"].iloc[0], root=Path(scratch) / "store")
        sealed = seal(pairs, store)
        store.write_runs(bank.runs, Settings().tag)
        decision = select_head(develop(sealed, bank.runs, bank.experts, debias=bank.debias, heads=heads))
        condition = describe_condition(store, bank.experts, debias=bank.debias)
        fitted = fit_heads(sealed, bank.runs, decision, condition)
        report = open_test(freeze(decision, fitted, Path(scratch) / "frozen"), store)
    found = {f"deployed_{head}": decision.head == head for head in decision.development.heads}
    for head, figures in decision.development.heads.items():
        for rule, margins in zip(RULES, (figures.margin, figures.paper_margin), strict=True) if figures else ():
            found |= {f"{head}_{rule}_{name}": margins[name] for name in GATED}
            found[f"{head}_{rule}_gates"] = bool(advance(*(margins[name] for name in GATED)))
    for row in report.comparisons.itertuples():
        net = row.head_only - row.baseline_only
        found |= {f"{row.rule}_{row.named_on}_win": net > 0 and row.p < ALPHA, f"{row.rule}_{row.named_on}_net": net}
    return found


# ---------------------------------------------------------------- the proofs


def null_stack(once: bool = False) -> dict:
    """On coin-flip labels the stack wins in at most 5 % of 1,000 labellings and passes both gates in at most 25 %."""

    def prepare(bank: Bank) -> Labelling:
        development, test = prepared(bank)
        fold = question_folds(development.rows["group_id"], seed=0)

        def labelling(number: int, labels: tuple[NDArray, NDArray]) -> dict:
            row = stack_labelling(development, test, labels, fold)
            if not number:
                agree(row, through_disk(bank, labels, ("stack",)))
            return row

        return labelling

    return _nulls("stack", prepare, 3 if once else LABELLINGS["stack"])


def null_route(once: bool = False) -> dict:
    """The same with all heads of the two real banks, 100 labellings, each through the whole pipeline and its disk."""
    wanted = 1 if once else LABELLINGS["route"]
    return _nulls("route", lambda bank: lambda _, labels: through_disk(bank, labels), wanted, REAL_BANKS)


def _nulls(head: str, prepare: Callable[[Bank], Labelling], wanted: int, banks: Sequence[str] = tuple(BANKS)) -> dict:
    measured = {}
    for name in banks:
        if name.startswith("llmbar") and not LLMBAR.exists():
            print(f"{name}: not measured, {LLMBAR} is absent")
            continue
        bank, path = BANKS[name](), _file(head, name)
        rows = _kept(path)
        labelling = prepare(bank)
        for number in range(len(rows), wanted):
            rows.append(labelling(number, coins(name, number, bank.pairs["split"])))
            _keep(path, rows[-1])
        measured[name] = summary(pd.DataFrame(rows[:wanted]).astype(float)) | baseline_silence(bank)
        print(f"{name}: {measured[name]}")
    assert len(measured) >= 2, "at least two banks must be measured"
    return measured


def agree(row: Mapping, other: Mapping) -> None:
    """Refuse to go on where the pipeline on disk says anything else of the stack than its functions do."""
    known = [name for name in row if name.startswith("stack_") or other["deployed_stack"]]
    differing = {name: (row[name], other[name]) for name in known if abs(row[name] - other[name]) > 1e-9}
    assert not differing, f"the pipeline says otherwise: {differing}"


def summary(rows: pd.DataFrame) -> dict:
    """Rates with 99 % upper bounds; the promises are held to what a binomial with that very rate allows."""
    n, found = len(rows), {"labellings": len(rows)}
    for name in (name for name in rows if name.endswith(("_gates", "_win")) or name.startswith("deployed_")):
        count = int(rows[name].sum())
        upper = 1.0 if count == n else float(beta.ppf(0.99, count + 1, n - count))
        found[name] = {"share": round(count / n, 4), "upper_99": round(upper, 4)}
    promised = {name: GATES_AT_MOST for name in rows if name.endswith("_matched_gates")}
    for name, share in ({"matched_development_win": ALPHA} | promised).items():
        allowed = int(binom.ppf(0.99, n, share))
        found[name]["allowed"] = allowed / n
        assert rows[name].sum() <= allowed, f"{name}: {found[name]}"
    return found


def baseline_silence(bank: Bank) -> dict[str, float]:
    """How many test pairs there are, and on how many of them a baseline ties or is missing, on average."""
    _, test = prepared(bank)
    silent = [float((np.nan_to_num(answer) == 0).mean()) for answer in test.answers.values()]
    return {"test_pairs": len(test.rows), "ties_or_missing": round(float(np.mean(silent)), 3)}


# ---------------------------------------------------------------- what is kept between two starts


def _file(head: str, bank: str) -> Path:
    command = ["git", "rev-parse", "--short", "HEAD:baer_utils"]
    state = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True).stdout.strip()
    return KEPT / f"{head}.{bank}.{state or 'unknown'}.csv"


def _kept(path: Path) -> list[dict]:
    if not path.exists():
        return []
    lines = path.read_text().splitlines()
    whole = [line for line in lines[1:] if line.endswith(",end")]  # a line cut by a kill is computed again
    path.write_text("\n".join([lines[0], *whole]) + "\n")
    return [{name: float(x) for name, x in row.items() if name != "end"} for row in csv.DictReader([lines[0], *whole])]


def _keep(path: Path, row: Mapping) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    start = "" if path.exists() else ",".join([*row, "end"]) + "\n"
    with path.open("a") as file:
        file.write(start + ",".join([*(repr(float(x)) for x in row.values()), "end"]) + "\n")
