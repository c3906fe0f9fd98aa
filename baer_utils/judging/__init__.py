"""Runs a bank of experts over pairs: distinct calls in fixed batches, answers kept in the store, progress shown.

Every protocol is a generator of calls; all of a block of pairs advance together, so that calls of one kind form one
batch. Answers that the store has are not asked for again, failures are never kept as answers, and nothing that was paid
for is lost when the process dies.
"""

from __future__ import annotations

import dataclasses
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import pandas as pd

from baer_utils.backbones.base import Backbone, Failure, Generation, Likelihood, Read
from baer_utils.judging.planning import ResponseLimit, blocks, call_key, text_size
from baer_utils.judging.progress import Progress
from baer_utils.protocols import PROTOCOLS, Answer, Call, Settings, run_row
from baer_utils.records import RUN_COLUMNS, RUN_KEY, check_pairs, check_runs
from baer_utils.store import Store

BATCH_ROWS = 64  # calls per batch: what a kill can cost
LEAST_LABEL_MASS = 0.01  # a protocol whose labels get less than this (median of the first block) is refused
WARN_CUT = 0.2  # share of generations cut by their budget, or of verdicts not parsed, that is worth a warning
ANSWER_KIND = {"read": Read, "generate": Generation, "likelihood": Likelihood}


