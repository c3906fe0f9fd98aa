"""Sums and two-step word problems; the answer is recomputed from the numbers that the question shows."""

from __future__ import annotations

import re

from common import NAMES, Draft, Subset, cross, integers, load_bank, pick, sentence, shuffled, unique

ASK = {
    "+": ["What is {a} + {b}?", "Work out {a} plus {b}.", "What is the sum of {a} and {b}?", "Add {a} and {b}."],
    "-": ["What is {a} - {b}?", "Work out {a} minus {b}.", "How much is left of {a} when {b} is taken away?"],
    "*": ["What is {a} times {b}?", "Multiply {a} by {b}.", "What is the product of {a} and {b}?"],
    "/": [
        "What is {a} divided by {b}?",
        "Divide {a} by {b}.",
        "What do you get when {a} is split into {b} equal parts?",
    ],
}
SAID = {"+": "{a} plus {b}", "-": "{a} minus {b}", "*": "{a} times {b}", "/": "{a} divided by {b}"}
ANSWERS = [
    "{r}",
    "It is {r}.",
    "The answer is {r}.",
    "{said} is {r}.",
    "{a} {op} {b} = {r}",
    "That gives {r}.",
    "Result: {r}",
    "{said} makes {r}, so the answer is {r}.",
    "I get {r} when I work out {said}, so my answer is {r}.",
    "Working it out step by step, {said} comes to {r}.",
]
STEPS = {
    "+": "Add the tens first and the ones after that: starting from {a} and going up by {b}, you arrive at {r}.",
    "-": "Count up from {b} until you reach {a}. The distance you have covered is {r}.",
    "*": "Think of {b} groups with {a} in each group. Put together, they make {r}.",
    "/": "Share {a} out evenly between {b} people, and each of them receives {r}.",
}

THINGS = ["apples", "marbles", "stamps", "pencils", "stickers", "buttons", "shells", "coins", "cards", "candles"]
REPLIES = [
    "{r}",
    "{r} {u}.",
    "The answer is {r}.",
    "{closing}",
    "It comes to {r} {u}.",
    "After the first step there are {s}, and after the second the result is {r} {u}.",
    "First work out {first}, which is {s}. The rest is quick. {closing}",
    "Two steps are needed here. The first one gives {s}, and from there you get to {r}.",
]


def wrong_numbers(right: int, extra=()) -> list[int]:
    """Plausible slips: off by one, two or ten, the last two digits swapped, and the slips that the caller names."""
    swapped = int(str(right)[:-2] + str(right)[-1] + str(right)[-2]) if right > 9 else right + 3
    slips = [right + 1, right - 1, right + 10, right - 10, swapped, right + 2, right - 2, *extra]
    return [number for number in unique(slips) if number >= 0 and number != right]


def last_integer_is(right: int):
    """Accepts a response whose last whole number is the right one."""
    return lambda text: integers(text)[-1:] == [right]


