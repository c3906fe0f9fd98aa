"""Judges and pairs that several test files share."""

from __future__ import annotations

import os
from pathlib import Path

if "PYTEST_XDIST_WORKER" in os.environ:  # two processes share two cores: two threads in each would wait for each other
    os.environ.setdefault("OMP_NUM_THREADS", "1")

import pandas as pd
import pytest
from hypothesis import settings

from baer_utils.records import check_pairs, question_group, split_of
from tests.tokenizers import tiny_judge

REPOSITORY = Path(__file__).parents[1]
SHARED = REPOSITORY.parent / "shared" / "data"

settings.register_profile("patient", deadline=None)  # a busy machine is no bug
settings.load_profile("patient")
os.environ.setdefault("HF_HUB_OFFLINE", "1")  # nothing in the tests may wait for a network


BOOK = ("test_notebooks.py", "test_readme.py", "test_site.py")  # they read one run of the book


def pytest_collection_modifyitems(items):
    """Tests of one file, and all that read the book, stay in one process; the book comes first: it takes longest."""
    items.sort(key=lambda item: item.path.name not in BOOK)
    for item in items:
        item.add_marker(pytest.mark.xdist_group("book" if item.path.name in BOOK else item.path.name))


@pytest.fixture(scope="session")
def embedded():
    """The embedded judge itself."""
    from baer_utils.backbones import open_backbone

    return open_backbone("smollm2-135m")


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory):
    """A two-layer model with random weights and the embedded judge's tokenizer: real code, milliseconds a call."""
    return tiny_judge(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="session")
def tiny(tiny_folder):
    """The tiny random judge."""
    from baer_utils.backbones.local import TransformersBackbone

    return TransformersBackbone(tiny_folder)


def make_pairs(rows: list[tuple[str, str, str]], benchmark: str = "made") -> pd.DataFrame:
    """A pair table from (instruction, response a, response b)."""
    groups = [question_group(q) for q, _, _ in rows]
    return check_pairs(
        pd.DataFrame(
            {
                "pair_id": [f"{benchmark}/{n:04d}" for n in range(len(rows))],
                "group_id": groups,
                "benchmark": benchmark,
                "subset": ["even" if n % 2 == 0 else "odd" for n in range(len(rows))],
                "task_type": "sums",
                "instruction": [q for q, _, _ in rows],
                "response_a": [a for _, a, _ in rows],
                "response_b": [b for _, _, b in rows],
                "label": [1.0 if n % 3 else -1.0 for n in range(len(rows))],
                "split": [split_of(group) for group in groups],
            }
        )
    )


@pytest.fixture(scope="session")
def sums():
    """Forty small sums, right against wrong, one pair with identical responses, one with an empty response."""
    rows = [
        (f"What is {n} plus {n + 3}?", f"{n} plus {n + 3} is {2 * n + 3}.", f"It is {2 * n + 4}.") for n in range(38)
    ]
    rows += [("Say yes.", "yes", "yes"), ("Say nothing.", "", "Something.")]
    return make_pairs(rows)
