"""A frozen head at work: it scores pairs, new or old, and never changes.

Under another judge, other words or other budgets it refuses to speak. This file never fits and never sees a label.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from baer_utils import scores
from baer_utils.debias import Debias, bank_runs, protocols_for
from baer_utils.deployment.conditions import Condition, prompt_versions, rendered_templates
from baer_utils.deployment.corrections import restored_debias
from baer_utils.deployment.files import read_frozen
from baer_utils.deployment.fitting import Router, deployed_score, features_of, route_pairs
from baer_utils.evidence import native_decisions
from baer_utils.features import category_columns
from baer_utils.gates import HEADS
from baer_utils.judging import judge_pairs
from baer_utils.protocols import PROTOCOLS, Settings
from baer_utils.records import check_pairs
from baer_utils.routing import Reliability, unpack_model
from baer_utils.stacking import Stack
from baer_utils.verification import reference_evidence


@dataclass(frozen=True)
class Frozen:
    """A head that no longer changes.

    Attributes
    ----------
    path : folder that holds its two files.
    sha256 : of the canonical JSON of `content` and of the arrays: the name of this head.
    content : what deployment.json says: head, condition, reasons, development figures, readable weights, and figures
        of the corrections where the bank has any.
    arrays : name -> fitted array; floats, and text for the ids of pairs.
    """

    path: Path
    sha256: str
    content: dict
    arrays: dict[str, NDArray] = field(repr=False)

    @classmethod
    def load(cls, path: str | Path) -> Frozen:
        """Read a frozen head and verify it; one changed byte in either file is refused with a ValueError."""
        folder = Path(path)
        return cls(folder, *read_frozen(folder))

    def verify(self) -> None:
        """Refuse to go on unless the files on disk are still this very head."""
        found = Frozen.load(self.path)
        if found.sha256 != self.sha256:
            raise ValueError(
                f"the frozen head must be the one on disk; this is {self.sha256[:12]}, {self.path} now holds "
                f"{found.sha256[:12]}. Load it again with Frozen.load."
            )

    @property
    def head(self) -> str:
        """Name of the deployed head."""
        return self.content["head"]

    @property
    def condition(self) -> Condition:
        """The condition it was fitted under."""
        lists = {name: tuple(self.content["condition"][name]) for name in ("experts", "categories")}
        return Condition(**self.content["condition"] | lists | {"debias": self.debias})

    @cached_property
    def debias(self) -> Debias | None:
        """The frozen corrections behind `pride` and `calibraeval`; None for a bank without them."""
        return restored_debias(self.content["debias"], self.arrays) if "debias" in self.content else None

    @property
    def stack(self) -> Stack:
        """The frozen stack (Eq. 6b)."""
        return Stack(self.arrays["stack_weights"], self.arrays["stack_scale"], self.content["stack"]["lambda"])

    @property
    def nonnegative_stack(self) -> Stack:
        """The stack without negative weights, fitted beside the free one; shown, never deployed."""
        weights, scale = self.arrays["nonnegative_weights"], self.arrays["nonnegative_scale"]
        return Stack(weights, scale, self.content["nonnegative_stack"]["lambda"])

    @cached_property
    def router(self) -> Router | None:
        """The frozen router (Eq. 7), read by skops under its list of types; None where none was evaluated."""
        words = self.content.get("route")
        if not words:
            return None
        fitted = unpack_model(self.arrays["route_model"].tobytes())
        return Router(tuple(words["candidates"]), Reliability(words["model"], fitted))

    @property
    def heads(self) -> tuple[str, ...]:
        """Names of all frozen heads: the deployed one, and those that are shown beside it."""
        return tuple(head for head in HEADS if self.content.get(head))

    def protocols_of(self, head: str) -> tuple[str, ...]:
        """The experts and candidates that a head's score takes, corrections included."""
        experts = tuple(self.content["condition"]["experts"])
        candidates = tuple((self.content.get("route") or {}).get("candidates", ()))
        return {"stack": experts, "route": candidates, "reference": ("reference",)}[head]

    @property
    def settings(self) -> Settings:
        """The judge's frozen budgets."""
        return Settings(**self.condition.settings)

    def score_runs(self, pairs: pd.DataFrame, runs: pd.DataFrame) -> NDArray[np.float64]:
        """Signed scores (N,) of pairs from runs that exist already; labels are not looked at.

        The rows of `pride` and `calibraeval` are always those of the frozen corrections, whatever the table holds.
        Swapping the responses (`records.swap_pairs`, `records.swap_runs`) negates every score bit for bit.
        """
        table = self.head_scores(pairs, runs, (self.head,))
        return deployed_score({self.head: table[self.head].to_numpy(float)}, self.head)

    def head_scores(self, pairs: pd.DataFrame, runs: pd.DataFrame, heads: Sequence[str] | None = None) -> pd.DataFrame:
        """Scores of several frozen heads, one column each; by default of all.

        Where the router is among them, `route_expert` says who speaks, and `route_reliability` how likely it is to be
        right. A reference read that is missing gives s = 0.
        """
        heads, columns = self.heads if heads is None else heads, {}
        phi, evidence = features_of(pairs, runs, self.condition)
        if "stack" in heads:
            columns["stack"] = self.stack.score(phi)
        if "route" in heads:
            routes = route_pairs(self.router, pairs, runs, evidence, self.condition)
            columns |= {"route": routes["s"].to_numpy()}
            columns |= {f"route_{name}": routes[name].to_numpy() for name in ("expert", "reliability")}
        if "reference" in heads:
            s = reference_evidence(runs, pairs["pair_id"], clip=self.condition.clip)
            columns["reference"] = np.nan_to_num(s)
        return pd.DataFrame(columns, index=pd.RangeIndex(len(pairs)))

    def native_decisions(self, pairs: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
        """Decisions of the external baselines (pairs x baselines, see `evidence.native_decisions`), nothing refitted.

        PriDe's prior and both of CalibraEval's maps are the frozen ones, so a table of test pairs alone will do.
        """
        own = bank_runs(runs, self.condition.experts, self.debias)
        return native_decisions(own, pairs, self.content["baselines"], debias=self.debias)

    def score(self, pairs: pd.DataFrame, backbone) -> pd.DataFrame:
        """Judge new pairs with the frozen settings and score them.

        Parameters
        ----------
        pairs : pair table of the same benchmark; labels may be null and are not looked at.
        backbone : the judge the head was fitted for, under the same name.

        Returns
        -------
        frame with one row per pair, in the order given: pair_id; s, signed, toward *a*; probability of *a*; decision,
        +1 or -1; calls that the pair took; of a router also the expert that speaks and its reliability. Only the
        protocols that the head needs are run: direct judging in the place of `pride` and `calibraeval`, whose frozen
        corrections then read its answers again.
        ``attrs["unknown_categories"]`` maps a subset or task type that the head has never met to its number of pairs,
        and a warning shows it; ``attrs["zero_scores"]`` counts pairs with s = 0, whose decision +1 is a convention.

        Raises
        ------
        ValueError
            for another backbone, other words than the frozen ones, or an imported judge, which cannot be asked.
        """
        condition = self.condition
        self._refuse_another_judge(backbone.name)
        pairs = check_pairs(pairs)
        unknown = category_columns(pairs, condition.benchmark, categories=condition.categories).attrs["unknown"]
        if unknown and condition.categories and self.head != "reference":
            warnings.warn(
                f"the frozen head has never met these categories (pairs): {unknown}; they activate no category column.",
                stacklevel=2,
            )
        asked = protocols_for(self.protocols_of(self.head), native=False)
        runs, report = judge_pairs(pairs, backbone, asked, settings=self.settings)
        if report.refused:
            raise ValueError(f"every frozen expert must be able to answer; {report.refused}. Check the backbone.")
        told = self.head_scores(pairs, runs, (self.head,))
        s = deployed_score({self.head: told[self.head].to_numpy(float)}, self.head)
        calls = runs.groupby("pair_id").size().reindex(pairs["pair_id"], fill_value=0).to_numpy()
        columns = {"s": s, "probability": scores.probability(s), "decision": scores.decision(s), "calls": calls}
        if self.head == "route":
            columns |= {name: told[f"route_{name}"].to_numpy() for name in ("expert", "reliability")}
        table = pd.DataFrame({"pair_id": pairs["pair_id"].to_numpy(), **columns})
        table.attrs |= {"unknown_categories": unknown, "zero_scores": int((s == 0).sum())}
        return table

    def _refuse_another_judge(self, name: str) -> None:
        condition = self.condition
        if name != condition.backbone:
            raise ValueError(
                f"a frozen head serves the judge it was fitted for, {condition.backbone!r}; this one is {name!r}. "
                "Open the same backbone, or develop and freeze a head for this one."
            )
        names = self.protocols_of(self.head)
        imported = [name for name in protocols_for(names, native=False) if name not in PROTOCOLS]
        if imported:
            raise ValueError(
                f"experts must be protocols that can be asked; {', '.join(imported)} cannot. "
                "Score runs that exist already with score_runs(pairs, runs)."
            )
        versions, words = prompt_versions(names), rendered_templates(names, self.settings)
        frozen = [
            {name: of[name] for name in words if name in of} for of in (condition.prompt_versions, condition.templates)
        ]
        if [versions, words] != frozen:
            changed = [name for name in words if words[name] != condition.templates.get(name)]
            raise ValueError(
                f"prompts must be those of the freeze, {frozen[0]}; they are now {versions}, with "
                f"other words for {changed}. Use baer-utils {condition.package}, or freeze a head for the new words."
            )
