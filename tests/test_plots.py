"""Every figure of the book: labelled, unclipped, the same twice, in no window, whole without an expert's answers."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex

from baer_utils import early_exit, metrics, plots, selective
from baer_utils.evidence import summarize
from baer_utils.metrics import agreement, opinions
from baer_utils.plots import look
from baer_utils.scores import probability
from baer_utils.stacking import fit_nonnegative_stack, fit_stack, lambda_table
from tests.conftest import SHARED

VERDICTS = SHARED / "tidy" / "llmbar.verdicts.csv.gz"
EXPERTS = ("direct", "chain_of_thought")
NAMES = ["z direct", "z chain_of_thought", "shrunk z direct", "shrunk z chain_of_thought"]
HELPERS = {"caption", "spoken", "style"}


class Bank:
    """Forty LLMBar pairs under two published judges, both orders; labels of the benchmark."""

    def __init__(self, L, y, subset):
        self.L, self.y, self.subset = L, y, subset
        self.evidence = summarize(L, EXPERTS)
        self.phi = np.hstack([self.evidence.z, self.evidence.z_shrunk])
        self.swapped_phi = -self.phi
        rows = [
            {"protocol": name, "view": view, "log_odds": value, "status": "unparsed" if np.isnan(value) else "ok",
             "label_mass": 0.5 if name == "direct" else np.nan}
            for k, name in enumerate(EXPERTS) for m, view in enumerate(("ab", "ba")) for value in L[:, k, m]
        ]  # fmt: skip
        self.runs = pd.DataFrame(rows)
        self.table = pd.DataFrame({"split": np.repeat(["selection", "calibration"], len(y) // 2), "label": y})
        self.table["stack"] = self.phi[:, 0] / 10


@pytest.fixture(scope="module")
def bank():
    if not VERDICTS.exists():
        pytest.skip(f"real verdicts are not here: {VERDICTS}")
    verdicts = pd.read_csv(VERDICTS)
    labels = pd.read_csv(VERDICTS.with_name("llmbar.labels.csv.gz")).set_index("pair_id")["label"]
    judges = sorted(verdicts["judge"].unique())[:2]
    wide = verdicts.pivot_table(index="pair_id", columns=["judge", "order"], values="verdict", dropna=False)[judges]
    wide = wide.reindex(sorted(wide.index)[:40])
    hard = np.where(wide.isna(), np.nan, np.where(wide > 0.5, np.inf, np.where(wide < 0.5, -np.inf, 0.0)))
    L = hard.reshape(len(wide), 2, 2)
    L[:, 0] = np.where(np.isinf(L[:, 0]), np.sign(L[:, 0]) * np.linspace(0.1, 2, len(L))[:, None], L[:, 0])
    return Bank(L, labels.reindex(wide.index).to_numpy(float), list(wide.index))


def silent(bank):
    """The same bank, whose second expert never answered."""
    L = bank.L.copy()
    L[:, 1] = np.nan
    return Bank(L, bank.y, bank.subset)


def weights_by_lambda(bank):
    return pd.DataFrame({lam: fit_stack(bank.phi, bank.y, lam).weights for lam in (10, 1, 0.1)}).T


def first_counts(bank):
    rows = bank.runs[bank.runs["log_odds"].abs() > 0]
    first = (rows["log_odds"] > 0) == (rows["view"] == "ab")
    return first.groupby(rows["protocol"]).agg(["sum", "size"])


STORY = pd.DataFrame(
    [("claim graph", 2.2, -14.3, False), ("reference", 3.7, 6.3, True)],  # published: BAER section 3.4
    columns=["head", "selection", "calibration", "advances"],
)
MARGINS = pd.DataFrame(
    [("stack", "selection", 2.0, -5.0, 9.0), ("stack", "calibration", -1.0, -6.0, 4.0)],
    columns=["head", "split", "margin", "low", "high"],
)
SCREENED = pd.DataFrame({"selection_margin": [2.2, -1.0], "calibration_margin": [-14.3, np.nan]}, ["cf", "anchor"])
RULES = [f"{rule}{end}" for rule in ("matched_rule", "paper_rule") for end in ("_low", "", "_high")]
METHODS = pd.DataFrame(
    [[0.4, 0.5, 0.6, 0.3, 0.4, 0.5], [0.4, 0.5, 0.6, np.nan, np.nan, np.nan]], ["stack", "direct"], RULES
)
BILL = pd.DataFrame(
    {"tokens": [180.0, 2900.0], "accuracy": [0.5, 0.6], "low": [0.4, 0.5], "high": [0.6, 0.7]}, list(EXPERTS)
)
DIAL = pd.DataFrame({"risk": [0.2, 0.25, 0.3], "cost": [300.0, 200.0, 0.0]}, [0.0, 0.01, 0.1])

POINTS = pd.DataFrame(
    [("single_best", 1.0, 0.20, 0.18, 0.22), ("role", 2.3, 0.17, 0.16, 0.18), ("stopped", 2.3, 0.18, 0.17, 0.19),
     ("flat_all", 5.0, 0.21, 0.20, 0.22), ("mine", 3.0, 0.19, 0.18, 0.20)],
    columns=["policy", "cost", "risk", "low", "high"],
)  # fmt: skip
GAINS = pd.DataFrame([[0.02, np.nan, -0.01], [0.001, 0.006, 0.0]], ["first", "second"], ["broad", "easy", "hard"])
REGIMES = pd.DataFrame(
    {"action": ["stop early", "keep the single judge"], "lam": 0.002, "base": ["nobody", "single"]}
    | {f"{gain}{end}": value for gain in ("single_gain", "stop_gain", "role_gain", "full_gain")
       for end, value in (("_low", -0.01), ("", 0.01), ("_high", 0.03))},
    index=["LLMBar", "JudgeBench"],
)  # fmt: skip
SHARES = pd.DataFrame({"conflict": [0.8, 0.1], "shared_error": [0.05, 0.0]}, ["LLMBar", "GSM8K"])
PRICES = pd.DataFrame({"alone": [240.0, 900.0], "added": [240.0, 0.0]}, index=EXPERTS)
SPLITS = pd.DataFrame(
    [(policy, size, seed, 0.5 + seed / 10, 100.0 * size + seed) for policy in ("full", "certain")
     for size in (1, 2) for seed in (0, 1)],
    columns=["policy", "size", "seed", "accuracy", "tokens"],
).assign(n_test=20, n_construction=20)  # fmt: skip
BILLS = [early_exit.over_splits(SPLITS, by, ("accuracy", "tokens")) for by in (["policy", "size"], ["policy"])]
ASKING = pd.DataFrame({"full": [1.0, 1.0], "certain": [1.0, 0.4]}, index=[1, 2])

FIGURES = {
    "swap_picture": lambda b: plots.swap_picture(b.L[0], -b.L[0][:, ::-1], EXPERTS),
    "status_bars": lambda b: plots.status_bars(b.runs),
    "label_mass": lambda b: plots.label_mass(b.runs, least=0.01),
    "position_preference": lambda b: plots.position_preference(first_counts(b)),
    "opinion_bar": lambda b: plots.opinion_bar(opinions(b.evidence.z, b.y)),
    "order_plane": lambda b: plots.order_plane(b.L, EXPERTS),
    "instability_against_confidence": lambda b: plots.instability_against_confidence(b.evidence),
    "shrinkage": lambda b: plots.shrinkage(b.evidence),
    "clip_effect": lambda b: plots.clip_effect(
        pd.DataFrame({"direct": [1.0, 0.9], "chain_of_thought": [np.nan, np.nan]}, index=[1e-4, 1e-2]), chosen=1e-4
    ),
    "feature_plane": lambda b: plots.feature_plane(b.phi[:, [0, 2]], b.swapped_phi[:, [0, 2]], ("z", "shrunk z")),
    "feature_map": lambda b: plots.feature_map(b.phi[:8], b.swapped_phi[:8], NAMES),
    "lambda_path": lambda b: plots.lambda_path(weights_by_lambda(b), EXPERTS, chosen=1),
    "lambda_choice": lambda b: plots.lambda_choice(
        pd.DataFrame(lambda_table(b.phi[:20], b.y[:20], b.phi[20:], b.y[20:])), chosen=0.1
    ),
    "stack_weights": lambda b: plots.stack_weights(
        fit_stack(b.phi, b.y, 1).weights, fit_nonnegative_stack(b.phi, b.y, 1).weights, NAMES
    ),
    "out_of_fold_scores": lambda b: plots.out_of_fold_scores(b.table, "stack"),
    "gate_margins": lambda b: plots.gate_margins(MARGINS),
    "gate_story": lambda b: plots.gate_story(STORY),
    "coin_flip_rules": lambda b: plots.coin_flip_rules(
        pd.DataFrame({"paper rule": [0.04, 0.9], "matched rule": [0.04, 0.05]}, index=[0.0, 0.5]), level=0.05
    ),
    "forest": lambda b: plots.forest(METHODS),
    "route_map": lambda b: plots.route_map(pd.DataFrame({"direct": [3, 0], "rubric": [1, 9]}, ["sums", ""])),
    "frontier": lambda b: plots.frontier(POINTS),
    "role_profiles": lambda b: plots.role_profiles(GAINS, tau_global=0.005, tau_slice=0.01),
    "regime_chart": lambda b: plots.regime_chart(REGIMES),
    "conflict_against_shared_error": lambda b: plots.conflict_against_shared_error(SHARES),
    "reliability": lambda b: plots.reliability({"stack": metrics.reliability_curve(probability(b.phi[:, 0]), b.y)}),
    "risk_coverage": lambda b: plots.risk_coverage(
        {"stack": selective.risk_coverage(np.abs(b.phi[:, 0]), b.phi[:, 0] * b.y <= 0)}, alpha=0.1
    ),
    "agreement_matrix": lambda b: plots.agreement_matrix(agreement(b.evidence.z), EXPERTS),
    "price_of_accuracy": lambda b: plots.price_of_accuracy(BILL),
    "tau_path": lambda b: plots.tau_path(DIAL, chosen=0.01),
    "letters_exchanged": lambda b: plots.letters_exchanged(b.evidence.z[:, 0], -b.evidence.z[:, 0]),
    "screening_margins": lambda b: plots.screening_margins(SCREENED),
    "bank_prices": lambda b: plots.bank_prices(PRICES),
    "accuracy_against_tokens": lambda b: plots.accuracy_against_tokens(
        *([{"set one": t, "set two": t} for t in BILLS])
    ),
    "early_exit_tokens": lambda b: plots.early_exit_tokens({"a set": ASKING}, {"a set": BILLS[1]}),
}
ONE_PANEL_EACH = ("order_plane", "instability_against_confidence")
every_figure = pytest.mark.parametrize("name", sorted(FIGURES))


def test_marks_of_the_frontier_keep_their_distance_and_none_costs_less_than_nothing():
    points = pd.concat([POINTS.assign(policy=f"{k}", cost=cost) for k, cost in enumerate((0.0, 0.1, 0.12))])
    points = pd.concat([points, POINTS], ignore_index=True)
    (ax,) = plots.frontier(points).axes
    marks = [line for line in ax.lines if line.get_linestyle() == "None" and len(line.get_xdata()) == 1]
    places = np.sort([line.get_xdata()[0] for line in marks])
    assert len(marks) == len(points) and places[0] == 0
    assert np.diff(places).min() >= 0.0999 and places[-1] == pytest.approx(5)  # two hundredths of a range of 5
    alone = [line.get_xdata()[0] for line in marks if line.get_label() == "mine"]
    assert alone == [pytest.approx(3)]
    (step,) = (line for line in ax.lines if line.get_label() == "nobody cheaper is better")
    assert (step.get_xdata()[0], step.get_xdata()[-1]) == (places[0], places[-1])


def test_every_figure_of_the_book_is_drawn_in_this_file():
    assert set(FIGURES) == set(plots.__all__) - HELPERS


@every_figure
def test_axes_are_labelled_and_no_text_leaves_the_picture(bank, name):
    figure = FIGURES[name](bank)
    figure.draw_without_rendering()
    axes = [ax for ax in figure.axes if ax.get_label() != "<colorbar>"]
    small = name in ONE_PANEL_EACH  # panels on common axes, which are named once
    assert (any if small else all)(ax.get_xlabel() for ax in axes if ax.get_subplotspec().is_last_row())
    assert any(ax.get_ylabel() for ax in axes) or axes[0].get_yticklabels() or name == "opinion_bar"
    drawn = figure.get_tightbbox(FigureCanvasAgg(figure).get_renderer())  # of everything that shows, in inches
    width, height = figure.get_size_inches()
    assert drawn.x0 > -0.02 and drawn.x1 < width + 0.02 and drawn.y0 > -0.02 and drawn.y1 < height + 0.02


@every_figure
def test_the_same_data_give_the_same_picture_byte_for_byte(bank, name):
    assert FIGURES[name](bank)._repr_png_() == FIGURES[name](bank)._repr_png_()


@every_figure
def test_an_expert_that_never_answered_breaks_no_figure_and_warns_nobody(bank, name, recwarn):
    assert len(FIGURES[name](silent(bank))._repr_png_()) < 150_000
    assert not recwarn.list


@every_figure
def test_no_figure_is_left_open_in_a_window(bank, name):
    from matplotlib import pyplot

    FIGURES[name](bank)
    assert pyplot.get_fignums() == []


def test_a_figure_of_one_row_clips_no_text(bank):
    for figure in (plots.position_preference(first_counts(silent(bank))), plots.status_bars(bank.runs[:1])):
        figure.draw_without_rendering()
        drawn = figure.get_tightbbox(FigureCanvasAgg(figure).get_renderer())
        assert min(drawn.x0, drawn.y0) > -0.02 and (drawn.max < figure.get_size_inches() + 0.02).all()


def test_one_pair_is_enough_for_every_figure_of_evidence(bank):
    one = summarize(bank.L[:1], EXPERTS)
    for draw in (plots.instability_against_confidence, plots.shrinkage):
        assert draw(one)._repr_png_()
    assert plots.order_plane(bank.L[:1], EXPERTS)._repr_png_()


def test_every_expert_has_a_colour_and_a_mark_of_its_own():
    for part in (0, 1):
        values = [look.STYLES[name][part] for name in list(look.STYLES)[:10]]
        assert len(set(values)) == len(values)
    assert look.style("somebody else's judge") == look.style("somebody else's judge")


@pytest.mark.parametrize("name", [*ONE_PANEL_EACH, "shrinkage"])
def test_an_expert_is_drawn_in_its_own_colour(bank, name):
    drawn = {}
    for ax in FIGURES[name](bank).axes:
        for points in ax.collections:
            title = ax.get_title(loc="left") if name in ONE_PANEL_EACH else points.get_label()
            drawn[title] = to_hex(points.get_facecolor()[0])  # the last ones drawn lie on top
    for expert in EXPERTS:
        assert drawn[look.spoken(expert)] == look.style(expert)[0].lower()


PLACES = {"forest": 50, "position_preference": 50, "gate_margins": 0, "label_mass": 1, "lambda_path": 1, "tau_path": 1}


@pytest.mark.parametrize("name, place", PLACES.items())
def test_the_reference_line_stands_where_it_says(bank, name, place):
    lines = [line for line in FIGURES[name](bank).axes[0].lines if line.get_linestyle() == "--"]
    assert any(np.allclose(line.get_xdata(), place) for line in lines)


def test_the_region_marked_as_flipping_is_where_verdicts_flip(bank):
    """delta > 2 |p - 1/2| exactly where two answered orders lie on opposite sides."""
    L = bank.L[:, 0]
    sides = np.sign(L)
    flips = sides[:, 0] * sides[:, 1] < 0
    evidence = bank.evidence
    above = evidence.delta[:, 0] > 2 * np.abs(evidence.p[:, 0] - 0.5) + 1e-12
    assert (above == flips).all() and flips.any() and not flips.all()


def test_every_policy_has_a_look_of_its_own():
    from baer_utils.juries import standard_policies
    from baer_utils.plots.regimes import POLICIES

    assert set(POLICIES) == set(standard_policies()) and len(set(POLICIES.values())) == len(POLICIES)


def test_the_heat_map_frames_what_clears_its_threshold():
    frames = plots.role_profiles(GAINS, tau_global=0.005, tau_slice=0.006).axes[0].patches
    assert [(round(frame.get_x() + 0.47), round(frame.get_y() + 0.44)) for frame in frames] == [
        (0, 0)
    ]  # 6 is not above 6


def test_a_caption_keeps_number_and_claim():
    assert plots.caption("Figure 2.1", "It moved.").data == "**Figure 2.1.** *It moved.*"


@pytest.mark.parametrize(("about", "low", "said"), [("pairs", 50, "confidence"), ("answers", 0, "confidence"),
                                                   ("experts", 0, "reliability"),
                                                   ("first_shown", 0, "shown first")])  # fmt: skip
def test_one_reliability_figure_says_what_its_probabilities_are_about(bank, about, low, said):
    p = probability(bank.phi[:, 0])
    curve = metrics.reliability_curve(p, bank.y, folded=about == "pairs")
    ax = plots.reliability({"route": curve}, about=about).axes[0]
    assert said in ax.get_xlabel() and ax.get_xlim()[0] < low <= 100 * curve["low"].min()
    sizes = ax.collections[-1].get_sizes()
    assert len(sizes) == len(curve) and sizes.argmax() == curve["pairs"].argmax()
