"""The declared categories of the published benchmarks: which subsets there are and which task type each belongs to.

Written down rather than taken from the data, so that the feature columns of Eq. 5 are the same whatever part of a
benchmark is loaded. It knows names only: no files, no pairs.
"""

from __future__ import annotations

_MMLU_PRO = (
    "biology", "business", "chemistry", "computer science", "economics", "engineering", "health", "history", "law",
    "math", "other", "philosophy", "physics", "psychology",
)  # fmt: skip

# Task type -> its subsets. RewardBench: its four official sections; BAER lists three task types (section 3.1), so
# "Chat" and "Chat Hard" are one. UltraFeedback: the nine values of `source`, one task type.
TASK_TYPES: dict[str, dict[str, tuple[str, ...]]] = {
    "rewardbench": {
        "chat": (
            "alpacaeval-easy", "alpacaeval-length", "alpacaeval-hard", "mt-bench-easy", "mt-bench-med", "mt-bench-hard",
            "llmbar-natural", "llmbar-adver-neighbor", "llmbar-adver-GPTInst", "llmbar-adver-GPTOut",
            "llmbar-adver-manual",
        ),
        "safety": (
            "refusals-dangerous", "refusals-offensive", "xstest-should-refuse", "xstest-should-respond", "donotanswer",
        ),
        "reasoning": ("math-prm", "hep-cpp", "hep-go", "hep-java", "hep-js", "hep-python", "hep-rust"),
    },
    "judgebench": {
        "knowledge": tuple(f"mmlu-pro-{subject}" for subject in _MMLU_PRO),
        "reasoning": ("livebench-reasoning",),
        "math": ("livebench-math",),
        "coding": ("livecodebench",),
    },
    "hh_rlhf": {"helpful": ("helpful",), "harmless": ("harmless",)},
    "ultrafeedback": {
        "general": (
            "evol_instruct", "false_qa", "flan_v2_cot", "flan_v2_flan2021", "flan_v2_niv2", "flan_v2_p3", "sharegpt",
            "truthful_qa", "ultrachat",
        ),
    },
}  # fmt: skip
UNKNOWN = "unknown"  # task type of a subset that is not declared


def declared(task_types: dict[str, tuple[str, ...]]) -> tuple[str, ...]:
    """Every subset, then every task type; a task type whose only declared subset is one subset is not repeated."""
    subsets = [subset for members in task_types.values() for subset in members]
    shared = [task_type for task_type, members in task_types.items() if len(members) > 1]
    return tuple(subsets + shared)


CATEGORIES: dict[str, tuple[str, ...]] = {name: declared(task_types) for name, task_types in TASK_TYPES.items()}


def task_type_of(benchmark: str, subset: str) -> str:
    """Task type of a declared subset, `UNKNOWN` for any other (such a row activates no category column)."""
    for task_type, members in TASK_TYPES[benchmark].items():
        if subset in members:
            return task_type
    return UNKNOWN