def draw_sum(rng, index: int) -> tuple[str, int, int, int]:
    """One sum with one to three digits; the four operations take turns."""
    op = "+-*/"[index % 4]
    if op in "+-":
        low, high = ((2, 9), (11, 99), (101, 899))[index // 4 % 3]
        first, second = rng.randrange(low, high + 1), rng.randrange(low, high + 1)
        a, b = (first, second) if op == "+" else (max(first, second) + 1, min(first, second))
        return op, a, b, a + b if op == "+" else a - b
    quotient, b = rng.randrange(3, (10, 25, 70)[index // 4 % 3]), rng.randrange(3, 10)
    return (op, quotient, b, quotient * b) if op == "*" else (op, quotient * b, b, quotient)


def sums(name: str, size: int, questions: int, minimal: bool) -> list[Draft]:
    """Pairs about single sums; every question is used once before some are used again."""
    subset = Subset(name, "math", size)
    rows = [draw_sum(subset.rng, index) for index in range(questions)]
    asked = [pick(subset.rng, ASK[op]).format(a=a, b=b) for op, a, b, _ in rows]
    for index in range(2 * size):
        op, a, b, right = rows[index % questions]
        neighbour = {"*": [a * (b + 1), a * (b - 1)], "/": [right + 3]}.get(op, [])
        said = SAID[op].format(a=a, b=b)
        templates = ANSWERS + ([] if minimal else [STEPS[op]])

        def write(template: str, r: int, a=a, b=b, op=op, said=said) -> str:
            return sentence(template.format(a=a, b=b, op=op, said=said, r=r))

        wrong = shuffled(subset.rng, wrong_numbers(right, neighbour))[:3]
        if minimal:
            template = pick(subset.rng, templates)
            twins = [(write(template, right), write(template, slip)) for slip in wrong]
        else:
            twins = cross([write(t, right) for t in templates], [write(t, slip) for t in templates for slip in wrong])
        check = f"Recomputed: {a} {op} {b} = {right}; the last number of the response must be {right}."
        subset.add(asked[index % questions], twins, check, last_integer_is(right), ties=minimal)
    return subset.drafts


def draw_story(rng, problem: dict) -> tuple[str, str, dict]:
    """One word problem: the question, its formula in numbers, and everything a reply may mention."""
    story, numbers = problem["story"], {}
    for letter, span in problem["ranges"].items():
        if isinstance(span[0], str):
            numbers[letter] = numbers[span[0]] * rng.randrange(span[1], span[2] + 1)
        else:
            numbers[letter] = rng.randrange(span[0], span[1] + 1)
    words = {"n": pick(rng, NAMES), "o": pick(rng, THINGS)}
    question = story.format(**numbers, **words)
    order = unique(re.findall(r"{([abc])}", story))
    read_back = dict(zip(order, integers(question), strict=True))
    in_numbers = re.sub(r"\b[abc]\b", lambda letter: str(read_back[letter[0]]), problem["formula"])
    step = re.sub(r"\b[abc]\b", lambda letter: str(read_back[letter[0]]), problem["first"])
    said = step.replace("*", "times").replace("/", "divided by")
    return question, in_numbers, {**problem, "said": said, "s": int(compute(step)), **words}


def compute(expression: str) -> float:
    """Evaluate a formula that consists of numbers and the four signs only."""
    if not re.fullmatch(r"[\d+*/ -]+", expression):
        raise ValueError(f"a formula must hold only numbers and + - * /; got {expression!r}")
    return eval(expression, {"__builtins__": {}})


def stories(name: str, size: int, questions: int, minimal: bool) -> list[Draft]:
    """Pairs about two-step word problems."""
    subset = Subset(name, "math", size)
    problems = load_bank("word_problems.toml")["problem"]
    drawn = [draw_story(subset.rng, problems[index % len(problems)]) for index in range(questions)]
    for index in range(2 * size):
        question, formula, words = drawn[index % questions]
        right = int(compute(formula))

        def write(template: str, r: int, words=words) -> str:
            inner = template.replace("{closing}", words["closing"]).replace("{u}", words["unit"])
            return sentence(inner.format(r=r, s=words["s"], first=words["said"], n=words["n"], o=words["o"]))

        slips = [slip for slip in wrong_numbers(right, [words["s"], words["s"] + 3]) if slip > 1]
        wrong = shuffled(subset.rng, slips)[:3]
        if minimal:
            template = pick(subset.rng, REPLIES)
            twins = [(write(template, right), write(template, slip)) for slip in wrong]
        else:
            twins = cross([write(t, right) for t in REPLIES], [write(t, slip) for t in REPLIES for slip in wrong])
        check = f"Recomputed from the numbers in the question: {formula} = {right}."
        subset.add(question, twins, check, last_integer_is(right), ties=minimal)
    return subset.drafts


def build() -> list[Draft]:
    """All pairs about numbers."""
    return (
        sums("minimal_arithmetic", 44, 38, minimal=True)
        + stories("minimal_word_problems", 40, 36, minimal=True)
        + sums("arithmetic", 36, 30, minimal=False)
        + stories("word_problems", 36, 30, minimal=False)
    )
