"""Runs a bank of experts over pairs, and shows where the run stands.

Every protocol is a generator of calls; all protocols of a block of pairs advance together, so that calls of one kind
form one batch. Answers that the store has are not asked for again, failures are never kept as answers, and nothing that
was paid for is lost when the process dies.
"""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Sequence

import pandas as pd

from baer_utils.backbones.base import Backbone, Failure
from baer_utils.backbones.replay import ReplayBackbone
from baer_utils.judging.answering import Answering
from baer_utils.judging.planning import ResponseLimit, blocks, planned_work, refuse_unable, text_size, unsayable
from baer_utils.judging.progress import Progress
from baer_utils.judging.report import WORTH_A_WARNING, JudgingReport, shortfalls
from baer_utils.prompts import Prompt
from baer_utils.protocols import PROTOCOLS, Answer, Call, Settings, rehearse, run_row
from baer_utils.records import RUN_COLUMNS, RUN_KEY, check_pairs, check_runs
from baer_utils.store import Store

UNFIT = -1
LEAST_LABEL_MASS = 0.01  # a protocol whose labels get less than this (median of the first block) is refused


def judge_pairs(
    pairs: pd.DataFrame,
    backbone: Backbone,
    experts: Sequence[str],
    *,
    store: Store | None = None,
    settings: Settings | None = None,
    progress: bool = True,
    stop_below: float | None = None,
    stop_cut_above: float | None = None,
) -> tuple[pd.DataFrame, JudgingReport]:
    """Ask every expert about every pair, in both display orders where the protocol has two.

    Parameters
    ----------
    pairs : pair table; labels are not looked at.
    backbone : the judge.
    experts : names in `protocols.PROTOCOLS`.
    store : where answers are kept and looked up; None keeps nothing. A sealed store keeps answers to any pair, but a
        run table of its own pairs only: swapped or edited pairs never replace their rows.
    settings : decoding budgets.
    progress : show where the run stands.
    stop_below, stop_cut_above : after the first block, give up where a protocol's share of parsed verdicts is below, or
        of cut texts above; None (default) warns in the report and goes on, for a small judge parses little by nature.

    Returns
    -------
    run table sorted by run key, and the `JudgingReport`.

    Raises
    ------
    ValueError : an unknown expert, one that asks what the judge cannot answer, a malformed pair table, or every
        protocol refused.
    RuntimeError : a limit of `stop_below` or `stop_cut_above` was passed; what was made so far is in the store.
    """
    unknown = [name for name in experts if name not in PROTOCOLS]
    if unknown or not experts:
        raise ValueError(f"experts must be among {', '.join(PROTOCOLS)}; got {', '.join(unknown) or 'none'}.")
    pairs = check_pairs(pairs)
    start = time.perf_counter()
    with contextlib.closing(Progress(len(pairs), sum(map(text_size, _rows(pairs))), show=progress)) as shown:
        bank = _Bank(backbone, list(dict.fromkeys(experts)), store, settings or Settings(), shown)
        for number, block in enumerate(blocks(pairs)):
            tokens = bank.judge(block)
            if number == 0:
                bank.refuse()
                bank.stop_if(stop_below, stop_cut_above)
            shown.update(len(block), sum(map(text_size, block)), tokens)
    backbone.share([])  # lets go of what the last block shared: some gigabytes
    runs = check_runs(pd.DataFrame(bank.rows, columns=list(RUN_COLUMNS)).sort_values(RUN_KEY))
    bank.conclude(runs, len(pairs))
    bank.report.seconds = time.perf_counter() - start
    if store is not None:
        store.write_runs(runs[runs["pair_id"].isin(store.own_ids(pairs))], bank.settings.tag)
        store.compact()
    return runs, bank.report


def answerable(pairs: pd.DataFrame, backbone: Backbone, experts: Sequence[str]) -> pd.DataFrame:
    """The pairs that a judge can be asked about: all of them, or those on which a record has every expert."""
    if not isinstance(backbone, ReplayBackbone):
        return pairs
    known = [all(backbone.has(pair_id, name) for name in experts) for pair_id in pairs["pair_id"]]
    return pairs[known].reset_index(drop=True)


