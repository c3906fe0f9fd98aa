"""Small Python functions from `functions.toml`: the right twin passes its tests and the mutant fails at least one."""

from __future__ import annotations

import re

from common import Draft, Subset, changed_words, load_bank, shuffled

OPENINGS = [
    "",
    "",
    "",
    "Here is a version:\n\n",
    "This should do it.\n\n",
    "You could write it like this:\n\n",
    "Sure!\n\n",
]
CLOSINGS = [
    "",
    "",
    "",
    "\n\nCall it with your own values to try it out.",
    "\n\nIt needs no imports.",
    "\n\nI kept it short so that it stays easy to read.",
    "\n\nLet me know if you want an explanation.",
]


def extract(response: str) -> str:
    """The code of a response: what is between fences, else everything from `def` to the first line that is not code."""
    fenced = re.search(r"```python\n(.*?)\n```", response, re.DOTALL)
    if fenced:
        return fenced[1]
    found = re.search(r"^def .*(?:\n[ \t]+.*)*", response, re.MULTILINE)
    return found[0] if found else ""


def passes(response: str, tests) -> bool:
    """Whether the code in a response gives the expected result for every call; an exception counts as a failure."""
    scope: dict = {}
    try:
        exec(extract(response), scope)
        return all(eval(call, scope) == eval(expected) for call, expected in tests)
    except Exception:
        return False


def mutate(source: str, change: list[str]) -> str:
    """Replace the one place that the mutant names."""
    old, new = change
    if source.count(old) < 1:
        raise ValueError(f"a mutant must change something; {old!r} is not in\n{source}")
    head, _, tail = source.rpartition(old)
    return head + new + tail


def wrapped(code: str, opening: str, closing: str, fence: bool) -> str:
    """The code with a sentence before and after it, in a fence or bare."""
    return f"{opening}{f'```python{chr(10)}{code}{chr(10)}```' if fence else code}{closing}"


def wrappings(rng, code: str) -> list[str]:
    """A few ways to hand over the same code."""
    endings = shuffled(rng, CLOSINGS)
    return [
        wrapped(code, opening, closing, rng.randrange(2) == 0)
        for opening, closing in zip(shuffled(rng, OPENINGS), endings, strict=True)
    ]


def minimal_twins(function: dict, change: list[str]) -> list[tuple[str, str]]:
    """The first version and one mutant of it, bare or in a fence; none when they differ in more than two words."""
    code = function["first"].strip()
    twin = mutate(code, change)
    if not 1 <= changed_words(code, twin) <= 2:
        return []
    return [(wrapped(code, "", "", fence), wrapped(twin, "", "", fence)) for fence in (False, True)]


def free_twins(rng, function: dict, right: str) -> list[tuple[str, str]]:
    """One version against the mutants of the other one, each with its own wording."""
    wrong = "second" if right == "first" else "first"
    mutants = [mutate(function[wrong].strip(), change) for change in function[f"{wrong}_mutants"]]
    return [
        (good, bad)
        for good in wrappings(rng, function[right].strip())
        for mutant in mutants
        for bad in wrappings(rng, mutant)
    ]


def build() -> list[Draft]:
    """All pairs about code."""
    minimal, free = Subset("minimal_code", "coding", 48), Subset("python_functions", "coding", 28)
    functions = load_bank("functions.toml")["function"]
    for turn in range(3):
        for function in shuffled(minimal.rng, functions):
            changes = function["first_mutants"]
            twins = minimal_twins(function, changes[turn]) if turn < len(changes) else []
            tests = function["tests"]
            check = f"Both were run: the chosen code passes all {len(tests)} tests, the other fails at least one."
            minimal.add(function["ask"], twins[turn % 2 :][:1], check, lambda text, tests=tests: passes(text, tests))
    for index, function in enumerate(shuffled(free.rng, functions)):
        tests = function["tests"]
        check = f"Both were run: the chosen code passes all {len(tests)} tests, the other fails at least one."
        twins = free_twins(free.rng, function, ("first", "second")[index % 2])
        free.add(function["ask"], twins, check, lambda text, tests=tests: passes(text, tests))
    return minimal.drafts + free.drafts
