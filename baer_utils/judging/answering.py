"""From calls to answers: distinct calls in fixed batches, looked up in the store or made and kept."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

from baer_utils.backbones.base import Backbone, Failure, Generation, Likelihood, Read
from baer_utils.judging.planning import call_key, call_work
from baer_utils.judging.report import JudgingReport
from baer_utils.prompts import Prompt
from baer_utils.protocols import Answer, Call
from baer_utils.store import Store

BATCH_ROWS = 64  # calls per batch: what a kill can cost
KINDS = {"read": Read, "generate": Generation, "likelihood": Likelihood}


class Answering:
    """Answers calls, each distinct one once.

    Which calls share a batch depends on the plan alone, never on what the store has: a batch that is not there whole is
    computed whole, and only the answers that were missing are kept. An answer found keeps the bits it was made with,
    also where another plan made it (fewer pairs, another bank). A server batches as it likes, so from a judge without
    `whole_batches` only the missing answers are asked for.

    Parameters
    ----------
    backbone : the judge.
    store : where answers are kept; None keeps nothing. A judge that repeats recorded answers needs none.
    report : the counts to add to.
    advanced : told after each step how much work it was (in the unit of `planning.planned_work`), how many tokens were
        computed for answers, and whether they were found instead.
    """

    def __init__(
        self,
        backbone: Backbone,
        store: Store | None,
        report: JudgingReport,
        advanced: Callable[[float, int, bool], None],
    ):
        self._backbone, self._report = backbone, report
        self._store = store if backbone.context else None
        self._stored = self._store.calls() if self._store is not None else {}
        self._advanced = advanced
        self._sharing = 0.0
        self._answers: dict[str, Answer] = {}
        self._planned: set[str] = set()
        self._beginnings: Callable[[], list[Prompt]] | None = None

    def begin(self, prompts: Callable[[], list[Prompt]], work: float) -> None:
        """Say which prompts a block may ask: what they begin with is shared once anything has to be computed.

        `work` is what sharing counts for, of a judge that tells how far it is with it.
        """
        self._beginnings, self._sharing = prompts, work

    def answer(self, calls: Sequence[Call]) -> list[Answer]:
        """Answers in the order of the calls."""
        keys = [call_key(self._backbone.name, call, self._identity(call)) for call in calls]
        self._report.calls += len(calls)
        groups: dict[tuple, dict[str, Call]] = {}
        for key, call in zip(keys, calls, strict=True):
            if key not in self._planned:
                groups.setdefault(call.decoding, {})[key] = call
        for _, group in sorted(groups.items(), key=lambda item: str(item[0])):
            self._planned.update(group)
            ordered = sorted(group, key=lambda key, group=group: (*_asked_by(group[key]), key))
            for start in range(0, len(ordered), BATCH_ROWS):
                self._batch({key: group[key] for key in ordered[start : start + BATCH_ROWS]})
        return [self._answers[key] for key in keys]

    def _identity(self, call: Call) -> Sequence[int]:
        if self._backbone.context:
            return self._backbone.render(call.prompt)
        return list(repr(call.prompt.key).encode())  # nothing is rendered: every row is a call of its own

    def _batch(self, batch: dict[str, Call]) -> None:
        missing = [key for key in batch if key not in self._stored]
        made = missing if self._backbone.context else []  # a record is found, never made
        self._report.distinct += len(batch)
        self._report.found += len(batch) - len(made)
        self._report.made += len(made)
        self._answers.update({key: _from_row(self._stored[key]) for key in batch if key in self._stored})
        work = sum(map(call_work, batch.values()))
        if not missing:
            self._advanced(work, 0, True)
            return
        self._share()
        asked = list(batch) if getattr(self._backbone, "whole_batches", True) else missing
        computed = dict(zip(asked, ask(self._backbone, [batch[key] for key in asked]), strict=True))
        self._answers.update({key: computed[key] for key in missing})
        kept = [key for key in made if not isinstance(computed[key], Failure)]
        before = self._report.computed
        for key in kept:
            for name in ("prompt_tokens", "cached_tokens", "new_tokens"):
                setattr(self._report, name, getattr(self._report, name) + getattr(computed[key], name))
        self._advanced(work, self._report.computed - before, not made)
        if self._store is not None:
            self._store.add_calls([_to_row(key, batch[key].verb, computed[key]) for key in kept])

    def _share(self) -> None:
        if self._beginnings is None:
            return
        prompts, self._beginnings = self._beginnings(), None
        if not hasattr(self._backbone, "share_steps"):
            self._backbone.share(prompts)
            return
        before = 0.0
        for done in self._backbone.share_steps(prompts):
            self._advanced((done - before) * self._sharing, 0, False)
            before = done


def _asked_by(call: Call) -> tuple[str, str]:
    """Protocol and stage: texts of about one length share a batch, so that few of its rows are waited for."""
    return call.prompt.key.protocol, call.prompt.key.stage


def ask(backbone: Backbone, calls: Sequence[Call]) -> list[Answer]:
    """Make calls that share a verb and decoding, as one batch."""
    prompts, first = [call.prompt for call in calls], calls[0]
    if first.verb == "read":
        return backbone.read(prompts, first.labels)
    if first.verb == "likelihood":
        return backbone.likelihood(prompts, [call.text for call in calls])
    return backbone.generate(
        prompts,
        max_new_tokens=first.max_new_tokens,
        temperature=first.temperature,
        top_p=first.top_p,
        seeds=[call.seed for call in calls],
    )


def _to_row(key: str, verb: str, answer: Answer) -> dict:
    return {"key": key, "verb": verb, **dataclasses.asdict(answer)}


def _from_row(row: dict) -> Answer:
    kind = KINDS[row["verb"]]
    values = {f.name: row[f.name] for f in dataclasses.fields(kind)}
    if "ids" in values:
        values["ids"] = tuple(values["ids"])
    if "text" in values:
        values["text"] = values["text"] or ""  # null where an exact read was kept before reads had one
    return kind(**values)
