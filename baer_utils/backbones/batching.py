"""Prompts cut into forward passes of bounded size, by their lengths alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

# padded tokens of one forward pass: bounds memory, and never depends on what was computed before
BATCH_TOKENS = 8192
# the same by device, where a pass may be small: 512 to 1,024 were fastest on two cores, a quarter faster than 8,192
READ_TOKENS = {"cpu": 1024}
# of a batch (64 rows of 768) with what is held of the prompts' beginnings, whose keys must be copied
HELD_TOKENS = 6 * BATCH_TOKENS


def read_tokens(device: str) -> int:
    """Most padded tokens of a forward pass over prompts on this device; a batch that writes is passed over in parts."""
    return READ_TOKENS.get(device, BATCH_TOKENS)


def batches(lengths: Sequence[int], held: Sequence[int], most: int) -> Iterator[list[int]]:
    """Positions by what is left to compute of them, so that a row held nearly whole is not padded to a whole one.

    A batch is cut where it would pass `most` tokens to compute or `HELD_TOKENS` in all.
    """
    ends = [length - known for length, known in zip(lengths, held, strict=True)]
    batch: list[int] = []
    widest = 0
    for n in sorted(range(len(lengths)), key=lambda k: (ends[k], lengths[k], k)):
        size, widest = len(batch) + 1, max(widest, lengths[n])
        if batch and (ends[n] * size > most or widest * size > HELD_TOKENS):
            yield batch
            batch, widest = [], lengths[n]
        batch.append(n)
    if batch:
        yield batch
