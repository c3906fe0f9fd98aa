"""Beginnings that many prompts share, computed once: the keys and values of their first tokens.

All prompts about a pair begin with [system, instruction]; all protocols of one display order ask about one content,
[system, instruction, responses], and only then differ; the trials of one question share the whole prompt. What is held
is fixed by the plan of a block of pairs, and computed in batches fixed by it too, so that an answer's bits never depend
on what the store had.
"""

from __future__ import annotations

import itertools
import os
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import torch
from transformers import Cache

from baer_utils.backbones.batching import BATCH_TOKENS, batches, read_tokens
from baer_utils.backbones.caching import Held, Scratch, can_hold
from baer_utils.backbones.rendering import Renderer
from baer_utils.prompts import Prompt

Ids = tuple[int, ...]
Lengths = tuple[int, ...]  # how many tokens of a prompt, from the first, come before the end of a piece of its content


@dataclass
class Batch:
    """The ends of some prompts behind the cache of their beginnings; of at most `most` padded tokens a forward pass."""

    inputs: dict[str, torch.Tensor]
    cache: Cache | None
    most: int

    def last_logits(self, model) -> torch.Tensor:
        """Logits (rows, vocabulary) behind every row's last token, float32; a cache then holds the keys of all rows."""
        rows, width = self.inputs["input_ids"].shape
        step = max(1, self.most // width)
        if self.cache is None or step >= rows:
            return model(**self.inputs, cache=self.cache, logits_to_keep=1).logits[:, -1].float()
        total = self.inputs["attention_mask"].shape[1]
        found = []
        for part in (slice(first, first + step) for first in range(0, rows, step)):
            mask = self.inputs["attention_mask"][part]
            padding = int(mask[:, total - width :].any(0).int().argmax())  # columns of nothing else
            skipped = padding if self.cache.layers[0].is_initialized else 0
            ids, positions = (self.inputs[name][part, skipped:] for name in ("input_ids", "position_ids"))
            for layer in self.cache.layers:
                layer.over(part, total - width, skipped)
            out = model(ids, attention_mask=mask, position_ids=positions, cache=self.cache, logits_to_keep=1)
            found.append(out.logits[:, -1].float())
        for layer in self.cache.layers:
            layer.over(slice(None), total)
        return torch.cat(found)


class Prefixes:
    """Keys and values of held beginnings.

    Parameters
    ----------
    model : a causal language model of transformers.
    """

    def __init__(self, model):
        self._model, self.device = model, model.device.type
        self._held: dict[Ids, list[Held]] = {}
        self._paid: set[Ids] = set()
        self._scratch = Scratch(model.config)
        self.can_share = can_hold(model.config)
        if self.device == "cpu":  # else transformers copies the keys once for every query head of a group
            os.environ.setdefault("TRANSFORMERS_SDPA_FORCE_GQA", "1")

    def hold(self, prompts: Collection[tuple[Ids, Lengths, int]]) -> Iterator[float]:
        """Forget what was held, and compute what these begin with (`beginnings`), each on from the longest before it.

        Parameters
        ----------
        prompts : different ones: token ids, lengths up to each piece of their content, trial.

        Yields
        ------
        after each forward pass the part of it that is done, 0 to 1.
        """
        self._held, self._paid, self._scratch = {}, set(), Scratch(self._model.config)
        waiting = beginnings(prompts) if self.can_share else {}
        total = sum(len(ids) - max(before, default=0) for ids, before in waiting.items())
        done = 0
        while waiting:
            ready = {ids: before for ids, before in waiting.items() if not any(ids[:n] in waiting for n in before)}
            for tokens in self._compute(ready):
                done += tokens
                yield done / total
            waiting = {ids: before for ids, before in waiting.items() if ids not in ready}

    def _compute(self, ready: dict[Ids, Lengths]) -> Iterator[int]:
        rows = sorted(ready)
        shared = [ready[ids] for ids in rows]
        held = [self.length(ids, before) for ids, before in zip(rows, shared, strict=True)]
        found: dict[Ids, list[Held]] = {}
        for batch in batches([len(ids) for ids in rows], held, read_tokens(self.device)):
            behind = self.batch([rows[n] for n in batch], [shared[n] for n in batch])
            behind.last_logits(self._model)
            width = behind.cache.layers[0].keys.shape[2]
            middle = width - behind.inputs["input_ids"].shape[1]
            for place, n in enumerate(batch):
                parts = (slice(middle - held[n], middle), slice(width - len(rows[n]) + held[n], width))
                found[rows[n]] = [
                    tuple(torch.cat([states[place, :, part] for part in parts], 1) for states in (k.keys, k.values))
                    for k in behind.cache.layers
                ]
            yield sum(len(rows[n]) - held[n] for n in batch)
        self._held |= found

    def cached(self, ids: Sequence[int], shared: Lengths) -> int:
        """Tokens of a prompt that others have paid for: the first prompt with a held beginning pays for it."""
        for length in self._lengths(ids, shared):
            beginning = tuple(ids[:length])
            if beginning in self._paid:
                return length
            self._paid.add(beginning)
        return 0

    def length(self, ids: Sequence[int], shared: Lengths) -> int:
        """Tokens of a prompt whose keys and values are held: all but its last, some pieces of its content, or none."""
        return next(iter(self._lengths(ids, shared)), 0)

    def _lengths(self, ids: Sequence[int], shared: Lengths) -> list[int]:
        """Lengths of the held beginnings of a prompt, the longest first."""
        lengths = sorted({*shared, len(ids) - 1}, reverse=True) if self._held else []
        return [length for length in lengths if length < len(ids) and tuple(ids[:length]) in self._held]

    def batch(self, rows: Sequence[Sequence[int]], shared: Sequence[Lengths], room: int = 0) -> Batch:
        """Inputs for prompts of which some beginnings are held, and a cache with `room` for tokens behind them.

        A row's last token is in the last column. A model that cannot share gets no cache.
        """
        lengths = [self.length(row, before) for row, before in zip(rows, shared, strict=True)]
        ends = padded([row[length:] for row, length in zip(rows, lengths, strict=True)], self._model.device)
        if not self.can_share:
            return Batch(ends, None, ends["input_ids"].numel())
        width = max(lengths)
        cache = self._scratch.cache(len(rows), width + ends["input_ids"].shape[1] + room)
        if width:
            device = ends["input_ids"].device
            held = torch.tensor([[0] * (width - length) + [1] * length for length in lengths], device=device)
            ends["attention_mask"] = torch.cat([held, ends["attention_mask"]], 1)
            ends["position_ids"] = ends["position_ids"] + torch.tensor(lengths, device=device)[:, None]
            begun = [self._held.get(tuple(row[:length])) for row, length in zip(rows, lengths, strict=True)]
            for number, layer in enumerate(cache.layers):
                layer.begin([states and states[number] for states in begun], width)
        return Batch(ends, cache, read_tokens(self.device))


class Asked:
    """Prompts of one call to the model, rendered, with what is held of their beginnings."""

    def __init__(self, renderer: Renderer, prefixes: Prefixes, prompts: Sequence[Prompt]):
        self._prefixes = prefixes
        self.rows, self._shared = zip(*map(renderer.ids_and_shared, prompts), strict=True) if prompts else ((), ())

    def batches(self, budget: int = 0) -> Iterator[list[int]]:
        """Positions in batches of bounded size; `budget` tokens will be added to each row."""
        totals = [len(row) + budget for row in self.rows]
        held = [self._prefixes.length(row, shared) for row, shared in zip(self.rows, self._shared, strict=True)]
        return batches(totals, held, BATCH_TOKENS if budget else read_tokens(self._prefixes.device))

    def inputs(self, batch: list[int], room: int = 0):
        """Inputs of a forward pass over what is not held of these rows, behind the cache of what is."""
        return self._prefixes.batch([self.rows[n] for n in batch], [self._shared[n] for n in batch], room)

    def cached(self, n: int) -> int:
        """Tokens of a row that another row has paid for."""
        return self._prefixes.cached(self.rows[n], self._shared[n])


def beginnings(prompts: Collection[tuple[Ids, Lengths, int]]) -> dict[Ids, Lengths]:
    """What at least two of these begin with, and not a longer one all of them: with the lengths of such before it."""
    chains = []
    for ids, shared, _ in prompts:
        lengths = sorted({length for length in (*shared, len(ids) - 1) if 0 < length < len(ids)})
        chains.append([ids[:length] for length in lengths])
    count = Counter(itertools.chain.from_iterable(chains))
    passed = {short for chain in chains for short, long in itertools.pairwise(chain) if count[short] == count[long]}
    found: dict[Ids, set[int]] = {}
    for chain in chains:
        held = [ids for ids in chain if count[ids] > 1 and ids not in passed]
        for number, ids in enumerate(held):
            found.setdefault(ids, set()).update(map(len, held[:number]))
    return {ids: tuple(sorted(before)) for ids, before in found.items()}


def padded(rows: Sequence[Sequence[int]], device) -> dict[str, torch.Tensor]:
    """Ids padded on the left, the mask of what is real, and positions counted from each row's own first token."""
    width = max(map(len, rows))
    ids = torch.tensor([[0] * (width - len(row)) + list(row) for row in rows], device=device)
    mask = torch.tensor([[0] * (width - len(row)) + [1] * len(row) for row in rows], device=device)
    return {"input_ids": ids, "attention_mask": mask, "position_ids": (mask.cumsum(1) - 1).clamp(min=0)}
