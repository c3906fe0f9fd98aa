"""What a set of experts costs when each distinct call is made once and shared beginnings are computed once.

Read off a run table: the hash of each prompt says which calls are one, the tokens that calls took over from each other
say how long a shared beginning is. This file makes no call, and what it cannot see as shared it counts in full.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from types import SimpleNamespace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from baer_utils.costs.alone import TOKENS, calls_of, of_pairs
from baer_utils.prompts import Prompt
from baer_utils.protocols import PROTOCOLS, Settings, rehearse

CONTENT = ["pair_id", "content"]


def price(runs: pd.DataFrame, experts: Sequence[str], pair_ids: Sequence[str] | None = None) -> dict[str, float]:
    """What a set of experts really needs, as far as a run table can tell.

    Parameters
    ----------
    runs : run table of one backbone. Calls outside the set are looked at too: what they took over (`cached_tokens`)
        shows how long a content is, also where the call that paid for it is not in the set.
    experts, pair_ids : as in `standalone`.

    Returns
    -------
    dict, each number per pair: ``calls``, distinct by prompt, decoding and trial (so what is asked about a question
    alone counts once for all its pairs); ``prompt_tokens``, all of theirs; ``new_tokens``; ``unique_tokens``, the
    prompt tokens left when a content that several calls begin with, and a prompt that several trials share, is computed
    once. Where the table shows nothing shared (one call about a content, a judge that does not say) these are all
    prompt tokens. An imported row names no prompt and is a call of its own.
    """
    return SharedCalls(runs, experts, pair_ids).price(experts)


class SharedCalls:
    """The calls of a run table with what they share, read once, so that many sets of experts can be priced.

    Parameters as for `price`; `experts` are all that any set may hold.
    """

    def __init__(self, runs: pd.DataFrame, experts: Sequence[str], pair_ids: Sequence[str] | None = None) -> None:
        mine, self.n_pairs = of_pairs(runs, pair_ids)
        named = _named(mine.reset_index(drop=True))
        needed = np.zeros((len(named), len(experts)), dtype=bool)
        for column, name in enumerate(experts):
            needed[calls_of(named, name).index, column] = True
        held, question = _content_tokens(named), _question_tokens(named)
        rows = needed.any(axis=1)
        named, self._needed = named[rows], needed[rows]
        self._column = {name: column for column, name in enumerate(experts)}
        self._pair, self._call = named["pair_id"].to_numpy(), _number(_call_names(named))
        self._prompt, self._content = _number(named[[*CONTENT, "prompt_sha"]]), _number(named[CONTENT])
        self._trial, self._about = _number(named[["trial"]]), (named["content"] != "").to_numpy()
        self._question = question.reindex(self._pair).fillna(0).to_numpy()
        self._held = held.reindex(pd.MultiIndex.from_frame(named[CONTENT])).fillna(0).to_numpy()
        self._tokens = {name: named[name].to_numpy(float) for name in TOKENS}

    def price(self, experts: Sequence[str], pair_ids: Sequence[str] | None = None) -> dict[str, float]:
        """`price` of some of the experts, on some of the pairs (by default on all)."""
        wanted = self._needed[:, [self._column[name] for name in experts]].any(axis=1)
        n = self.n_pairs if pair_ids is None else max(len(pair_ids), 1)
        if pair_ids is not None:
            wanted &= pd.Index(pair_ids).get_indexer(self._pair) >= 0
        rows = np.flatnonzero(wanted)
        rows = rows[np.unique(self._call[rows], return_index=True)[1]]  # one row per call that has to be made
        spent = {name: float(self._tokens[name][rows].sum()) / n for name in TOKENS}
        return {"calls": len(rows) / n} | spent | {"unique_tokens": self._unique_tokens(rows) / n}

    def _unique_tokens(self, rows: NDArray[np.int64]) -> float:
        """Prompt tokens of distinct calls, shared as the backbones share them.

        The instruction is computed once for all contents of a pair, a content once for all calls that begin so, and
        all of a prompt but its last token once for all its trials.
        """
        prompts, first, which, calls = np.unique(
            self._prompt[rows], return_index=True, return_inverse=True, return_counts=True
        )
        tokens, held = self._tokens["prompt_tokens"][rows], self._held[rows][first]
        trials = np.bincount(np.unique(which * (self._trial.max(initial=0) + 1) + self._trial[rows]) // (
            self._trial.max(initial=0) + 1), minlength=len(prompts))  # fmt: skip
        longest = np.zeros(len(prompts))
        np.maximum.at(longest, which, tokens)
        behind = longest - held
        behind = np.where(trials > 1, behind + calls - 1, behind * calls)
        alone = np.bincount(which, tokens, minlength=len(prompts))
        once = np.unique(self._content[rows][first], return_index=True)[1]
        return float(np.where(held > 0, behind, alone).sum() + held[once].sum() - self._again(rows[first][once]))

    def _again(self, contents: NDArray[np.int64]) -> float:
        """Tokens of instructions at the head of these contents, without the first content of each pair."""
        contents = contents[self._about[contents]]
        first = np.unique(self._pair[contents], return_index=True)[1]
        return float(self._question[contents].sum() - self._question[contents[first]].sum())


def _named(runs: pd.DataFrame) -> pd.DataFrame:
    """The runs with how each answer was taken, and with the content that its prompt begins with ("": none known)."""
    kinds = [_kinds().get(key, ("", "")) for key in zip(runs["protocol"], runs["stage"], runs["view"], strict=True)]
    return runs.assign(decoding=[decoding for decoding, _ in kinds], content=[content for _, content in kinds])


def _call_names(named: pd.DataFrame) -> pd.DataFrame:
    """What makes a call distinct: prompt, decoding, trial, the text of a likelihood; a row without a prompt, itself."""
    # the prompt of a likelihood does not name the text; its row's own text does, being the likelihood itself
    of_text = np.array([decoding.startswith("likelihood") for decoding in named["decoding"]], dtype=bool)
    text = named["text"].where(of_text, "")
    itself = np.where(named["prompt_sha"] == "", np.arange(len(named)), -1)
    return named[["prompt_sha", "decoding", "trial"]].assign(text=text, itself=itself)


def _number(names: pd.DataFrame) -> NDArray[np.int64]:
    """Rows with equal names get one number."""
    return names.groupby(list(names.columns), sort=False).ngroup().to_numpy()


def _content_tokens(named: pd.DataFrame) -> pd.Series:
    """Tokens of every content that a call of the table took over from another.

    The first call about a content takes over the instruction at most, the others all of it: so the fewest that one did,
    or where all took something over, the fewest but for the first.
    """
    known = named[named["content"] != ""].groupby(CONTENT)["cached_tokens"]
    taken = named[(named["content"] != "") & (named["cached_tokens"] > 0)][[*CONTENT, "cached_tokens"]]
    fewest = taken.drop_duplicates().sort_values("cached_tokens").groupby(CONTENT)["cached_tokens"]
    least = fewest.first()
    behind_first = fewest.nth(1)
    second = pd.Series(behind_first.to_numpy(), pd.MultiIndex.from_frame(taken.loc[behind_first.index, CONTENT]))
    tokens = least.where(known.min().reindex(least.index) == 0, second.reindex(least.index).fillna(least))
    shortest = named.groupby(CONTENT)["prompt_tokens"].min().reindex(tokens.index) - 1
    return np.minimum(tokens, shortest)  # a resumed run may show whole prompts alone


def _question_tokens(named: pd.DataFrame) -> pd.Series:
    """Tokens of the instruction at the head of all prompts about a pair, where a content's first call took it over."""
    first = named[named["content"] != ""].groupby(CONTENT)[["cached_tokens", "prompt_tokens"]].min()
    by_pair = first.groupby("pair_id")
    shown = first[first["cached_tokens"] > 0].groupby("pair_id")["cached_tokens"].min()
    return np.minimum(shown, by_pair["prompt_tokens"].min().reindex(shown.index) - 1)


@cache
def _kinds() -> dict[tuple[str, str, str], tuple[str, str]]:
    """(protocol, stage, view) -> verb and decoding, and the content that the prompt begins with, of every protocol."""
    blank = SimpleNamespace(pair_id="", instruction="{instruction}", response_a="{a}", response_b="{b}")
    calls = [call for name in PROTOCOLS for call in rehearse(name, Settings(), blank)]
    kinds = [(" ".join(map(str, call.decoding)), _content(call.prompt)) for call in calls]
    keys = [(call.prompt.key.protocol, call.prompt.key.stage, call.prompt.key.view) for call in calls]
    return dict(zip(keys, kinds, strict=True))


def _content(prompt: Prompt) -> str:
    """The texts of a prompt up to the last piece of its content; empty where it has none to share."""
    pieces = [number for number, segment in enumerate(prompt.segments) if not segment.trusted][: prompt.shared]
    return "".join(segment.text for segment in prompt.segments[: pieces[-1] + 1]) if pieces else ""
