"""Beginnings that many prompts share, computed once: the keys and values of their first tokens.

All protocols of one display order ask about the same content, [system, instruction, responses], and only then differ;
the trials of one question share the whole prompt. What is held is fixed by the plan of a block of pairs, and computed
in batches fixed by it too, so that an answer's bits never depend on what the store had.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from transformers import Cache

from baer_utils.backbones.caching import Held, can_hold, roomy

Ids = tuple[int, ...]


@dataclass
class Batch:
    """Inputs of a forward pass over the ends of some prompts, behind the cache of their beginnings."""

    inputs: dict[str, torch.Tensor]
    cache: Cache | None


class Prefixes:
    """Keys and values of held beginnings.

    Parameters
    ----------
    model : a causal language model of transformers.
    batches : cuts positions with given lengths, and lengths held of them, into batches of bounded padded size.
    """

    def __init__(self, model, batches: Callable[[Sequence[int], Sequence[int]], Iterator[list[int]]]):
        self._model, self._batches = model, batches
        self._held: dict[Ids, list[Held]] = {}
        self._paid: set[Ids] = set()
        self.can_share = can_hold(model.config)
        if model.device.type == "cpu":  # else transformers copies the keys once for every query head of a group
            os.environ.setdefault("TRANSFORMERS_SDPA_FORCE_GQA", "1")

    def hold(self, beginnings: Mapping[Ids, int]) -> Iterator[int]:
        """Forget what was held and compute these; gives the tokens of each forward pass when it is done.

        Parameters
        ----------
        beginnings : token ids of each, with how many of them, from the first, are its content; a beginning that is more
            than its content goes on from what is held of that.
        """
        self._held, self._paid = {}, set()
        if self.can_share:
            for whole in (False, True):
                rows = {i: content for i, content in beginnings.items() if i and (len(i) > content) == whole}
                yield from self._compute(rows)

    def _compute(self, beginnings: dict[Ids, int]) -> Iterator[int]:
        rows = sorted(beginnings)
        contents = [beginnings[ids] for ids in rows]
        held = [self.length(ids, content) for ids, content in zip(rows, contents, strict=True)]
        found: dict[Ids, list[Held]] = {}
        for batch in self._batches([len(ids) for ids in rows], held):
            behind = self.batch([rows[n] for n in batch], [contents[n] for n in batch])
            self._model(**behind.inputs, cache=behind.cache, use_cache=True, logits_to_keep=1)
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

    def cached(self, ids: Sequence[int], content: int) -> int:
        """Tokens of a prompt that others have paid for: the first prompt with a held beginning pays for it."""
        paid = 0
        for length in self._lengths(ids, content):
            beginning = tuple(ids[:length])
            if beginning in self._paid:
                return max(paid, length)
            self._paid.add(beginning)
        return paid

    def length(self, ids: Sequence[int], content: int) -> int:
        """Tokens of a prompt whose keys and values are held: all but its last, all of its content, or none."""
        return next(iter(self._lengths(ids, content)), 0)

    def _lengths(self, ids: Sequence[int], content: int) -> list[int]:
        """Lengths of the held beginnings of a prompt, the longest first."""
        lengths = sorted({len(ids) - 1, content}, reverse=True) if self._held else []
        return [length for length in lengths if tuple(ids[:length]) in self._held]

    def batch(self, rows: Sequence[Sequence[int]], contents: Sequence[int], room: int = 0) -> Batch:
        """Inputs for prompts of which some beginnings are held, and a cache with `room` for tokens behind them.

        A row's last token is in the last column. A model that cannot share gets no cache.
        """
        lengths = [self.length(row, content) for row, content in zip(rows, contents, strict=True)]
        ends = padded([row[length:] for row, length in zip(rows, lengths, strict=True)], self._model.device)
        if not self.can_share:
            return Batch(ends, None)
        width = max(lengths)
        cache = roomy(self._model.config, width + ends["input_ids"].shape[1] + room)
        if width:
            device = ends["input_ids"].device
            held = torch.tensor([[0] * (width - length) + [1] * length for length in lengths], device=device)
            ends["attention_mask"] = torch.cat([held, ends["attention_mask"]], 1)
            ends["position_ids"] = ends["position_ids"] + torch.tensor(lengths, device=device)[:, None]
            beginnings = [self._held.get(tuple(row[:length])) for row, length in zip(rows, lengths, strict=True)]
            for number, layer in enumerate(cache.layers):
                layer.begin([states and states[number] for states in beginnings], width)
        return Batch(ends, cache)


def padded(rows: Sequence[Sequence[int]], device) -> dict[str, torch.Tensor]:
    """Ids padded on the left, the mask of what is real, and positions counted from each row's own first token."""
    width = max(map(len, rows))
    ids = torch.tensor([[0] * (width - len(row)) + list(row) for row in rows], device=device)
    mask = torch.tensor([[0] * (width - len(row)) + [1] * len(row) for row in rows], device=device)
    return {"input_ids": ids, "attention_mask": mask, "position_ids": (mask.cumsum(1) - 1).clamp(min=0)}
