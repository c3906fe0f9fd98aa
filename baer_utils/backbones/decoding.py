"""Text for many prompts at once: one step for all rows that still write, and how a sampled token is drawn."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from transformers import DynamicCache

from baer_utils.backbones.caching import packed
from baer_utils.backbones.prefixes import Batch

LIKELY = 128  # tokens looked at first for a nucleus; the whole vocabulary is sorted only where they do not fill it

Pick = Callable[[torch.Tensor, list[int]], list[int]]


def decode(model, behind: Batch, budget: int, stops: set[int], pick: Pick) -> list[tuple[list[int], str]]:
    """Continue every row until its end token or `budget` tokens.

    Parameters
    ----------
    model : causal language model of transformers.
    behind : inputs of the first forward pass, with the cache of what was computed before.
    budget : most new tokens of a row.
    stops : ids of end tokens; they are not part of the text.
    pick : float32 logits (rows, vocabulary) and the rows' numbers in the batch to one token each.

    Returns
    -------
    for each row its new ids and "stop", or "length" where the budget ran out. Rows that end leave the batch.
    """
    if behind.cache is None:
        behind.cache = DynamicCache(config=model.config)
    cache, mask = behind.cache, behind.inputs["attention_mask"]
    rows = len(mask)
    texts: list[list[int]] = [[] for _ in range(rows)]
    reasons = ["length"] * rows
    alive = list(range(rows))
    logits = behind.last_logits(model)
    for written in range(1, budget + 1):
        tokens = pick(logits, alive)
        for n, token in zip(alive, tokens, strict=True):
            if token in stops:
                reasons[n] = "stop"
            else:
                texts[n].append(token)
        keep = [k for k, token in enumerate(tokens) if token not in stops]
        if not keep or written == budget:
            break
        if len(keep) < len(alive):
            order = packed(keep)
            alive, tokens, mask = [alive[k] for k in order], [tokens[k] for k in order], mask[order]
            cache.batch_select_indices(torch.tensor(order, device=mask.device))
        mask = torch.cat([mask, mask.new_ones(len(alive), 1)], 1)
        ids, positions = torch.tensor(tokens, device=mask.device)[:, None], mask.sum(1, keepdim=True) - 1
        logits = model(ids, attention_mask=mask, position_ids=positions, cache=cache).logits[:, -1].float()
    return list(zip(texts, reasons, strict=True))


def greedy(logits: torch.Tensor, alive: list[int]) -> list[int]:
    """The likeliest token of each row."""
    return logits.argmax(1).tolist()


def sampled(temperature: float, top_p: float, draws: Sequence[np.random.Generator]) -> Pick:
    """Tokens drawn from the nucleus, each row with its own generator."""
    return lambda logits, alive: sample(logits, temperature, top_p, [draws[n] for n in alive])


def sample(logits: torch.Tensor, temperature: float, top_p: float, draws: Sequence[np.random.Generator]) -> list[int]:
    """One token per row by inverse transform from the smallest set of likeliest tokens that holds `top_p` of the mass.

    Parameters
    ----------
    logits : (rows, vocabulary).
    draws : one generator per row; each gives one number.
    """
    probabilities = (logits / temperature).softmax(1)
    likely, tokens = (part.cpu() for part in probabilities.topk(min(LIKELY, logits.shape[1]), 1))
    picked = []
    for row, draw in enumerate(draws):
        cumulative, token = likely[row].double().cumsum(0), tokens[row]
        if cumulative[-1] < top_p:
            probability, token = (part.cpu() for part in probabilities[row].sort(descending=True, stable=True))
            cumulative = probability.double().cumsum(0)
        cumulative = cumulative[: int((cumulative < top_p).sum()) + 1]
        picked.append(int(token[: len(cumulative)][int((cumulative < draw.random() * cumulative[-1].item()).sum())]))
    return picked
