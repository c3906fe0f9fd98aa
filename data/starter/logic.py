"""Orderings, syllogisms and boxes with labels. Every answer is found by trying all the cases."""

from __future__ import annotations

import re
from itertools import permutations, product

from common import NAMES, Draft, Subset, cross, mentioned, pick, shuffled, write_all

WAYS = [
    ("taller", "shorter", "tallest", "shortest"),
    ("older", "younger", "oldest", "youngest"),
    ("faster", "slower", "fastest", "slowest"),
    ("heavier", "lighter", "heaviest", "lightest"),
]
WHO = [
    "{v}",
    "{v}.",
    "it is {v}.",
    "{v} is the {end}.",
    "the {end} one is {v}.",
    "putting the clues in order, the {end} one must be {v}.",
    "if you line them up, {v} turns out to be the {end}.",
]
NONSENSE = [
    "blicks",
    "dorvs",
    "fenks",
    "glims",
    "haspers",
    "jurms",
    "kreels",
    "lompas",
    "mibs",
    "nurts",
    "pliffs",
    "zorns",
]
FOLLOWS = [
    "Yes.",
    "Yes, it follows.",
    "Yes, that conclusion holds in every case.",
    "It follows from the two statements.",
    "Yes. However you arrange the groups, the conclusion stays true.",
    "I would say yes, since the two statements together leave room for nothing else.",
]
FAILS = [
    "No.",
    "No, it does not follow.",
    "No, that is not certain.",
    "It does not follow from the two statements.",
    "No. You can arrange the groups so that the conclusion turns out false.",
    "I would say no, since the two statements leave room for other cases.",
]
FORMS = [
    ("All {x} are {y}. All {y} are {z}.", "all {x} are {z}"),
    ("All {x} are {y}. Some {y} are {z}.", "some {x} are {z}"),
    ("Some {x} are {y}. All {y} are {z}.", "some {x} are {z}"),
    ("All {x} are {y}. No {y} are {z}.", "no {x} are {z}"),
    ("Some {x} are {y}. Some {y} are {z}.", "some {x} are {z}"),
    ("No {x} are {y}. All {z} are {y}.", "no {x} are {z}"),
    ("All {x} are {y}. All {z} are {y}.", "all {x} are {z}"),
    ("No {x} are {y}. No {y} are {z}.", "no {x} are {z}"),
]
BOXES = ["red", "blue", "green"]
INSIDE = [
    "{v}",
    "{v}.",
    "the coin is in the {v} box.",
    "it must be the {v} one.",
    "open the {v} box and you will find it.",
    "only one place fits all of that: the coin is in the {v} box.",
]


def solve_order(instruction: str, names) -> list[tuple[str, ...]]:
    """All orders, greatest first, that agree with every clue of the question."""
    clues = re.findall(r"(\w+) is (\w+) than (\w+)\.", instruction)
    greater = [(x, y) if word in [way[0] for way in WAYS] else (y, x) for x, word, y in clues]
    return [order for order in permutations(names) if all(order.index(x) < order.index(y) for x, y in greater)]


def orderings(subset: Subset, count: int) -> None:
    """Three or four people in a row; the question asks for one end of it."""
    rng = subset.rng
    for index in range(count):
        order = shuffled(rng, NAMES)[: 3 + index % 2]
        more, less, most, least = WAYS[index % len(WAYS)]
        clues = [
            pick(rng, [f"{x} is {more} than {y}.", f"{y} is {less} than {x}."])
            for x, y in zip(order, order[1:], strict=False)
        ]
        end = pick(rng, [most, least])
        question = f"{' '.join(shuffled(rng, clues))} Who is the {end}?"
        found = solve_order(question, sorted(order))
        if len(found) != 1:
            raise ValueError(f"the clues must leave one order; {question!r} leaves {len(found)}")
        right = found[0][0 if end == most else -1]
        wrong = [text for name in order if name != right for text in write_all(WHO, v=name, end=end)]
        check = f"All {len(list(permutations(order)))} orders tried: one agrees with the clues, so {right}."
        subset.add(
            question,
            cross(write_all(WHO, v=right, end=end), wrong),
            check,
            lambda text, right=right, order=order: mentioned(text, order) == [right],
        )


