"""What experts cost: each one alone, a set of them together, and a run before it is made.

Alone, every prompt is paid in full. Together, a call that two experts make is made once, and what several prompts begin
with (the instruction of a pair, the responses in one order behind it) is computed once. `pride` and `calibraeval` read
direct judging's answers again: they cost what these reads cost and add nothing to a bank that has them.
"""

from baer_utils.costs.alone import PRICED, TOKENS, calls_of, native_calls, per_pair, priced, standalone
from baer_utils.costs.planned import TOGETHER, dry_run
from baer_utils.costs.together import SharedCalls, price

__all__ = [
    "PRICED",
    "SharedCalls",
    "TOGETHER",
    "TOKENS",
    "calls_of",
    "dry_run",
    "native_calls",
    "per_pair",
    "price",
    "priced",
    "standalone",
]
