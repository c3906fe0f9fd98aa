"""What a judge adds: the oracle's identities by property, held-out gains against plain pandas, the roles."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from baer_utils.calibrators import Audit, PatternCalibrator, split_audit
from baer_utils.roles import (
    EstimatorScope,
    FoldedScope,
    Scope,
    broad_gain,
    conditional_value,
    oracle_predictor,
    oracle_risk,
    role_profile,
    role_table,
    slice_gain,
    specialization_ratio,
)
from tests.test_calibrators import small_audit


@st.composite
def outputs(draw) -> tuple[pd.DataFrame, np.ndarray]:
    """Outputs of four judges with up to three symbols, and labels, continuous or binary."""
    n, rng = draw(st.integers(1, 60)), np.random.default_rng(draw(st.integers(0, 10_000)))
    Z = pd.DataFrame(rng.integers(0, draw(st.integers(1, 3)), (n, 4)), columns=list("abcd"))
    y = rng.integers(0, 2, n).astype(float) if draw(st.booleans()) else rng.random(n)
    return Z.astype(object), y


@settings(max_examples=40)
@given(outputs(), st.sampled_from([(), ("a",), ("b", "a"), ("c", "a", "b")]))
def test_the_value_of_a_judge_is_the_risk_it_removes_and_never_negative(data, panel):
    Z, y = data
    value = conditional_value(Z, y, panel, "d")
    assert value >= 0
    assert value == pytest.approx(oracle_risk(Z, y, panel) - oracle_risk(Z, y, [*panel, "d"]), abs=1e-12)


@settings(max_examples=40)
@given(outputs(), st.sampled_from([("a",), ("b", "a"), ("c", "a", "b")]))
def test_a_judge_that_the_panel_determines_is_worth_exactly_nothing(data, panel):
    Z, y = data
    Z["copy"] = Z[panel[0]].map({0: "no", 1: "yes", 2: "perhaps"})
    Z["constant"] = "always"
    Z["function"] = (Z[panel[-1]] == 1).astype(object)
    assert [conditional_value(Z, y, panel, judge) for judge in ("copy", "constant", "function", panel[0])] == [0.0] * 4


@settings(max_examples=40)
@given(outputs())
def test_the_oracle_is_the_grouped_mean_and_its_risk_the_variance_left(data):
    Z, y = data
    expected = pd.Series(y).groupby([Z["b"], Z["d"]]).mean().to_dict()
    assert oracle_predictor(Z, y, ("b", "d")) == pytest.approx(expected)
    assert oracle_risk(Z, y, ()) == pytest.approx(np.var(y))
    if set(y) <= {0.0, 1.0}:
        eta = pd.Series(y).groupby(Z["b"]).transform("mean")
        assert oracle_risk(Z, y, ("b",)) == pytest.approx((eta * (1 - eta)).mean())


def table_risk(fit: Audit, validation: Audit, panel: list[str]) -> float:
    """Validation risk by dictionaries."""
    cells: dict[tuple, list[float]] = {}
    for pattern, y in zip(fit.table[panel].itertuples(index=False), fit.y, strict=True):
        cells.setdefault(tuple(pattern), []).append(y)
    mean = sum(fit.y) / len(fit.y)
    losses = []
    for pattern, y in zip(validation.table[panel].itertuples(index=False), validation.y, strict=True):
        cell = cells.get(tuple(pattern))
        losses.append((y - (sum(cell) / len(cell) if cell else mean)) ** 2)
    return sum(losses) / len(losses)


@settings(max_examples=15)
@given(st.integers(0, 1000), st.permutations(["j0", "j1", "j2", "j3"]))
def test_held_out_gains_are_differences_of_plain_table_risks(seed, order):
    slices = np.array(["x", "y", "x", None] * 50, dtype=object)
    fit, validation, _ = split_audit(small_audit(200, 4, seed, slices=slices), seed)
    *panel, judge = order[:3]
    expected = table_risk(fit, validation, panel) - table_risk(fit, validation, [*panel, judge])
    assert broad_gain(fit, validation, panel, judge) == pytest.approx(expected, abs=2e-12)
    inside = [audit.take(audit.route_names == "x") for audit in (fit, validation)]
    expected = table_risk(*inside, panel) - table_risk(*inside, [*panel, judge])
    got = slice_gain(fit, validation, panel, judge, "x")
    assert np.isnan(got) if len(inside[0]) < 20 else got == pytest.approx(expected, abs=2e-12)


def test_a_validation_set_that_was_coded_apart_gives_the_same_gain():
    fit, validation, _ = split_audit(small_audit(200, 3), 1)
    anew = Audit(validation.Z, validation.y, validation.judges)
    alone = Audit(fit.Z, fit.y, fit.judges)
    assert broad_gain(fit, validation, ["j0"], "j1") == broad_gain(alone, anew, ["j0"], "j1")


def test_scopes_agree_with_the_estimator_they_shortcut():
    fit, validation, _ = split_audit(small_audit(160, 4), 0)
    for kappa in (0.0, 3.0):
        fast = Scope(fit, validation, smoothing=kappa).start((2, 0, 3))
        slow = EstimatorScope(fit, validation, partial(PatternCalibrator, smoothing=kappa)).start((2, 0, 3))
        np.testing.assert_allclose(fast.loss, slow.loss, atol=1e-12)
        assert fast.unseen == slow.unseen
    halves = [Scope(fit, validation), Scope(validation, fit)]
    folded = FoldedScope(halves).add(FoldedScope(halves).start((1,)), 2)
    assert folded.risk == pytest.approx(np.mean([s.start((1, 2)).risk for s in halves]), abs=1e-3)
    assert len(folded.loss) == len(fit) + len(validation)


def specialist_audit(n: int = 1200) -> Audit:
    """One broad judge, one that knows only the slice `hard`, one copy of the first, one that is constant."""
    rng = np.random.default_rng(5)
    y, hard = rng.integers(0, 2, n).astype(float), rng.random(n) < 0.3
    broad = np.where(rng.random(n) < np.where(hard, 0.5, 0.95), y, 1 - y)
    special = np.where(rng.random(n) < np.where(hard, 0.97, 0.5), y, 1 - y)
    Z = np.stack([broad, special, broad, np.ones(n)], axis=1).astype(object)
    return Audit(Z, y, ("broad", "special", "twin", "constant"), slices=np.where(hard, "hard", "easy").astype(object))


def test_roles_are_those_that_the_data_were_made_with():
    fit, validation, _ = split_audit(specialist_audit(), 0)
    profiles = {
        judge: role_profile(fit, validation, ["broad"], judge, slices=None, tau_global=0.1)
        for judge in ("special", "twin", "constant")
    }
    assert profiles["special"].roles == ("specialist",) and profiles["special"].routes == ("hard",)
    assert profiles["twin"].roles == profiles["constant"].roles == ("copy",)
    assert profiles["twin"].broad == 0.0 and set(profiles["twin"].slices.values()) == {0.0}
    both = role_profile(fit, validation, ["broad"], "special", slices=None)
    assert both.roles == ("complement", "specialist")
    assert role_profile(fit, validation, ["broad"], "special", slices=["easy"], tau_global=0.1).roles == ("copy",)
    assert role_table([*profiles.values()])["action"].tolist() == ["route to its slices", "drop", "drop"]


def test_the_threshold_is_strict_and_the_cost_is_paid_first():
    fit, validation, _ = split_audit(specialist_audit(), 0)
    gain = broad_gain(fit, validation, [], "broad")
    rule = {"slices": [], "costs": {"broad": 2.0}}
    assert role_profile(fit, validation, [], "broad", tau_global=gain, **rule).roles == ("copy",)
    assert role_profile(fit, validation, [], "broad", tau_global=gain - 1e-11, **rule).roles == ("complement",)
    assert role_profile(fit, validation, [], "broad", lam=gain / 2, tau_global=0.0, **rule).roles == ("copy",)


def test_the_ratio_flags_concentration_and_keeps_its_sign():
    assert specialization_ratio(0.02, 0.01) == pytest.approx(2, rel=1e-3)
    assert specialization_ratio(0.02, -0.5) == 0.02 / 1e-6
    assert specialization_ratio(-0.02, 0.0) < 0


def test_what_cannot_be_measured_is_said():
    fit, validation, _ = split_audit(specialist_audit(100), 0)
    assert np.isnan(slice_gain(fit, validation, [], "broad", "hard"))  # fewer than 20 fit items
    with pytest.raises(ValueError, match="hard"):
        slice_gain(fit, validation, [], "broad", "unheard")
    with pytest.raises(ValueError, match="nobody"):
        broad_gain(fit, validation, ["nobody"], "broad")
    holes = Audit(np.where(np.eye(4, dtype=bool), None, fit.Z[:4]), fit.y[:4], fit.judges)
    with pytest.raises(ValueError, match="complete cases"):
        broad_gain(holes, validation, [], "broad")


def test_a_judge_without_a_cost_is_refused():
    fit, validation, _ = split_audit(specialist_audit(200), 0)
    with pytest.raises(ValueError, match="must give broad a cost"):
        role_profile(fit, validation, [], "broad", slices=None, costs={"special": 1.0})
