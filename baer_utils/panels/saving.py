"""A call plan as JSON and back, exactly: floats are written so that they read back to the same bits."""

from __future__ import annotations

import json
from math import inf, isfinite

from baer_utils.calibrators import LogisticCalibrator, PatternCalibrator, VoteCalibrator
from baer_utils.panels.report import StoppingReport
from baer_utils.panels.search import GLOBAL, Step

TABLES = {kind.__name__: kind for kind in (PatternCalibrator, LogisticCalibrator, VoteCalibrator)}


def saved_parts(plan: object) -> dict[str, object]:
    """Every field of a plan as plain values.

    Raises
    ------
    ValueError
        where a table is of a kind that cannot be written (a calibrator of one's own).
    """
    own = sorted({type(table).__name__ for table in plan.tables.values()} - TABLES.keys())
    if own:
        raise ValueError(f"tables must be of {', '.join(TABLES)} to be written; {', '.join(own)} cannot be.")
    report = plan.stopping_report
    return {
        "judges": list(plan.judges),
        "global_panel": list(plan.global_panel),
        "routes": {name: list(judges) for name, judges in plan.routes.items()},
        "costs": plan.costs,
        "route_key": list(plan.route_key),
        "audit_only": plan.audit_only,
        "tables": {name: {"kind": type(table).__name__, **table.to_dict()} for name, table in plan.tables.items()},
        "steps": _plain(plan.steps),
        "stopping_report": {**vars(report), "failed": _plain(report.failed)},
    }


def read_parts(text: str, form: str) -> dict[str, object]:
    """The fields of a plan from JSON text.

    Raises
    ------
    ValueError
        for text that is not JSON, of another format, or lacks a field.
    """
    try:
        saved = json.loads(text)
        found = saved.pop("format", None)
    except (ValueError, AttributeError, TypeError) as error:
        raise ValueError(f"a call plan must be the JSON text of CallPolicy.to_json; it is not ({error}).") from None
    if found != form:
        raise ValueError(f"a call plan must say format {form!r}; it says {found!r}. Write it again with to_json.")
    try:
        called = {*saved["global_panel"], *(judge for panel in saved["routes"].values() for judge in panel)}
        if not called <= {*saved["judges"]} or saved["tables"].keys() != {GLOBAL, *saved["routes"]}:
            raise KeyError("a judge in judges for every call, or a table for every route,")
        report = saved["stopping_report"]
        stability = report["stability"]
        return {
            "judges": tuple(saved["judges"]),
            "global_panel": tuple(saved["global_panel"]),
            "routes": {name: tuple(judges) for name, judges in saved["routes"].items()},
            "costs": saved["costs"],
            "route_key": tuple(saved["route_key"]),
            "audit_only": saved["audit_only"],
            "tables": {name: TABLES[table["kind"]].from_dict(table) for name, table in saved["tables"].items()},
            "steps": _steps(saved["steps"]),
            "stopping_report": StoppingReport(
                **{**report, "failed": _steps(report["failed"]), "stability": stability and tuple(stability)}
            ),
        }
    except (KeyError, TypeError) as error:
        raise ValueError(f"a call plan must hold all that to_json writes; {error} is missing or wrong.") from None


def _plain(steps: tuple[Step, ...]) -> list[dict]:
    """Steps as plain values; the infinite error of a single validation item is null, which JSON has."""
    return [step._asdict() | {"error": step.error if isfinite(step.error) else None} for step in steps]


def _steps(saved: list[dict]) -> tuple[Step, ...]:
    error = [inf if step["error"] is None else step["error"] for step in saved]
    return tuple(
        Step(**step | {"judges": tuple(step["judges"]), "error": e}) for step, e in zip(saved, error, strict=True)
    )
