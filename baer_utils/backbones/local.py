"""A judge on this machine: any causal language model that transformers can load, on CPU or GPU.

Reads are exact: one forward pass, the last position, float32 log-odds. Prompts of a batch are padded on the left, so
the last column is every prompt's last token, and position ids count from each prompt's own first token.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from transformers import AutoConfig, AutoTokenizer

from baer_utils.backbones.base import Failure, Generation, Likelihood, Read
from baer_utils.backbones.batching import batches, read_tokens
from baer_utils.backbones.decoding import decode, greedy, sampled
from baer_utils.backbones.labels import LabelProbe, label_tokens, probe, probed_prompts
from baer_utils.backbones.prefixes import Asked, Prefixes, padded
from baer_utils.backbones.rendering import Renderer
from baer_utils.backbones.weights import QUANTIZED, context_of, digest_of, load_model, source_of
from baer_utils.prompts import LABELS, Prompt

CLOSING_TOKENS = 8  # of a thinking judge's context, for the mark that ends a thought whose budget ran out
DTYPES = ("float32", "bfloat16", "float16")
OVERFLOW = Failure("the judge's log-odds must be a number; they overflowed. Use dtype=float32 or dtype=bfloat16.")


class TransformersBackbone:
    """Answers from a causal language model through transformers.

    Parameters
    ----------
    model : Hub id, folder, or ``.gguf`` file.
    dtype : "float32", "bfloat16" or "float16"; by default float32 on CPU (bfloat16 flips the sign of a small judge's
        evidence on one pair in six) and the model's own on a GPU.
    device : torch device; by default a GPU when there is one.
    quantization : None, "8bit" or "4bit" (bitsandbytes, see `load_model`). 8-bit reads depend on what shares their
        batch, by whole tenths of a log-odds: which activations stay exact is decided for all rows together.
    thinking : whether the judge thinks before it writes freely; before a read or a likelihood it never does.
    label, revision : how `name` calls the model; by default ``hf:<model>`` and the Hub commit or a digest of the files.
    """

    def __init__(self, model: str | Path, *, dtype: str | None = None, device: str | None = None,
                 quantization: str | None = None, thinking: bool = False, label: str | None = None,
                 revision: str | None = None):  # fmt: skip
        for name, value, known in (("dtype", dtype, DTYPES), ("quantization", quantization, QUANTIZED)):
            if value not in (None, *known):
                raise ValueError(f"{name} must be one of {', '.join(known)}, or left out; it is {value!r}.")
        self._source = source_of(model)
        if quantization and "gguf_file" in self._source:
            raise ValueError(f"a .gguf file is loaded as dtype says, never as {quantization}. Leave quantization out.")
        self.quantization = quantization
        self.device = device or ("cuda" if torch.cuda.is_available() else "cpu")
        self.tokenizer = AutoTokenizer.from_pretrained(**self._source)
        config = AutoConfig.from_pretrained(**self._source)
        self.dtype = dtype or (
            "float32" if self.device == "cpu" else str(config.dtype or "float32").removeprefix("torch.")
        )
        self._renderer = Renderer(self.tokenizer, thinking=thinking)
        self.context = context_of(config.get_text_config(), self.tokenizer) - thinking * CLOSING_TOKENS
        revision = revision or getattr(config, "_commit_hash", None) or digest_of(Path(model))
        precision = self.dtype + (f"&quantization={quantization}" if quantization else "")
        self.name = f"{label or f'hf:{model}'}@{revision}?dtype={precision}&thinking={str(thinking).lower()}"

    @cached_property
    def model(self):
        """The weights, loaded at the first call, of the precision that `name` says."""
        return load_model(self._source, dtype=self.dtype, device=self.device, quantization=self.quantization)

    @cached_property
    @torch.inference_mode()
    def probes(self) -> list[LabelProbe]:
        """How this judge says its labels after each stub of the bank: one short prompt each, asked once.

        Labels that are no single tokens of the judge are left out; whatever reads them is refused.
        """
        found = []
        for prompt, labels in probed_prompts():
            try:
                self.label_ids(labels)
            except ValueError:
                continue
            inputs = padded([self.render(prompt)], self.device)
            last = self.model(**inputs, logits_to_keep=1, use_cache=False).logits[0, -1].float()
            found.append(probe(self.tokenizer, prompt.stub, labels, last.softmax(0).cpu().numpy()))
        return found

    @property
    def attention(self) -> str:
        """How attention is computed ("sdpa", "eager", ...): beside what `name` says, it moves the last bits."""
        return self.model.config.get_text_config()._attn_implementation

    @cached_property
    def _stops(self) -> set[int]:
        eos = self.model.generation_config.eos_token_id
        stops = set(eos) if isinstance(eos, list) else {eos}
        return (stops | {self.tokenizer.eos_token_id}) - {None}

    @cached_property
    def _prefixes(self) -> Prefixes:
        return Prefixes(self.model)

    def share(self, prompts: Sequence[Prompt]) -> None:
        """Hold the keys and values of all that several of these prompts begin with (`Prefixes.hold`)."""
        for _ in self.share_steps(prompts):
            pass

    @torch.inference_mode()
    def share_steps(self, prompts: Sequence[Prompt]) -> Iterator[float]:
        """Do what `share` does, and give after each forward pass the part of it that is done, 0 to 1."""
        rendered = [(*self._renderer.ids_and_shared(prompt), prompt.key.trial) for prompt in prompts]
        yield from self._prefixes.hold({(tuple(ids), shared, trial) for ids, shared, trial in rendered})

    def render(self, prompt: Prompt) -> list[int]:
        """Token ids of a prompt."""
        return self._renderer.ids(prompt)

    def count(self, text: str) -> int:
        """Tokens of an untrusted text."""
        return len(self._renderer.untrusted_ids(text))

    def label_ids(self, labels: tuple[str, str]) -> tuple[list[int], list[int]]:
        """Token ids of two labels: with and without a leading space, each spelling only where both are one token."""
        return label_tokens(self.tokenizer, labels)

    @torch.inference_mode()
    def read(self, prompts: Sequence[Prompt], labels: tuple[str, str] = LABELS) -> list[Read | Failure]:
        """Log-odds of label 0 against label 1 at the next token of each prompt, and the mass of both.

        A model whose numbers overflow (float16, mostly) has given no answer: a Failure, so that it is never kept.
        """
        first, second = self.label_ids(labels)
        asked = Asked(self._renderer, self._prefixes, prompts)
        reads: list[Read | Failure | None] = [None] * len(prompts)
        for batch in asked.batches():
            start = time.perf_counter()
            logits = asked.inputs(batch).last_logits(self.model)
            odds = logits[:, first].logsumexp(1) - logits[:, second].logsumexp(1)
            mass = (logits[:, first + second].logsumexp(1) - logits.logsumexp(1)).exp().clamp(max=1.0)
            seconds = (time.perf_counter() - start) / len(batch)
            for n, o, m in zip(batch, odds.tolist(), mass.tolist(), strict=True):
                read = Read(o, m, len(asked.rows[n]), asked.cached(n), seconds=seconds)
                reads[n] = read if np.isfinite(o) and np.isfinite(m) else OVERFLOW
        return reads

    @torch.inference_mode()
    def generate(self, prompts: Sequence[Prompt], *, max_new_tokens: int, temperature: float = 0.0, top_p: float = 1.0,
                 seeds: Sequence[int] | None = None) -> list[Generation]:  # fmt: skip
        """New text for each prompt; rows that end leave the batch, so the others do not wait."""
        if temperature > 0 and seeds is None:
            raise ValueError("sampling (temperature > 0) needs one seed per prompt; seeds is None. Hash the prompts.")
        asked = Asked(self._renderer, self._prefixes, prompts)
        out: list[Generation | None] = [None] * len(prompts)
        for batch in asked.batches(max_new_tokens):
            start = time.perf_counter()
            pick = greedy
            if temperature > 0:
                pick = sampled(temperature, top_p, [np.random.Generator(np.random.Philox(seeds[n])) for n in batch])
            texts = decode(self.model, asked.inputs(batch, max_new_tokens), max_new_tokens, self._stops, pick)
            seconds = (time.perf_counter() - start) / len(batch)
            for n, (ids, reason) in zip(batch, texts, strict=True):
                text, tokens = self._renderer.text(ids), len(asked.rows[n])
                out[n] = Generation(text, tuple(ids), reason, tokens, asked.cached(n), len(ids), seconds)
        return out

    @torch.inference_mode()
    def likelihood(self, prompts: Sequence[Prompt], texts: Sequence[str]) -> list[Likelihood]:
        """Log-probability of each text and its end token as the whole answer to its prompt."""
        end = [self.tokenizer.eos_token_id]
        heads = [self.render(prompt) for prompt in prompts]
        tails = [self._renderer.untrusted_ids(t)[: p.cut] + end for p, t in zip(prompts, texts, strict=True)]
        out: list[Likelihood | None] = [None] * len(heads)
        lengths = [len(head) + len(tail) for head, tail in zip(heads, tails, strict=True)]
        for batch in batches(lengths, [0] * len(lengths), read_tokens(self.model.device.type)):
            start = time.perf_counter()
            keep = max(len(tails[n]) for n in batch) + 1
            inputs = padded([heads[n] + tails[n] for n in batch], self.device)
            logits = self.model(**inputs, logits_to_keep=keep, use_cache=False).logits
            sums = [_log_likelihood(row, tails[n]) for row, n in zip(logits, batch, strict=True)]
            seconds = (time.perf_counter() - start) / len(batch)
            for n, total in zip(batch, sums, strict=True):
                out[n] = Likelihood(total, len(heads[n]), new_tokens=len(tails[n]), seconds=seconds)
        return out


def _log_likelihood(logits: torch.Tensor, tail: list[int]) -> float:
    """Sum of log-probabilities of the last tokens of a row; `logits` ends at the row's last token."""
    before = logits[-len(tail) - 1 : -1].float().log_softmax(1)
    return float(before[torch.arange(len(tail)), tail].double().sum())