class _Bank:
    """The experts at work: their rows and counts so far."""

    def __init__(
        self, backbone: Backbone, experts: list[str], store: Store | None, settings: Settings, shown: Progress
    ):
        self.settings = settings
        self.rows: list[dict] = []
        self.report = JudgingReport()
        self._backbone = backbone
        refuse_unable(backbone, experts, settings)
        self.report.refused = unsayable(backbone, experts, settings)
        self.experts = [name for name in experts if name not in self.report.refused]
        self._stop_without_experts()
        self._limit = ResponseLimit(backbone, self.experts, settings)
        self._shown, self._left, self._scale = shown, 0.0, 0.0
        self._answering = Answering(backbone, store, self.report, self._advanced)

    def judge(self, block: list) -> int:
        """Take all protocols of a block of pairs from first call to last; returns the tokens newly computed."""
        before = self.report.computed
        fitting = [(pair, cut) for pair, cut in ((pair, self._fit(pair)) for pair in block) if cut != UNFIT]
        calls, sharing = planned_work(self._backbone, self.experts, self.settings, [pair for pair, _ in fitting])
        self._left = float(sum(map(text_size, block)))
        self._scale = self._left / max(1.0, calls + sharing)
        self._answering.begin(lambda: self._foreseen(fitting), sharing)
        waiting = [
            (asking, _with_cut(next(asking), cut), cut)
            for pair, cut in fitting
            for asking in (PROTOCOLS[name](pair, self.settings) for name in self.experts)
        ]
        while waiting:
            answers = self._answering.answer([call for _, calls, _ in waiting for call in calls])
            waiting = self._advance(waiting, answers)
        return self.report.computed - before

    def _advanced(self, work: float, tokens: int, found: bool) -> None:
        """Show a part of the block as done, in characters of its pairs: what a run is measured in."""
        part = min(work * self._scale, self._left)
        self._left -= part
        self._shown.advance(part, tokens, found=found)

    def _fit(self, pair) -> int | None:
        """Tokens to keep of each response, None for all; `UNFIT` for a pair whose calls are recorded as errors."""
        try:
            cut, n_cut = self._limit.cut(pair)
        except ValueError as error:
            for name in self.experts:
                calls = next(PROTOCOLS[name](pair, self.settings))
                self._record(calls, [Failure(str(error))] * len(calls))
            return UNFIT
        self.report.cut_responses += n_cut
        if cut is not None:
            self.report.shown[pair.pair_id] = cut
        return cut

    def _foreseen(self, fitting: list[tuple]) -> list[Prompt]:
        """Every prompt that these pairs may need, with stand-ins for what is still to be generated."""
        rehearsed = ((rehearse(name, self.settings, pair), cut) for pair, cut in fitting for name in self.experts)
        return [call.prompt for calls, cut in rehearsed for call in _with_cut(calls, cut)]

    def _advance(self, waiting: list[tuple], answers: list[Answer]) -> list[tuple]:
        """Give every protocol its answers; those that go on come back with their next calls."""
        further = []
        position = 0
        for asking, calls, cut in waiting:
            mine = answers[position : position + len(calls)]
            position += len(calls)
            self._record(calls, mine)
            if any(isinstance(answer, Failure) for answer in mine):
                asking.close()
                continue
            with contextlib.suppress(StopIteration):
                further.append((asking, _with_cut(asking.send(mine), cut), cut))
        return further

    def _record(self, calls: list[Call], answers: list[Answer]) -> None:
        for call, answer in zip(calls, answers, strict=True):
            self.rows.append(run_row(call, answer, self._backbone.name))

    def refuse(self) -> None:
        """Drop protocols whose labels the judge hardly ever says, by the median of the first block."""
        for name in list(self.experts):
            mass = pd.Series([row["label_mass"] for row in self.rows if row["protocol"] == name]).median()
            if mass < LEAST_LABEL_MASS:
                self.experts.remove(name)
                self.rows = [row for row in self.rows if row["protocol"] != name]
                self.report.refused[name] = (
                    f"The labels must get at least {LEAST_LABEL_MASS:.0%} of the probability; in the first block the "
                    f"median is {mass:.2%}. The judge wants to say something else: change the stub or the labels."
                )
        self._stop_without_experts()

    def _stop_without_experts(self) -> None:
        if not self.experts:
            raise ValueError("every protocol was refused. " + " ".join(self.report.refused.values()))

    def conclude(self, runs: pd.DataFrame, pairs: int) -> None:
        """Count what the run table shows, and gather what is worth reading, once all pairs are judged."""
        report = self.report
        report.pairs, report.runs = pairs, len(runs)
        report.errors = int((runs["status"] == "error").sum())
        report.low_mass = int((runs["label_mass"] < LEAST_LABEL_MASS).sum())
        report.bounds = int((runs["label_mass"].notna() & (runs["text"] != "")).sum())  # exact reads have no text
        report.warnings = [short.sentence for short in shortfalls(self.rows) if short.share > WORTH_A_WARNING]
        if report.made and hasattr(self._backbone, "probes"):
            self._describe_judge()
        report.warnings += getattr(self._backbone, "notes", list)()

    def _describe_judge(self) -> None:
        """Note how a local judge computed, and how it says its labels after the stubs of this bank."""
        rehearsed = [call for name in self.experts for call in rehearse(name, self.settings) if call.verb == "read"]
        stubs = {call.prompt.stub for call in rehearsed}
        probes = [probe for probe in self._backbone.probes if probe.stub in stubs]
        self.report.judge = [f"Answers were made with {self._backbone.attention} attention.", *map(str, probes)]
        self.report.warnings += [probe.warning for probe in probes if probe.warning]

    def stop_if(self, parsed_below: float | None, cut_above: float | None) -> None:
        """Give up early where the caller asked for it."""
        limits = {"unparsed": None if parsed_below is None else 1 - parsed_below, "cut": cut_above}
        for short in shortfalls(self.rows):
            limit = limits[short.kind]
            if limit is not None and short.share > limit:
                raise RuntimeError(f"stopped after the first block, as asked. {short.sentence}")


def _with_cut(calls: list[Call], cut: int | None) -> list[Call]:
    if cut is None:
        return calls
    return [dataclasses.replace(call, prompt=dataclasses.replace(call.prompt, cut=cut)) for call in calls]


def _rows(pairs: pd.DataFrame):
    return pairs.itertuples(index=False)