def holds(statement: str, model) -> bool:
    """Whether `All/Some/No x are y` is true in a model: a list of sets, one for each kind of thing that exists."""
    quantity, x, y = re.fullmatch(r"(\w+) (\w+) are (\w+)", statement.strip(" .")).groups()
    both, only = any({x, y} <= kind for kind in model), any(x in kind and y not in kind for kind in model)
    return {"all": not only, "some": both, "no": not both}[quantity.lower()]


def follows(premises: list[str], conclusion: str, terms: list[str]) -> bool:
    """Check every model in which the premises hold; an answer that hangs on empty groups is refused."""
    kinds = [
        frozenset(t for t, member in zip(terms, row, strict=True) if member)
        for row in product([False, True], repeat=len(terms))
    ]
    verdicts = []
    for inhabited in (False, True):
        models = [
            [kind for kind, there in zip(kinds, row, strict=True) if there]
            for row in product([False, True], repeat=len(kinds))
        ]
        if inhabited:
            models = [model for model in models if all(any(term in kind for kind in model) for term in terms)]
        verdicts.append(all(holds(conclusion, model) for model in models if all(holds(p, model) for p in premises)))
    if verdicts[0] != verdicts[1]:
        raise ValueError(f"the answer must not depend on empty groups: {premises} => {conclusion}")
    return verdicts[0]


def syllogisms(subset: Subset, count: int) -> None:
    """Two statements about invented groups, and whether a third one follows."""
    for index in range(count):
        x, y, z = terms = shuffled(subset.rng, NONSENSE)[:3]
        premises, conclusion = (part.format(x=x, y=y, z=z) for part in FORMS[index % len(FORMS)])
        question = f"{premises} Does it follow that {conclusion}?"
        valid = follows(premises.strip(".").split(". "), conclusion, terms)
        sides = (FOLLOWS, FAILS) if valid else (FAILS, FOLLOWS)
        verdict = "holds in all" if valid else "fails in some"
        check = f"All 256 combinations of groups tried; of those that fit, the conclusion {verdict}."
        subset.add(question, cross(*sides), check, lambda text, valid=valid: says_yes(text) == valid)


def says_yes(text: str) -> bool:
    """A response says yes when it holds no negation."""
    return not re.search(r"\b(no|not)\b", text.lower())


def true_labels(labels: list[tuple[str, bool]], coin: str) -> int:
    """How many labels are true when the coin is in that box; a label names a box and says in or not in."""
    return sum((box == coin) == inside for box, inside in labels)


def boxes(subset: Subset, count: int) -> None:
    """Three labelled boxes, a coin, and how many labels are true; only puzzles with one solution are kept."""
    made = 0
    while made < count:
        labels = [(pick(subset.rng, BOXES), subset.rng.randrange(2) == 0) for _ in BOXES]
        true = subset.rng.randrange(1, 3)
        found = [coin for coin in BOXES if true_labels(labels, coin) == true]
        if len(found) != 1:
            continue
        told = " ".join(
            f'The {box} box says: "The coin is {"" if inside else "not "}in the {named} box."'
            for box, (named, inside) in zip(BOXES, labels, strict=True)
        )
        only = "Only one label is true." if true == 1 else "Exactly two labels are true."
        right = found[0]
        wrong = [text for box in BOXES if box != right for text in write_all(INSIDE, v=box)]
        made += subset.add(
            f"{told} {only} Which box holds the coin?",
            cross(write_all(INSIDE, v=right), wrong),
            f"All 3 boxes tried: only {right} makes exactly {true} true.",
            lambda text, right=right: mentioned(text.lower(), BOXES) == [right],
        )


def build() -> list[Draft]:
    """All pairs about reasoning."""
    subset = Subset("logic", "reasoning", 30)
    orderings(subset, 12)
    syllogisms(subset, 10)
    boxes(subset, 8)
    return subset.drafts
