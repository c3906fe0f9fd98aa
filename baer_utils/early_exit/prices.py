"""What any set of our own experts costs in tokens: alone by `costs.standalone`, together by `costs.price`.

Experts share calls and beginnings of prompts, so what one more of them costs depends on who is there already. This file
counts tokens; it knows nothing about labels or gains.
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from baer_utils.costs import TOKENS, SharedCalls, standalone


class BankPrices:
    """Tokens per pair of sets of experts.

    Parameters
    ----------
    runs : run table of one backbone. experts : names. pair_ids : the pairs that a price is the mean over.

    Attributes
    ----------
    alone : {expert: prompt and new tokens per pair, as separate prompts}: the additive costs of the paper's tables.
    """

    def __init__(self, runs: pd.DataFrame, experts: Sequence[str], pair_ids: Sequence[str]) -> None:
        self.experts = tuple(experts)
        self.alone = standalone(runs, self.experts, pair_ids)[TOKENS].sum(axis=1).to_dict()
        self._calls = SharedCalls(runs, self.experts, pair_ids)

    def of(self, panel: Sequence[str], pair_ids: Sequence[str] | None = None) -> float:
        """Tokens per pair that a set really needs: unique prompt tokens and new tokens of its distinct calls.

        Parameters
        ----------
        panel : names of experts, in any order; the empty set costs nothing. pair_ids : by default all.
        """
        unknown = [name for name in panel if name not in self.experts]
        if unknown:
            raise ValueError(f"experts must be among {', '.join(self.experts)}; {', '.join(unknown)} came.")
        bill = self._calls.price(panel, pair_ids)
        return bill["unique_tokens"] + bill["new_tokens"]

    def added(self, panel: Sequence[str], expert: str) -> float:
        """What one more expert adds to the price of a set: less than alone where it shares, 0 where it asks nothing."""
        return self.of([*panel, expert]) - self.of(panel)

    def table(self, order: Sequence[str]) -> pd.DataFrame:
        """Experts in an order: tokens alone, tokens added to those before, and the price of all so far."""
        together = pd.Series([self.of(order[: place + 1]) for place in range(len(order))], list(order), dtype=float)
        added = together.diff().fillna(together)
        columns = {"alone": pd.Series(self.alone).reindex(list(order)), "added": added, "together": together}
        return pd.DataFrame(columns).rename_axis("expert")
