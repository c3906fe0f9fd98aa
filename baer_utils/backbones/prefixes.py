"""Beginnings that many prompts share, computed once: keys and values of [system, instruction, responses].

All protocols of one display order ask about the same content and only then differ. What is held is fixed by the plan of
a block of pairs, and computed in batches fixed by it too, so that an answer's bits never depend on what the store had.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import torch
from transformers import DynamicCache
from transformers.cache_utils import DynamicLayer

Ids = tuple[int, ...]


@dataclass
class Batch:
    """Inputs of a forward pass over the ends of some prompts, behind the cache of their beginnings."""

    inputs: dict[str, torch.Tensor]
    cache: DynamicCache | None


class Prefixes:
    """Keys and values of held beginnings.

    Parameters
    ----------
    model : a causal language model of transformers.
    batches : cuts positions with given lengths into batches of bounded padded size.
    """

    def __init__(self, model, batches: Callable[[Sequence[int]], Iterator[list[int]]]):
        self._model, self._batches = model, batches
        self._held: dict[Ids, list[tuple[torch.Tensor, torch.Tensor]]] = {}
        self._paid: set[Ids] = set()
        cache = DynamicCache(config=model.config)
        self.can_share = all(type(layer) is DynamicLayer for layer in cache.layers)  # no sliding windows, no states

    def hold(self, beginnings: Iterable[Ids]) -> None:
        """Forget what was held and compute these."""
        self._held, self._paid = {}, set()
        wanted = sorted(set(beginnings) - {()}) if self.can_share else []
        for batch in self._batches([len(ids) for ids in wanted]):
            rows = [wanted[n] for n in batch]
            inputs = padded(rows, self._model.device)
            cache = DynamicCache(config=self._model.config)
            self._model(**inputs, cache=cache, use_cache=True, logits_to_keep=1)
            width = inputs["input_ids"].shape[1]
            for place, ids in enumerate(rows):
                start = width - len(ids)
                self._held[ids] = [(k.keys[place, :, start:], k.values[place, :, start:]) for k in cache.layers]

    def cached(self, ids: Sequence[int], content: int) -> int:
        """Tokens of a prompt that others have paid for: the first prompt with a held beginning pays for it."""
        beginning = tuple(ids[: self.length(ids, content)])
        if beginning in self._paid:
            return len(beginning)
        self._paid.add(beginning)
        return 0

    def length(self, ids: Sequence[int], content: int) -> int:
        """Tokens of a prompt whose keys and values are held: all of its content, or none."""
        return content if tuple(ids[:content]) in self._held else 0

    def batch(self, rows: Sequence[list[int]], contents: Sequence[int]) -> Batch:
        """Inputs for prompts of which some beginnings are held; a row's last token is in the last column."""
        lengths = [self.length(row, content) for row, content in zip(rows, contents, strict=True)]
        ends = padded([row[length:] for row, length in zip(rows, lengths, strict=True)], self._model.device)
        width = max(lengths)
        if not width:
            return Batch(ends, None)
        device = ends["input_ids"].device
        held = torch.tensor([[0] * (width - length) + [1] * length for length in lengths], device=device)
        ends["attention_mask"] = torch.cat([held, ends["attention_mask"]], 1)
        ends["position_ids"] = ends["position_ids"] + torch.tensor(lengths, device=device)[:, None]
        return Batch(
            ends,
            self._cache(
                [self._held.get(tuple(row[:length])) for row, length in zip(rows, lengths, strict=True)], width
            ),
        )

    def _cache(self, held: list, width: int) -> DynamicCache:
        some = next(layers for layers in held if layers is not None)
        cache = DynamicCache(config=self._model.config)
        for number, (key, value) in enumerate(some):
            shapes = [(len(held), like.shape[0], width, like.shape[2]) for like in (key, value)]
            keys, values = (key.new_zeros(shape) for shape in shapes)
            for place, layers in enumerate(held):
                if layers is not None:
                    length = layers[number][0].shape[1]
                    keys[place, :, width - length :] = layers[number][0]
                    values[place, :, width - length :] = layers[number][1]
            cache.update(keys, values, number)
        return cache


def padded(rows: Sequence[Sequence[int]], device) -> dict[str, torch.Tensor]:
    """Ids padded on the left, the mask of what is real, and positions counted from each row's own first token."""
    width = max(map(len, rows))
    ids = torch.tensor([[0] * (width - len(row)) + list(row) for row in rows], device=device)
    mask = torch.tensor([[0] * (width - len(row)) + [1] * len(row) for row in rows], device=device)
    return {"input_ids": ids, "attention_mask": mask, "position_ids": (mask.cumsum(1) - 1).clamp(min=0)}
