"""Well-known facts from `facts.toml`: the right object of a subject is looked up there, never judged."""

from __future__ import annotations

from common import Draft, Subset, cross, load_bank, names_only, pick, sentence, shuffled, unique

PLAIN = ["{o}", "{o}.", "it is {named}.", "the answer is {o}.", "that would be {named}."]
OPENINGS = [
    "",
    "",
    "",
    "as far as I know, ",
    "good question. ",
    "this one is easy: ",
    "let me think. ",
    "if I remember it well, ",
]
CLOSINGS = [
    "",
    "",
    "",
    " I am quite sure of that.",
    " You can look it up.",
    " Does that help?",
    " Many people know this one.",
]


def facts(name: str, size: int, questions: int, minimal: bool, skip: int) -> list[Draft]:
    """Pairs about the fact table; `skip` chooses which half of every relation is used."""
    subset = Subset(name, "knowledge", size)
    rows = [
        (relation, key) for relation in load_bank("facts.toml")["relation"] for key in list(relation["table"])[skip::2]
    ]
    asked_about = shuffled(subset.rng, rows)[:questions]
    while not subset.full:
        for relation, key in asked_about:
            table = relation["table"]
            objects = unique(table.values())
            others = [o for o in objects if o != table[key]]
            if minimal:
                others = [o for o in others if len(o.split()) == len(table[key].split()) <= 2]
            templates = PLAIN + 2 * relation["say"]

            def write(template: str, o: str, start: str = "", end: str = "", key=key, named=relation["named"]) -> str:
                text = template.replace("{named}", named).format(s=key, o=o)
                return sentence(start + text + end if template.endswith(".") else text)

            if minimal:
                start, end, template = (pick(subset.rng, part) for part in (OPENINGS, CLOSINGS, templates))
                twins = [(write(template, table[key], start, end), write(template, o, start, end)) for o in others]
            else:
                sides = [
                    [write(t, o, pick(subset.rng, OPENINGS), pick(subset.rng, CLOSINGS)) for t in templates]
                    for o in (table[key], *shuffled(subset.rng, others)[:2])
                ]
                twins = cross(sides[0], sides[1] + sides[2])
            asked = relation["ask"][list(table).index(key) // 2 % len(relation["ask"])].format(s=key)
            check = f"Looked up in the fact table: {relation['name']} of {key} = {table[key]}."
            if twins:
                subset.add(asked, twins, check, names_only(table[key], objects))
    return subset.drafts


def build() -> list[Draft]:
    """All pairs about the fact table."""
    return facts("minimal_facts", 52, 46, minimal=True, skip=0) + facts("world_facts", 40, 34, minimal=False, skip=1)
