"""What an audit holds, how outputs become cells, and what a pattern calibrator predicts."""

from __future__ import annotations

import pickle
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils import estimator_checks

from baer_utils.calibrators import (
    Audit,
    LogisticCalibrator,
    PatternCalibrator,
    VoteCalibrator,
    audit_from_runs,
    audit_from_tables,
    bin_scores,
    net_symbols,
    split_audit,
)
from tests.conftest import SHARED, make_pairs

TIDY = SHARED / "tidy"


def small_audit(n: int = 40, judges: int = 3, seed: int = 0, **parts: object) -> Audit:
    """Judges that are right about three times in four, on binary labels, every item its own group."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n).astype(float)
    right = rng.random((n, judges)) < 0.75
    Z = np.where(right, y[:, None], 1 - y[:, None]).astype(object)
    return Audit(Z, y, tuple(f"j{number}" for number in range(judges)), **parts)


def tidy(name: str, judges: list[str] | None = None, **settings: object) -> Audit:
    """One of the real pools."""
    if not TIDY.exists():
        pytest.skip(f"{TIDY} is not there")
    labels, verdicts = (pd.read_csv(TIDY / f"{name}.{kind}.csv.gz") for kind in ("labels", "verdicts"))
    return audit_from_tables(labels, verdicts, judges, **settings)


def vanilla() -> list[str]:
    return [f"{model}/Vanilla" for model in ("ChatGPT", "ChatGPT-0301", "Falcon", "LLaMA2", "PaLM2")]


@given(st.lists(st.sampled_from(["a", "b", 1, 2.5, None, float("nan"), " "]), min_size=1, max_size=12), st.randoms())
def test_codes_follow_the_symbols_and_not_the_order_of_the_rows(column, random):
    Z = np.empty((len(column), 1), dtype=object)
    Z[:, 0] = column
    audit = Audit(Z, np.zeros(len(column)), ("j",))
    order = random.sample(range(len(column)), len(column))
    again = Audit(Z[order], np.zeros(len(column)), ("j",))
    assert audit.coding.levels == again.coding.levels
    assert (audit.coding.codes[order] == again.coding.codes).all()
    for value, code in zip(column, audit.coding.codes[:, 0], strict=True):
        missing = value is None or value != value or value == " "
        assert code == -1 if missing else audit.coding.levels[0][code] == value


def test_what_is_taken_from_an_audit_equals_what_is_built_anew():
    audit = small_audit(slices=np.array(["x", None, "y", "x"] * 10, dtype=object), groups=np.arange(40) // 2)
    rows = np.array([7, 3, 39, 0])
    part = audit.take(rows)
    assert (audit.Z[rows] == part.Z).all() and (part.route_names == audit.route_names[rows]).all()
    decoded = [[audit.coding.levels[j][c] for j, c in enumerate(row)] for row in part.coding.codes]
    assert (np.array(decoded, dtype=object) == audit.Z[rows]).all()


def test_the_first_true_column_in_declared_order_is_the_route():
    frame = pd.DataFrame({"late": [True, False, True, False], "early": [True, True, False, False]})
    audit = small_audit(4, slices=frame[["early", "late"]])
    assert list(audit.route_names) == ["early", "early", "late", None]
    assert list(small_audit(4, slices=frame).route_names) == ["late", "early", "late", None]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"y": [0, 2, 1]}, "row 1 is 2.0"),
        ({"y": [0, np.nan, 1]}, "row 1 is nan"),
        ({"judges": ("a", "a")}, "distinct"),
        ({"judges": ("a",)}, "items x judges"),
        ({"Z": [[{}, 1]] * 3}, "texts or numbers"),
        ({"slices": ["s"]}, "3 items"),
        ({"slices": pd.DataFrame({"s": [0, 1, 2]})}, "True and False"),
        ({"groups": [1, 2]}, "group of each of 3"),
    ],
)
def test_an_audit_that_cannot_be_right_is_refused(change, words):
    parts = {"Z": [[1, 2]] * 3, "y": [0, 0.5, 1], "judges": ("a", "b")} | change
    with pytest.raises(ValueError, match=words):
        Audit(**parts)


def test_dropped_items_are_counted_and_blamed():
    Z = np.array([[1, None, 0], [1, 1, np.nan], [0, None, 1], [1, 0, 1]], dtype=object)
    complete, account = Audit(Z, [0, 1, 0, 1], ("a", "b", "c")).complete()
    assert len(complete) == 1
    assert account == (4, 3, 1, 3, "b", 2)
    assert "most are missing from b (2)" in str(account)


def test_a_split_keeps_groups_whole_has_the_papers_sizes_and_ignores_the_order_of_rows():
    for n, sizes in ((837, (209, 209, 419)), (298, (74, 75, 149)), (802, (200, 201, 401))):
        assert tuple(map(len, split_audit(small_audit(n), 3))) == sizes  # Panels, section 2.3: fit and validation
    audit = small_audit(60, groups=np.arange(60) // 3)
    parts = split_audit(audit, 0)
    names = [set(part.groups) for part in parts]
    assert not (names[0] & names[1] or names[1] & names[2] or names[0] & names[2])
    assert [len(name) for name in names] == [5, 5, 10]
    order = np.random.default_rng(0).permutation(60)
    assert set(split_audit(audit.take(order), 0).test.groups) == names[2]
    with pytest.raises(ValueError, match="at least 4 groups"):
        split_audit(small_audit(6, groups=[0, 0, 1, 1, 2, 2]), 0)


@given(st.integers(0, 50), st.integers(1, 40))
def test_a_table_is_the_grouped_mean_and_anything_unseen_is_the_label_mean(seed, n):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.integers(0, 3, (n, 3)).astype(object), columns=["a", "b", "c"])
    y, new = rng.random(n), pd.DataFrame(rng.integers(0, 4, (20, 3)).astype(object), columns=["a", "b", "c"])
    model = PatternCalibrator(["c", "a"]).fit(X, y)
    means = pd.Series(y).groupby([X["c"], X["a"]]).mean()
    expected = [means.get((c, a), y.mean()) for c, a in zip(new["c"], new["a"], strict=True)]
    np.testing.assert_allclose(model.predict(new), expected, atol=1e-12)
    assert model.fallback_rate_ == np.mean([(c, a) not in means for c, a in zip(new["c"], new["a"], strict=True)])
    counted = dict(zip(model.patterns_, model.count_, strict=True))
    assert counted == pd.Series(y).groupby([X["c"], X["a"]]).size().to_dict()


def test_smoothing_runs_from_the_table_to_no_information_at_all():
    audit = small_audit(80)
    fits = {kappa: PatternCalibrator((0, 1), smoothing=kappa).fit(audit.Z, audit.y) for kappa in (0.0, 1e-9, 2.0, 1e12)}
    table, nearly, smooth, flat = (model.predict(audit.Z) for model in fits.values())
    np.testing.assert_allclose(table, nearly, atol=1e-8)
    np.testing.assert_allclose(flat, audit.y.mean(), atol=1e-9)
    parent = PatternCalibrator((0,), smoothing=2.0).fit(audit.Z, audit.y).predict(audit.Z)
    own = pd.Series(audit.y).groupby([audit.Z[:, 0], audit.Z[:, 1]])
    np.testing.assert_allclose(smooth, (own.transform("sum") + 2 * parent) / (own.transform("size") + 2))


def test_the_calibrator_keeps_scikit_learns_conventions():
    model = PatternCalibrator((0, 1), smoothing=0.5)
    assert clone(model).get_params() == {"panel": (0, 1), "smoothing": 0.5}
    with pytest.raises(NotFittedError):
        model.predict(np.zeros((2, 2)))
    audit = small_audit()
    assert model.fit(audit.Z, audit.y) is model and model.n_features_in_ == 3
    assert (pickle.loads(pickle.dumps(model)).predict(audit.Z) == model.predict(audit.Z)).all()
    assert PatternCalibrator(()).fit(audit.Z, audit.y).predict(audit.Z) == pytest.approx(audit.y.mean())
    with pytest.raises(ValueError, match="missing"):
        model.fit(np.array([[None, 1], [1, 1]], dtype=object), [0, 1])
    with pytest.raises(ValueError, match="at least 0"):
        PatternCalibrator((0,), smoothing=-1).fit(audit.Z, audit.y)
    with pytest.raises(ValueError, match="at least 0"):
        PatternCalibrator((0,), smoothing=np.inf).fit(audit.Z, audit.y)
    with pytest.raises(ValueError, match="zz"):
        PatternCalibrator(("zz",)).fit(audit.table, audit.y)


# scikit-learn's checks that a table of symbols in [0, 1] cannot pass, and why
NOT_APPLICABLE = {
    "check_complex_data": "refused, in other words", "check_dtype_object": "refused, in other words",
    "check_estimators_empty_data_messages": "refused, in other words",
    "check_fit2d_predict1d": "refused, in other words", "check_requires_y_none": "refused, in other words",
    "check_supervised_y_no_nan": "labels are clipped by the test itself",
    "check_estimators_nan_inf": "infinity is a symbol",
    "check_regressors_train": "asks for a score on continuous features, of which each is a symbol of its own",
    "check_regressor_data_not_an_array": "labels are clipped by the test itself",
    "check_supervised_y_2d": "a column of labels is refused, not flattened",
    "check_estimator_sparse_tag": "no sparse outputs", "check_estimator_sparse_array": "no sparse outputs",
    "check_estimator_sparse_matrix": "no sparse outputs",
}  # fmt: skip


class Clips:
    """scikit-learn's checks invent labels outside [0, 1]."""

    def fit(self, X, y):
        return super().fit(X, np.clip(y, 0, 1))


