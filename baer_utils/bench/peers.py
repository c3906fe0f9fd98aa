"""The same one-token reads asked of other tools, side by side: lm-evaluation-harness, and a vLLM server.

Neither is needed for anything else, so neither is installed with the project; a section says what to install.
"""

from __future__ import annotations

import os
from importlib.metadata import version
from importlib.util import find_spec

from baer_utils.bench.pairing import side_by_side, timed
from baer_utils.bench.reading import OURS, PLAIN, ask_reads, backbone, read_calls
from baer_utils.bench.sitting import Sitting
from baer_utils.bench.workload import by_labels, long_pairs

HARNESS = "lm_eval==0.4.13"
BATCH_SIZES = (1, 4, 8, 16, 32)


def harness(pairings: int, sitting: Sitting) -> dict:
    """lm-evaluation-harness, `hf` model: log-likelihood of the two labels, same prompts, at its best batch size."""
    if find_spec("lm_eval") is None:
        return {"not_measured": f"pip install {HARNESS}", "at_least": 2.0, "holds": None}
    from lm_eval.models.huggingface import HFLM

    ours = backbone()
    table = long_pairs(ours, OURS + PLAIN * (pairings + 1))
    calls = read_calls(ours, table.head(OURS))

    def seconds(block: int, size: int) -> float:
        theirs = HFLM(pretrained=ours.model, tokenizer=ours.tokenizer, batch_size=size, backend="causal")
        pairs = table.iloc[OURS + PLAIN * block :].head(PLAIN)
        requests = [
            (("", label), ours.render(call.prompt), [token])
            for labels, group in by_labels(read_calls(ours, pairs)).items()
            for call in group
            for label, (token, *_) in zip(labels, ours.label_ids(labels), strict=True)
        ]
        return timed(lambda: theirs._loglikelihood_tokens(requests, disable_tqdm=True))[0] / PLAIN

    tried = sitting.once("batch sizes", lambda: [seconds(0, size) for size in BATCH_SIZES])
    best = BATCH_SIZES[tried.index(min(tried))]
    result = side_by_side(
        lambda _: timed(lambda: ask_reads(ours, calls))[0] / OURS, lambda n: seconds(n + 1, best), pairings, sitting
    )
    return {"at_least": 2.0, "batch_size": best, "holds": result["ratio"] >= 2.0} | result


def server(pairings: int, sitting: Sitting) -> dict:
    """A vLLM server with prefix caching, both sides bfloat16; the server's address is in BAER_BENCH_SERVER.

    A sitting that ended within a pairing has asked some of its prompts: start the server anew before going on.
    """
    address = os.environ.get("BAER_BENCH_SERVER")
    if not address:
        return {"not_measured": "start vLLM and set BAER_BENCH_SERVER=server:<url>#<model>", "holds": None}
    from baer_utils.backbones import open_backbone

    ours, theirs = backbone("bfloat16"), open_backbone(address)
    size = OURS if computes_bfloat16() else PLAIN
    table = long_pairs(ours, size * (pairings + 1))
    _seconds(theirs, read_calls(ours, table.head(1)))  # the first answers of a server wait for its compiler

    def block(number: int) -> list:
        """Other prompts every time, so that no side finds an answer of an earlier pairing."""
        return read_calls(ours, table.iloc[size * (number + 1) :].head(size))

    result = side_by_side(
        lambda number: _seconds(ours, block(number)) / size,
        lambda number: _seconds(theirs, block(number)) / size,
        pairings,
        sitting,
    )
    return {"aim": 1.3, "holds": result["ratio"] >= 1.3, "pairs_of_a_pairing": size} | result


def computes_bfloat16() -> bool:
    """Whether torch multiplies fast in bfloat16 here: without AVX-512, an x86 processor takes half a minute a pair."""
    import torch

    return torch.backends.cpu.get_cpu_capability() not in ("DEFAULT", "AVX2")


def peer(section: str) -> str:
    """The other tool of a section, as far as what is measured depends on it; empty where it is not there."""
    if section == "harness":
        return version("lm_eval") if find_spec("lm_eval") else ""
    return os.environ.get("BAER_BENCH_SERVER", "") if section == "server" else ""


def _seconds(judge, calls: list) -> float:
    return timed(lambda: ask_reads(judge, calls))[0]
