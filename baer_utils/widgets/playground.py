"""The swap playground: type a question and two answers, have them judged both ways round, see the score negate.

The judge is opened when the button is pressed for the first time, and never before; nothing is judged while typing, and
nothing is kept.
"""

from __future__ import annotations

import time

import numpy as np
import pandas as pd
from IPython.display import HTML
from ipywidgets import HTML as HtmlView
from ipywidgets import Button, Layout, Textarea

from baer_utils.backbones import open_backbone
from baer_utils.evidence import run_array, summarize
from baer_utils.judging import judge_pairs
from baer_utils.plots import swap_picture
from baer_utils.records import check_pairs, content_id, question_group, split_of, swap_pairs, swap_runs
from baer_utils.scores import antisymmetry_gap, probability
from baer_utils.widgets.browser import answer
from baer_utils.widgets.escaping import beside, heading, picture, raw_text, sentence, table
from baer_utils.widgets.views import LiveView, shown

EXPERT = ("direct",)
EMBEDDED = (
    "The first press loads the embedded judge, SmolLM2 with 135 million weights: about ten seconds and 1 GB of "
    "memory, longer where it has to be fetched and converted first. Every press after that takes about a second."
)
OTHER = "The first press opens {}; how long that takes depends on its size."
FIELDS = ("question", "response a", "response b")


def swap_playground(pair: pd.DataFrame, runs: pd.DataFrame, *, judge: str = "smollm2-135m") -> SwapPlayground | HTML:
    """Judge a pair of one's own live, and its swap; without a reader, the recorded answers to the pair given.

    Parameters
    ----------
    pair : pair table of one row, what the fields hold at first.
    runs : run table with direct judging's answers to it, if there are any.
    judge : name that `open_backbone` knows; opened at the first press.
    """
    if len(pair) != 1:
        raise ValueError(f"the playground must begin with exactly one pair; {len(pair)} came. Give pairs.head(1).")
    return shown(lambda: SwapPlayground(pair, runs, judge=judge), lambda: recorded(pair, runs))


class SwapPlayground(LiveView):
    """The live playground: three fields, `button`, what it is doing (`status`) and what came out (`result`)."""

    def __init__(self, pair: pd.DataFrame, runs: pd.DataFrame, *, judge: str = "smollm2-135m"):
        self._name, self._judge = judge, None
        first = pair.iloc[0]
        values = (first["instruction"], first["response_a"], first["response_b"])
        wide = {"layout": Layout(width="auto", height="4.5em"), "style": {"description_width": "6em"}}
        self.fields = [Textarea(value=value, description=name, **wide)
                       for value, name in zip(values, FIELDS, strict=True)]  # fmt: skip
        self.button = Button(description="Judge both ways round", button_style="primary", layout=Layout(width="16em"))
        about = EMBEDDED if judge.partition("?")[0] == "smollm2-135m" else OTHER.format(judge)
        self.status, self.result = HtmlView(sentence(about)), HtmlView(layout=Layout(width="auto"))
        super().__init__([*self.fields, self.button, self.status, self.result], recorded(pair, runs))
        self.button.on_click(lambda _: self._press())
        for field in self.fields:
            field.observe(lambda _: self._forget(), "value")

    def _forget(self) -> None:
        if self.result.value:
            self.result.value = ""
            self.status.value = sentence("The texts have changed since they were judged; press again.")

    def _press(self) -> None:
        """Judge what the fields hold, and say what went wrong if it does: a view must not die of its judge."""
        self.button.disabled, self.result.value = True, ""
        try:
            self._judge_both()
        except Exception as error:
            self.status.value = sentence(f"This could not be judged: {error}")
        finally:
            self.button.disabled = False

    def _judge_both(self) -> None:
        pair = typed_pair(*(field.value for field in self.fields))
        start = time.perf_counter()
        if self._judge is None:
            self.status.value = sentence("Loading the judge ...")
            self._judge = open_backbone(self._name)
        self.status.value = sentence("Judging: two prompts for the pair, two for its swap ...")
        runs, swapped_runs = (
            judge_pairs(x, self._judge, EXPERT, progress=False)[0] for x in (pair, swap_pairs(pair))
        )  # fmt: skip
        self.result.value = result(pair, runs, swapped_runs)
        self.status.value = sentence(f"Asked {self._judge.name} four times; {time.perf_counter() - start:.1f} seconds.")


def typed_pair(question: str, response_a: str, response_b: str) -> pd.DataFrame:
    """What was typed, as a pair table of one row without a label; refused where nothing was asked or answered."""
    if not question.strip() or not (response_a + response_b).strip():
        raise ValueError("there must be a question and at least one response; type them first.")
    group = question_group(question)
    return check_pairs(pd.DataFrame([{
        "pair_id": content_id(question, response_a, response_b), "group_id": group, "benchmark": "playground",
        "subset": "typed", "task_type": "typed", "instruction": question, "response_a": response_a,
        "response_b": response_b, "label": np.nan, "split": split_of(group),
    }]))  # fmt: skip


def result(pair: pd.DataFrame, runs: pd.DataFrame, swapped_runs: pd.DataFrame) -> str:
    """Both answers to a pair and to its swap, the two scores, and their sum, as HTML."""
    L, swapped_L = (run_array(table, EXPERT, pair["pair_id"])[:, 0, :2] for table in (runs, swapped_runs))
    (score,), (swapped,) = (summarize(values[:, None], EXPERT).z[:, 0] for values in (L, swapped_L))
    rows = [("a shown first", *map(answer, (L[0, 0], swapped_L[0, 0]))),
            ("b shown first", *map(answer, (L[0, 1], swapped_L[0, 1]))),
            ("score s", f"{score:+.6f}", f"{swapped:+.6f}")]  # fmt: skip
    gap = antisymmetry_gap(np.array([score]), np.array([swapped]))
    orders = np.sign(L[0])
    moved = "changes its mind with the order" if orders.prod() < 0 else "says the same in both orders"
    said = (f"The judge {moved}; taken together it prefers a with a probability of {probability(score):.1%}. "
            f"The two scores add up to {gap}.")  # fmt: skip
    figure = swap_picture(L, swapped_L, ["this pair"])
    return (table(["log-odds toward a", "the pair x", "the swapped pair Tx"], rows) + sentence(said)
            + picture(figure, said))  # fmt: skip


def recorded(pair: pd.DataFrame, runs: pd.DataFrame) -> str:
    """The pair with the answers that a run table has for it: what a reader without a kernel sees."""
    first = pair.iloc[0]
    texts = raw_text(first["instruction"]) + beside(
        *(heading(f"response {name}") + raw_text(first[f"response_{name}"]) for name in "ab")
    )
    mine = runs[(runs["pair_id"] == first["pair_id"]) & runs["protocol"].isin(EXPERT)]
    if not len(mine):
        return texts + sentence("There are no recorded answers to this pair.")
    return texts + result(pair, mine, swap_runs(mine))
