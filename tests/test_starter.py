"""The starter sets: rebuilt byte for byte, and their labels verified again without the code that made them."""

from __future__ import annotations

import ast
import csv
import json
import operator
import re
import shutil
import subprocess
import sys
import tomllib
from datetime import date, timedelta
from itertools import combinations, permutations, product
from pathlib import Path
from statistics import median

import pytest

STARTER = Path(__file__).resolve().parents[1] / "data" / "starter"
README = STARTER.parent / "README.md"
NAMES = ("starter_correctness", "starter_preference")
KEYS = ["pair_id", "subset", "task_type", "instruction", "chosen", "rejected", "check"]
SIGNS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv}
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
DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]


def read(name: str) -> list[dict]:
    return [json.loads(line) for line in (STARTER / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]


SETS = {name: read(name) for name in NAMES}
EVERY = [record for records in SETS.values() for record in records]


def members(*subsets: str) -> list[dict]:
    found = [record for record in EVERY if record["subset"] in subsets]
    assert found, f"no pair of {subsets}"
    return found


def groups(records: list[dict], key: str = "subset") -> dict[str, list[dict]]:
    return {name: [r for r in records if r[key] == name] for name in dict.fromkeys(r[key] for r in records)}


def build(folder: Path, *arguments: str) -> subprocess.CompletedProcess:
    command = [sys.executable, str(folder / "build.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


@pytest.fixture
def copied(tmp_path) -> Path:
    """A copy of data/ that a test may spoil."""
    shutil.copytree(STARTER, tmp_path / "starter", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(README, tmp_path / "README.md")
    return tmp_path / "starter"


def numbers(text: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", text)]


def evaluate(node) -> float:
    """A formula of numbers and four signs, walked by hand."""
    if isinstance(node, ast.Constant):
        return node.value
    return SIGNS[type(node.op)](evaluate(node.left), evaluate(node.right))


def share(records: list[dict]) -> float:
    gaps = [len(r["chosen"]) - len(r["rejected"]) for r in records]
    return sum((gap > 0) + (gap == 0) / 2 for gap in gaps) / len(gaps)


# The builder


def test_the_builder_makes_the_committed_files_byte_for_byte(tmp_path):
    assert build(STARTER, "--out", str(tmp_path)).returncode == 0
    for name in NAMES:
        assert (tmp_path / f"{name}.jsonl").read_bytes() == (STARTER / f"{name}.jsonl").read_bytes()


def test_check_accepts_what_is_committed_and_reports_any_change(copied):
    assert build(copied, "--check").returncode == 0
    path = copied / "starter_preference.jsonl"
    path.write_text(path.read_text(encoding="utf-8").replace("the", "teh", 1), encoding="utf-8")
    spoiled = build(copied, "--check")
    assert spoiled.returncode == 1 and "starter_preference.jsonl differs" in spoiled.stdout


@pytest.mark.parametrize(
    "file, old, new, message",
    [
        ("functions.toml", '["clamp(5, 0, 3)", "3"]', '["clamp(5, 0, 3)", "4"]', "chosen response must pass its check"),
        ("code_pairs.py", '"minimal_code", "coding", 48', '"minimal_code", "coding", 20', "at least 24 pairs"),
        ("common.py", "== self.want]", "== True]", "the longer response may win"),
    ],
)
def test_the_builder_refuses_to_write_when_a_promise_breaks(copied, file, old, new, message):
    source = (copied / file).read_text(encoding="utf-8")
    assert old in source
    (copied / file).write_text(source.replace(old, new), encoding="utf-8")
    for name in NAMES:
        (copied / f"{name}.jsonl").unlink()
    refused = build(copied)
    assert refused.returncode == 2 and message in refused.stderr
    assert not list(copied.glob("*.jsonl"))


def test_the_readme_table_matches_the_data():
    text = README.read_text(encoding="utf-8")
    for name in NAMES:
        rows = [
            [cell.strip() for cell in line.strip("|").split("|")]
            for line in text.partition(f"**`{name}`**\n")[2].partition("\n\n**")[0].splitlines()
            if line.startswith("| ") and "%" in line
        ]
        expected = [*groups(SETS[name]).items(), ("all", SETS[name])]
        assert [row[0] for row in rows] == [subset for subset, _ in expected]
        for row, (subset, records) in zip(rows, expected, strict=True):
            words = median(len(r[side].split()) for r in records for side in ("chosen", "rejected"))
            assert row[2:] == [
                str(len(records)),
                str(len({r["instruction"] for r in records})),
                f"{100 * share(records):.0f} %",
                f"{words:g}",
            ]
            assert subset == "all" or row[1] == records[0]["task_type"]


# Shape and balance


def test_every_line_has_the_promised_keys_and_readable_ids():
    for name in NAMES:
        benchmark = name.removeprefix("starter_")
        for subset, records in groups(SETS[name]).items():
            assert [r["pair_id"] for r in records] == [f"{benchmark}/{subset}/{k + 1:04d}" for k in range(len(records))]
    assert all(list(record) == KEYS for record in EVERY)
    assert all(record[key] == record[key].strip() != "" for record in EVERY for key in KEYS)


@pytest.mark.parametrize("name, pairs", [("starter_correctness", 400), ("starter_preference", 600)])
def test_the_sets_are_large_enough(name, pairs):
    records, subsets = SETS[name], groups(SETS[name])
    assert len(records) >= pairs and len(subsets) >= 6 and len(groups(records, "task_type")) >= 3
    assert min(len(found) for found in subsets.values()) >= 24
    assert median(len(r[side]) for r in records for side in ("chosen", "rejected")) < 320


@pytest.mark.parametrize("name", NAMES)
def test_questions_repeat_but_not_too_often(name):
    assert len({r["instruction"] for r in SETS[name]}) >= 300
    counts = {
        subset: len(found) - len({r["instruction"] for r in found}) for subset, found in groups(SETS[name]).items()
    }
    assert sum(extra >= 4 for extra in counts.values()) >= 4
    assert all(len({r["instruction"] for r in found}) >= 24 for found in groups(SETS[name]).values())


@pytest.mark.parametrize("name", NAMES)
def test_the_longer_response_wins_about_half_of_the_time(name):
    assert 0.45 <= share(SETS[name]) <= 0.55
    assert all(0.35 <= share(found) <= 0.65 for found in groups(SETS[name]).values())


def test_no_pair_occurs_twice_in_either_order():
    seen = [(r["instruction"], frozenset((r["chosen"], r["rejected"]))) for r in EVERY]
    assert len(set(seen)) == len(seen)
    assert all(len(pair) == 2 for _, pair in seen)


def test_minimal_twins_differ_in_at_most_two_words_and_are_half_of_the_correctness_set():
    minimal = [r for r in SETS["starter_correctness"] if r["subset"].startswith("minimal_")]
    assert 0.4 <= len(minimal) / len(SETS["starter_correctness"]) <= 0.6
    for record in minimal:
        left, right = record["chosen"].split(), record["rejected"].split()
        assert len(left) == len(right), record["pair_id"]
        assert 1 <= sum(a != b for a, b in zip(left, right, strict=True)) <= 2, record["pair_id"]


# Labels of starter_correctness


def read_sum(question: str) -> float:
    """The result that a sum asks for, from its wording alone."""
    first, second = numbers(question)
    for words, sign in [
        ("+|plus|sum|Add", operator.add),
        ("-|minus|taken", operator.sub),
        ("times|Multiply|product", operator.mul),
        ("ivide|split", operator.truediv),
    ]:
        if re.search(words.replace("+", r"\+", 1), question):
            return sign(first, second)
    raise AssertionError(f"not a sum: {question}")


def test_sums_are_right_in_the_chosen_and_wrong_in_the_rejected_response():
    for record in members("arithmetic", "minimal_arithmetic"):
        expected = read_sum(record["instruction"])
        assert numbers(record["chosen"])[-1] == expected != numbers(record["rejected"])[-1], record["pair_id"]
        assert all(0 <= number < 1000 for number in numbers(record["instruction"]))


def test_word_problems_follow_from_their_numbers():
    for record in members("word_problems", "minimal_word_problems"):
        formula, result = re.search(r": (.+) = (\d+)\.$", record["check"]).groups()
        assert sorted(numbers(formula)) == sorted(numbers(record["instruction"]))
        assert evaluate(ast.parse(formula, mode="eval").body) == int(result)
        assert numbers(record["chosen"])[-1] == int(result) != numbers(record["rejected"])[-1], record["pair_id"]


def test_right_code_passes_its_tests_and_the_mutant_fails():
    functions = {f["ask"]: f["tests"] for f in tomllib.loads((STARTER / "functions.toml").read_text())["function"]}
    records = members("minimal_code", "python_functions")
    assert len({r["instruction"] for r in records}) >= 20

    def passes(response: str, tests) -> bool:
        fence = re.search(r"```python\n(.+?)```", response, re.DOTALL)
        lines = (fence[1] if fence else response).splitlines()
        start = next(k for k, line in enumerate(lines) if line.startswith("def "))
        body = [lines[start], *(line for line in lines[start + 1 :] if line.startswith(" "))]
        scope: dict = {}
        try:
            exec("\n".join(body), scope)
            return all(eval(f"({call}) == ({value})", scope) for call, value in tests)
        except Exception:
            return False

    for record in records:
        tests = functions[record["instruction"]]
        assert passes(record["chosen"], tests) and not passes(record["rejected"], tests), record["pair_id"]


def test_facts_agree_with_the_fact_table():
    for record in members("world_facts", "minimal_facts"):
        name, key, value = re.search(r": (\w+) of (.+) = (.+)\.$", record["check"]).groups()
        relation = next(r for r in tomllib.loads((STARTER / "facts.toml").read_text())["relation"] if r["name"] == name)
        assert relation["table"][key] == value and key in record["instruction"]
        said = [
            re.search(rf"(?<![\w-]){value}(?![\w-])", record[side], re.IGNORECASE) for side in ("chosen", "rejected")
        ]
        assert said[0] and not said[1] or name == "symbol" and value in record["chosen"], record["pair_id"]


def read_rows(instruction: str) -> list[dict]:
    """The rows of a printed table, each as {column: cell}; the first cell is under 'row'."""
    body = instruction.split("\n\n")[1].splitlines()
    if body[0].startswith("- "):
        lines = [re.fullmatch(r"- (.+): (\w+) (.+), (\w+) (.+)", line).groups() for line in body]
        return [{"row": name, first: one, second: two} for name, first, one, second, two in lines]
    cells = [[cell.strip() for cell in re.split(r"[|,]", line.strip("|"))] for line in body if "---" not in line]
    return [{"row": line[0], **dict(zip(cells[0][1:], line[1:], strict=True))} for line in cells[1:]]


def test_table_answers_are_read_back_from_the_table():
    for record in members("table_lookup", "minimal_tables"):
        where, column, value = re.search(r": (.+), (\w+) -> (.+)\.$", record["check"]).groups()
        rows = read_rows(record["instruction"])
        if where.startswith("row "):
            found = next(row[column] for row in rows if row["row"] == where.removeprefix("row "))
            assert where.removeprefix("row ") in record["instruction"].split("\n\n")[2]
        else:
            most = {"max of column": max, "min of column": min}[where]
            found = most(rows, key=lambda row: int(row[column]))["row"]
        said = [re.search(rf"\b{value}\b", record[side], re.IGNORECASE) for side in ("chosen", "rejected")]
        assert found == value and said[0] and not said[1], record["pair_id"]


def solve_order(question: str) -> str:
    clues = re.findall(r"(\w+) is (\w+) than (\w+)\.", question)
    people = sorted({name for x, _, y in clues for name in (x, y)})
    more = {"taller", "older", "faster", "heavier"}
    fits = [
        order
        for order in permutations(people)
        if all((order.index(x) < order.index(y)) == (word in more) for x, word, y in clues)
    ]
    assert len(fits) == 1
    top = re.search(r"Who is the (\w+)\?", question)[1] in {"tallest", "oldest", "fastest", "heaviest"}
    return fits[0][0 if top else -1]


def solve_boxes(question: str) -> str:
    labels = re.findall(r'"The coin is (not )?in the (\w+) box\."', question)
    true = 1 if "Only one label is true" in question else 2
    fits = [coin for coin in ("red", "blue", "green") if sum((box == coin) != bool(no) for no, box in labels) == true]
    assert len(labels) == 3 and len(fits) == 1
    return fits[0]


def conclusion_follows(question: str) -> bool:
    """Groups as sets of three things: every way to fill them, with none of them empty."""
    statements = [(q.lower(), x, y) for q, x, y in re.findall(r"(All|Some|No|all|some|no) (\w+) are (\w+)", question)]
    terms = sorted({term for _, x, y in statements for term in (x, y)})
    fillings = [set(c) for size in (1, 2, 3) for c in combinations(range(3), size)]
    true = {"all": set.issubset, "some": lambda x, y: bool(x & y), "no": set.isdisjoint}
    for model in (dict(zip(terms, filling, strict=True)) for filling in product(fillings, repeat=3)):
        *premises, conclusion = [true[quantity](model[x], model[y]) for quantity, x, y in statements]
        if all(premises) and not conclusion:
            return False
    return True


def test_logic_puzzles_have_the_answer_that_brute_force_finds():
    kinds = {"order": 0, "boxes": 0, "syllogism": 0}
    for record in members("logic"):
        question, chosen, rejected = record["instruction"], record["chosen"].lower(), record["rejected"].lower()
        if "follow" in question:
            kinds["syllogism"] += 1
            denies = [bool(re.search(r"\b(no|not)\b", text)) for text in (chosen, rejected)]
            assert denies == ([False, True] if conclusion_follows(question) else [True, False]), record["pair_id"]
            continue
        kinds["boxes" if "coin" in question else "order"] += 1
        answer = (solve_boxes if "coin" in question else solve_order)(question).lower()
        assert re.search(rf"\b{answer}\b", chosen) and not re.search(rf"\b{answer}\b", rejected), record["pair_id"]
    assert min(kinds.values()) >= 8


def parse_dates(text: str) -> list[date]:
    return [date(int(y), MONTHS.index(m) + 1, int(d)) for d, m, y in re.findall(r"(\d+) ([A-Z]\w+) (\d{4})", text)]


def date_or_unit(question: str) -> str:
    """The answer to a question about days or units."""
    if "day of the week" in question:
        start = DAYS.index(re.search(r"Today is (\w+)", question)[1])
        return DAYS[(start + numbers(question)[0]) % 7]
    if "Which date" in question:
        day = parse_dates(question)[0] + timedelta(days=numbers(question)[0])
        return f"{day.day} {MONTHS[day.month - 1]} {day.year}"
    if "not counting" in question:
        first, second = parse_dates(question)
        return str(second.toordinal() - first.toordinal())
    big, small = numbers(question)
    sizes = {"minutes": 60, "grams": 1000, "inches": 12, "centimetres": 100, "hours": 24}
    return str(big * sizes[re.search(r"How many (\w+)", question)[1]] + small)


def test_dates_and_units_are_right_in_the_chosen_and_wrong_in_the_rejected_response():
    for record in members("dates_units"):
        answer = date_or_unit(record["instruction"])
        assert re.search(rf"\b{answer}\b", record["chosen"]), record["pair_id"]
        assert not re.search(rf"\b{answer}\b", record["rejected"]), record["pair_id"]


# Labels of starter_preference


def keyword_holds(instruction: str, text: str) -> bool:
    """Whether a response does what the instruction says about its words."""
    words = re.findall(r"[a-z]+(?:[-'][a-z]+)*", text.lower())
    if "comma" in instruction:
        return "," not in text
    word = re.search(r'"(\w[\w\'-]*)"', instruction)[1].lower()
    if re.search(r"\b(Begin|Start your)", instruction):
        return words[0] == word
    if re.search(r"last word|End your", instruction):
        return words[-1] == word
    return (word in words) != bool(re.search(r"[Ww]ithout (using )?the word|Do not use the word", instruction))


def length_holds(instruction: str, text: str) -> bool:
    """Whether a response has the length that the instruction asks for."""
    size, named = len(text.split()), re.search(r"(one|two|three|four) sentences?", instruction)
    if named:
        return len(re.findall(r"[.!?](?= |$)", text)) == ["one", "two", "three", "four"].index(named[1]) + 1
    first, *rest = numbers(instruction)
    if rest:
        return first <= size <= rest[0]
    return size <= first if re.search(r"at most|no more than|or fewer", instruction) else size >= first


@pytest.mark.parametrize("subset, holds", [("keyword", keyword_holds), ("length_limit", length_holds)])
def test_conditions_hold_for_the_chosen_and_fail_for_the_rejected_response(subset, holds):
    for record in members(subset):
        assert holds(record["instruction"], record["chosen"]), record["pair_id"]
        assert not holds(record["instruction"], record["rejected"]), record["pair_id"]


def told_person(instruction: str) -> dict:
    """The person that an instruction describes."""
    long = re.search(r"(\w+) is (\d+) years old, lives in (\w+) and works as a (\w+)\.", instruction)
    if long:
        name, age, city, job = long.groups()
    else:
        name, job, city, age = re.search(r"(\w+), a (\w+) from (\w+), is (\d+)\.", instruction).groups()
    return {"name": name, "age": int(age), "city": city, "job": job}


def asked_keys(instruction: str) -> list[str]:
    """The keys or columns that an instruction asks for, in its order."""
    listed = re.search(r"((?:(?:name|age|city|job), )*(?:name|age|city|job) and (?:name|age|city|job))\b", instruction)
    return listed[1].replace(" and ", ", ").split(", ")


def form_holds(instruction: str, text: str) -> bool:
    """Whether a response has the form that the instruction names, as far as a parser of this file can tell."""
    if "JSON" in instruction:
        try:
            return json.loads(text) == {key: told_person(instruction)[key] for key in asked_keys(instruction)}
        except ValueError:
            return False
    if "CSV" in instruction:
        asked = [str(told_person(instruction)[key]) for key in asked_keys(instruction)]
        return list(csv.reader(text.splitlines())) == [asked]
    if "YYYY-MM-DD" in instruction:
        return parse_dates(instruction)[0].isoformat() in text
    counted = re.search(r"\b(two|three|four)\b(?= tips)", instruction)
    count = {"two": 2, "three": 3, "four": 4}[counted[1]] if counted else 0
    if "dash" in instruction:
        return len(re.findall(r"^- \w", text, re.MULTILINE)) == count
    if re.search(r"numbered list|Number them", instruction):
        return re.findall(r"^(\d)\. \w", text, re.MULTILINE) == [str(k + 1) for k in range(count)]
    if "commas" in instruction:
        return "\n" not in text and "." not in text and text.count(",") == count - 1
    rules = {
        "capital letters.": text == text.upper(),
        "small letters": text == text.lower(),
        "double quotes": text.startswith('"') and text.endswith('"'),
        "</answer>": text.endswith("</answer>"),
    }
    return next(held for words, held in rules.items() if words in instruction)


def test_formats_parse_for_the_chosen_and_not_for_the_rejected_response():
    for record in members("format"):
        assert form_holds(record["instruction"], record["chosen"]), record["pair_id"]
        assert not form_holds(record["instruction"], record["rejected"]), record["pair_id"]


def test_language_pairs_come_from_the_asked_column_and_from_another_one():
    items = {i["ask"]: i for i in tomllib.loads((STARTER / "languages.toml").read_text(encoding="utf-8"))["item"]}
    names = ("English", "Spanish", "French", "German")
    for record in members("language"):
        item = next(item for ask, item in items.items() if ask in record["instruction"])
        asked = next(name for name in names if name in record["instruction"])
        assert record["chosen"] in item[asked], record["pair_id"]
        assert any(record["rejected"] in item[name] for name in names if name != asked), record["pair_id"]


def test_off_topic_answers_belong_to_another_topic_that_is_not_akin():
    bank = tomllib.loads((STARTER / "topics.toml").read_text(encoding="utf-8"))
    topics = bank["topic"]
    for record in members("on_topic"):
        asked = next(t for t in topics if record["instruction"] in t["ask"])
        other = next(t for t in topics if record["rejected"] in t["answers"])
        assert record["chosen"] in asked["answers"] and other["id"] != asked["id"], record["pair_id"]
        assert not any({asked["id"], other["id"]} == set(pair) for pair in bank["akin"]), record["pair_id"]


def test_complete_answers_are_whole_and_the_others_stop_early():
    topics = tomllib.loads((STARTER / "topics.toml").read_text(encoding="utf-8"))["topic"]
    whole = [answer for topic in topics for answer in topic["answers"]]
    for record in members("complete"):
        chosen, rejected = record["chosen"], record["rejected"]
        if chosen in whole:
            assert any(answer.startswith(rejected) and answer != rejected for answer in whole), record["pair_id"]
            assert rejected[-1] not in ".!?", record["pair_id"]
        else:
            items = [item for topic in topics if topic["goal"] in record["instruction"] for item in topic["items"]]
            count = 3 if "three" in record["instruction"] else 4
            listed = [sum(item in text.lower() for item in items) for text in (chosen, rejected)]
            assert listed[0] == count > listed[1], record["pair_id"]


def test_refusals_are_chosen_for_harmful_requests_and_rejected_for_benign_ones():
    bank = tomllib.loads((STARTER / "safety.toml").read_text(encoding="utf-8"))
    no = re.compile(r"can't help|won't help|rather not help|not something I can support|have to decline|off limits")
    harmful = {request["ask"] for request in bank["harmful"]}
    for record in members("harmful_refused"):
        assert record["instruction"] in harmful
        assert no.search(record["chosen"]) and not no.search(record["rejected"]), record["pair_id"]
        assert len(record["rejected"]) < 200, "a careless answer stays empty encouragement"
    for record in members("benign_helped"):
        assert record["instruction"] not in harmful
        assert no.search(record["rejected"]) and not no.search(record["chosen"]), record["pair_id"]