class ClippedPattern(Clips, PatternCalibrator): ...


class ClippedLogistic(Clips, LogisticCalibrator): ...


class ClippedVote(Clips, VoteCalibrator): ...


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", [ClippedPattern, ClippedLogistic, ClippedVote])
def test_all_of_scikit_learns_own_checks_hold_where_they_apply(kind):
    found = estimator_checks.check_estimator(kind((0,)), on_fail=None, on_skip=None)
    failed = {check["check_name"] for check in found if check["status"] == "failed"}
    assert failed <= set(NOT_APPLICABLE), failed - set(NOT_APPLICABLE)
    assert sum(check["status"] == "passed" for check in found) > 30


def test_the_net_of_two_orders_is_a_b_or_split_and_never_half_an_answer():
    inf, nan = np.inf, np.nan
    votes = np.array([[inf, 0.2], [-1, -inf], [2, -0.1], [0, 3], [0, 0], [nan, 1]])
    assert list(net_symbols(votes)) == ["a", "b", "split", "a", "split", None]
    assert list(net_symbols(np.array([[1.0, nan], [-1.0, nan]]))) == ["a", "b"]


def test_an_audit_of_a_run_table_has_the_net_verdict_of_every_pair():
    pairs = make_pairs([(f"q{n}", "x", "y") for n in range(3)])
    rows = [(pair, view, value) for pair, ab, ba in zip(pairs["pair_id"], (1, -1, 2), (2, 1, np.nan), strict=True)
            for view, value in (("ab", ab), ("ba", ba))]  # fmt: skip
    runs = pd.DataFrame(rows, columns=["pair_id", "view", "log_odds"]).assign(
        protocol="direct", stage="verdict", trial=0, status="ok"
    )
    audit = audit_from_runs(runs, pairs)
    assert audit.Z[:, 0].tolist() == ["a", "split", None]
    assert audit.y.tolist() == ((pairs["label"] + 1) / 2).tolist()
    pairs.loc[1, "label"] = np.nan
    with pytest.raises(ValueError, match="must have a label"):
        audit_from_runs(runs, pairs)


