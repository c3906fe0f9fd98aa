"""Keys and values in buffers with room: the same tensors as the library's own cache, whatever rows leave."""

from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import LlamaConfig
from transformers.cache_utils import DynamicLayer

from baer_utils.backbones.batching import BATCH_TOKENS, HELD_TOKENS, batches
from baer_utils.backbones.caching import RoomyLayer, Scratch, can_hold, packed
from baer_utils.backbones.decoding import LIKELY, sample


def states(rows: int, tokens: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    noise = torch.Generator().manual_seed(seed)
    return tuple(torch.randn(rows, 2, tokens, 4, generator=noise) for _ in range(2))


@given(st.sets(st.integers(0, 30)).map(sorted))
def test_packing_keeps_the_same_rows_and_moves_none_backwards(keep):
    order = packed(keep)
    assert sorted(order) == keep
    assert all(of >= to for to, of in enumerate(order))
    assert sum(to != of for to, of in enumerate(order)) == len([row for row in keep if row >= len(keep)])


@given(st.lists(st.tuples(st.integers(1, 3), st.sets(st.integers(0, 5))), max_size=5), st.integers(0, 2))
def test_a_layer_with_room_holds_what_the_librarys_layer_holds(steps, used_before):
    """Also in memory that a smaller or a larger layer has used before."""
    scratch: dict[str, torch.Tensor] = {}
    for rows in (3, 9)[:used_before]:
        RoomyLayer(rows, 1 + 3 * 5, scratch).update(*states(rows, 1, 99))
    ours, theirs, rows = RoomyLayer(6, 1 + 3 * 5, scratch), DynamicLayer(), 6
    for layer in (ours, theirs):
        layer.update(*states(rows, 1, 0))
    for number, (tokens, leaving) in enumerate(steps, 1):
        order = packed([row for row in range(rows) if row not in leaving])
        if not order:
            break
        rows = len(order)
        for layer in (ours, theirs):
            layer.batch_select_indices(torch.tensor(order))
            layer.update(*states(rows, tokens, number))
        assert torch.equal(ours.keys, theirs.keys) and torch.equal(ours.values, theirs.values)
        assert ours.get_seq_length() == theirs.get_seq_length()


def test_what_is_held_stands_on_the_right_and_zeros_on_the_left():
    layer = RoomyLayer(3, 8, {})
    keys, values = (part[0] for part in states(1, 3, 1))
    layer.begin([(keys, values), None, (keys[:, :2], values[:, :2])], 4)
    assert torch.equal(layer.keys[0, :, 1:], keys) and torch.equal(layer.values[2, :, 2:], values[:, :2])
    assert not layer.keys[0, :, :1].any() and not layer.values[1].any() and not layer.keys[2, :, :2].any()


def test_the_memory_of_a_batch_is_used_by_the_next_one():
    scratch: dict[str, torch.Tensor] = {}
    for room, rows in ((8, 3), (6, 4), (4, 2)):
        layer = RoomyLayer(rows, room, scratch)
        layer.update(*states(rows, 2, room))
        assert layer.keys.data_ptr() == scratch["keys"].data_ptr() and scratch["keys"].numel() == 3 * 2 * 8 * 4
        assert torch.equal(layer.keys, states(rows, 2, room)[0])


def test_rows_filled_in_parts_are_those_filled_together_and_skipped_columns_are_zeros():
    layer, whole = RoomyLayer(4, 5, {}), RoomyLayer(4, 5, {})
    keys, values = states(4, 3, 7)
    whole.update(keys, values)
    layer.begin([(part[0][:, :1], part[1][:, :1]) for part in zip(keys, values, strict=True)], 1)
    for part, skipped in ((slice(0, 3), 0), (slice(3, 6), 1)):
        layer.over(part, 1, skipped)
        shown, _ = layer.update(keys[part, :, 1 + skipped :], values[part, :, 1 + skipped :])
        assert torch.equal(shown, layer.keys) and layer.get_seq_length() == 3
    layer.over(slice(None), 3)
    assert torch.equal(layer.keys[:3], whole.keys[:3]) and torch.equal(layer.values[3, :, 2:], values[3, :, 2:])
    assert not layer.keys[3, :, 1].any() and not layer.values[3, :, 1].any()


def test_a_model_with_sliding_windows_is_not_held():
    sizes = {"hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2}
    assert can_hold(LlamaConfig(**sizes)) and len(Scratch(LlamaConfig(**sizes)).cache(1, 4).layers) == 2
    from transformers import MistralConfig

    assert not can_hold(MistralConfig(**sizes, sliding_window=4))


def test_a_nucleus_wider_than_the_first_look_is_drawn_from_whole():
    """A flat distribution over many tokens: the nucleus is far wider than `LIKELY`, and all of it can be drawn."""
    import numpy as np

    logits = torch.zeros(1, 40 * LIKELY)
    draws = [np.random.Generator(np.random.Philox(seed)) for seed in range(200)]
    drawn = [sample(logits, 1.0, 0.5, [draw])[0] for draw in draws]
    assert len(set(drawn)) > 150 and max(drawn) < 20 * LIKELY + 1


rows = st.tuples(st.integers(1, 900), st.integers(0, 899)).map(lambda row: (max(row), min(row) if row[0] > 1 else 0))


@given(st.lists(rows, max_size=200))
def test_batches_hold_every_row_once_within_both_bounds_and_by_what_is_left_to_compute(found):
    lengths, held = [length for length, _ in found], [min(known, length - 1) for length, known in found]
    cut = list(batches(lengths, held, BATCH_TOKENS))
    assert sorted(n for batch in cut for n in batch) == list(range(len(found)))
    ends = [[lengths[n] - held[n] for n in batch] for batch in cut]
    for batch, left in zip(cut, ends, strict=True):
        assert len(batch) == 1 or max(left) * len(batch) <= BATCH_TOKENS
        assert len(batch) == 1 or max(lengths[n] for n in batch) * len(batch) <= HELD_TOKENS
    assert [end for left in ends for end in left] == sorted(end for left in ends for end in left)


def test_rows_of_which_only_the_end_is_left_are_not_padded_to_whole_ones():
    lengths, held = [500, 510] * 32, [0, 490] * 32  # in order of length, each end would lie beside a whole row
    computed = sum(
        len(batch) * max(lengths[n] - held[n] for n in batch) for batch in batches(lengths, held, BATCH_TOKENS)
    )
    assert computed <= 1.1 * (sum(lengths) - sum(held))
