"""The null proofs' shortcut is no shortcut: what they compute without disk is what the whole pipeline says."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

from baer_utils.deployment import question_folds
from tests import luck_proofs
from tests.luck_proofs import agree, coins, prepared, stack_labelling, summary, through_disk, tied


@pytest.fixture(scope="module")
def bank():
    made = tied(200)
    return made, *prepared(made)


def test_a_labelling_without_disk_shows_what_seal_develop_freeze_and_open_show(bank):
    made, development, test = bank
    labels = coins("order_ties", 0, made.pairs["split"])
    row = stack_labelling(development, test, labels, question_folds(development.rows["group_id"], seed=0))
    other = through_disk(made, labels, ("stack",))
    assert other["deployed_stack"] and set(row) <= set(other)
    agree(row, other)
    with pytest.raises(AssertionError, match="says otherwise.*matched_test_net"):
        agree(row | {"matched_test_net": row["matched_test_net"] + 1}, other)


def test_a_stopped_proof_goes_on_and_a_line_that_was_cut_is_computed_again(tmp_path):
    path = tmp_path / "nulls" / "stack.bank.csv"
    rows = [{"win": True, "net": -3.0}, {"win": False, "net": 0.5}]
    for row in rows:
        luck_proofs._keep(path, row)
    path.write_text(path.read_text() + "1.0,2")
    assert luck_proofs._kept(path) == rows
    luck_proofs._keep(path, rows[0])
    assert luck_proofs._kept(path) == [*rows, rows[0]]


def test_a_rate_above_its_promise_fails_the_proof():
    names = ["stack_matched_gates", "matched_development_win", "paper_development_win", "deployed_stack"]
    n = 100
    allowed = int(binom.ppf(0.99, n, 0.05))
    rows = pd.DataFrame(np.zeros((n, len(names))), columns=names)
    rows.loc[: allowed - 1, "matched_development_win"] = 1
    found = summary(rows)
    assert found["matched_development_win"]["share"] == allowed / n < found["matched_development_win"]["upper_99"]
    rows.loc[allowed, "matched_development_win"] = 1
    with pytest.raises(AssertionError, match="matched_development_win"):
        summary(rows)
