"""Dates, weekdays and units: computed with datetime, counted, or multiplied out."""

from __future__ import annotations

from datetime import date, timedelta

from common import Draft, Subset, cross, integers, mentioned, write_all

DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
MONTHS = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]
UNITS = [
    ("How many minutes are {a} hours and {b} minutes?", 60, "minutes", (2, 9), (5, 55)),
    ("How many grams are {a} kilograms and {b} grams?", 1000, "grams", (2, 9), (20, 900)),
    ("How many inches are {a} feet and {b} inches?", 12, "inches", (3, 9), (1, 11)),
    ("How many centimetres are {a} metres and {b} centimetres?", 100, "centimetres", (2, 9), (5, 95)),
    ("How many hours are {a} days and {b} hours?", 24, "hours", (2, 9), (1, 23)),
]
TOLD = [
    "{v}",
    "{v}.",
    "it is {v}.",
    "the answer is {v}.",
    "counting it out gives {v}.",
    "that comes to {v}, as far as I can see.",
    "I counted step by step, and what I end up with is {v}.",
]


def written(day: date) -> str:
    """`3 March 2023`, without the locale."""
    return f"{day.day} {MONTHS[day.month - 1]} {day.year}"


def calendar_question(rng, index: int) -> tuple[str, str, list[str], str]:
    """A question about days, its answer, wrong answers, and how the answer was found."""
    start, step = date(2021, 1, 1) + timedelta(days=rng.randrange(1200)), rng.randrange(9, 75)
    after = start + timedelta(days=step)
    if index % 3 == 0:
        question = f"Today is {DAYS[start.weekday()]}. Which day of the week will it be in {step} days?"
        right = DAYS[(start.weekday() + step) % 7]
        return question, right, [d for d in DAYS if d != right], f"Counted forward {step} days: {right}."
    slips = [after + timedelta(days=slip) for slip in (-2, -1, 1, 2, 10)]
    if index % 3 == 1:
        return (
            f"Which date is {step} days after {written(start)}?",
            written(after),
            [written(day) for day in slips],
            f"Computed with datetime: {start.isoformat()} + {step} days = {after.isoformat()}.",
        )
    wrong = [f"{step + slip} days" for slip in (-2, -1, 1, 2, 10)]
    return (
        f"How many days are there from {written(start)} to {written(after)}, not counting the first day?",
        f"{step} days",
        wrong,
        f"Computed with datetime: {after.isoformat()} - {start.isoformat()} = {step} days.",
    )


def unit_question(rng, index: int) -> tuple[str, str, list[str], str]:
    """A conversion into the smaller unit, with the usual slips."""
    ask, factor, unit, high, low = UNITS[index % len(UNITS)]
    a, b = rng.randrange(*high), rng.randrange(*low)
    right = a * factor + b
    slips = [
        number for number in (right + factor, right - factor, right + 10, a * 100 + b, right - 1) if number != right
    ]
    return (
        ask.format(a=a, b=b),
        f"{right} {unit}",
        [f"{slip} {unit}" for slip in slips],
        f"Recomputed: {a} * {factor} + {b} = {right}.",
    )


def same_value(right: str):
    """Accepts a response that names the right day, date or number and no other."""

    def read(text: str) -> list:
        return mentioned(text, DAYS) + integers(text) + mentioned(text, MONTHS)

    return lambda text: read(text) == read(right)


def build() -> list[Draft]:
    """All pairs about dates and units."""
    subset = Subset("dates_units", "reasoning", 24)
    for index in range(24):
        make = unit_question if index % 2 else calendar_question
        question, right, wrong, check = make(subset.rng, index // 2)
        twins = cross(write_all(TOLD, v=right), [text for slip in wrong for text in write_all(TOLD, v=slip)])
        subset.add(question, twins, check, same_value(right))
    return subset.drafts
