"""What every source of answers offers, and the four kinds of answer it gives; knows nothing about models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from baer_utils.prompts import LABELS, Prompt, without_thinking


@dataclass(frozen=True)
class Read:
    """A constrained read: one token, two labels.

    `log_odds` is of label 0 against label 1, float32 arithmetic; `label_mass` the probability of both before they were
    normalised, over the whole vocabulary. `text` is empty for an exact read; where a server lists one label only, the
    log-odds are the nearer bound, the mass is at least that, and the text says so.
    """

    log_odds: float
    label_mass: float
    prompt_tokens: int
    cached_tokens: int = 0
    new_tokens: int = 0
    seconds: float = 0.0
    text: str = ""


@dataclass(frozen=True)
class Generation:
    """Newly generated text with its token ids; `finish_reason` is "stop" or "length" (the budget ran out)."""

    text: str
    ids: tuple[int, ...]
    finish_reason: str
    prompt_tokens: int
    cached_tokens: int = 0
    new_tokens: int = 0
    seconds: float = 0.0

    @property
    def answer(self) -> str:
        """The text without the judge's thinking: what is parsed, and what later prompts may quote."""
        return without_thinking(self.text)


@dataclass(frozen=True)
class Likelihood:
    """Sum of log-probabilities of a text and its end token after a prompt; `new_tokens` counts both."""

    log_likelihood: float
    prompt_tokens: int
    cached_tokens: int = 0
    new_tokens: int = 0
    seconds: float = 0.0


@dataclass(frozen=True)
class Failure:
    """A call that gave no answer, and why. Never stored: the next run tries again."""

    reason: str


class Backbone(Protocol):
    """A judge. Lists go in, lists of the same length and order come out; a `Failure` stands where no answer came.

    Attributes
    ----------
    name : model, revision, precision, quantisation, thinking mode: part of every key.
    context : most tokens that a prompt and its answer may have together; 0 where nothing is rendered.

    Notes
    -----
    A judge may also have `verbs` (those of "read", "generate", "likelihood" that it answers; all of them by default),
    `whole_batches` (False where what shares a batch is not ours to fix, so that only missing answers are asked for),
    `share_steps(prompts)`, which does what `share` does and gives the part that is done in between, and `notes()`,
    sentences about what went otherwise than planned since it was last called.
    """

    name: str
    context: int

    def render(self, prompt: Prompt) -> list[int]:
        """Token ids of a prompt; empty where nothing is rendered."""

    def count(self, text: str) -> int:
        """Tokens of an untrusted text."""

    def share(self, prompts: Sequence[Prompt]) -> None:
        """Compute once what several of these prompts begin with, and forget what was shared before.

        It changes what later calls cost; what they answer, by less than 1e-4 in float32. A judge that cannot, need not.
        """

    def read(self, prompts: Sequence[Prompt], labels: tuple[str, str] = LABELS) -> list[Read | Failure]:
        """One constrained token per prompt."""

    def generate(
        self,
        prompts: Sequence[Prompt],
        *,
        max_new_tokens: int,
        temperature: float = 0.0,
        top_p: float = 1.0,
        seeds: Sequence[int] | None = None,
    ) -> list[Generation | Failure]:
        """Text, greedy at temperature 0; otherwise sampled, each prompt from its own seed."""

    def likelihood(self, prompts: Sequence[Prompt], texts: Sequence[str]) -> list[Likelihood | Failure]:
        """How likely a text is as the whole answer to a prompt."""
