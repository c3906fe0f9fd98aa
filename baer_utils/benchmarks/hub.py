"""The benchmarks that live on the Hugging Face Hub: RewardBench and UltraFeedback, from there or from local files."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from baer_utils.benchmarks.categories import task_type_of
from baer_utils.benchmarks.formats import DATA_SUFFIXES
from baer_utils.benchmarks.rows import FIRST, SECOND, TIE, Row, each_record, id_of, text_of, value_of


def _hub_or_local(source, hub_id: str, split: str, wanted, expected: str) -> Iterator[tuple[str, dict]]:
    """(place, record) from local files, or from the Hub if the source is none, or an `owner/name` not on disk."""
    source = str(source or hub_id)
    if (
        Path(source).expanduser().exists()
        or not re.fullmatch(r"[\w-]+/[\w.-]+", source)
        or source.endswith(DATA_SUFFIXES)
    ):
        for place, _, record in each_record(source, wanted, expected):
            yield place, record
        return
    try:
        import datasets

        loaded = datasets.load_dataset(source, split=split)
    except Exception as error:  # offline, no such data set, a proxy's page: each library raises its own kind
        raise ValueError(
            f"{source}: must be a local path or a data set that the Hugging Face Hub answers for; it is neither "
            f"({type(error).__name__}: {error}). Without the Hub, give local files: {expected}."
        ) from error
    for number, record in enumerate(loaded, start=1):
        yield f"{source} [{split}], row {number}", record


def rewardbench(source=None) -> Iterator[Row]:
    """RewardBench (arXiv 2403.13787), filtered set: prompt, chosen, rejected, subset and, where there, id.

    From the Hub (`allenai/reward-bench`, split `filtered`) or local files in that schema; of a clone of the Hub's
    repository the unfiltered `raw-*` files are left out. Upstream numbers pairs within a subset, so the pair id is
    `<subset>/<id>`. `chosen` is listed first.
    """

    def wanted(path: str) -> bool:
        return path.endswith(DATA_SUFFIXES) and not PurePosixPath(path).name.startswith("raw-")

    expected = "a Parquet, JSON or JSONL file, or a folder of them, with prompt, chosen, rejected, subset"
    for place, record in _hub_or_local(source, "allenai/reward-bench", "filtered", wanted, expected):
        texts = [text_of(place, record, field) for field in ("prompt", "chosen", "rejected")]
        subset = text_of(place, record, "subset")
        pair_id = f"{subset}/{id_of(place, record, 'id')}" if "id" in record else None
        yield Row(place, pair_id, subset, task_type_of("rewardbench", subset), *texts, FIRST)


def ultrafeedback(source=None) -> Iterator[Row]:
    """UltraFeedback (arXiv 2310.01377): per instruction, the completion scored highest against the one scored lowest.

    From the Hub (`openbmb/UltraFeedback`, split `train`) or local files in that schema. The score is `overall_score`
    where at least two completions of the row have it, else `fine-grained_score`; of completions that share a score the
    first is taken. A row without two different scores is a tie. The completion that comes first in the row is listed
    first.
    """
    expected = "a Parquet, JSON or JSONL file, or a folder of them, with instruction, source, completions"
    rows = _hub_or_local(source, "openbmb/UltraFeedback", "train", lambda path: path.endswith(DATA_SUFFIXES), expected)
    for place, record in rows:
        instruction, subset = text_of(place, record, "instruction"), text_of(place, record, "source")
        completions = value_of(place, record, "completions")
        if not isinstance(completions, list) or not all(isinstance(each, dict) for each in completions):
            raise ValueError(f"{place}: completions must be a list of objects; it is {str(completions)[:60]!r}.")
        scored, texts, label = _scores(place, completions), ("", ""), TIE
        if len(set(scored.values())) > 1:
            high, low = max(scored, key=scored.get), min(scored, key=scored.get)  # the first that has the score
            best_and_worst = sorted((high, low))
            texts = [text_of(f"{place}, completion {at + 1}", completions[at], "response") for at in best_and_worst]
            label = FIRST if high < low else SECOND
        yield Row(place, None, subset, task_type_of("ultrafeedback", subset), instruction, *texts, label)


def _scores(place: str, completions: list[dict]) -> dict[int, float]:
    """Score by position: `overall_score` where two completions have it, else `fine-grained_score`."""
    fields = ("overall_score", "fine-grained_score")
    for number, completion in enumerate(completions, start=1):
        if not any(field in completion for field in fields):
            raise ValueError(
                f"{place}, completion {number}: {' or '.join(fields)} must be there; {list(completion)} are."
            )
    for field in fields:
        values = {at: each.get(field) for at, each in enumerate(completions) if each.get(field) is not None}
        for at, value in values.items():
            if not isinstance(value, (int, float)):
                raise ValueError(f"{place}, completion {at + 1}: {field} must be a number or null; it is {value!r}.")
        scored = {at: float(value) for at, value in values.items() if not math.isnan(value)}
        if len(scored) >= 2:
            return scored
    return {}
