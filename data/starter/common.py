"""Pieces that every subset uses: drafts of pairs, a balanced choice of wordings, small text helpers.

A draft carries `accepts`, a function of one response. The label of a pair is true because `accepts` takes the chosen
response and refuses the other one; nothing here knows what a particular subset asks.
"""

from __future__ import annotations

import random
import re
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
SEED = 7
NAMES = [
    "Ana",
    "Ben",
    "Carla",
    "David",
    "Elif",
    "Farid",
    "Grace",
    "Hugo",
    "Ines",
    "Jonas",
    "Kira",
    "Luis",
    "Maya",
    "Noah",
    "Olga",
    "Pavel",
    "Quentin",
    "Rosa",
    "Samir",
    "Tara",
    "Uma",
    "Victor",
    "Wanda",
    "Yusuf",
    "Zoe",
]


@dataclass(frozen=True)
class Draft:
    """One pair before it has an id; `accepts(chosen)` is true and `accepts(rejected)` is false."""

    subset: str
    task_type: str
    instruction: str
    chosen: str
    rejected: str
    check: str
    accepts: Callable[[str], bool]


def load_bank(name: str) -> dict:
    """Read one of the TOML files beside this module."""
    return tomllib.loads((HERE / name).read_text(encoding="utf-8"))


def pick(rng: random.Random, items):
    """One item; only `randrange` is used, so that every Python draws the same one."""
    return items[rng.randrange(len(items))]


def shuffled(rng: random.Random, items) -> list:
    """A shuffled copy."""
    copy = list(items)
    rng.shuffle(copy)
    return copy


def unique(items) -> list:
    """Items without repeats, in order of first appearance."""
    return list(dict.fromkeys(items))


def sentence(text: str) -> str:
    """Upper-case the first letter of the text and of each sentence inside it."""
    return re.sub(r"(^|[.!?] )([a-z])", lambda match: match[1] + match[2].upper(), text)


def write_all(templates, **words) -> list[str]:
    """Every template with the same words."""
    return [sentence(template.format(**words)) for template in templates]


def integers(text: str) -> list[int]:
    """All whole numbers written in digits, from left to right."""
    return [int(number) for number in re.findall(r"\d+", text)]


def mentioned(text: str, candidates) -> list[str]:
    """The candidates that occur in the text as whole words, with their own case or with a first capital."""

    def pattern(word: str) -> str:
        return rf"(?<![\w-])(?:{re.escape(word)}|{re.escape(word[0].upper() + word[1:])})(?![\w-])"

    return [word for word in candidates if re.search(pattern(word), text)]


def names_only(right: str, candidates):
    """Accepts a response that mentions the right candidate and no other."""
    return lambda text: mentioned(text, unique(candidates)) == [right]


def word_count(text: str) -> int:
    """Words as runs of characters without white space."""
    return len(text.split())


def changed_words(first: str, second: str) -> int:
    """How many words differ between texts of equal word count; -1 when the counts differ."""
    left, right = first.split(), second.split()
    return sum(a != b for a, b in zip(left, right, strict=True)) if len(left) == len(right) else -1


def series(items: list[str]) -> str:
    """`a, b and c`; one item stays alone."""
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}"


class Subset:
    """Collects the drafts of one subset; in half of them the chosen response is asked to be the longer one.

    Parameters
    ----------
    name, task_type : str
        Copied into every draft; the name also seeds the random numbers, so that subsets do not disturb one another.
    size : int
        Number of pairs wanted.
    """

    def __init__(self, name: str, task_type: str, size: int):
        self.name, self.task_type = name, task_type
        self.rng = random.Random(f"{SEED}|{name}")
        self.wants = shuffled(self.rng, [index % 2 == 0 for index in range(size)])
        self.drafts: list[Draft] = []
        self.taken: set[tuple[str, frozenset]] = set()

    @property
    def full(self) -> bool:
        """True once the wanted number of pairs is there."""
        return len(self.drafts) == len(self.wants)

    @property
    def want(self) -> bool:
        """Whether the next pair should have the longer response chosen."""
        return self.wants[min(len(self.drafts), len(self.wants) - 1)]

    def add(self, instruction: str, twins, check: str, accepts: Callable[[str], bool], ties: bool = False) -> bool:
        """Add one pair out of the possible (chosen, rejected) twins; False when none is left or the subset is full.

        The twin is drawn among those whose longer side is the one this place asks for, else (or first, with `ties`)
        among those of equal length, else among all.
        """
        free = [twin for twin in twins if twin[0] != twin[1] and (instruction, frozenset(twin)) not in self.taken]
        if self.full or not free:
            return False
        level = [twin for twin in free if len(twin[0]) == len(twin[1])]
        fitting = [twin for twin in free if len(twin[0]) != len(twin[1]) and (len(twin[0]) > len(twin[1])) == self.want]
        chosen, rejected = pick(self.rng, (level or fitting if ties else fitting or level) or free)
        self.taken.add((instruction, frozenset((chosen, rejected))))
        self.drafts.append(Draft(self.name, self.task_type, instruction, chosen, rejected, check, accepts))
        return True


def cross(chosen: list[str], rejected: list[str]) -> list[tuple[str, str]]:
    """Every chosen wording with every rejected one."""
    return [(right, wrong) for right in chosen for wrong in rejected]
