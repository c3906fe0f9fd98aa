"""LLMBar's judge outputs: `<subset>/evaluators/<model>/<protocol>/result.json`."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from baer_utils.benchmarks.files import File, read_files
from baer_utils.benchmarks.formats import records
from baer_utils.benchmarks.rows import label_of, text_of, value_of
from baer_utils.benchmarks.sources import LLMBAR_SUBSETS
from baer_utils.importers.verdicts import FIRST, NONE, SECOND, TIE, Verdict, status_of

RESULT = re.compile(rf"/({'|'.join(LLMBAR_SUBSETS)})/evaluators/([^/]+)/([^/]+)/result\.json$")
ORDERS = {"swap = False": "ab", "swap = True": "ba"}


def llmbar(path) -> Iterator[Verdict]:
    """Judges of LLMBar (arXiv 2310.07641): the repository's folder, one `result.json`, or an archive.

    Judge: the folder of the protocol, its model the folder above; pair ids `<subset>/<index in the file, 4 digits>`.
    The last entry of `results` counts, so that of `Swap` and `Swap_CoT` it is the synthesis where there is one. Its
    `winner` names upstream's own response 1 or 2 in both orders, null where nothing was found. Texts that ended by
    "length" are cut and count as no verdict whatever was parsed from them; a content filter is an error. `Rating*`
    score each response alone, so both orders are one verdict, `net`, by the sign of the difference of the scores;
    upstream's own `winner` of equal scores depends on the order, and is not used. The files of a subset must repeat the
    same records in the same order.
    """
    expected = "LLMBar's folder with <subset>/evaluators/<model>/<protocol>/result.json, one of those, or an archive"
    texts: dict[str, tuple[str, ...]] = {}
    for file in read_files(path, lambda name: RESULT.search(name) is not None, expected):
        found = RESULT.search(file.path)
        if found is None:
            raise ValueError(f"{file.place}: the file must lie in <subset>/evaluators/<model>/<protocol>/: its judge.")
        yield from _verdicts(file, *found.groups(), texts)


def _verdicts(file: File, subset: str, model: str, protocol: str, texts: dict) -> Iterator[Verdict]:
    for index, (place, record) in enumerate(records(file)):
        pair_id = f"{subset}/{index:04d}"
        here = tuple(text_of(place, record, field) for field in ("input", "output_1", "output_2"))
        if texts.setdefault(pair_id, here) != here:
            raise ValueError(
                f"{place}: every judge's file must repeat the records of its subset in the same order; this one is not "
                f"the {pair_id} of the files before it. Restore upstream's order."
            )
        label = label_of(place, record, "label", {1: 1.0, 2: -1.0})
        for view, (log_odds, finish, raw, text) in _answers(place, _last(place, record)).items():
            status = status_of(log_odds, finish)
            yield Verdict(place, pair_id, model, protocol, view, log_odds, status, raw, text, label)


def _last(place: str, record: dict) -> dict:
    results = value_of(place, record, "results")
    if not isinstance(results, list) or not results or not isinstance(results[-1], dict):
        raise ValueError(f"{place}: results must be a list that ends in an object; it is {str(results)[:60]!r}.")
    return results[-1]


def _answers(place: str, result: dict) -> dict[str, tuple[float, str, str, str]]:
    """View -> (log-odds toward response 1, how the text ended, upstream's word, the text)."""
    if "score_1" in result:
        scores = [_completion(place, result, f"score_{number}") for number in (1, 2)]
        values = [float(text) if re.fullmatch(r"\d+", text.strip()) else NONE for text, _ in scores]
        ends = [end for _, end in scores if end not in ("", "stop")]
        text = " / ".join(text for text, _ in scores)
        return {"net": (_sign(values[0] - values[1]), ends[0] if ends else "", text, text)}
    answers = {}
    for order, view in ORDERS.items():
        game = value_of(place, result, order)
        winner = value_of(f"{place}, {order}", game, "winner")
        if winner not in ("1", "2", None):
            raise ValueError(f'{place}, {order}: winner must be "1", "2" or null; it is {winner!r}.')
        text, end = _completion(f"{place}, {order}", game, "completion")
        answers[view] = ({"1": FIRST, "2": SECOND, None: NONE}[winner], end, str(winner), text)
    return answers


def _completion(place: str, holder: dict, field: str) -> tuple[str, str]:
    pair = value_of(place, holder, field)
    if not isinstance(pair, list) or len(pair) != 2 or not all(isinstance(part, str) for part in pair):
        raise ValueError(f"{place}: {field} must be [text, how it ended]; it is {str(pair)[:60]!r}.")
    return pair[0], pair[1]


def _sign(difference: float) -> float:
    return difference if math.isnan(difference) else FIRST if difference > 0 else SECOND if difference < 0 else TIE
