"""One-token reads on this side: asked together, how far that moves them, how much of the machine they use."""

from __future__ import annotations

from functools import cache

import numpy as np
import torch

from baer_utils.backbones.batching import BATCH_TOKENS
from baer_utils.backbones.embedded import ensure_model
from baer_utils.backbones.local import TransformersBackbone
from baer_utils.bench.pairing import side_by_side, timed
from baer_utils.bench.plain import PlainBackbone
from baer_utils.bench.workload import by_labels, fixed_reads, long_pairs
from baer_utils.protocols import Call, Settings

SETTINGS = Settings(max_new_tokens=64)
OURS, PLAIN = 32, 2  # pairs of one timing; the plain side gets other pairs each time, scaled per pair


@cache
def backbone(dtype: str = "float32", plain: bool = False) -> TransformersBackbone:
    """The embedded judge, loaded once for each precision and side."""
    judge = (PlainBackbone if plain else TransformersBackbone)(ensure_model(), dtype=dtype)
    judge.model.eval()  # loads the weights, so that no timing does
    return judge


def read_calls(judge: TransformersBackbone, pairs) -> list[Call]:
    """The reads of `workload.fixed_reads` for a local judge."""
    return fixed_reads(pairs, SETTINGS, judge.tokenizer)


def reads(pairings: int) -> dict:
    """The bank's one-token reads alone against one forward pass each."""
    ours, plain = backbone(), backbone(plain=True)
    table = long_pairs(ours, OURS + PLAIN * pairings)
    calls = read_calls(ours, table.head(OURS))

    def theirs(number: int) -> float:
        block = read_calls(plain, table.iloc[OURS + PLAIN * number :].head(PLAIN))
        return timed(lambda: ask_reads(plain, block))[0] / PLAIN

    result = side_by_side(lambda number: timed(lambda: ask_reads(ours, calls))[0] / OURS, theirs, pairings)
    return {"at_least": 2.5, "reads": len(calls), "holds": result["ratio"] >= 2.5} | result


def arithmetic(pairings: int) -> dict:
    """Useful arithmetic of prefill as a share of the machine's matrix rate, float32 and bfloat16."""
    found = {}
    for dtype, least in (("float32", 0.75), ("bfloat16", 0.55)):
        judge = backbone(dtype)
        calls = read_calls(judge, long_pairs(judge, OURS))
        embedding = judge.model.get_input_embeddings().weight.numel()
        weights = sum(parameter.numel() for parameter in judge.model.parameters()) - embedding
        rates = []
        for _ in range(pairings):
            seconds, answers = timed(lambda judge=judge, calls=calls: ask_reads(judge, calls))
            tokens = sum(answer.prompt_tokens - answer.cached_tokens for answer in answers)
            rates.append(2 * weights * tokens / seconds)
        peak = matrix_rate(judge.model)
        share = float(np.median(rates)) / peak
        found[dtype] = {
            "share": round(share, 4), "at_least": least, "holds": share >= least, "unique_tokens": tokens,
            "tokens_per_second": round(float(np.median(rates)) / (2 * weights), 1),
            "matrix_gigaflops": round(peak / 1e9, 1), "weights": weights,
        }  # fmt: skip
    return found | {"holds": all(entry["holds"] for entry in found.values())}


def precision(pairings: int) -> dict:
    """How far batching and sharing move a read: float32 against one by one, and what bfloat16 does."""
    ours, plain = backbone(), backbone(plain=True)
    table = long_pairs(ours, PLAIN * pairings)
    calls = read_calls(ours, table)
    alone = np.array([answer.log_odds for answer in ask_reads(plain, calls)])
    together = np.array([answer.log_odds for answer in ask_reads(ours, calls)])
    half = np.array([answer.log_odds for answer in ask_reads(backbone("bfloat16"), calls)])
    largest = float(np.abs(alone - together).max())
    flips = int((np.sign(alone) != np.sign(together)).sum())
    return {
        "reads": len(calls), "float32_largest": largest, "at_most": 1e-4, "float32_decisions_changed": flips,
        "bfloat16_largest": float(np.abs(half - alone).max()), "bfloat16_sd": float(np.std(half - alone)),
        "bfloat16_decisions_changed": int((np.sign(alone) != np.sign(half)).sum()),
        "holds": largest <= 1e-4 and flips == 0,
    }  # fmt: skip


def ask_reads(judge, calls: list[Call]) -> list:
    """Answers to reads, in the order of the calls, what they share computed once."""
    judge.share([call.prompt for call in calls])
    answers = {}
    for labels, group in by_labels(calls).items():
        answers |= dict(zip(map(id, group), judge.read([call.prompt for call in group], labels), strict=True))
    return [answers[id(call)] for call in calls]


def matrix_rate(model) -> float:
    """Most floating point operations a second over the model's own layer shapes, with as many rows as a batch has."""
    block, best = model.model.layers[0], 0.0
    with torch.inference_mode():
        for layer in (module for module in block.modules() if isinstance(module, torch.nn.Linear)):
            x = torch.randn(BATCH_TOKENS, layer.in_features, dtype=layer.weight.dtype, device=layer.weight.device)
            fastest = min(timed(lambda layer=layer, x=x: layer(x))[0] for _ in range(10))
            best = max(best, 2 * x.numel() * layer.out_features / fastest)
    return best
