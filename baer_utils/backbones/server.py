"""A judge behind a server that speaks the OpenAI protocol: vLLM on one GPU or many nodes, or anybody's chat interface.

Answers come in the order they were asked for, or as a `Failure` with its reason, which is never kept: a later run asks
again for exactly those. The addresses are no part of the judge's name, so a run goes on when its server has moved.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from baer_utils.backbones.answers import cached, in_order, understood
from baer_utils.backbones.base import Failure, Generation, Likelihood, Read
from baer_utils.backbones.bounds import read_listed
from baer_utils.backbones.capabilities import check_api, verbs_of
from baer_utils.backbones.chat import Chat
from baer_utils.backbones.completions import Completions
from baer_utils.backbones.served import load_tokenizer, served_model
from baer_utils.backbones.transport import Refused, Transport
from baer_utils.prompts import LABELS, Prompt

SEEDS = 2**31  # every server takes seeds below it
FOR_ITS_CONTENT = (400, 413, 422)  # a refusal that one prompt among several may have earned


class ServerBackbone:
    """Answers from one server, or from several that serve the same model.

    With ``api="completions"`` prompts go out as token ids of our own rendering and reads are exact; with ``api="chat"``
    as messages, and a read is a bound where one label is not among the likeliest tokens (`bounds`). `CAPABILITIES`
    says what each can be asked.

    Parameters
    ----------
    base_urls : one address, like ``http://localhost:8000``, or several; a server that fails is left alone for a while.
    model : the model as the servers call it. Another precision or revision needs another name there (vLLM:
        ``--served-model-name``), for servers do not tell them and answers are kept by this name.
    api : "completions" or "chat".
    tokenizer : completions: folder or Hub id of the served model's tokenizer; by default what the server says it
        loaded, else `model`.
    context : most tokens of a prompt and its answer; by default what the server says, else the tokenizer's folder.
    thinking : completions: whether a template that knows a thinking mode switches it on.

    Raises
    ------
    ConnectionError : when no server answers.
    ValueError : for an unknown api, a model that is not served, or a context or tokenizer that nobody knows.
    """

    whole_batches = False  # what shares a batch is the server's affair: only answers that are missing are asked for

    def __init__(self, base_urls: str | Sequence[str], model: str, *, api: str = "completions",
                 tokenizer: str | None = None, context: int | None = None, thinking: bool = False):  # fmt: skip
        check_api(api)
        if api == "chat" and (tokenizer or thinking):
            raise ValueError("tokenizer and thinking belong to api=completions; a chat server renders by itself.")
        self.verbs = verbs_of(api)
        self._transport = Transport([base_urls] if isinstance(base_urls, str) else base_urls)
        self._model, self._constrains = model, True
        self._failed, self._last_failure = 0, ""
        served = served_model(self._transport, model)
        if api == "chat":
            self._api, stated = Chat(), 0
        else:
            loaded, stated = load_tokenizer([tokenizer] if tokenizer else [served.root, model])
            self._api = Completions(loaded, thinking=thinking)
        self.context = context or served.context or stated
        if not self.context:
            raise ValueError(f"the context of {model} must be known; its server does not say. Add context=<tokens>.")
        self.name = f"server:{model}{served.version}?api={api}&thinking={str(thinking).lower()}"
        self._unreachable = served.unreachable

    def render(self, prompt: Prompt) -> list[int]:
        """Token ids of a prompt; with api=chat, numbers that name its messages, about as many."""
        return self._api.units(prompt)

    def count(self, text: str) -> int:
        """Tokens of an untrusted text; with api=chat, an estimate."""
        return self._api.count(text)

    def share(self, prompts: Sequence[Prompt]) -> None:
        """Servers hold the beginnings of prompts by themselves."""

    def notes(self) -> list[str]:
        """What went otherwise than planned since this was last asked, in sentences."""
        repeated, again = self._transport.repeated, self._api.retokenised
        told = [*self._unreachable]
        if repeated:
            kinds = ", ".join(f"{kind}: {count:,}" for kind, count in sorted(repeated.items()))
            told.append(f"{repeated.total():,} requests to servers failed and were made again ({kinds}).")
        if self._failed:
            told.append(f"{self._failed:,} calls to servers failed, the last because {self._last_failure}")
        if again:
            told.append(f"{again:,} texts came without their token ids and were tokenised again.")
        repeated.clear()
        self._unreachable, self._failed, self._api.retokenised = [], 0, 0
        return told

    def read(self, prompts: Sequence[Prompt], labels: tuple[str, str] = LABELS) -> list[Read | Failure]:
        """Log-odds of label 0 against label 1 at the next token, and the mass of both over the whole vocabulary.

        `Read.text` says so where a read is a bound. A read that saw neither label is a `Failure`.
        """
        began, rows = time.perf_counter(), [self._api.row(prompt) for prompt in prompts]
        choices = self._choices(rows, self._api.read_settings(labels))
        listed = [understood(self._api.listed, choice, labels) for choice in choices]
        if isinstance(self._api, Completions):
            self._list_labels(rows, listed, labels)
        side = self._api.side(labels)
        read = partial(self._read, lambda found: read_listed(found, side, labels))
        return self._done([understood(read, *one) for one in zip(choices, rows, listed, strict=True)], began)

    def generate(self, prompts: Sequence[Prompt], *, max_new_tokens: int, temperature: float = 0.0, top_p: float = 1.0,
                 seeds: Sequence[int] | None = None) -> list[Generation | Failure]:  # fmt: skip
        """New text for each prompt; sampled texts from each prompt's own seed, as far as the server honours it."""
        if temperature > 0 and seeds is None:
            raise ValueError("sampling (temperature > 0) needs one seed per prompt; seeds is None. Hash the prompts.")
        began, rows = time.perf_counter(), [self._api.row(prompt) for prompt in prompts]
        each = [{"seed": seed % SEEDS} for seed in seeds] if temperature > 0 else None
        choices = self._choices(rows, self._api.text_settings(max_new_tokens, temperature, top_p), each)
        return self._done([understood(self._text, *one) for one in zip(choices, rows, prompts, strict=True)], began)

    def likelihood(self, prompts: Sequence[Prompt], texts: Sequence[str]) -> list[Likelihood | Failure]:
        """Log-probability of each text and its end token as the whole answer to its prompt.

        Raises
        ------
        ValueError : with api=chat, which has no likelihoods.
        """
        if "likelihood" not in self.verbs:
            raise ValueError(f"{self.name} has no likelihoods; use api=completions, or leave those experts out.")
        began, split = time.perf_counter(), self._api.answer_rows(prompts, texts)
        rows = [head + tail for head, tail in split]
        choices = self._choices(rows, self._api.likelihood_settings())
        answers = [understood(self._api.likelihood, c, *parts) for c, parts in zip(choices, split, strict=True)]
        return self._done(answers, began)

    def _read(self, reading, choice: dict, row, found: dict | Failure) -> Read | Failure:
        read = found if isinstance(found, Failure) else reading(found)
        if isinstance(read, Failure):
            return read
        prompt_tokens, _ = self._api.tokens(row, choice, ())
        return Read(read[0], read[1], prompt_tokens, cached(choice), text=read[2])

    def _text(self, choice: dict, row, prompt: Prompt) -> Generation | Failure:
        text = self._api.text(choice, prompt)
        if isinstance(text, Failure):
            return text
        prompt_tokens, new_tokens = self._api.tokens(row, choice, text[1])
        return Generation(text[0], tuple(text[1]), text[2], prompt_tokens, cached(choice), new_tokens)

    def _choices(self, rows: list, settings: dict, each: list[dict] | None = None,
                 size: int | None = None) -> list[dict | Failure]:  # fmt: skip
        """One choice for each row. A request of several rows that is refused is asked again row by row."""
        size = size or (self._api.rows_at_once if each is None else 1)
        groups = [range(start, min(start + size, len(rows))) for start in range(0, len(rows), size)]
        shared = {"model": self._model} | settings
        bodies = [shared | self._api.body([rows[n] for n in g]) | (each[g[0]] if each else {}) for g in groups]
        choices: list[dict | Failure] = []
        for group, answer in zip(groups, self._transport.post(self._api.path, bodies), strict=True):
            if isinstance(answer, Refused) and answer.status in FOR_ITS_CONTENT and len(group) > 1:
                choices += self._choices([rows[n] for n in group], settings, size=1)
            else:
                choices += in_order(answer, len(group))
        return choices

    def _list_labels(self, rows: list, listed: list, labels: tuple[str, str]) -> None:
        """Ask for labels that a server did not list, each as the only token allowed; once if that is beyond it."""
        for token in sum(self._api.label_ids(labels), []):
            lacking = [n for n, found in enumerate(listed)
                       if not isinstance(found, Failure) and token in self._api.missing(found, labels)]  # fmt: skip
            if not lacking or not self._constrains:
                continue
            choices = self._choices([rows[n] for n in lacking], self._api.label_settings(token))
            answers = [understood(self._api.constrained, choice, token) for choice in choices]
            self._constrains = any(answers)  # a Failure is no sign that it cannot
            for n, found in zip(lacking, answers, strict=True):
                listed[n] = found if isinstance(found, Failure) else listed[n] | found

    def _done(self, answers: list, began: float) -> list:
        """The answers with their share of the time; failures are counted."""
        failures = [answer.reason for answer in answers if isinstance(answer, Failure)]
        self._failed += len(failures)
        self._last_failure = failures[-1] if failures else self._last_failure
        seconds = (time.perf_counter() - began) / max(len(answers), 1)
        return [a if isinstance(a, Failure) else replace(a, seconds=seconds) for a in answers]
