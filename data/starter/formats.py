"""Instructions that ask for a form: lists, JSON, CSV, dates, upper case, tags. A parser accepts only one response."""

from __future__ import annotations

import csv
import json
import re
from datetime import date, timedelta

from common import NAMES, Draft, Subset, cross, load_bank, pick, sentence, series, shuffled
from dates import written

CITIES = ["Oslo", "Lima", "Cairo", "Porto", "Kyoto", "Quito", "Dublin", "Tallinn", "Bergen", "Turin"]
JOBS = ["baker", "nurse", "pilot", "teacher", "gardener", "tailor", "dentist", "cook"]
COUNT = {2: "two", 3: "three", 4: "four"}
INTROS = [
    "Here you go:",
    "Of course! Here they are:",
    "These are my tips:",
    "Happy to help. I would suggest the following:",
]
ENDINGS = ["", "", " I hope that this is useful.", " Let me know if you want to hear more about any of them."]


def bullet_lines(text: str) -> list[str]:
    """The items of lines that start with a dash."""
    return [line[2:] for line in text.splitlines() if line.startswith("- ")]


def number_lines(text: str) -> list[str]:
    """The items of lines numbered 1., 2., 3. in order."""
    found = [re.fullmatch(r"(\d+)\. (.+)", line) for line in text.splitlines()]
    items = [match for match in found if match]
    return [match[2] for k, match in enumerate(items, 1) if int(match[1]) == k]


def parses_as(text: str, fields: dict) -> bool:
    """Whether the whole response is a JSON object with exactly these entries."""
    try:
        return json.loads(text) == fields
    except ValueError:
        return False


def prose_lists(rng, items: list[str], goal: str) -> list[str]:
    """The same tips without the form that was asked for, short and wordy."""
    head, count = series(items), COUNT[len(items)]
    return [
        sentence(f"{head}."),
        f"For {goal}, {head}.{pick(rng, ENDINGS)}",
        f"My {count} tips for {goal} are these: {head}.{pick(rng, ENDINGS)}",
        f"There is a lot to say about {goal}. What I find most important is the following: {head}.{pick(rng, ENDINGS)}",
    ]


def tips(rng, topic: dict, kind: str):
    """Tips as bullets, numbers or on one line; the other response gives the same tips in another form."""
    items = shuffled(rng, topic["items"])[: pick(rng, [2, 3, 4])]
    count, goal = COUNT[len(items)], topic["goal"]
    bullets, numbers = "\n".join(f"- {i}" for i in items), "\n".join(f"{k}. {i}" for k, i in enumerate(items, 1))
    intro = pick(rng, INTROS)
    shapes = {
        "bullets": [bullets, f"{intro}\n\n{bullets}"],
        "numbers": [numbers, f"{intro}\n\n{numbers}"],
        "one line": [", ".join(items), ", ".join(items).capitalize()],
    }
    asked = {
        "bullets": [
            "Give me {c} tips for {g} as a bulleted list with dashes.",
            "List {c} tips for {g}. Put each on its own line after a dash.",
        ],
        "numbers": [
            "Give me {c} tips for {g} as a numbered list.",
            "What are {c} tips for {g}? Number them 1., 2. and so on, one to a line.",
        ],
        "one line": [
            "Give me {c} tips for {g} on one line, separated by commas, with nothing else.",
            "Name {c} tips for {g}. Separate them by commas and add nothing else.",
        ],
    }[kind]
    wrong = [text for other, texts in shapes.items() if other != kind for text in texts] + prose_lists(rng, items, goal)
    if kind == "one line":
        wrong = [text for text in wrong if ", and" not in text and len(text.split(", ")) != len(items)]
    accepts = {
        "bullets": lambda text: bullet_lines(text) == items,
        "numbers": lambda text: number_lines(text) == items,
        "one line": lambda text: [part.lower() for part in text.split(", ")] == items,
    }[kind]
    return (
        pick(rng, asked).format(c=count, g=goal),
        cross(shapes[kind], wrong),
        f"{len(items)} {kind.replace('one line', 'comma-separated')} items",
        accepts,
    )


def person(rng) -> dict:
    """A made-up person."""
    return {"name": pick(rng, NAMES), "age": rng.randrange(19, 80), "city": pick(rng, CITIES), "job": pick(rng, JOBS)}


def json_object(rng):
    """A JSON object; the other response is broken, incomplete, wrapped in talk, or prose."""
    who = person(rng)
    fields = {
        key: who[key]
        for key in pick(rng, [["name", "age"], ["name", "city"], ["name", "age", "city"], ["name", "job", "city"]])
    }
    told = f"{who['name']} is {who['age']} years old, lives in {who['city']} and works as a {who['job']}."
    flat, deep = json.dumps(fields), json.dumps(fields, indent=2)
    first = list(fields)[0]
    wrong = [
        flat[:-1],
        flat.replace('"', "'"),
        flat.replace(": ", " = "),
        f"{flat[:-1]},}}",
        f"Here is the object: {flat}",
        ", ".join(f"{key}: {value}" for key, value in fields.items()),
        deep[:-2],
        f"Sure! {told}",
        told,
        deep.replace(f'"{first}"', first),
        "\n".join(f"{key} is {value}" for key, value in fields.items()),
    ]
    asked = pick(
        rng,
        [
            "Turn this into a JSON object with the keys {k} and output nothing else: {t}",
            "{t} Return only a JSON object with the keys {k}.",
            "Extract {k} as valid JSON, with no other text. {t}",
        ],
    )
    return (
        asked.format(k=series(list(fields)), t=told),
        cross([flat, deep], wrong),
        f"a JSON object with {series(list(fields))}",
        (lambda text: parses_as(text, fields)),
    )


