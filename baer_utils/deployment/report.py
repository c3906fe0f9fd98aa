"""The report of an opened test: tidy frames, a text to print, a table for notebooks, plain values for results.

A report only shows. Whoever opened the seal again, and why, stands in every report of that seal from then on. This file
knows nothing about how its numbers were counted.
"""

from __future__ import annotations

import html
import json
from dataclasses import dataclass, field, fields
from pathlib import Path

import pandas as pd

from baer_utils.deployment.files import plain_values, write_whole

FAILURES = ("ok", "tie", "unparsed", "truncated", "error", "cut_notes", "order_inconsistent")
ORDER = ["expert", "order"]
FRAMES = {"methods": "method", "comparisons": None, "experts": "expert", "orders": ORDER, "pairs": "pair_id"}  # indexes
TITLES = {
    "methods": "Methods (brier and ece: of the probability a head gives; of the router, of its chosen reliability)",
    "failures": "Calls of the baselines",
    "comparisons": "Margins (points; detectable: the true margin that so many pairs would probably notice)",
    "experts": "Experts",
    "orders": "Single reads by display order (first: mean probability of the response shown first; bias: what of it is "
    "not deserved)",
}


@dataclass(frozen=True)
class TestReport:
    """What one opening of the test labels showed.

    Attributes
    ----------
    sha256, head : name of the frozen head, and which head it is.
    condition : benchmark, backbone, seed, n_pairs.
    summary : counts and shares of the whole test (see `measuring.measure`).
    methods : one row per method: `kind` (head; variant: the other frozen heads and the sign-constrained stack;
        baseline; reference: rules that any head should beat), then `metrics.ledger`: both scoring
        rules, `half_credit` and `covered_only`, each with `_low` and `_high` (95 %), `coverage`, `ties`,
        `missing`; `calls`, `prompt_tokens` and `new_tokens` per pair; for heads also `brier` and `ece` (see
        `counting.head_rows`), for baselines their calls by status (see `baselines.baseline_table`).
    comparisons : head against the strongest baseline, named on development data (valid) and on test (the paper's),
        under both rules (see `counting.comparison_rows`).
    experts : one row per expert (see `counting.expert_rows`).
    orders : one row per expert and display order, and one for both together (see `metrics.order_calibration`); experts
        whose imported verdicts have no order are left out.
    pairs : one row per test pair: group_id, subset, label, s, the score of every frozen head (of a router also
        `route_expert` and `route_reliability`), and the native decision of every other method.
    openings : the log of this seal, oldest first.
    without : the same report without the subsets on which the head's lead rests; None where it does not lead, or where
        no pair is left.
    """

    __test__ = False  # not a test case, whatever its name makes pytest think

    sha256: str
    head: str
    condition: dict
    summary: dict
    methods: pd.DataFrame = field(repr=False)
    comparisons: pd.DataFrame = field(repr=False)
    experts: pd.DataFrame = field(repr=False)
    orders: pd.DataFrame = field(repr=False)
    pairs: pd.DataFrame = field(repr=False)
    openings: tuple[dict, ...] = ()
    without: TestReport | None = field(default=None, repr=False)

    def to_json(self) -> dict:
        """Everything but the rows of single pairs, as plain values."""
        content = {name: value for name, value in self._plain().items() if name != "pairs"}
        return content | {"without": self.without and self.without.to_json()}

    def save(self, path: Path) -> None:
        """Write the report, pairs included, whole or not at all; the log of openings stays where it is kept."""
        content = {name: value for name, value in self._plain().items() if name != "openings"}
        write_whole(path, json.dumps(content, sort_keys=True, allow_nan=False).encode("utf-8"))

    @classmethod
    def load(cls, path: Path, openings: list[dict]) -> TestReport:
        """Read a saved report and set it beside the log as it is now."""
        return cls._restored(json.loads(path.read_text(encoding="utf-8")) | {"openings": tuple(openings)})

    @classmethod
    def _restored(cls, content: dict) -> TestReport:
        for name, index in FRAMES.items():
            frame = pd.DataFrame(content[name]["rows"], columns=content[name]["columns"])
            frame = frame.apply(lambda column: column.astype(float) if column.isna().all() else column)
            content[name] = frame.set_index(index) if index else frame
        if content["without"]:
            content["without"] = cls._restored(content["without"] | {"openings": ()})
        return cls(**content)

    def __str__(self) -> str:
        tables = [f"{title}\n{frame.to_string(float_format='{:.3f}'.format)}" for title, frame in self._shown()]
        return "\n\n".join([self._heading(), *tables])

    def _repr_html_(self) -> str:
        heading = "<br>".join(html.escape(line) for line in self._heading().splitlines())
        tables = [f"<h4>{title}</h4>" + frame.to_html(float_format="{:.3f}".format) for title, frame in self._shown()]
        return f"<p>{heading}</p>" + "".join(tables)

    def _shown(self) -> list[tuple[str, pd.DataFrame]]:
        methods = _with_intervals(self.methods)
        failures = self.methods.loc[self.methods["kind"] == "baseline"].reindex(columns=list(FAILURES))
        frames = (methods, failures, self.comparisons, self.experts, self.orders)
        tables = [(title, frame) for title, frame in zip(TITLES.values(), frames, strict=True) if len(frame)]
        if self.without:
            tables += [(f"{title}, without these subsets", frame) for title, frame in self.without._shown()]
        return tables

    def _heading(self) -> str:
        s, c = self.summary, self.condition
        lines = [
            f"Opened test of {c['benchmark']} under {c['backbone']} (seed {c['seed']}, N_PAIRS {c['n_pairs']}): "
            f"{s['pairs']} pairs of {s['questions']} questions; head {self.head}, {self.sha256[:12]}.",
            f"Any expert is right on {s['oracle']:.1%} of pairs; as many coin-flippers would be on "
            f"{s['oracle_coin_flippers']:.1%}. Experts disagree on {s['disagree']:.1%} and agree on the wrong answer "
            f"on {s['agree_wrong']:.1%}.",
            *s["reasons"],
            f"s = 0 on {s['zero_scores']} pairs. Per pair: {s['calls']:.1f} calls, {s['prompt_tokens']:.0f} prompt "
            f"tokens ({s['unique_tokens']:.0f} where what calls share is computed once) and {s['new_tokens']:.0f} new.",
        ]
        if s["transfer_gap"] is not None:
            lines.append(
                f"Accuracy is {s['accuracy']:.1%} on test and was {s['calibration_accuracy']:.1%} out of fold on "
                f"calibration: a transfer gap of {s['transfer_gap']:+.1f} points "
                f"({s['transfer_gap_low']:+.1f} to {s['transfer_gap_high']:+.1f})."
            )
        lines += [self._inverted(), *self._rests_on()]
        if s["unlabelled"]:
            lines.append(f"{s['unlabelled']} test pairs have no label and are left out.")
        if s["clustered"]:
            lines.append("Some questions have several pairs: intervals resample questions.")
        again = [entry for entry in self.openings if entry.get("reopen")]
        lines += [f"REOPENED {e['time']} for head {e['sha256'][:12]}: {e['reopen']}" for e in again]
        return "\n".join(lines)

    def _inverted(self) -> str:
        s = self.summary
        turned = ", ".join([*s["inverted_experts"], *(f"{name} (category)" for name in s["inverted_categories"])])
        return (
            f"The free stack's accuracy is {s['free_over_held']:+.1f} points from that of the sign-constrained one; it "
            f"turns around {turned or 'no expert and no category'}."
        )

    def _rests_on(self) -> list[str]:
        """On which subsets a lead rests, and what is left without them; nothing where there is no lead."""
        names = ", ".join(name or "(no subset)" for name in self.summary["explained_by"])
        if not names:
            return []
        if self.without is None:
            return [f"The head's lead rests on {names}: no pair is left without them."]
        fair = self.without.comparisons.iloc[0]
        return [
            f"The head's lead rests on {names}: on the other {self.without.summary['pairs']} pairs its margin over "
            f"{fair['baseline']} is {fair['margin']:+.1f} points."
        ]

    def _plain(self) -> dict:
        values = {item.name: getattr(self, item.name) for item in fields(self)}
        values["without"] = self.without and self.without._plain()
        for name, index in FRAMES.items():
            frame = values[name].reset_index() if index else values[name]
            values[name] = {"columns": list(frame.columns), "rows": frame.astype(object).to_numpy().tolist()}
        return plain_values(values)


def _with_intervals(methods: pd.DataFrame) -> pd.DataFrame:
    """The methods with each share and its interval in one cell; `strict` is the paper's rule under its other name."""
    shown = methods[["kind"]].copy()
    for name in ("matched_rule", "paper_rule", "half_credit", "covered_only"):
        cells = methods[[name, f"{name}_low", f"{name}_high"]].itertuples(index=False)
        shown[name] = [f"{share:.3f} [{low:.3f}, {high:.3f}]" for share, low, high in cells]
    counts = ["coverage", "ties", "missing", "brier", "ece", "calls", "prompt_tokens", "new_tokens"]
    return shown.join(methods[counts])