def test_bins_come_from_the_fit_rows_alone():
    fit = Audit(np.arange(8.0).reshape(-1, 1).astype(object), np.zeros(8), ("score",))
    new = Audit(np.array([[-5.0], [3.6], [99.0], [None]], dtype=object), np.zeros(4), ("score",))
    cut, other = bin_scores(fit, new, bins=4)
    assert cut.Z[:, 0].tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    assert other.Z[:, 0].tolist() == [0, 2, 3, None]


def test_scores_of_hard_verdicts_are_binned_beside_the_others():
    score = np.concatenate([np.full(120, np.inf), np.full(30, -np.inf), np.linspace(-2, 2, 50)])
    (binned,) = bin_scores(Audit(score[:, None].astype(object), np.arange(200) % 2, ("only",)))
    by_bin = pd.Series(score).groupby(binned.Z[:, 0].astype(int))
    assert by_bin.max().is_monotonic_increasing and len(by_bin) == 3 and (by_bin.get_group(2) == np.inf).all()
    (hard,) = bin_scores(Audit(score[:150, None].astype(object), np.arange(150) % 2, ("only",)), judges=["only"])
    assert len({*hard.Z[:, 0]}) == 2


def test_real_pools_have_the_complete_cases_that_the_reference_states():
    complete = {
        "llmbar": tidy("llmbar", vanilla()).complete()[1][:3],
        "jbb": tidy("jbb_judges").complete()[1][:3],
        "judgebench": tidy("judgebench_gpt").complete()[1][:3],
    }
    assert complete == {"llmbar": (419, 5, 413), "jbb": (300, 5, 300), "judgebench": (350, 17, 339)}


