"""The benchmarks that come as files: the starter sets, JudgeBench, LLMBar, HH-RLHF.

Each function says which files it reads, what becomes the question and the two responses, and what upstream's label
means. It knows nothing about *a* and *b*, splits or hashes.
"""

from __future__ import annotations

from collections.abc import Iterator
from os.path import commonprefix
from pathlib import Path, PurePosixPath

from baer_utils.benchmarks.categories import task_type_of
from baer_utils.benchmarks.files import read_files
from baer_utils.benchmarks.formats import records
from baer_utils.benchmarks.rows import FIRST, SECOND, TIE, Row, each_record, id_of, label_of, needed, text_of

STARTER = Path(__file__).resolve().parents[2] / "data" / "starter"
LLMBAR_SUBSETS = (
    "Natural", "Adversarial/GPTInst", "Adversarial/GPTOut", "Adversarial/Manual", "Adversarial/Neighbor",
)  # fmt: skip


def starter(name: str, source=None) -> Iterator[Row]:
    """`data/starter/<name>.jsonl` of this repository, or a file or folder of that format; `chosen` is listed first."""
    expected = f"{name}.jsonl (in a checkout of this project: data/starter/{name}.jsonl, made by data/starter/build.py)"
    for place, _, record in each_record(source or STARTER, lambda path: path.endswith(f"/{name}.jsonl"), expected):
        texts = [text_of(place, record, field) for field in ("instruction", "chosen", "rejected")]
        names = [text_of(place, record, field) for field in ("subset", "task_type")]
        yield Row(place, id_of(place, record, "pair_id"), *names, *texts, FIRST)


def judgebench(source=None) -> Iterator[Row]:
    """JudgeBench (arXiv 2410.12784): `data/*.jsonl` of the repository's folder or archive, or one such file."""

    def wanted(path: str) -> bool:
        return path.endswith(".jsonl") and PurePosixPath(path).parent.name == "data" and "judge_name=" not in path

    expected = "JudgeBench's folder with data/*.jsonl, one of those files, or an archive of it"
    for place, _, record in each_record(needed("judgebench", source, expected), wanted, expected):
        subset = text_of(place, record, "source")
        texts = [text_of(place, record, field) for field in ("question", "response_A", "response_B")]
        label = label_of(place, record, "label", {"A>B": FIRST, "B>A": SECOND})
        yield Row(place, id_of(place, record, "pair_id"), subset, task_type_of("judgebench", subset), *texts, label)


def llmbar(source=None) -> Iterator[Row]:
    """LLMBar (arXiv 2310.07641): the `dataset.json` of its five subsets, or one of them.

    Ids are `<subset>/<index in the file, 4 digits>`; task types are `Natural` and `Adversarial`. The judges' results
    that upstream keeps beside the data are not read.
    """

    def subset_of(path: str) -> str | None:
        return next((subset for subset in LLMBAR_SUBSETS if path.endswith(f"/{subset}/dataset.json")), None)

    expected = "LLMBar's folder with Dataset/LLMBar/<subset>/dataset.json, one of those files, or an archive of it"
    for file in read_files(needed("llmbar", source, expected), lambda path: subset_of(path) is not None, expected):
        subset = subset_of(file.path)
        if subset is None:
            names = ", ".join(f"{subset}/dataset.json" for subset in LLMBAR_SUBSETS)
            raise ValueError(f"{file.place}: the file must be one of {names}: its folders name the subset.")
        for index, (place, record) in enumerate(records(file)):
            texts = [text_of(place, record, field) for field in ("input", "output_1", "output_2")]
            label = label_of(place, record, "label", {1: FIRST, 2: SECOND})
            yield Row(place, f"{subset}/{index:04d}", subset, subset.split("/")[0], *texts, label)


def hh_rlhf(source=None) -> Iterator[Row]:
    """HH-RLHF (arXiv 2204.05862): `test.jsonl(.gz)` of its helpful-* and harmless-* folders, or one file.

    A root folder or archive gives its test files only; a train file is read when it is named itself. Subset: helpful or
    harmless, by the folder's name. The instruction is what both dialogues share, up to and with the last
    ``"\\n\\nAssistant:"``, and the responses are all that follows it, each byte as upstream has it: instruction +
    response is the dialogue (it starts with two line breaks, and a response with a space). `chosen` is listed first;
    two equal dialogues are a tie.
    """

    def subset_of(path: str) -> str | None:
        folder = PurePosixPath(path).parent.name
        return next((name for name in ("helpful", "harmless") if folder.startswith(name)), None)

    expected = "HH-RLHF's folder with helpful-*/ and harmless-*/test.jsonl.gz, one of those files, or an archive of it"

    def wanted(path: str) -> bool:
        return path.endswith("/test.jsonl") and subset_of(path) is not None

    marker = "\n\nAssistant:"
    for place, path, record in each_record(needed("hh_rlhf", source, expected), wanted, expected):
        if (subset := subset_of(path)) is None:
            raise ValueError(f"{place}: the file's folder must be named helpful-... or harmless-...: it is the subset.")
        chosen, rejected = text_of(place, record, "chosen"), text_of(place, record, "rejected")
        cut = commonprefix([chosen, rejected]).rfind(marker) + len(marker)
        if cut < len(marker):
            raise ValueError(f"{place}: both dialogues must share a beginning with {marker!r}; they share none.")
        texts = chosen[:cut], chosen[cut:], rejected[cut:]
        yield Row(place, None, subset, subset, *texts, TIE if chosen == rejected else FIRST)