def csv_line(rng):
    """One CSV line in a given order of columns."""
    who = person(rng)
    order = shuffled(rng, list(who))
    values = [str(who[key]) for key in order]
    told = f"{who['name']}, a {who['job']} from {who['city']}, is {who['age']}."
    other = shuffled(rng, values)
    wrong = [
        "; ".join(values),
        " ".join(values),
        ",".join(values[:-1]),
        told,
        f"The line is {','.join(values)}",
        "\n".join(values),
        ", ".join(f"{key}={value}" for key, value in zip(order, values, strict=True)),
        *([",".join(other)] if other != values else []),
    ]
    right = [",".join(values), ",".join(f'"{value}"' for value in values)]
    asked = pick(
        rng,
        [
            "Write one CSV line with the columns {k} and nothing else: {t}",
            "{t} Give me this as one CSV line in the order {k}.",
        ],
    )
    return (
        asked.format(k=series(order), t=told),
        cross(right, wrong),
        "one CSV row with the values in order",
        (lambda text: list(csv.reader(text.splitlines())) == [values]),
    )


def iso_date(rng):
    """A date as year, month and day."""
    day = date(1990, 1, 1) + timedelta(days=rng.randrange(12000))
    right, wordy = day.isoformat(), written(day)
    wrong = [
        wordy,
        f"{day.day}/{day.month}/{day.year}",
        f"{day.year}.{day.month}.{day.day}",
        f"{day.year}-{day.day}-{day.month}",
        f"{day.year % 100}-{day.month}-{day.day}",
        f"{day.day}-{day.month}-{day.year}",
        f"It was on {wordy}.",
        f"{right[2:]}",
        day.strftime("%m/%d/%y"),
    ]
    name, place = pick(rng, NAMES), pick(rng, CITIES)
    told = f"{name} moved to {place} on {wordy}."
    right_texts = [right, f"{name} moved to {place} on {right}.", f"The date is {right}."]
    asked = pick(
        rng, ["{t} When was that? Write the date as YYYY-MM-DD.", "{t} Give me the date in the form YYYY-MM-DD."]
    )
    wrong += [f"{name} moved to {place} on {text}." for text in wrong[:6]] + [
        f"The date is {text}." for text in wrong[:6]
    ]
    return (
        asked.format(t=told),
        cross(right_texts, [t for t in wrong if right not in t]),
        f"the date {right}",
        (lambda text: re.findall(r"[\d-]{8,}", text) == [right]),
    )


def letters(rng, topic: dict, kind: str):
    """A whole answer in capitals, in small letters, in quotation marks or between tags."""
    change = {
        "capital letters": str.upper,
        "small letters": str.lower,
        "double quotes": lambda t: f'"{t}"',
        "tags": lambda t: f"<answer>{t}</answer>",
    }[kind]
    asked = {
        "capital letters": "{a} Write everything in capital letters.",
        "small letters": "{a} Use only small letters, no capitals at all.",
        "double quotes": "{a} Put your whole answer in double quotes.",
        "tags": "{a} Put the answer between <answer> and </answer>.",
    }[kind]
    half = [text.replace(text.split()[0], text.split()[0].upper(), 1) for text in topic["answers"]]
    near = {
        "capital letters": half,
        "small letters": half,
        "double quotes": [f'"{t}' for t in topic["answers"]],
        "tags": [f"<answer>{t}" for t in topic["answers"]] + [f"Answer: {t}" for t in topic["answers"]],
    }[kind]
    accepts = {
        "capital letters": str.isupper,
        "small letters": str.islower,
        "double quotes": lambda t: t[0] == t[-1] == '"',
        "tags": lambda t: bool(re.fullmatch(r"<answer>[^<]+</answer>", t)),
    }[kind]
    twins = cross([change(text) for text in topic["answers"]], topic["answers"] + near)
    return asked.format(a=pick(rng, topic["ask"])), twins, f"the answer in {kind}", accepts


MAKERS = [
    lambda rng, topic: tips(rng, topic, "bullets"),
    lambda rng, topic: json_object(rng),
    lambda rng, topic: letters(rng, topic, "capital letters"),
    lambda rng, topic: tips(rng, topic, "numbers"),
    lambda rng, topic: csv_line(rng),
    lambda rng, topic: letters(rng, topic, "double quotes"),
    lambda rng, topic: tips(rng, topic, "one line"),
    lambda rng, topic: json_object(rng),
    lambda rng, topic: letters(rng, topic, "small letters"),
    lambda rng, topic: iso_date(rng),
    lambda rng, topic: letters(rng, topic, "tags"),
]


def build() -> list[Draft]:
    """All pairs about the form of an answer."""
    subset, topics, turn = Subset("format", "instruction_following", 92), load_bank("topics.toml")["topic"], 0
    while not subset.full:
        turn += 1
        asked, twins, what, accepts = MAKERS[turn % len(MAKERS)](subset.rng, pick(subset.rng, topics))
        twins = [twin for twin in twins if len(twin[0]) != len(twin[1]) and not accepts(twin[1])]
        check = f"Parsed by code: the chosen response is {what}, the other is not."
        for _ in range(2 if turn % 5 == 0 else 1):
            subset.add(asked, twins, check, accepts)
    return subset.drafts
