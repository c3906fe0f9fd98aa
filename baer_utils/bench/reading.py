"""One-token reads on this side: asked together, how far that moves them, how much of the machine they use."""

from __future__ import annotations

from functools import cache

import numpy as np
import torch

from baer_utils.backbones.batching import read_tokens
from baer_utils.backbones.embedded import ensure_model
from baer_utils.backbones.local import TransformersBackbone
from baer_utils.bench.pairing import side_by_side, timed
from baer_utils.bench.plain import PlainBackbone
from baer_utils.bench.sitting import Sitting
from baer_utils.bench.workload import by_labels, fixed_reads, long_pairs
from baer_utils.protocols import Call, Settings

SETTINGS = Settings(max_new_tokens=64)
OURS, PLAIN = 32, 2  # pairs of one timing; the plain side gets other pairs each time, scaled per pair
FULL = 8  # pairs whose reads fill the batches of a forward pass, for the rate of arithmetic


@cache
def backbone(dtype: str = "float32", plain: bool = False) -> TransformersBackbone:
    """The embedded judge, loaded once for each precision and side."""
    judge = (PlainBackbone if plain else TransformersBackbone)(ensure_model(), dtype=dtype)
    judge.model.eval()  # loads the weights, so that no timing does
    return judge


def read_calls(judge: TransformersBackbone, pairs) -> list[Call]:
    """The reads of `workload.fixed_reads` for a local judge."""
    return fixed_reads(pairs, SETTINGS, judge.tokenizer)


def reads(pairings: int, sitting: Sitting) -> dict:
    """The bank's one-token reads alone against one forward pass each."""
    ours, plain = backbone(), backbone(plain=True)
    table = long_pairs(ours, OURS + PLAIN * pairings)
    calls = read_calls(ours, table.head(OURS))

    def theirs(number: int) -> float:
        block = read_calls(plain, table.iloc[OURS + PLAIN * number :].head(PLAIN))
        return timed(lambda: ask_reads(plain, block))[0] / PLAIN

    result = side_by_side(lambda number: timed(lambda: ask_reads(ours, calls))[0] / OURS, theirs, pairings, sitting)
    return {"at_least": 2.5, "reads": len(calls), "holds": result["ratio"] >= 2.5} | result


def arithmetic(pairings: int, sitting: Sitting) -> dict:
    """Useful arithmetic of prefill as a share of the machine's matrix rate, float32 and bfloat16.

    A pairing times the reads of `FULL` pairs of its own and the matrix rate right beside them, each as seconds per
    billion operations: their ratio is the share. Useful are two operations per weight and token, each token once; the
    embedding, the attention, the padding and all else that takes time are not.
    """
    found = {}
    for dtype, least in (("float32", 0.75), ("bfloat16", 0.55)):
        judge = backbone(dtype)
        embedding = judge.model.get_input_embeddings().weight.numel()
        weights = sum(parameter.numel() for parameter in judge.model.parameters()) - embedding
        table = long_pairs(judge, FULL * pairings)

        def prefill(number: int, judge=judge, table=table, weights=weights) -> float:
            calls = read_calls(judge, table.iloc[FULL * number :].head(FULL))
            seconds, answers = timed(lambda: ask_reads(judge, calls))
            tokens = sum(answer.prompt_tokens - answer.cached_tokens for answer in answers)
            sitting.notes[f"tokens {number + 1}"] = tokens
            return seconds / (2 * weights * tokens / 1e9)

        def matrices(number: int, judge=judge) -> float:
            return 1e9 / matrix_rate(judge.model)

        result = side_by_side(prefill, matrices, pairings, sitting, f"{dtype} pairing")
        ours, peak = (float(np.median(result.pop(f"{side}_seconds"))) for side in ("ours", "theirs"))
        found[dtype] = {
            "share": result["ratio"], "at_least": least, "holds": result["ratio"] >= least, "weights": weights,
            "least": result["least"], "most": result["most"], "tokens_per_second": round(1e9 / (2 * weights * ours), 1),
            "matrix_gigaflops": round(1 / peak, 1), "pairs_of_a_pairing": FULL,
            "rows_of_a_matrix": read_tokens(judge.device),
            "unique_tokens": sum(sitting.notes[f"tokens {n + 1}"] for n in range(pairings)),
        }  # fmt: skip
    return found | {"holds": all(entry["holds"] for entry in found.values())}


def precision(pairings: int, sitting: Sitting) -> dict:
    """How far batching and sharing move a read: float32 against one by one, and what bfloat16 does."""
    plain = backbone(plain=True)
    table = long_pairs(plain, PLAIN * pairings)

    def log_odds(judge: TransformersBackbone, pairs) -> list[float]:
        return [answer.log_odds for answer in ask_reads(judge, read_calls(judge, pairs))]

    together, half = (
        np.array(sitting.once(f"{dtype} reads of {len(table)} pairs", lambda d=dtype: log_odds(backbone(d), table)))
        for dtype in ("float32", "bfloat16")
    )
    blocks = [table.iloc[PLAIN * n :].head(PLAIN) for n in range(pairings)]
    one_by_one = [
        sitting.once(f"pairing {n + 1}", lambda b=block: log_odds(plain, b)) for n, block in enumerate(blocks)
    ]
    alone = np.concatenate(one_by_one)
    largest = float(np.abs(alone - together).max())
    flips = int((np.sign(alone) != np.sign(together)).sum())
    return {
        "reads": len(alone), "float32_largest": largest, "at_most": 1e-4, "float32_decisions_changed": flips,
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
    linear = [module for module in model.model.layers[0].modules() if isinstance(module, torch.nn.Linear)]
    best, rows = 0.0, read_tokens(model.device.type)
    with torch.inference_mode():
        for layer in {(each.in_features, each.out_features): each for each in linear}.values():
            x = torch.randn(rows, layer.in_features, dtype=layer.weight.dtype, device=layer.weight.device)
            fastest = min(timed(lambda layer=layer, x=x: layer(x))[0] for _ in range(10))
            best = max(best, 2 * x.numel() * layer.out_features / fastest)
    return best
