"""A call plan as strict JSON and back, exactly: floats are written so that they read back to the same bits.

JSON has no infinity: an infinite symbol, threshold or error is written as `{"float": "inf"}`.
"""

from __future__ import annotations

import json
from math import isfinite

import numpy as np

from baer_utils.calibrators import LogisticCalibrator, PatternCalibrator, VoteCalibrator
from baer_utils.panels.report import StoppingReport
from baer_utils.panels.search import GLOBAL, Step

TABLES = {kind.__name__: kind for kind in (PatternCalibrator, LogisticCalibrator, VoteCalibrator)}


def saved_parts(plan: object) -> dict[str, object]:
    """Every field of a plan as values that JSON has.

    Raises
    ------
    ValueError
        where a table is of a kind that cannot be written (a calibrator of one's own).
    """
    own = sorted({type(table).__name__ for table in plan.tables.values()} - TABLES.keys())
    if own:
        raise ValueError(f"tables must be of {', '.join(TABLES)} to be written; {', '.join(own)} cannot be.")
    report = plan.stopping_report
    parts = {
        "judges": list(plan.judges),
        "global_panel": list(plan.global_panel),
        "routes": {name: list(judges) for name, judges in plan.routes.items()},
        "costs": plan.costs,
        "route_key": list(plan.route_key),
        "audit_only": plan.audit_only,
        "tables": {name: {"kind": type(table).__name__, **table.to_dict()} for name, table in plan.tables.items()},
        "steps": [step._asdict() for step in plan.steps],
        "stopping_report": {**vars(report), "failed": [step._asdict() for step in report.failed]},
    }
    return _written(parts)


def read_parts(text: str, form: str) -> dict[str, object]:
    """The fields of a plan from JSON text.

    Raises
    ------
    ValueError
        for text that is not JSON, of another format, or lacks a field.
    """
    try:
        saved = json.loads(text, object_hook=_read, parse_constant=_refuse)
        found = saved.pop("format", None)
    except (ValueError, AttributeError, TypeError) as error:
        raise ValueError(f"a call plan must be the JSON text of CallPolicy.to_json; it is not ({error}).") from None
    if found != form:
        raise ValueError(f"a call plan must say format {form!r}; it says {found!r}. Write it again with to_json.")
    try:
        called = {*saved["global_panel"], *(judge for panel in saved["routes"].values() for judge in panel)}
        if not called <= {*saved["judges"]} or saved["tables"].keys() != {GLOBAL, *saved["routes"]}:
            raise KeyError("a judge in judges for every call, or a table for every route,")
        if not {*saved["judges"], *saved["route_key"]} <= saved["costs"].keys():
            raise KeyError("a cost of every judge and route key")
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


def _steps(saved: list[dict]) -> tuple[Step, ...]:
    return tuple(Step(**step | {"judges": tuple(step["judges"])}) for step in saved)


def _written(value: object) -> object:
    """A value as JSON has it: numpy's numbers as Python's, what is not finite by name."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, dict):
        return {name: _written(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_written(part) for part in value]
    return {"float": str(value)} if isinstance(value, float) and not isfinite(value) else value


def _read(saved: dict) -> object:
    """What `_written` made of a number that is not finite; any other object as it is."""
    named = saved.keys() == {"float"} and isinstance(saved["float"], str)
    return float(saved["float"]) if named else saved


def _refuse(word: str) -> None:
    raise ValueError(f"{word} is no JSON")