@dataclass
class JudgingReport:
    """What a run of `judge_pairs` did, in counts; printing it gives one paragraph.

    `calls` are planned calls, `distinct` those with a key of their own, `found` of these in the store, `made` now;
    `refused` maps a protocol to the reason, `warnings` are sentences worth reading.
    """

    pairs: int = 0
    runs: int = 0
    calls: int = 0
    distinct: int = 0
    found: int = 0
    made: int = 0
    cut_responses: int = 0
    errors: int = 0
    low_mass: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    new_tokens: int = 0
    seconds: float = 0.0
    refused: dict[str, str] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        text = (
            f"{self.pairs:,} pairs, {self.runs:,} runs from {self.distinct:,} distinct calls: {self.found:,} found, "
            f"{self.made:,} made ({self.prompt_tokens:,} prompt and {self.new_tokens:,} new tokens, "
            f"{self.seconds:.0f} s). {self.cut_responses:,} responses cut, {self.errors:,} calls failed, "
            f"{self.low_mass:,} reads with little label mass."
        )
        refused = [f"Refused: {name}. {reason}" for name, reason in self.refused.items()]
        return "\n".join([text, *refused, *self.warnings])


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
    store : where answers are kept and looked up; None keeps nothing.
    settings : decoding budgets.
    progress : show where the run stands.
    stop_below, stop_cut_above : after the first block, give up where the share of parsed verdicts is below, or of cut
        generations above; None (default) warns and goes on, for a small judge parses little by nature.

    Returns
    -------
    run table sorted by run key, and the `JudgingReport`.

    Raises
    ------
    ValueError : an unknown expert, a malformed pair table, or every protocol refused.
    RuntimeError : a limit of `stop_below` or `stop_cut_above` was passed; what was made so far is in the store.
    """
    unknown = [name for name in experts if name not in PROTOCOLS]
    if unknown or not experts:
        raise ValueError(f"experts must be among {', '.join(PROTOCOLS)}; got {', '.join(unknown) or 'none'}.")
    pairs = check_pairs(pairs)
    work = _Work(backbone, tuple(dict.fromkeys(experts)), store, settings or Settings())
    shown = Progress(len(pairs), sum(map(text_size, pairs.itertuples(index=False))), show=progress)
    start = time.perf_counter()
    try:
        for number, block in enumerate(blocks(pairs)):
            before = work.report.prompt_tokens + work.report.new_tokens
            work.judge(block)
            if number == 0:
                work.refuse()
                work.check(stop_below, stop_cut_above)
            tokens = work.report.prompt_tokens + work.report.new_tokens - before
            shown.update(len(block), sum(map(text_size, block)), tokens)
    finally:
        shown.close()
    runs = check_runs(pd.DataFrame(work.rows, columns=list(RUN_COLUMNS)).sort_values(RUN_KEY))
    work.report.pairs, work.report.runs, work.report.seconds = len(pairs), len(runs), time.perf_counter() - start
    work.report.warnings = [text for _, _, text in _shortfalls(work.rows)]
    if store is not None:
        store.write_runs(runs, work.settings.tag)
        store.compact()
    return runs, work.report


class _Work:
    """One run of the bank: its rows, its counts, and the answers known so far."""

    def __init__(self, backbone: Backbone, experts: tuple[str, ...], store: Store | None, settings: Settings):
        self.backbone, self.experts, self.settings = backbone, list(experts), settings
        self.store = store if backbone.context else None  # recorded answers need no second record
        self.limit = ResponseLimit(backbone, experts, settings)
        self.rows: list[dict] = []
        self.report = JudgingReport()
        self._answers: dict[str, Answer] = {}
        self._planned: set[str] = set()
        self._stored = self.store.calls() if self.store is not None else {}

    def judge(self, block: list) -> None:
        """Take all protocols of a block of pairs from their first call to their last."""
        waiting = []
        for pair in block:
            try:
                cut, n_cut = self.limit.cut(pair)
                failure = None
            except ValueError as error:
                cut, n_cut, failure = None, 0, Failure(str(error))
            self.report.cut_responses += n_cut
            for name in self.experts:
                asking = PROTOCOLS[name](pair, self.settings)
                calls = _with_cut(next(asking), cut)
                if failure is None:
                    waiting.append((asking, calls, cut))
                else:
                    self._record(calls, [failure] * len(calls))
        while waiting:
            answers = self._answer([call for _, calls, _ in waiting for call in calls])
            waiting = self._advance(waiting, answers)

    def _advance(self, waiting: list, answers: list[Answer]) -> list:
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
            try:
                further.append((asking, _with_cut(asking.send(mine), cut), cut))
            except StopIteration:
                pass
        return further

    def _record(self, calls: list[Call], answers: list[Answer]) -> None:
        for call, answer in zip(calls, answers, strict=True):
            row = run_row(call, answer, self.backbone.name)
            self.report.errors += row["status"] == "error"
            self.report.low_mass += row["label_mass"] < LEAST_LABEL_MASS
            self.rows.append(row)

    def _answer(self, calls: list[Call]) -> list[Answer]:
        """Answers in the order of the calls. Batches hold distinct calls, sorted by key, whatever the store has."""
        keys = [call_key(self.backbone.name, call, self._identity(call)) for call in calls]
        groups: dict[tuple, dict[str, Call]] = {}
        for key, call in zip(keys, calls, strict=True):
            if key not in self._planned:
                groups.setdefault(call.decoding, {})[key] = call
        self.report.calls += len(calls)
        for _, group in sorted(groups.items(), key=lambda item: str(item[0])):
            self._planned.update(group)
            ordered = sorted(group)
            for start in range(0, len(ordered), BATCH_ROWS):
                self._batch({key: group[key] for key in ordered[start : start + BATCH_ROWS]})
        return [self._answers[key] for key in keys]

    def _identity(self, call: Call) -> Sequence[int]:
        if self.backbone.context:
            return self.backbone.render(call.prompt)
        return list(repr(call.prompt.key).encode())  # nothing is rendered: every row is a call of its own

    def _batch(self, batch: dict[str, Call]) -> None:
        """Answer one batch: from the store if it is all there, else computed whole, and what was missing is kept."""
        missing = [key for key in batch if key not in self._stored]
        self.report.distinct += len(batch)
        self.report.found += len(batch) - len(missing)
        self.report.made += len(missing)
        for key in batch:
            if key in self._stored:
                self._answers[key] = _from_row(self._stored[key])
        if not missing:
            return
        computed = dict(zip(batch, ask(self.backbone, list(batch.values())), strict=True))
        fresh = {key: computed[key] for key in missing}
        self._answers.update(fresh)
        kept = {key: answer for key, answer in fresh.items() if not isinstance(answer, Failure)}
        for answer in kept.values():
            for name in ("prompt_tokens", "cached_tokens", "new_tokens"):
                setattr(self.report, name, getattr(self.report, name) + getattr(answer, name))
        if self.store is not None:
            self.store.add_calls([_to_row(key, batch[key].verb, answer) for key, answer in kept.items()])

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
        if not self.experts:
            raise ValueError("every protocol was refused. " + " ".join(self.report.refused.values()))

    def check(self, stop_below: float | None, stop_cut_above: float | None) -> None:
        """Give up early where the caller asked for it."""
        limits = {"parsed": stop_below, "cut": stop_cut_above}
        for kind, share, text in _shortfalls(self.rows, warn_at=0.0):
            limit = limits[kind]
            if limit is not None and (share < limit if kind == "parsed" else share > limit):
                raise RuntimeError(f"stopped after the first block, as asked (limit {limit:.0%}). {text}")


def ask(backbone: Backbone, calls: Sequence[Call]) -> list[Answer]:
    """Make calls that share a verb and decoding, as one batch."""
    prompts = [call.prompt for call in calls]
    verbs: dict[str, Callable[[], list[Answer]]] = {
        "read": lambda: backbone.read(prompts, calls[0].labels),
        "generate": lambda: backbone.generate(prompts, max_new_tokens=calls[0].max_new_tokens),
    }
    return verbs[calls[0].verb]()


def _with_cut(calls: list[Call], cut: int | None) -> list[Call]:
    if cut is None:
        return calls
    return [dataclasses.replace(call, prompt=dataclasses.replace(call.prompt, cut=cut)) for call in calls]


def _to_row(key: str, verb: str, answer: Answer) -> dict:
    return {"key": key, "verb": verb, **dataclasses.asdict(answer)}


def _from_row(row: dict) -> Answer:
    kind = ANSWER_KIND[row["verb"]]
    values = {f.name: row[f.name] for f in dataclasses.fields(kind)}
    if "ids" in values:
        values["ids"] = tuple(values["ids"])
    return kind(**values)


def _shortfalls(rows: list[dict], warn_at: float = WARN_CUT) -> list[tuple[str, float, str]]:
    """(kind, share, sentence) per protocol whose generations are cut, or whose verdicts are not parsed, often enough."""
    out = []
    texts = [
        row for row in rows if row["status"] != "error" and (row["text"] or row["status"] in ("unparsed", "truncated"))
    ]
    for name in sorted({row["protocol"] for row in texts}):
        mine = [row for row in texts if row["protocol"] == name]
        status = Counter(row["status"] for row in mine)
        first = next((row["text"] for row in mine if row["status"] in ("unparsed", "truncated")), "")
        cut = status["truncated"] / len(mine)
        if cut >= warn_at:
            out.append(
                ("cut", cut, f"{name}: {cut:.0%} of {len(mine)} texts ran out of their budget, first {first[:120]!r}.")
            )
        verdicts = [row for row in mine if row["stage"] == "verdict"]
        parsed = sum(row["status"] in ("ok", "tie") for row in verdicts) / max(1, len(verdicts))
        if verdicts and 1 - parsed >= warn_at:
            out.append(
                (
                    "parsed",
                    parsed,
                    f"{name}: {parsed:.0%} of {len(verdicts)} verdicts parsed, first other {first[:120]!r}.",
                )
            )
    return out
