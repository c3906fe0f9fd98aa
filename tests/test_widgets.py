"""The interactive views, driven without a browser: what they show, what they never do, what stays without a reader."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from IPython.display import HTML

from baer_utils import widgets
from baer_utils.backbones.base import Read
from baer_utils.calibrators import split_audit
from baer_utils.panels import build_policy, measure
from baer_utils.presence import STATIC, is_live
from baer_utils.records import RUN_COLUMNS, check_runs, unit_hash
from baer_utils.widgets import browser, dial, escaped, playground, raw_text
from baer_utils.widgets.browser import EVERY, ORDERS, OUTVOTED, DisagreementBrowser, Sayings
from baer_utils.widgets.dial import Settings, TauDial
from baer_utils.widgets.playground import SwapPlayground
from tests.conftest import make_pairs
from tests.test_deployment import HashJudge
from tests.test_panels import independent_judges

HOSTILE = [
    "<script>alert(1)</script>", "<img src=x onerror=alert(1)>", '"><b>', "</pre></div>", "$$x^2$$", "&lt;b&gt;",
    "a\u202eb", "\x00", "\ud800", "' onclick='x", "<!--", "]]>", "javascript:x", "", "\n\nx", "{{ x }}", "`<i>`",
]  # fmt: skip
texts = st.one_of(st.sampled_from(HOSTILE), st.text(st.characters(exclude_categories=[])), st.text("<>&\"'/-!= a"))
ANSWERS = {  # pair -> expert -> log-odds toward a, a shown first and b shown first
    0: {"direct": (2.0, -2.0), "rubric": (1.0, 0.5), "prepair": (np.inf, np.inf)},
    1: {"direct": (-0.5, -0.7), "rubric": (1.0, 3.0), "prepair": (np.inf, np.nan)},
    2: {"direct": (0.1, 0.2), "rubric": (0.3, 0.1), "prepair": (np.nan, np.nan)},
    3: {"direct": (3.0, 3.0), "rubric": (-1.0, 2.0), "prepair": (-np.inf, np.inf)},
}
EXPERTS = ("direct", "rubric", "prepair")


class Page(HTMLParser):
    """Tags with their attributes, and text, as a browser would read them."""

    def __init__(self, html: str):
        super().__init__(convert_charrefs=True)
        self.tags, self.text, self.other = [], "", []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, *(name for name, _ in attrs)))

    def handle_data(self, data):
        self.text += data

    def handle_comment(self, data):
        self.other.append(data)

    handle_decl = handle_pi = unknown_decl = handle_comment


def made_runs(pairs: pd.DataFrame, text: str = "because") -> pd.DataFrame:
    rows = []
    for number, said in ANSWERS.items():
        for expert, orders in said.items():
            for view, value in zip(("ab", "ba"), orders, strict=True):
                row = dict.fromkeys(RUN_COLUMNS, 0) | {
                    "pair_id": pairs["pair_id"][number], "backbone": "made", "protocol": expert, "stage": "verdict",
                    "view": view, "log_odds": value, "status": "unparsed" if np.isnan(value) else "ok",
                    "label_mass": np.nan, "prompt_sha": "x", "text": text if expert == "prepair" else "",
                }  # fmt: skip
                rows.append(row)
    return check_runs(pd.DataFrame(rows))


@pytest.fixture(scope="module")
def pairs():
    return make_pairs([(f"question {n}", f"first {n}", f"second {n}") for n in range(4)])


@pytest.fixture(scope="module")
def runs(pairs):
    return made_runs(pairs)


@pytest.fixture
def view(pairs, runs):
    return DisagreementBrowser(Sayings(pairs, runs, EXPERTS))


# ---------------------------------------------------------------- texts


@given(texts)
def test_a_text_is_shown_character_by_character_and_becomes_no_markup(text):
    page = Page(escaped(text))
    assert not page.tags and not page.other
    assert not set("<>\"'") & set(escaped(text))
    hidden = re.compile("⟨U\\+([0-9A-F]{4,6})⟩")
    back = hidden.sub(lambda hit: chr(int(hit[1], 16)), page.text)
    assert back == hidden.sub(lambda hit: chr(int(hit[1], 16)), text.replace("\r\n", "\n"))
    assert escaped(text).isascii() or escaped(text).encode("utf-8")  # no half surrogate is left


@given(texts)
def test_a_box_of_raw_text_is_one_box_whatever_is_in_it(text):
    assert Page(raw_text(text)).tags == Page(raw_text("x")).tags + ([("i",)] if text in ("",) else [])


def test_marks_that_turn_the_writing_direction_are_made_visible_and_joiners_stay():
    assert escaped("a\u202eb\u200dc\u0007") == "a⟨U+202E⟩b\u200dc⟨U+0007⟩"


@settings(max_examples=12)
@given(st.lists(texts, min_size=4, max_size=4), texts)
def test_hostile_texts_leave_every_view_with_the_structure_that_harmless_texts_give(hostile, written):
    legal = [text.encode("utf-8", "replace").decode("utf-8") or "x" for text in (*hostile, written)]
    question, first, second, subset, written = legal
    pages = []
    for q, a, b, kind, wrote in ((question, first, second, subset, written), ("q", "a", "b", "s", "w")):
        table = make_pairs([(q, a, b)] * 4).assign(subset=kind)
        said = Sayings(table, made_runs(table, wrote), EXPERTS)
        pages.append((said.static() + said.card(0, "prepair"), playground.recorded(table.head(1), said.runs[:0])))
    for shown, harmless in zip(*pages, strict=True):
        assert Page(shown).tags == Page(harmless).tags
        assert not Page(shown).other


# ---------------------------------------------------------------- presence


def test_without_a_kernel_nothing_is_live_and_the_static_side_makes_no_widget(pairs, runs, monkeypatch):
    monkeypatch.delenv(STATIC, raising=False)
    assert not is_live()
    for name in ("DisagreementBrowser", "SwapPlayground", "TauDial"):
        monkeypatch.setattr({"D": browser, "S": playground, "T": dial}[name[0]], name, None)
    assert isinstance(widgets.disagreement_browser(pairs, runs, EXPERTS), HTML)
    assert isinstance(widgets.swap_playground(pairs.head(1), runs), HTML)
    assert isinstance(widgets.tau_dial(setting_at, [0.1]), HTML)


@pytest.mark.parametrize(
    "environment, names, live",
    [
        ({}, {}, False),  # papermill, nbconvert
        ({"JPY_SESSION_NAME": "00.ipynb"}, {}, True),
        ({}, {"__vsc_ipynb_file__": "00.ipynb"}, True),
        ({"JPY_SESSION_NAME": "00.ipynb", STATIC: "1"}, {}, False),  # papermill, started in a notebook
        ({STATIC: "0"}, {}, True),
    ],
)
def test_a_view_is_live_only_where_a_front_end_says_that_it_is_there(environment, names, live, monkeypatch):
    for name in ("JPY_SESSION_NAME", "COLAB_RELEASE_TAG", STATIC):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("IPython.get_ipython", lambda: SimpleNamespace(kernel=object(), user_ns=names))
    assert is_live() is live


def test_the_book_is_executed_as_static(monkeypatch, tmp_path):
    from baer_utils.batch import execution

    seen = {}

    def pretend(*_, **__):
        seen.update(os.environ)
        raise execution.DeadKernelError

    monkeypatch.setattr(execution.papermill, "execute_notebook", pretend)
    notebook = SimpleNamespace(path=Path(__file__), name="n")
    with pytest.raises(execution.NotebookFailed):
        execution.execute(notebook, {}, tmp_path / "copy.ipynb")
    assert seen[STATIC] == "1" and STATIC not in os.environ


def test_a_live_view_carries_its_static_side_for_front_ends_without_widgets(view):
    bundle = view._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" in bundle
    assert bundle["text/html"] == view.said.static()


# ---------------------------------------------------------------- disagreement browser


def test_the_browser_finds_pairs_by_expert_kind_subset_and_confidence(view, pairs):
    view.expert.value, view.kind.value = "direct", ORDERS
    assert list(view.found) == [0]
    view.kind.value = OUTVOTED
    assert list(view.found) == [1]
    view.kind.value = EVERY
    assert list(view.found) == [0, 1, 2, 3]
    view.subset.value = "odd"
    assert list(view.found) == [1, 3]
    view.confidence.value = (0.4, 0.5)
    assert list(view.found) == [3]


def test_the_browser_shows_both_responses_both_orders_and_the_raw_text(view):
    view.expert.value, view.kind.value = "prepair", EVERY
    view.place.value = 2
    text = Page(view.page.value).text
    assert all(part in text for part in ("question 1", "first 1", "second 1", "no answer", "-0.500 (b)", "because"))
    assert "2 of 3 pairs" in view.status.value


def test_a_filter_that_nothing_matches_says_so_and_turning_it_back_shows_pairs_again(view):
    view.kind.value, view.confidence.value = EVERY, (0.49, 0.5)
    assert "No pair matches" in view.status.value and view.page.value == "" and view.place.disabled
    view.confidence.value = (0.0, 0.5)
    assert view.page.value and not view.place.disabled


def test_a_sealed_label_is_not_shown_and_not_guessed(pairs, runs):
    sealed = pairs.assign(label=np.nan)
    said = Sayings(sealed, runs, EXPERTS)
    assert "label: sealed or unknown" in said.card(0, "direct")
    assert "label: b is better" in Sayings(pairs, runs, EXPERTS).card(0, "direct")


def test_counts_of_disagreements_are_those_counted_by_hand(pairs, runs):
    counts = Sayings(pairs, runs, EXPERTS).counts()
    assert counts[ORDERS].tolist() == [1, 1, 1]
    assert counts["pairs answered"].tolist() == [4, 4, 3]
    assert counts[OUTVOTED].tolist() == [1, 0, 0]


def test_nothing_to_browse_is_refused(pairs, runs):
    with pytest.raises(ValueError, match="0 and 3 came"):
        Sayings(pairs.head(0), runs, EXPERTS)


# ---------------------------------------------------------------- swap playground


class Reader(HashJudge):
    """A judge whose answer depends on the words of the prompt, on nothing else, and on the first place most of all."""

    name = "made"

    def read(self, prompts, labels=("A", "B")):
        return [Read(2 + unit_hash(prompt.sha), 0.9, 10) for prompt in prompts]


@pytest.fixture
def typed(pairs, runs, monkeypatch):
    opened = []
    monkeypatch.setattr(playground, "open_backbone", lambda name: opened.append(name) or Reader())
    view = SwapPlayground(pairs.head(1), runs)
    view.opened = opened
    return view


def test_the_playground_opens_its_judge_at_the_first_press_and_only_then(typed):
    typed.fields[0].value = "Is two plus two four?"
    assert typed.opened == []
    typed.button.click()
    typed.button.click()
    assert typed.opened == ["smollm2-135m"]
    assert not typed.button.disabled


def test_the_two_scores_of_the_playground_add_up_to_exactly_nothing(typed):
    typed.button.click()
    page = Page(typed.result.value).text
    assert "The two scores add up to 0.0." in page
    score, swapped = re.findall(r"[+-]\d+\.\d{6}", page)
    assert float(score) == -float(swapped) != 0
    assert "changes its mind with the order" in page and "four times" in typed.status.value


def test_typing_judges_nothing_and_takes_an_old_result_away(typed):
    typed.button.click()
    typed.fields[1].value = "another answer"
    assert typed.result.value == "" and "press again" in typed.status.value


def test_what_cannot_be_judged_is_said_and_the_playground_lives_on(typed, monkeypatch):
    typed.fields[0].value = "  "
    typed.button.click()
    assert "there must be a question" in typed.status.value and not typed.button.disabled
    monkeypatch.setattr(playground, "open_backbone", lambda name: 1 / 0)
    typed.fields[0].value = "<b>"
    typed.button.click()
    assert "division by zero" in typed.status.value and typed.opened == []


def test_identical_answers_score_exactly_zero(typed):
    typed.fields[1].value = typed.fields[2].value = "the same"
    typed.button.click()
    assert re.findall(r"[+-]\d+\.\d{6}", Page(typed.result.value).text) == ["+0.000000", "+0.000000"]


def test_the_playground_says_what_it_will_load_and_begins_with_a_recorded_answer(pairs, runs):
    view = SwapPlayground(pairs.head(1), runs)
    assert "135 million weights" in view.status.value and view.result.value == ""
    assert "+2.000 (a)" in view.static and "-2.000 (b)" in view.static
    assert "hf:some/judge" in SwapPlayground(pairs.head(1), runs, judge="hf:some/judge").status.value
    assert "no recorded answers" in playground.recorded(pairs.head(1), runs[:0])


def test_making_every_view_imports_no_model(pairs, runs, tmp_path):
    pairs.to_parquet(tmp_path / "pairs.parquet")
    runs.to_parquet(tmp_path / "runs.parquet")
    program = (
        "import sys, pandas as pd\nfrom baer_utils import widgets\n"
        "pairs, runs = (pd.read_parquet(f'{sys.argv[1]}/{name}.parquet') for name in ('pairs', 'runs'))\n"
        "widgets.disagreement_browser(pairs, runs, ['direct'])\nview = widgets.swap_playground(pairs.head(1), runs)\n"
        "print(type(view).__name__, *{'transformers', 'torch'} & {*sys.modules})"
    )
    ran = subprocess.run([sys.executable, "-c", program, tmp_path], capture_output=True, text=True,
                         env=os.environ | {STATIC: "0"}, cwd=Path(__file__).parents[1])  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.strip() == "SwapPlayground"


# ---------------------------------------------------------------- tau dial


def setting_at(tau: float) -> dict:
    judges = [name for name, gain in {"<b>": 0.03, "second": 0.015, "third": 0.004}.items() if gain > tau]
    plan = pd.DataFrame({"judge": judges})
    return {"plan": plan, "risk": 0.3 - 0.05 * len(judges), "cost": 100.0 * len(judges)}


def test_the_dial_shows_plan_risk_and_cost_of_the_tau_it_stands_at():
    view = TauDial(Settings(setting_at, [0.02, 0.0, 0.01, 0.05], start=0.01, cost="tokens"))
    assert [value for _, value in view.tau.options] == [0.0, 0.01, 0.02, 0.05]
    assert "tau = 0.01: risk 0.2000, tokens 200.00." in view.page.value and "second" in view.page.value
    view.tau.value = 0.02
    assert "risk 0.2500" in view.page.value and "second" not in view.page.value
    assert "&lt;b&gt;" in view.page.value and "<b>" not in view.page.value
    view.tau.value = 0.05
    assert "The plan calls nobody." in view.page.value


def test_the_dial_turns_real_call_plans_and_a_higher_tau_never_costs_more():
    fit, validation, test = split_audit(independent_judges(300, [0.9, 0.8, 0.7, 0.5], 3), 0)

    def plan_at(tau):
        plan = build_policy(fit, validation, tau_global=tau, tau_slice=tau)
        found = measure(plan, test, plan.costs)
        return {"plan": plan.table(), "risk": found["risk"], "cost": found["cost"]}

    view = TauDial(Settings(plan_at, [0.0, 0.005, 0.05, 1.0], start=0.005, cost="calls per item"))
    costs = view.settings.table["cost"]
    assert costs.is_monotonic_decreasing and costs[0.0] > costs[1.0] == 0
    view.tau.value = 1.0
    assert "nothing: a constant" in view.page.value and "calls per item 0.00" in view.page.value


def test_turning_the_dial_computes_nothing_again():
    asked = []
    view = TauDial(Settings(lambda tau: asked.append(tau) or setting_at(tau), [0.0, 0.01], start=None, cost="c"))
    view.tau.value = 0.01
    assert asked == [0.0, 0.01]


def test_a_dial_refuses_to_start_where_it_cannot_stand():
    for taus, start in (([0.1], 0.2), ([], None)):
        with pytest.raises(ValueError, match="start must be one of the taus"):
            Settings(setting_at, taus, start=start, cost="c")
