"""One upstream verdict, still in upstream's frame, and what its absence is called.

It knows what a run needs and how a verdict becomes a signed number; it knows nothing about files, hashes or *a*.
"""

from __future__ import annotations

import math
from typing import NamedTuple

FIRST, SECOND, TIE, NONE = math.inf, -math.inf, 0.0, math.nan  # hard verdicts toward the response listed first


class Verdict(NamedTuple):
    """What one judge said about one pair in one display order.

    `view` and `log_odds` are in upstream's frame: ``ab`` shows the response first that upstream lists first, and
    `log_odds` is toward it. `raw` is upstream's own word for the verdict, `label` its gold label (+1 first, -1 second,
    0 tie, NaN unknown).
    """

    place: str
    pair_id: str
    backbone: str
    protocol: str
    view: str
    log_odds: float
    status: str
    raw: str
    text: str
    label: float


def status_of(log_odds: float, finish: str | None = None) -> str:
    """Status of a verdict: how it ended counts before what it says.

    Parameters
    ----------
    log_odds : ±inf for a hard verdict, 0 for a tie, NaN where none was found.
    finish : why the text ended, where the tool says so: "length" means cut, "stop" and "" that it was whole, anything
        else that the call failed (a content filter, a refusal of the server).
    """
    if finish == "length":
        return "truncated"
    if finish not in (None, "", "stop"):
        return "error"
    return "unparsed" if math.isnan(log_odds) else "tie" if log_odds == 0 else "ok"
