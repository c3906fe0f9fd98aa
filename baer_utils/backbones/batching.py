"""Prompts of one call to a model, rendered, and cut into forward passes of bounded size by their lengths alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from baer_utils.backbones.prefixes import Prefixes
from baer_utils.backbones.rendering import Renderer
from baer_utils.prompts import Prompt

BATCH_TOKENS = 8192  # padded tokens of one forward pass: bounds memory, and never depends on what was computed before
HELD_TOKENS = 4 * BATCH_TOKENS  # the same with what is held of the prompts' beginnings, whose keys must be copied


class Asked:
    """Prompts of one call to the model, rendered, with what is held of their beginnings."""

    def __init__(self, renderer: Renderer, prefixes: Prefixes, prompts: Sequence[Prompt]):
        self._prefixes = prefixes
        self.rows, self._contents = zip(*map(renderer.ids_and_content, prompts), strict=True) if prompts else ((), ())

    def batches(self, budget: int = 0) -> Iterator[list[int]]:
        """Positions in batches of bounded size; `budget` tokens will be added to each row."""
        totals = [len(row) + budget for row in self.rows]
        held = [self._prefixes.length(row, content) for row, content in zip(self.rows, self._contents, strict=True)]
        return batches(totals, held)

    def inputs(self, batch: list[int], room: int = 0):
        """Inputs of a forward pass over what is not held of these rows, behind the cache of what is."""
        return self._prefixes.batch([self.rows[n] for n in batch], [self._contents[n] for n in batch], room)

    def cached(self, n: int) -> int:
        """Tokens of a row that another row has paid for."""
        return self._prefixes.cached(self.rows[n], self._contents[n])


def batches(lengths: Sequence[int], held: Sequence[int] | None = None) -> Iterator[list[int]]:
    """Positions by what is left to compute of them, so that a row held nearly whole is not padded to a whole one.

    A batch is cut where it would pass `BATCH_TOKENS` to compute or `HELD_TOKENS` in all.
    """
    ends = [length - known for length, known in zip(lengths, held or [0] * len(lengths), strict=True)]
    batch: list[int] = []
    widest = 0
    for n in sorted(range(len(lengths)), key=lambda k: (ends[k], lengths[k], k)):
        size, widest = len(batch) + 1, max(widest, lengths[n])
        if batch and (ends[n] * size > BATCH_TOKENS or widest * size > HELD_TOKENS):
            yield batch
            batch, widest = [], lengths[n]
        batch.append(n)
    if batch:
        yield batch
