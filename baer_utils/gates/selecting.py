"""The one choice of a condition: which head is deployed, from out-of-fold figures that others computed.

`Development` holds everything the rule looks at and `Decision` keeps it, so that a reader can redo the choice with a
pencil. This file refuses to know how a head is fitted; test rows have no part in it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import pandas as pd

from baer_utils.gates.margins import GATED, HEADS, MIN_QUESTIONS, POOLED, Verdict, advance


@dataclass(frozen=True)
class HeadFigures:
    """Out-of-fold figures of one head; each dict is keyed by selection, calibration and pooled.

    `accuracy` is a share of pairs (Eq. 1 decides every pair). `margin` is in points against that split's strongest
    baseline under the matched rule; `paper_margin` lets the baseline's ties and missing answers count as wrong and is
    printed beside it, never used. `discordant` holds (head right and baseline wrong, the reverse), `mcnemar_p` their
    exact two-sided p. `transfer_gap` is accuracy on calibration minus that on selection, in points. `zero_scores`
    counts pairs with s = 0. `accuracy_interval` is the 95 % interval of the accuracy (`metrics.share_interval`).
    """

    accuracy: dict[str, float]
    margin: dict[str, float]
    paper_margin: dict[str, float]
    discordant: dict[str, tuple[int, int]]
    mcnemar_p: dict[str, float]
    transfer_gap: float
    zero_scores: int
    notes: dict[str, object] = field(default_factory=dict)  # what the head's own fit looked at, such as lambda by fold
    accuracy_interval: dict[str, tuple[float, float]] = field(default_factory=dict)


@dataclass(frozen=True)
class Development:
    """Everything `select_head` looks at; test rows have no part in it.

    Attributes
    ----------
    heads : head name -> its figures; None where it was not evaluated.
    pairs, questions : split -> number of labelled pairs, of distinct questions.
    baselines : split -> name of the strongest external baseline there, matched rule.
    baseline_accuracy : "matched" and "paper" -> split -> baseline -> share correct.
    best_single : expert whose own sign is right most often on all development pairs, matched rule; equal ones by name.
    rules : the rules that any head should beat (`metrics.simple_rules`) -> the same figures as a head's, ties and
        missing answers counting as *a*. `best_single` was chosen on these very pairs, which flatters its row.
    unlabelled : development pairs left out because nobody labelled them.
    not_evaluated : head -> why.
    extra_candidates : what the router could choose besides the experts.
    out_of_fold : one row per pair: pair_id, group_id, split, fold, label, a score per evaluated head, for the router
        also `route_expert` and `route_reliability`, and the native decision of every baseline (+1, -1, 0 tie, NaN
        missing).
    """

    heads: dict[str, HeadFigures | None]
    pairs: dict[str, int]
    questions: dict[str, int]
    baselines: dict[str, str]
    baseline_accuracy: dict[str, dict[str, dict[str, float]]]
    best_single: str = ""
    rules: dict[str, HeadFigures] = field(default_factory=dict)
    unlabelled: int = 0
    not_evaluated: dict[str, str] = field(default_factory=dict)
    extra_candidates: tuple[str, ...] = ()
    out_of_fold: pd.DataFrame = field(default_factory=pd.DataFrame, compare=False, repr=False)

    def table(self) -> pd.DataFrame:
        """One row per method and split, heads before simple rules: accuracy, baseline, margins, discordant pairs, p."""
        rows = []
        for method, figures in (self.heads | self.rules).items():
            for split in (*GATED, POOLED) if figures else ():
                row = {"method": method, "split": split, "pairs": self.pairs[split]}
                row |= {
                    "accuracy": figures.accuracy[split],
                    "baseline": self.baselines[split],
                    "margin": figures.margin[split],
                }
                row |= {"paper_margin": figures.paper_margin[split]}
                row |= {"discordant": figures.discordant[split], "mcnemar_p": figures.mcnemar_p[split]}
                rows.append(row)
        return pd.DataFrame(rows)


@dataclass(frozen=True)
class Decision:
    """The head of a condition, why, and all that was looked at. `selected` is False where data were too few."""

    head: str
    selected: bool
    reasons: tuple[str, ...]
    verdicts: dict[str, Verdict | None]
    development: Development

    def __str__(self) -> str:
        return "\n".join([f"Deployed head: {self.head}.", *self.reasons])


def select_head(development: Development) -> Decision:
    """Choose one head for a condition: the stack, unless route or reference earns its place.

    Parameters
    ----------
    development : out-of-fold figures of every head.

    Returns
    -------
    Decision
        (1) Stack is the default whatever its margins. (2) Route replaces it iff its pooled accuracy is strictly higher
        and both its margins are above zero. (3) Reference replaces the current choice iff both its margins are above
        zero and its pooled margin is strictly higher. Fewer than `MIN_QUESTIONS` questions in selection: nothing is
        selected, and the stack is deployed with the largest lambda. That no head beats the baselines is an ordinary
        outcome, which the reasons state.
    """
    heads = development.heads
    if heads.get("stack") is None:
        raise ValueError("select_head needs the stack's figures, which are the default; they are missing. Run develop.")
    verdicts = {name: _verdict(heads.get(name)) for name in HEADS}
    questions = development.questions["selection"]
    if questions < MIN_QUESTIONS:
        reason = (
            f"Nothing was selected: selection has {questions} questions and selecting takes {MIN_QUESTIONS}. "
            "The stack is deployed with the largest lambda."
        )
        return Decision("stack", False, (reason,), verdicts, development)
    choice, reasons = "stack", [f"stack is the default: {verdicts['stack']}."]
    for challenger, quantity in (("route", "accuracy"), ("reference", "margin")):
        if verdicts[challenger] is None:
            why = development.not_evaluated.get(challenger, "its runs are missing")
            reasons.append(f"{challenger} was not evaluated: {why}.")
            continue
        theirs = getattr(heads[challenger], quantity)[POOLED]
        ours = getattr(heads[choice], quantity)[POOLED]
        wins = bool(verdicts[challenger]) and theirs > ours
        outcome = "replaces" if wins else "does not replace"
        numbers = f"{verdicts[challenger]}; pooled {quantity} {theirs:.4f} against {ours:.4f}"
        reasons.append(f"{challenger} {outcome} {choice}: {numbers}.")
        choice = challenger if wins else choice
    if not verdicts[choice]:
        reasons.append(f"{choice} does not beat the strongest baseline on both development splits.")
    return Decision(choice, True, tuple(reasons), verdicts, development)


def _verdict(figures: HeadFigures | None) -> Verdict | None:
    return advance(figures.margin["selection"], figures.margin["calibration"]) if figures else None
