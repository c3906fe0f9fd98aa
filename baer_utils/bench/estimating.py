"""About how long the sections take here: the tokens of their prompts, and what one timed batch says of the machine."""

from __future__ import annotations

import itertools
import os

import torch

from baer_utils.backbones.local import TransformersBackbone
from baer_utils.bench.pairing import timed
from baer_utils.bench.peers import BATCH_SIZES, peer
from baer_utils.bench.reading import FULL, OURS, PLAIN, SETTINGS, read_calls
from baer_utils.bench.sitting import Sitting
from baer_utils.bench.workload import BANK, long_pairs
from baer_utils.protocols import Call, rehearse

LOOKED_AT = 4  # pairs whose prompts are counted; the others are taken to be like them
# what a token costs beside one of a full batch of prefill, measured once with the embedded judge on two cores
ALONE, NEW_TOGETHER, NEW_ALONE = 1.5, 2.0, 27.0


class Estimate:
    """Seconds that are left of a section.

    Parameters
    ----------
    judge : the embedded judge; its tokenizer counts, and one batch of it is timed.
    """

    def __init__(self, judge: TransformersBackbone):
        pairs = long_pairs(judge, LOOKED_AT)
        rows = list(pairs.itertuples(index=False))
        self._rate = _prefill_rate(judge)
        self._reads = _work(judge, read_calls(judge, pairs))
        self._trials = _work(judge, [c for p in rows for c in rehearse("self_consistency", SETTINGS, p)])
        self._bank = _work(judge, [c for p in rows for name in BANK for c in rehearse(name, SETTINGS, p)])

    def seconds(self, sitting: Sitting, pairings: int) -> float:
        """What a section will take for the steps that are not kept; what is kept says how long the like of it takes."""
        section = sitting.section
        if section in ("harness", "server") and not peer(section):
            return 0.0
        took = [step["seconds"] for name, step in sitting.steps.items() if "pairing" in name]
        once, each = self._planned(section, pairings)
        left = max(0, pairings * (2 if section == "arithmetic" else 1) - len(took))
        once = 0.0 if sitting.steps else once / self._rate
        return once + left * (sum(took) / len(took) if took else each / self._rate)

    def _planned(self, section: str, pairings: int) -> tuple[float, float]:
        """Work done once, and for each pairing, in tokens of prefill."""
        ours, alone = self._reads
        if section == "precision":
            return 2 * PLAIN * pairings * ours, PLAIN * alone
        if section == "arithmetic":
            return 0.0, FULL * ours
        if section == "harness":
            return len(BATCH_SIZES) * PLAIN * alone, OURS * ours + PLAIN * alone
        if section == "server":
            return 0.0, 2 * OURS * ours
        ours, alone = {"reads": self._reads, "trials": self._trials, "bank": self._bank}[section]
        return 0.0, OURS * ours + PLAIN * alone


def spelled(seconds: float) -> str:
    """Minutes, as far as an estimate is worth saying."""
    return f"{seconds / 60:.0f} min" if seconds >= 60 else f"{seconds:.0f} s"


def _work(judge: TransformersBackbone, calls: list[Call]) -> tuple[float, float]:
    """Tokens of prefill that the calls about one pair are worth: what they begin with computed once; one by one."""
    distinct = {(*call.decoding, call.prompt.sha, call.prompt.key.trial): call for call in calls}.values()
    prompts = sorted(judge.render(call.prompt) for call in distinct)
    shared = sum(len(os.path.commonprefix(two)) for two in itertools.pairwise(prompts))
    separate, new = sum(map(len, prompts)), sum(call.max_new_tokens for call in distinct)
    together, alone = separate - shared + NEW_TOGETHER * new, ALONE * separate + NEW_ALONE * new
    return together / LOOKED_AT, alone / LOOKED_AT


@torch.inference_mode()
def _prefill_rate(judge: TransformersBackbone) -> float:
    """Tokens a second of one forward pass over four rows of 400 tokens, after one to warm up."""
    ids = torch.arange(1000, 2600, device=judge.device).reshape(4, 400)
    judge.model(ids[:1], use_cache=False, logits_to_keep=1)
    return ids.numel() / timed(lambda: judge.model(ids, use_cache=False, logits_to_keep=1))[0]
