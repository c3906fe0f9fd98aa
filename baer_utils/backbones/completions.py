"""The completions interface in both directions: prompts as token ids of our own rendering, and what comes back.

Nothing is sent from here. Written against vLLM's /v1/completions; a server that ignores an option of it shows that in
its answer, and what then cannot be known exactly becomes a bound or a `Failure`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache

from baer_utils.backbones.base import Failure, Likelihood
from baer_utils.backbones.bounds import LEAST
from baer_utils.backbones.labels import label_tokens
from baer_utils.backbones.rendering import Renderer
from baer_utils.prompts import Prompt

LISTED = 5  # likeliest tokens asked for beside the labels; what every server allows
# a model's own generation settings must not reach greedy or sampled texts, as they do on servers unless told otherwise
PLAIN = {"top_k": 0, "min_p": 0.0, "repetition_penalty": 1.0, "presence_penalty": 0.0, "frequency_penalty": 0.0}


class Completions:
    """Prompts to request bodies and answers to readings.

    Parameters
    ----------
    tokenizer : the tokenizer of the served model.
    thinking : whether a template that knows a thinking mode switches it on.
    """

    path = "/v1/completions"
    rows_at_once = 8  # prompts in one request: what one lost connection can touch
    retokenised = 0  # texts that came without token ids

    def __init__(self, tokenizer, *, thinking: bool = False):
        self._tokenizer = tokenizer
        self._renderer = Renderer(tokenizer, thinking=thinking)
        self._known = lru_cache(self._find_known)
        self._ends = {*tokenizer.all_special_ids} - {tokenizer.unk_token_id}

    def units(self, prompt: Prompt) -> list[int]:
        """Token ids of a prompt."""
        return self._renderer.ids(prompt)

    row = units  # what stands for one prompt in a request

    def count(self, text: str) -> int:
        """Tokens of an untrusted text."""
        return len(self._renderer.untrusted_ids(text))

    def body(self, rows: Sequence[Sequence[int]]) -> dict:
        """The part of a request that says what is asked about."""
        return {"prompt": [list(row) for row in rows], "return_tokens_as_token_ids": True}

    def tokens(self, row: Sequence[int], choice: dict, ids: Sequence[int]) -> tuple[int, int]:
        """Tokens of a prompt and of a new text."""
        return len(row), len(ids)

    # ------------------------------------------------------------------ reads

    def label_ids(self, labels: tuple[str, str]) -> tuple[list[int], list[int]]:
        """Token ids of two labels in their spellings, as the local judge has them."""
        return label_tokens(self._renderer.tokenizer, labels)

    def read_settings(self, labels: tuple[str, str]) -> dict:
        """One token, constrained to the labels; the probability of each label and of one token that is none."""
        ids = sum(self.label_ids(labels), [])
        witness = next(n for n in range(len(ids) + 1) if n not in ids)
        return {"max_tokens": 1, "temperature": 0.0, "allowed_token_ids": ids, "logprobs": LISTED,
                "logprob_token_ids": [*ids, witness]} | PLAIN  # fmt: skip

    def label_settings(self, token: int) -> dict:
        """One token, constrained to a single one, for a server that lists no tokens by name: its own probability."""
        return {"max_tokens": 1, "temperature": 0.0, "allowed_token_ids": [token], "logprobs": 1} | PLAIN

    def side(self, labels: tuple[str, str]) -> Callable[[str], int | None]:
        """From a listed token, named by its id or by its text, to the label that it stands for, or None."""
        known = self._known(labels)
        return lambda token: known.get(token, (None,))[0]

    def listed(self, choice: dict, labels: tuple[str, str]) -> dict[str, float] | Failure:
        """Log-probabilities of the tokens that a choice lists; a `Failure` where they are not of the whole vocabulary,
        or where the server's tokens are not this tokenizer's."""
        found = _first_position(choice)
        if isinstance(found, Failure):
            return found
        side, said, text = self.side(labels), choice["logprobs"]["tokens"][0], choice.get("text") or ""
        if side(said) is not None and text.strip() != labels[side(said)]:
            return Failure(f"the tokenizer must be the served model's; what stands for {labels[side(said)]!r} here is "
                           f"{text!r} to the server. Name the right one with tokenizer=.")  # fmt: skip
        others = [value for token, value in found.items() if side(token) is None]
        if others and max(others) <= LEAST:
            return Failure("the server's log-probabilities must be those before the constraint; only the labels have "
                           "any. Start vLLM with --logprobs-mode raw_logprobs.")  # fmt: skip
        return found

    def missing(self, listed: dict[str, float], labels: tuple[str, str]) -> list[int]:
        """Token ids of labels that are not listed, neither by id nor by text."""
        seen = {self._known(labels)[token][1] for token in listed if token in self._known(labels)}
        return [token for token in sum(self.label_ids(labels), []) if token not in seen]

    def constrained(self, choice: dict, token: int) -> dict[str, float]:
        """The log-probability of the one token that was allowed; nothing where the server wrote another."""
        found = _first_position(choice)
        said = None if isinstance(found, Failure) else choice["logprobs"]["tokens"][0]
        return {said: found[said]} if said in (_named(token), self._tokenizer.decode([token])) else {}

    def _find_known(self, labels: tuple[str, str]) -> dict[str, tuple[int, int]]:
        """Token, by id and by text -> (number of its label, id)."""
        sides = enumerate(self.label_ids(labels))
        known = {token: (side, token) for side, ids in sides for token in ids}
        named = {_named(token): found for token, found in known.items()}
        return named | {self._tokenizer.decode([token]): found for token, found in known.items()}

    # ------------------------------------------------------------------ texts and likelihoods

    def text_settings(self, budget: int, temperature: float, top_p: float) -> dict:
        """A text of at most so many tokens, with its token ids."""
        return {"max_tokens": budget, "temperature": temperature, "top_p": top_p, "return_token_ids": True} | PLAIN

    def text(self, choice: dict, prompt: Prompt) -> tuple[str, list[int], str] | Failure:
        """A text without its end token, its ids, and why it ended; without ids it is tokenised again, and counted."""
        reason, given = choice.get("finish_reason"), choice.get("token_ids")
        if reason not in ("stop", "length"):
            return Failure(f'a text must end with "stop" or "length"; the server says {reason!r}.')
        if given is None:
            self.retokenised += 1
            return choice.get("text") or "", self._renderer.untrusted_ids(choice.get("text") or ""), reason
        ends = self._ends | {choice.get("stop_reason")}
        ids = list(given[:-1]) if reason == "stop" and given and given[-1] in ends else list(given)
        return self._tokenizer.decode(ids, skip_special_tokens=True), ids, reason

    def answer_rows(self, prompts: Sequence[Prompt], texts: Sequence[str]) -> list[tuple[list[int], list[int]]]:
        """Token ids of each prompt, and of its text with the end token."""
        end = [self._tokenizer.eos_token_id]
        return [(self.units(p), self._renderer.untrusted_ids(t)[: p.cut] + end)
                for p, t in zip(prompts, texts, strict=True)]  # fmt: skip

    def likelihood_settings(self) -> dict:
        """The log-probability of every token of the prompt, and one new token, which some servers insist on."""
        return {"max_tokens": 1, "temperature": 0.0, "prompt_logprobs": 0} | PLAIN

    def likelihood(self, choice: dict, head: list[int], tail: list[int]) -> Likelihood | Failure:
        """Sum over the tail."""
        listed = choice.get("prompt_logprobs")
        row = head + tail
        if not isinstance(listed, list) or len(listed) != len(row):
            return Failure("a server must give prompt_logprobs for likelihoods, one for each token of the prompt; "
                           "this one does not. Use vLLM, or leave the likelihood experts out.")  # fmt: skip
        try:
            values = [listed[n][str(row[n])]["logprob"] for n in range(len(head), len(row))]
        except (KeyError, TypeError):
            return Failure("a server must give the log-probability of the prompt's own tokens; this one gives others.")
        return Likelihood(math.fsum(values), len(head), new_tokens=len(tail))


def _named(token: int) -> str:
    return f"token_id:{token}"


def _first_position(choice: dict) -> dict[str, float] | Failure:
    """What a choice lists for its first token, with the token itself."""
    try:
        shown = choice["logprobs"]
        pairs = [*(shown["top_logprobs"] or [{}])[0].items(), (shown["tokens"][0], shown["token_logprobs"][0])]
        return {token: float(value) for token, value in pairs if not math.isnan(value)}
    except (KeyError, TypeError, IndexError, AttributeError):
        return Failure("a server must give log-probabilities for reads; this answer has none. Leave out experts that "
                       "read, or use another server.")  # fmt: skip
