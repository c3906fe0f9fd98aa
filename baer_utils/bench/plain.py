"""The other side of the comparison: the same prompts, one after the other, as a transformers script would ask them."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

import torch

from baer_utils.backbones.base import Generation, Read
from baer_utils.backbones.local import TransformersBackbone
from baer_utils.prompts import LABELS, Prompt


class PlainBackbone(TransformersBackbone):
    """One prompt at a time: a forward pass with all logits for a read, `model.generate` for a text; nothing shared."""

    def share_steps(self, prompts: Sequence[Prompt]) -> Iterator[float]:
        """Nothing is shared."""
        return iter(())

    @torch.inference_mode()
    def read(self, prompts: Sequence[Prompt], labels: tuple[str, str] = LABELS) -> list[Read]:
        """One full forward pass per prompt."""
        first, second = self.label_ids(labels)
        reads = []
        for prompt in prompts:
            start, ids = time.perf_counter(), self.render(prompt)
            logits = self.model(torch.tensor([ids], device=self.device), use_cache=False).logits[0, -1].float()
            odds = float(logits[first].logsumexp(0) - logits[second].logsumexp(0))
            mass = float((logits[first + second].logsumexp(0) - logits.logsumexp(0)).exp().clamp(max=1.0))
            reads.append(Read(odds, mass, len(ids), seconds=time.perf_counter() - start))
        return reads

    @torch.inference_mode()
    def generate(self, prompts: Sequence[Prompt], *, max_new_tokens: int, temperature: float = 0.0, top_p: float = 1.0,
                 seeds: Sequence[int] | None = None) -> list[Generation]:  # fmt: skip
        """One `model.generate` per prompt."""
        how = {"do_sample": True, "temperature": temperature, "top_p": top_p} if temperature > 0 else {}
        how |= {"max_new_tokens": max_new_tokens, "pad_token_id": self.tokenizer.eos_token_id or 0}
        texts = []
        for n, prompt in enumerate(prompts):
            start, ids = time.perf_counter(), self.render(prompt)
            if temperature > 0:
                torch.manual_seed(seeds[n] % 2**63)
            given = torch.tensor([ids], device=self.device)
            out = self.model.generate(given, attention_mask=torch.ones_like(given), **({"do_sample": False} | how))
            new = out[0, len(ids) :].tolist()
            reason = "stop" if new and new[-1] in self._stops else "length"
            new = new[:-1] if reason == "stop" else new
            text = self.tokenizer.decode(new, skip_special_tokens=True)
            took = time.perf_counter() - start
            texts.append(Generation(text, tuple(new), reason, len(ids), new_tokens=len(new), seconds=took))
        return texts
