"""The disagreement browser: pairs on which an expert contradicts itself, or is outvoted, with everything it said.

It shows what run and pair tables hold and asks no judge; a label that is sealed stays unknown.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from IPython.display import HTML
from ipywidgets import HTML as HtmlView
from ipywidgets import Dropdown, FloatRangeSlider, HBox, IntSlider, Layout
from numpy.typing import NDArray

from baer_utils.evidence import run_array, summarize
from baer_utils.metrics import flips, majority
from baer_utils.widgets.escaping import beside, heading, raw_text, sentence, table
from baer_utils.widgets.views import LiveView, shown

ORDERS, OUTVOTED, EVERY = "its two orders disagree", "most experts disagree with it", "every pair"
ALL_SUBSETS = "all subsets"
COLUMNS = ("expert", "a shown first", "b shown first", "p", "delta", "z")
WIDE = {"style": {"description_width": "6em"}, "layout": Layout(width="25em", max_width="100%")}


def disagreement_browser(
    pairs: pd.DataFrame, runs: pd.DataFrame, experts: Sequence[str], *, clip: float = 1e-4
) -> DisagreementBrowser | HTML:
    """Browse the pairs on which experts disagree; without a reader, a table of how often they do and one such pair.

    Parameters
    ----------
    pairs : pair table with at least one row. runs : run table of one backbone, corrections included if they are shown.
    experts : names, the columns of the tables. clip : see `evidence.log_odds`.
    """
    said = Sayings(pairs, runs, experts, clip=clip)
    return shown(lambda: DisagreementBrowser(said), said.static)


class Sayings:
    """What experts say about pairs, ready to be filtered and shown.

    Attributes
    ----------
    pairs, runs, experts : as given.
    evidence : of the K experts on the N pairs.
    disagrees : name of a kind of disagreement -> boolean array (N, K).
    """

    def __init__(self, pairs: pd.DataFrame, runs: pd.DataFrame, experts: Sequence[str], *, clip: float = 1e-4):
        if not len(pairs) or not len(experts):
            raise ValueError(f"there must be pairs and experts to browse; {len(pairs)} and {len(experts)} came.")
        self.pairs, self.experts = pairs.reset_index(drop=True), tuple(experts)
        self.runs = runs[runs["protocol"].isin(experts) & runs["pair_id"].isin(pairs["pair_id"])]
        self.L = run_array(self.runs, experts, pairs["pair_id"])
        self.evidence = summarize(self.L, experts, clip=clip)
        most = np.nan_to_num(majority(self.evidence.z, experts))
        answered = self.evidence.available
        self.disagrees = {
            ORDERS: flips(self.L) == 1, OUTVOTED: np.sign(self.evidence.z) * most[:, None] < 0, EVERY: answered,
        }  # fmt: skip

    def find(self, expert: str, kind: str, *, subset: str = ALL_SUBSETS, confidence=(0.0, 0.5)) -> NDArray[np.int64]:
        """Rows of the pairs that match, in their own order; `confidence` bounds |p - 1/2| of the expert."""
        k = self.experts.index(expert)
        sure = np.abs(self.evidence.p[:, k] - 0.5).round(6)
        wanted = self.disagrees[kind][:, k] & (confidence[0] <= sure) & (sure <= confidence[1])
        if subset != ALL_SUBSETS:
            wanted &= (self.pairs["subset"] == subset).to_numpy()
        return np.flatnonzero(wanted)

    def counts(self) -> pd.DataFrame:
        """Per expert: pairs it answers, pairs of each kind of disagreement, mean confidence |p - 1/2|."""
        has, sure = self.evidence.available, np.abs(self.evidence.p - 0.5)
        mean = np.where(has.any(axis=0), (sure * has).sum(axis=0) / np.maximum(has.sum(axis=0), 1), np.nan)
        kinds = {kind: self.disagrees[kind].sum(axis=0) for kind in (ORDERS, OUTVOTED)}
        return pd.DataFrame({"pairs answered": has.sum(axis=0), **kinds, "mean |p - 1/2|": mean}, list(self.experts))

    def card(self, row: int, expert: str) -> str:
        """One pair as HTML: question, both responses, what every expert answers, what one of them wrote."""
        pair = self.pairs.loc[row]
        label = {1.0: "a is better", -1.0: "b is better"}.get(pair["label"], "sealed or unknown")
        return "".join([
            heading(f"{pair['pair_id']} · {pair['subset']} · {pair['split']} · label: {label}"),
            raw_text(pair["instruction"]),
            beside(*(heading(f"response {name}") + raw_text(pair[f"response_{name}"]) for name in "ab")),
            table(COLUMNS, [self._row(row, column) for column in range(len(self.experts))]),
            heading(f"what {expert} wrote"),
            self._written(pair["pair_id"], expert),
        ])  # fmt: skip

    def _row(self, row: int, k: int) -> list[str]:
        e = self.evidence
        orders = [", ".join(map(answer, self.L[row, k, start::2])) for start in (0, 1)]
        values = [f"{e.p[row, k]:.3f}", f"{e.delta[row, k]:.3f}", f"{e.z[row, k]:+.3f}"]
        return [self.experts[k], *orders, *(values if e.available[row, k] else ["–"] * 3)]

    def _written(self, pair_id: str, expert: str) -> str:
        mine = self.runs[(self.runs["pair_id"] == pair_id) & (self.runs["protocol"] == expert)]
        mine = mine[mine["text"] != ""]
        texts = [heading(f"{run.stage}, view {run.view}, trial {run.trial}: {run.status}") + raw_text(run.text)
                 for run in mine.itertuples()]  # fmt: skip
        return "".join(texts) or sentence("Nothing: this expert reads the probabilities of labels.")

    def static(self) -> str:
        """How often experts disagree, and the first pair of the most frequent disagreement."""
        counts = self.counts()
        rows = [[name, *map(int, row[:3]), f"{row[3]:.3f}"] for name, *row in counts.itertuples()]
        expert = counts[ORDERS].idxmax() if counts[ORDERS].any() else self.experts[0]
        found = self.find(expert, ORDERS if counts[ORDERS].any() else EVERY)
        card = self.card(int(found[0]), expert) if len(found) else sentence("No expert answered any pair.")
        return table(["expert", *counts.columns], rows) + card


class DisagreementBrowser(LiveView):
    """The live browser: `expert`, `kind`, `subset`, `confidence` and `place` filter, `page` shows."""

    def __init__(self, said: Sayings):
        self.said, self.found = said, np.arange(0)
        subsets = list(dict.fromkeys(said.pairs["subset"]))
        self.expert = Dropdown(options=said.experts, description="expert", **WIDE)
        self.kind = Dropdown(options=list(said.disagrees), description="show", **WIDE)
        self.subset = Dropdown(options=[ALL_SUBSETS, *subsets], description="subset", **WIDE)
        self.confidence = FloatRangeSlider(value=(0, 0.5), min=0, max=0.5, step=0.01, description="|p - 1/2|", **WIDE)
        self.place = IntSlider(value=1, min=1, max=1, description="pair", continuous_update=False, **WIDE)
        self.status, self.page = HtmlView(), HtmlView(layout=Layout(width="auto"))
        filters = (self.expert, self.kind, self.subset, self.confidence)
        wrap = Layout(flex_flow="row wrap")
        super().__init__([HBox(filters, layout=wrap), HBox([self.place, self.status], layout=wrap), self.page],
                         said.static())  # fmt: skip
        for control in filters:
            control.observe(lambda _: self._filter(), "value")
        self.place.observe(lambda _: self._show(), "value")
        self._filter()

    def _filter(self) -> None:
        chosen = {"subset": self.subset.value, "confidence": self.confidence.value}
        self.found = self.said.find(self.expert.value, self.kind.value, **chosen)
        self.place.max = max(1, len(self.found))
        self.place.disabled = not len(self.found)
        self.place.value = 1
        self._show()

    def _show(self) -> None:
        if not len(self.found):
            self.status.value = sentence("No pair matches.")
            self.page.value = ""
            return
        self.status.value = sentence(f"{self.place.value} of {len(self.found)} pairs that match")
        self.page.value = self.said.card(int(self.found[self.place.value - 1]), self.expert.value)


def answer(value: float) -> str:
    """One run in words: log-odds toward *a*, a hard verdict, a tie, or none."""
    if np.isnan(value):
        return "no answer"
    if np.isinf(value):
        return "a" if value > 0 else "b"
    return "tie" if value == 0 else f"{value:+.3f} ({'a' if value > 0 else 'b'})"
