"""A judge that repeats recorded answers: for readers without a model, and for every figure of the book.

Answers are looked up by run key, and the prompt they were given to must be the one that is asked now. Nothing is
computed, so neither torch nor transformers is needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from baer_utils.backbones.base import Failure, Generation, Likelihood, Read
from baer_utils.prompts import LABEL_SIGN, LABELS, Prompt
from baer_utils.records import RUN_KEY, check_runs

FOLDER = Path(__file__).parents[2] / "data" / "replay"


class ReplayBackbone:
    """Answers from a run table.

    Parameters
    ----------
    runs : run table, checked; of one backbone.
    name : how the backbone is called, by default ``replay:`` and the recorded judge's short name.
    """

    context = 0

    def __init__(self, runs: pd.DataFrame, name: str | None = None):
        table = check_runs(runs)
        judges = table["backbone"].unique()
        if len(judges) != 1:
            raise ValueError(f"a record must be of one judge; it has {', '.join(judges) or 'no rows'}. Choose one.")
        self.name = name or f"replay:{judges[0].partition('@')[0]}"
        self._rows = {tuple(row[column] for column in RUN_KEY): row for row in table.to_dict("records")}
        self._recorded = set(zip(table["pair_id"], table["protocol"], strict=True))

    def has(self, pair_id: str, protocol: str) -> bool:
        """Whether a protocol was recorded on a pair."""
        return (pair_id, protocol) in self._recorded

    def render(self, prompt: Prompt) -> list[int]:
        """Nothing is rendered."""
        return []

    def count(self, text: str) -> int:
        """Nothing is tokenised."""
        return 0

    def share(self, prompts: Sequence[Prompt]) -> None:
        """Nothing is computed, so nothing is shared."""

    def read(self, prompts: Sequence[Prompt], labels: tuple[str, str] = LABELS) -> list[Read | Failure]:
        """Recorded reads: the signed log-odds of the run table turned back to label 0 against label 1."""
        return [self._answer(prompt, _as_read) for prompt in prompts]

    def generate(self, prompts: Sequence[Prompt], *, max_new_tokens: int, temperature: float = 0.0, top_p: float = 1.0,
                 seeds: Sequence[int] | None = None) -> list[Generation | Failure]:  # fmt: skip
        """Recorded texts; token ids were not recorded and are empty.

        Raises
        ------
        ValueError : where another budget would have given another text: one cut shorter, or one not cut yet.
        """
        answers = [self._answer(prompt, _as_generation) for prompt in prompts]
        for prompt, answer in zip(prompts, answers, strict=True):
            if isinstance(answer, Failure):
                continue
            cut, wrote = answer.finish_reason == "length", answer.new_tokens
            if wrote != max_new_tokens if cut else wrote >= max_new_tokens:
                raise ValueError(
                    f"{self.name} must be asked with the budget it recorded; for {prompt.key} it recorded {wrote} "
                    f"tokens, {'cut there' if cut else 'ended there'}, and max_new_tokens is now {max_new_tokens}. "
                    "Use the recorded settings, or judge live."
                )
        return answers

    def likelihood(self, prompts: Sequence[Prompt], texts: Sequence[str]) -> list[Likelihood | Failure]:
        """Recorded log-likelihoods."""
        return [self._answer(prompt, _as_likelihood) for prompt in prompts]

    def _answer(self, prompt: Prompt, build):
        row = self._rows.get(tuple(prompt.key))
        if row is None:
            raise ValueError(
                f"{self.name} must have recorded every prompt it is asked; it has none for {prompt.key}. "
                "Use the live judge (BACKBONE=smollm2-135m), or fewer pairs and protocols."
            )
        if row["prompt_sha"] != prompt.sha:
            raise ValueError(
                f"{self.name} must be asked what it recorded; for {prompt.key} it recorded a prompt with SHA-256 "
                f"{row['prompt_sha'][:12]}…, and the one asked now has {prompt.sha[:12]}… (version {prompt.version}). "
                "The words or the pair changed: record again, or judge live."
            )
        return Failure(row["text"]) if row["status"] == "error" else build(prompt, row)


def open_replay(name: str) -> ReplayBackbone:
    """The recorded runs in ``data/replay/<name>/`` (one Parquet file per benchmark)."""
    files = sorted((FOLDER / name).glob("*.parquet"))
    if not files:
        raise FileNotFoundError(f"recorded runs must lie in {FOLDER / name} as Parquet files; there are none.")
    return ReplayBackbone(pd.concat([pd.read_parquet(file) for file in files]), f"replay:{name}")


def _as_read(prompt: Prompt, row: dict) -> Read:
    return Read(LABEL_SIGN[prompt.key.view] * row["log_odds"], row["label_mass"], **_counts(row), text=row["text"])


def _as_generation(prompt: Prompt, row: dict) -> Generation:
    return Generation(row["text"], (), "length" if row["status"] == "truncated" else "stop", **_counts(row))


def _as_likelihood(prompt: Prompt, row: dict) -> Likelihood:
    return Likelihood(float(row["text"]), **_counts(row))


def _counts(row: dict) -> dict:
    return {name: row[name] for name in ("prompt_tokens", "cached_tokens", "new_tokens", "seconds")}