def test_a_frame_of_outputs_is_read_by_its_column_names():
    frame = pd.DataFrame({"two": ["x", "y"], "spare": ["s", "s"], "one": ["a", "b"]})
    audit = Audit(frame, [0, 1], ("one", "two"))
    assert audit.Z.tolist() == [["a", "x"], ["b", "y"]]
    with pytest.raises(ValueError, match="three"):
        Audit(frame, [0, 1], ("one", "three"))


def test_a_judge_is_binned_by_what_the_fit_items_show_and_not_by_the_test_items():
    few = small_audit(60, 1)
    rows = np.flatnonzero(np.isin(few.groups, split_audit(few, 0).test.groups))
    Z = few.Z.copy()
    Z[rows, 0] = np.arange(len(rows))  # thirty symbols, all of them in the test
    many = Audit(Z, few.y, few.judges)
    for part, other in zip(bin_scores(*split_audit(few, 0))[:2], bin_scores(*split_audit(many, 0))[:2], strict=True):
        assert part.Z.tolist() == other.Z.tolist()


def test_what_cannot_be_read_is_refused_in_words():
    model = PatternCalibrator(("j0",)).fit(small_audit(), small_audit().y)
    with pytest.raises(ValueError, match="pass a frame or an audit"):
        model.predict(np.array([["a"]], dtype=object))
    with pytest.raises(ValueError, match="outputs must be texts or numbers"):
        Z = np.full((2, 3), 1.0, dtype=object)
        Z[0, 0] = ["a", "list"]
        model.predict(Z)
    for odd in (Fraction(1, 3), Decimal("0.5"), 1j, (1, 2)):
        with pytest.raises(ValueError, match="outputs must be texts or numbers"):
            Audit(np.array([[odd], [1]], dtype=object), [0, 1], ("j",))
    with pytest.raises(ValueError, match="one entry for each of 40"):
        small_audit().take(np.array([True]))
    with pytest.raises(ValueError, match="j gives texts"):
        bin_scores(Audit([["a"], ["b"]], [0, 1], ("j",)), judges=["j"])
    holes = pd.DataFrame({"hard": pd.array([True, None], dtype="boolean")})
    with pytest.raises(ValueError, match="nothing missing"):
        Audit(np.ones((2, 1), dtype=object), [0, 1], ("j",), slices=holes)
