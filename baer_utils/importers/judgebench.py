"""JudgeBench's judge outputs: `outputs/dataset=...,judge_name=...,judge_model=....jsonl`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from baer_utils.benchmarks.files import File, read_files
from baer_utils.benchmarks.formats import records
from baer_utils.benchmarks.rows import id_of, label_of, text_of, value_of
from baer_utils.importers.verdicts import FIRST, NONE, SECOND, TIE, Verdict, status_of

DECISIONS = {"A>B": FIRST, "B>A": SECOND, "A=B": TIE, None: NONE}
MODEL = re.compile(r"judge_model=([^/]*)\.jsonl$")


def judgebench(path) -> Iterator[Verdict]:
    """Judges of JudgeBench (arXiv 2410.12784): the folder with `outputs/*.jsonl`, one such file, or an archive.

    Judge: `judge_name`; its model: `judge_model` of the file's judgments, else of the file's name. The first judgment
    shows (A, B), the second (B, A) and speaks in the swapped frame: its decision is turned back. "A=B" is a tie, a
    judgment that is null an error, a decision that is null unparsed. Upstream counts a pair as right when the two
    orders, +1 for the label and -1 against it, add up to more than 0: the sign of the net of its orders.
    """
    expected = "JudgeBench's folder with outputs/*judge_name=*.jsonl, one of those files, or an archive of it"

    def wanted(name: str) -> bool:
        return name.endswith(".jsonl") and "judge_name=" in name.rpartition("/")[2]

    for file in read_files(path, wanted, expected):
        yield from _verdicts(file)


def _verdicts(file: File) -> Iterator[Verdict]:
    rows = [(place, record, _judgments(place, record)) for place, record in records(file)]
    model = _model(file, rows)
    for place, record, judgments in rows:
        pair_id, judge = id_of(place, record, "pair_id"), text_of(place, record, "judge_name")
        label = label_of(place, record, "label", {"A>B": 1.0, "B>A": -1.0})
        for number, (view, judgment) in enumerate(zip(("ab", "ba"), judgments, strict=False), start=1):
            decision = value_of(f"{place}, judgment {number}", judgment, "decision") if judgment else None
            if decision not in DECISIONS:
                raise ValueError(
                    f"{place}, judgment {number}: decision must be one of A>B, B>A, A=B or null; it is {decision!r}."
                )
            toward = DECISIONS[decision] if view == "ab" else -DECISIONS[decision] + 0.0
            failed = not judgment or judgment.get("judgment") is None
            status = "error" if failed else status_of(toward)
            text = "" if failed else _text(judgment["judgment"])
            yield Verdict(place, pair_id, model, judge, view, toward, status, str(decision), text, label)


def _judgments(place: str, record: dict) -> list[dict | None]:
    judgments = value_of(place, record, "judgments")
    of_right_kind = isinstance(judgments, list) and all(isinstance(one, dict | None) for one in judgments)
    if not of_right_kind or not 1 <= len(judgments) <= 2:
        raise ValueError(f"{place}: judgments must be a list of one or two objects or nulls; it is {judgments!r:.60}.")
    return judgments


def _model(file: File, rows: list) -> str:
    """The one model of a file."""
    inner = [one["judgment"] for _, _, judgments in rows for one in judgments if one]
    models = sorted({one["judge_model"] for one in inner if isinstance(one, dict) and one.get("judge_model")})
    in_name = MODEL.search(file.path)
    if len(models) > 1 or not (models or in_name):
        came = ", ".join(models) or "none"
        raise ValueError(f"{file.place}: a file must come from one judge_model; it names {came}. Split it by model.")
    return models[0] if models else in_name[1]


def _text(judgment) -> str:
    response = judgment.get("response") if isinstance(judgment, dict) else judgment
    return response if isinstance(response, str) else ""
