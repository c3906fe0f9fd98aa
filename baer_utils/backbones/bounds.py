"""From the log-probabilities that a server lists for the next token to a constrained read; knows nothing about servers.

A label that is not listed is not impossible: each of its two spellings is at most as likely as the least likely token
that is listed, and both together no likelier than what the list leaves over. A read whose other label is listed is then
a bound: at least this far towards the label that was seen. A read without either label says nothing and is no answer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping

import numpy as np

from baer_utils.backbones.base import Failure

LEAST = -100.0  # log-probabilities below it (servers write -9999 for "none") say only that they are below it
Listed = Mapping[str, float]


def log_sum(values: Iterable[float]) -> float:
    """Log of a sum of exponentials; -inf for none."""
    return float(np.logaddexp.reduce(list(values)))


def read_listed(listed: Listed, side: Callable[[str], int | None], labels: tuple[str, str]):
    """Log-odds, label mass and a remark, or a `Failure`.

    Parameters
    ----------
    listed : log-probability over the whole vocabulary of every token that was listed.
    side : 0 or 1 for a token that stands for that label, else None.
    labels : for the messages.

    Returns
    -------
    (log_odds, label_mass, remark). The remark is empty where both labels are listed (of a second spelling that is not,
    nothing is counted). For a bound it says so, the log-odds are the bound that lies nearer to 0, and the mass is that
    of the label that was seen: at least so much.
    """
    found: tuple[list[float], list[float]] = ([], [])
    for token, value in listed.items():
        if side(token) is not None and value > LEAST:
            found[side(token)].append(value)
    if log_sum(listed.values()) > 1e-3:
        return Failure("the server's log-probabilities add up to more than 1, so they are not of one distribution over "
                       "the whole vocabulary. Start vLLM with --logprobs-mode raw_logprobs.")  # fmt: skip
    sums = [log_sum(values) for values in found]
    mass = min(1.0, math.exp(log_sum(sums)))
    if all(found):
        return sums[0] - sums[1], mass, ""
    if not any(found):
        first = max(listed, key=listed.get, default="")
        return Failure(f"neither {labels[0]!r} nor {labels[1]!r} is among the {len(listed)} tokens that the server "
                       f"lists for the judge's answer; it would rather say {first!r}.")  # fmt: skip
    seen = 0 if found[0] else 1
    most = max(LEAST, min(listed.values())) + math.log(2)  # two spellings
    left = 1.0 - math.exp(log_sum(listed.values()))
    if left > 0:
        most = max(LEAST, min(most, math.log(left)))
    distance = sums[seen] - most
    if distance <= 0:
        return Failure(f"{labels[1 - seen]!r} is not among the {len(listed)} tokens that the server lists for the "
                       f"judge's answer, and {labels[seen]!r} is hardly likelier than the last: which is the likelier "
                       "label is not known.")  # fmt: skip
    remark = f"bound: {labels[1 - seen]!r} is not among the {len(listed)} tokens that the server lists"
    return (distance if seen == 0 else -distance), mass, remark
