"""What a run of the bank did, in counts and sentences."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field

WORTH_A_WARNING = 0.2  # share of generations cut by their budget, or of verdicts not parsed


@dataclass
class JudgingReport:
    """What a run of `judge_pairs` did, in counts; printing it gives one paragraph.

    `calls` are planned calls, `distinct` those with a key of their own, `found` of these in the store or in a record,
    `made` now; tokens are of the calls made now. `errors` counts rows without an answer: a pair that does not fit, or a
    failed call, ends its protocol there, and later calls are not planned. `low_mass` counts reads under 1 %, `bounds`
    reads of which only a bound is known. `refused` maps a protocol to the reason (its rows are left out; its calls were
    made, unless the judge has no token for its labels), `shown` a pair whose responses were cut to the tokens shown of
    each, `judge` says how a local judge computed and how it says its labels (where calls were made), `warnings` are
    sentences worth reading.
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
    bounds: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    new_tokens: int = 0
    seconds: float = 0.0
    refused: dict[str, str] = field(default_factory=dict)
    shown: dict[str, int] = field(default_factory=dict)
    judge: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    @property
    def computed(self) -> int:
        """Tokens that the calls made now had to compute: what they shared counts once."""
        return self.prompt_tokens - self.cached_tokens + self.new_tokens

    @property
    def _cut_to(self) -> str:
        if not self.shown:
            return ""
        pair_id = min(self.shown, key=self.shown.get)
        return f" (in {len(self.shown):,} pairs; the shortest to {self.shown[pair_id]:,} tokens, in {pair_id})"

    def __str__(self) -> str:
        text = (
            f"{self.pairs:,} pairs, {self.runs:,} runs from {self.distinct:,} distinct calls: {self.found:,} found, "
            f"{self.made:,} made ({self.prompt_tokens:,} prompt and {self.new_tokens:,} new tokens, "
            f"{self.seconds:.0f} s). {self.cut_responses:,} responses cut{self._cut_to}, {self.errors:,} calls failed, "
            f"{self.low_mass:,} reads with little label mass."
        )
        if self.cached_tokens:
            left = self.prompt_tokens - self.cached_tokens
            text += (
                f" Of the {self.prompt_tokens:,} tokens of separate prompts, {left:,} were computed "
                f"({left / self.prompt_tokens:.0%}): what prompts begin with is computed once."
            )
        if self.bounds:
            text += f" {self.bounds:,} reads are bounds: the server lists one of their two labels only."
        refused = [f"Refused: {name}. {reason}" for name, reason in self.refused.items()]
        return "\n".join([text, *refused, *self.judge, *self.warnings])


@dataclass(frozen=True)
class Shortfall:
    """A protocol whose texts are cut, or whose verdicts are not parsed: which, how often, and the first text."""

    kind: str
    share: float
    sentence: str


def shortfalls(rows: list[dict]) -> list[Shortfall]:
    """Share of cut texts and of parsed verdicts for every protocol that generates.

    Parameters
    ----------
    rows : rows of a run table, as dicts.
    """
    found = []
    texts = [row for row in rows if row["text"] or row["status"] in ("unparsed", "truncated")]
    texts = [row for row in texts if row["status"] != "error" and math.isnan(row["label_mass"])]  # a read is no text
    for name in sorted({row["protocol"] for row in texts}):
        mine = [row for row in texts if row["protocol"] == name]
        cut = Counter(row["status"] for row in mine)["truncated"] / len(mine)
        first = _first(mine, "truncated")
        found.append(
            Shortfall("cut", cut, f"{name}: {cut:.0%} of {len(mine)} texts ran out of budget, first {first!r}.")
        )
        verdicts = [row for row in mine if row["stage"] == "verdict"]
        if verdicts:
            parsed = sum(row["status"] in ("ok", "tie") for row in verdicts) / len(verdicts)
            first = _first(verdicts, "unparsed", "truncated")
            sentence = f"{name}: {parsed:.0%} of {len(verdicts)} verdicts parsed, first other {first!r}."
            found.append(Shortfall("unparsed", 1 - parsed, sentence))
    return found


def _first(rows: list[dict], *statuses: str) -> str:
    return next((row["text"][:120] for row in rows if row["status"] in statuses), "")
