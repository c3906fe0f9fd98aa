"""The long checks of the panel method: speed, scale, and all policies on the real judge pools."""

from __future__ import annotations

import resource
import time
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd

from baer_utils.calibrators import Audit, audit_from_tables, split_audit
from baer_utils.panels import RolePolicy, build_policy, evaluate, measure, summarize_splits

TIDY = Path(__file__).parents[2] / "shared" / "data" / "tidy"
VANILLA = [f"{model}/Vanilla" for model in ("ChatGPT", "ChatGPT-0301", "Falcon", "LLaMA2", "PaLM2")]
# name: (table, judges, reference role risk, its standard error, accuracy, calls); panels.md, end of section 7
POOLS = {
    "LLMBar Vanilla without GPT-4": ("llmbar", VANILLA, 0.169, 0.006, 0.758, 2.3),
    "LLMBar Vanilla with GPT-4": ("llmbar", [*VANILLA, "GPT-4/Vanilla"], 0.097, 0.004, 0.872, 2.4),
    "JBB": ("jbb_judges", None, 0.085, 0.005, 0.894, 2.0),
    "TriviaQA v1": ("triviaqa_judges_v1", None, 0.043, 0.002, 0.945, 3.5),
    "JudgeBench GPT": ("judgebench_gpt", None, 0.175, 0.010, 0.794, 2.6),
    "GSM8K verifier": ("gsm8k_verifier", None, 0.0, 0.0, 1.0, 1.0),
}


def _policies() -> dict[str, object]:
    if find_spec("baer_utils.juries") is None:
        return {"role": RolePolicy()}
    from baer_utils.juries import standard_policies

    return standard_policies()


def _pool(name: str, judges: list[str] | None) -> Audit:
    labels, verdicts = (pd.read_csv(TIDY / f"{name}.{kind}.csv.gz") for kind in ("labels", "verdicts"))
    return audit_from_tables(labels, verdicts, judges)


def panels_real() -> dict:
    """Role risk, accuracy and calls on six real pools within two standard errors of an independent implementation."""
    measured = {}
    for name, (table, judges, risk, error, accuracy, calls) in POOLS.items():
        frame = evaluate(_pool(table, judges), _policies(), costs=None)
        mean = summarize_splits(frame)["mean"].unstack()
        got = mean.loc["role"]
        assert abs(got["risk"] - risk) <= 2 * error + 5e-4, f"{name}: risk {got['risk']:.4f} against {risk}"
        assert abs(got["accuracy"] - accuracy) <= 0.01 and abs(got["calls"] - calls) <= 0.1, f"{name}: {got}"
        measured[name] = {"complete_cases": frame.attrs["complete_cases"]} | {
            policy: {key: round(float(row[key]), 4) for key in ("risk", "accuracy", "cost", "calls")}
            for policy, row in mean.iterrows()
        }
    return measured


def panels_speed() -> dict:
    """65 judges x 419 items x 5 slices x 10 seeds: the role policy under 15 s, all policies under 60 s."""
    rng = np.random.default_rng(0)
    y, slices = rng.integers(0, 2, 419), np.array([f"s{n}" for n in range(5)], dtype=object)[rng.integers(0, 5, 419)]
    right = rng.random((419, 65)) < np.linspace(0.5, 0.85, 65)
    says = np.where(rng.random((419, 65)) < 0.15, "split", np.where(right == (y[:, None] == 1), "a", "b"))
    audit = Audit(says.astype(object), y, tuple(f"judge{n:02d}" for n in range(65)), slices)
    measured = {}
    for name, policies, limit in (("role", {"role": RolePolicy()}, 15), ("all", _policies(), 60)):
        start, cpu = time.monotonic(), time.process_time()
        evaluate(audit, policies, costs=None)
        measured[name] = {"policies": len(policies), "seconds": round(time.monotonic() - start, 1)}
        measured[name]["processor_seconds"] = round(time.process_time() - cpu, 1)
        assert measured[name]["seconds"] < limit, f"{name}: {measured[name]} against {limit} s"
    return measured


def panels_scale() -> dict:
    """100,000 items x 20 judges x 20 slices x 10 seeds under 120 s and 4 GB; time grows at most as items ** 1.1."""
    measured, seconds = {}, {}
    for n, seeds in ((25_000, 3), (50_000, 3), (100_000, 10)):
        audit = _large(n)
        start, cpu, steps = time.monotonic(), time.process_time(), 0
        for seed in range(seeds):
            fit, validation, test = split_audit(audit, seed)
            plan = build_policy(fit, validation).refit(fit.join(validation))
            measure(plan, test, plan.costs)
            steps += len(plan.stopping_report.failed) + len(plan.steps)
        seconds[n] = (time.process_time() - cpu) / steps
        measured[str(n)] = {"seeds": seeds, "seconds": round(time.monotonic() - start, 1), "inequalities": steps}
    sizes = sorted(seconds)
    exponent = np.polyfit(np.log(sizes), np.log([seconds[n] for n in sizes]), 1)[0]
    gigabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9
    assert measured["100000"]["seconds"] < 120 and gigabytes < 4 and exponent <= 1.1, (
        f"{measured} {gigabytes} {exponent}"
    )
    return measured | {"exponent_in_items": round(float(exponent), 2), "peak_gigabytes": round(gigabytes, 2)}


def _large(n: int) -> Audit:
    """20 judges of falling accuracy that 20 slices shift up or down."""
    rng = np.random.default_rng(0)
    y, place = rng.integers(0, 2, n).astype(float), rng.integers(0, 20, n)
    accuracy = np.clip(np.linspace(0.9, 0.55, 20) + (rng.random((20, 20)) * 0.3 - 0.15)[place], 0.4, 0.97)
    Z = np.where(rng.random((n, 20)) < accuracy, y[:, None], 1 - y[:, None]).astype(object)
    slices = np.array([f"slice{number:02d}" for number in range(20)], dtype=object)[place]
    return Audit(Z, y, tuple(f"judge{number:02d}" for number in range(20)), slices)
