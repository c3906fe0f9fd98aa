"""Keys and values of a batch in buffers with room for all that will be computed, so that nothing is copied to grow.

The library's own cache concatenates at every step, and copies every row that stays when one leaves: on a CPU that costs
more than the arithmetic of a small model.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from transformers import Cache, DynamicCache
from transformers.cache_utils import DynamicLayer

Held = tuple[torch.Tensor, torch.Tensor]  # keys and values of one row in one layer: (heads, tokens, dimension)


class RoomyLayer(DynamicLayer):
    """One layer: a buffer of fixed size, of which the first columns are filled.

    Parameters
    ----------
    rows, room : rows and columns (tokens) of the buffer.
    scratch : memory of the buffers, by name: what the last batch has left is used again, and replaced where too small.
    """

    def __init__(self, rows: int, room: int, scratch: dict[str, torch.Tensor]):
        super().__init__()
        self._size, self._scratch = (rows, room), scratch
        self._rows, self._filled = slice(None), 0
        self._buffers: tuple[torch.Tensor, ...] = ()

    def begin(self, held: Sequence[Held | None], width: int) -> None:
        """Fill the first `width` columns with what is held of each row, on the right; zeros where there is nothing."""
        some = next(states for states in held if states is not None)
        self.lazy_initialization(*(like[None] for like in some))
        for row, states in enumerate(held):
            length = 0 if states is None else states[0].shape[1]
            for buffer, state in zip(self._buffers, states or (), strict=False):
                buffer[row, :, width - length : width] = state
            for buffer in self._buffers:
                buffer[row, :, : width - length] = 0
        self._show(width)

    def lazy_initialization(self, key_states: torch.Tensor, value_states: torch.Tensor) -> None:
        """Make the buffers."""
        super().lazy_initialization(key_states, value_states)
        self._buffers = self._buffer("keys", key_states), self._buffer("values", value_states)

    def _buffer(self, name: str, states: torch.Tensor) -> torch.Tensor:
        rows, room = self._size
        shape = (rows, states.shape[1], room, states.shape[3])
        if name not in self._scratch or self._scratch[name].numel() < math.prod(shape):
            self._scratch.pop(name, None)  # given back before more is asked for
            self._scratch[name] = states.new_empty(math.prod(shape))
        return self._scratch[name][: math.prod(shape)].view(shape)

    def over(self, rows: slice, filled: int, skipped: int = 0) -> None:
        """Turn to these rows: their first columns are filled, and the next ones skipped, for nothing looks at them."""
        self._rows = rows
        for buffer in self._buffers if skipped else ():
            buffer[rows, :, filled : filled + skipped] = 0
        self._show(filled + skipped)

    def update(self, key_states: torch.Tensor, value_states: torch.Tensor, *args, **kwargs):
        """Write new columns behind the filled ones; returns all filled ones."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        end = self._filled + key_states.shape[2]
        for buffer, states in zip(self._buffers, (key_states, value_states), strict=True):
            buffer[self._rows, :, self._filled : end] = states
        self._show(end)
        return self.keys, self.values

    def batch_select_indices(self, indices: torch.Tensor) -> None:
        """Keep these rows, in this order; a row may only move to a place in front of it (`packed`)."""
        moved = [(to, of) for to, of in enumerate(indices.tolist()) if to != of]
        for buffer in self._buffers:
            for to, of in moved:
                buffer[to, :, : self._filled] = buffer[of, :, : self._filled]
        self._buffers = tuple(buffer[: len(indices)] for buffer in self._buffers)
        self._show(self._filled)

    def _show(self, filled: int) -> None:
        self._filled = filled
        if self._buffers:
            self.keys, self.values = (buffer[self._rows, :, :filled] for buffer in self._buffers)


def can_hold(config) -> bool:
    """Whether every layer of a model keeps all keys and values: no sliding windows, no recurrent states."""
    return all(type(layer) is DynamicLayer for layer in DynamicCache(config=config).layers)


class Scratch:
    """Memory for one cache at a time of a model that `can_hold`: asking the system for it anew costs more than filling.

    Parameters
    ----------
    config : the model's.
    """

    def __init__(self, config):
        self._layers: list[dict[str, torch.Tensor]] = [{} for _ in DynamicCache(config=config).layers]

    def cache(self, rows: int, room: int) -> Cache:
        """An empty cache of `rows` and of `room` columns; the one made before must no longer be used."""
        return Cache(layers=[RoomyLayer(rows, room, layer) for layer in self._layers])


def packed(keep: Sequence[int]) -> list[int]:
    """The same rows with the last ones moved into the gaps: as few as possible change their place.

    Parameters
    ----------
    keep : positions of the rows that stay, ascending.
    """
    order = list(range(len(keep)))
    gaps = sorted(set(order) - set(keep))
    for gap, row in zip(gaps, (row for row in keep if row >= len(keep)), strict=True):
        order[gap] = row
    return order
