"""The long checks of the panel method: speed, scale, and all policies on the real judge pools."""

from __future__ import annotations

import resource
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from baer_utils import regimes
from baer_utils.calibrators import Audit, audit_from_tables, bin_scores, split_audit
from baer_utils.juries import standard_policies
from baer_utils.panels import RolePolicy, build_policy, evaluate, measure, summarize_splits

TIDY = Path(__file__).parents[2] / "shared" / "data" / "tidy"
VANILLA = [f"{model}/Vanilla" for model in ("ChatGPT", "ChatGPT-0301", "Falcon", "LLaMA2", "PaLM2")]
METRICS = ("risk", "accuracy", "cost", "calls")


class Expected(NamedTuple):
    """What an independent implementation found (panels.md, end of section 7); single and flat: risk, accuracy."""

    risk: float
    error: float
    accuracy: float
    calls: float
    single: tuple[float, float] | None = None
    flat: tuple[float, float] | None = None


EXPECTED = {
    "LLMBar Vanilla without GPT-4": Expected(0.169, 0.006, 0.758, 2.3, (0.198, 0.683), (0.214, 0.691)),
    "LLMBar Vanilla with GPT-4": Expected(0.097, 0.004, 0.872, 2.4, (0.121, 0.854), (0.157, 0.739)),
    "JBB by kind": Expected(0.085, 0.005, 0.894, 2.0, (0.094, 0.892), (0.093, 0.882)),
    "TriviaQA v1": Expected(0.043, 0.002, 0.945, 3.5, (0.070, 0.924), (0.052, 0.929)),
    "JudgeBench GPT": Expected(0.175, 0.010, 0.794, 2.6, (0.139, 0.815), (0.241, 0.561)),
    "GSM8K verifier": Expected(0.0, 0.0, 1.0, 1.0),
}
ROUTED, SCORED = "JBB by gpt4_cf", "JudgeBench GPT, binned scores"


def _pool(name: str, judges: list[str] | None = None, *, scored: bool = False) -> Audit:
    labels, verdicts = (pd.read_csv(TIDY / f"{name}.{kind}.csv.gz") for kind in ("labels", "verdicts"))
    number = verdicts.groupby("judge")[["verdict", "score"]].count()
    scores = number.index[number["score"] == number["verdict"]] if scored else ()  # one with every verdict
    return audit_from_tables(labels, verdicts, judges, scores=tuple(scores))


def _settings() -> dict[str, regimes.Setting]:
    """The real pools: as they are, JBB routed by a judge of its own too, JudgeBench with scores beside verdicts too."""
    jbb = _pool("jbb_judges")
    route = regimes.sliced_by_judge(jbb, "gpt4_cf")
    audits = {
        "LLMBar Vanilla without GPT-4": _pool("llmbar", VANILLA),
        "LLMBar Vanilla with GPT-4": _pool("llmbar", [*VANILLA, "GPT-4/Vanilla"]),
        "JBB by kind": jbb,
        ROUTED: Audit(jbb.Z, jbb.y, jbb.judges, route.slices, jbb.groups),
        "TriviaQA v1": _pool("triviaqa_judges_v1"),
        "JudgeBench GPT": _pool("judgebench_gpt"),
        SCORED: _pool("judgebench_gpt", scored=True),
        "GSM8K verifier": _pool("gsm8k_verifier"),
    }
    more = {
        ROUTED: {"policy": {"route_key": route.route_key}},
        SCORED: {"prepare": lambda split: bin_scores(*split)},
    }
    return {name: regimes.Setting(audit, **more.get(name, {})) for name, audit in audits.items()}


def panels_real() -> dict:
    """All policies on eight real settings, with intervals; what an independent implementation found, within two errors.

    And what each setting supports by the map's rules: JudgeBench keeps its single judge, GSM8K stops at one call.
    """
    settings = _settings()
    table = regimes.measure_settings(settings)
    found = {name: summarize_splits(part) for name, part in table.groupby("setting", sort=False)}
    for name, expected in EXPECTED.items():
        _agrees(name, found[name], expected)
    actions = regimes.regime_map(table)
    assert actions.loc["JudgeBench GPT", "action"] == regimes.KEEP, actions.loc["JudgeBench GPT", "evidence"]
    by_policy = table.loc[table["setting"] == "JudgeBench GPT"].groupby("policy")["risk"].mean()
    assert by_policy["single_best"] < by_policy["role"]
    more = {"GSM8K verifier": _saturated(settings["GSM8K verifier"].audit), ROUTED: _paid(settings[ROUTED].audit)}
    return {
        name: {
            "complete_cases": str(setting.audit.complete()[1]),
            "action": actions.loc[name, "action"],
            "evidence": actions.loc[name, "evidence"],
            "policies_mean_low_high": {policy: _intervals(found[name].loc[policy]) for policy in standard_policies()},
            **more.get(name, {}),
        }
        for name, setting in settings.items()
    }


def _intervals(rows: pd.DataFrame) -> dict[str, list[float]]:
    """Mean, low and high of every metric over ten splits: mean and mean -+ t(.975, 9) s / sqrt(10)."""
    return {name: [round(float(rows.at[name, end]), 4) for end in ("mean", "low", "high")] for name in METRICS}


def _agrees(name: str, found: pd.DataFrame, expected: Expected) -> None:
    """Refuse a role policy, single best judge or flat panel that another implementation did not find."""
    role = found.loc["role", "mean"]
    assert abs(role["risk"] - expected.risk) <= 2 * expected.error + 5e-4, f"{name}: {role['risk']:.4f}, {expected}"
    assert abs(role["accuracy"] - expected.accuracy) <= 0.01, f"{name}: {role['accuracy']:.4f}, {expected}"
    assert abs(role["calls"] - expected.calls) <= 0.1, f"{name}: {role['calls']:.2f}, {expected}"
    for policy, figures in (("single_best", expected.single), ("flat_all", expected.flat)):
        for metric, figure in zip(("risk", "accuracy"), figures or (), strict=False):
            own = found.loc[(policy, metric)]
            error = own["sd"] / np.sqrt(own["splits"])
            assert abs(own["mean"] - figure) <= 2 * error + 5e-4, f"{name}, {policy}: {own['mean']:.4f}, {figure}"


def _saturated(audit: Audit) -> dict:
    """One call and no more on every split, and the report that says why."""
    plans = [policy.plan_ for _, policy in regimes.fitted_plans(audit)]
    assert all(len(plan.calls) == len(plan.global_panel) == 1 for plan in plans)
    report = str(plans[0].stopping_report)
    assert "nothing is left to gain" in report, report
    return {"stopping_report": report.splitlines()}


def _paid(audit: Audit) -> dict:
    """On splits whose plan routes, the route key is called on every item; on others only where the panel holds it."""
    routed, key = 0, audit.judges.index("gpt4_cf")
    for split, policy in regimes.fitted_plans(audit, route_key="gpt4_cf"):
        called = policy.predict(split.test.Z, split.test.slices)[1][:, key]
        plan = policy.plan_
        assert called.all() == (bool(plan.routes) or "gpt4_cf" in plan.global_panel), plan.calls
        routed += bool(plan.routes)
    return {"splits_that_route": routed}


def panels_speed() -> dict:
    """65 judges x 419 items x 5 slices x 10 seeds: the role policy under 15 s, all policies under 60 s."""
    rng = np.random.default_rng(0)
    y, slices = rng.integers(0, 2, 419), np.array([f"s{n}" for n in range(5)], dtype=object)[rng.integers(0, 5, 419)]
    right = rng.random((419, 65)) < np.linspace(0.5, 0.85, 65)
    says = np.where(rng.random((419, 65)) < 0.15, "split", np.where(right == (y[:, None] == 1), "a", "b"))
    audit = Audit(says.astype(object), y, tuple(f"judge{n:02d}" for n in range(65)), slices)
    measured = {}
    for name, policies, limit in (("role", {"role": RolePolicy()}, 15), ("all", standard_policies(), 60)):
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
