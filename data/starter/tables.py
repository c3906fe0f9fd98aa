"""Small tables printed in the question in three styles; every answer is read back from the printed table."""

from __future__ import annotations

import re

from common import NAMES, Draft, Subset, cross, names_only, pick, sentence, shuffled

# Intro, columns, possible rows, values of the other columns, questions about a cell (column, question, saying) and
# questions about the largest or smallest number (column, which, question, saying).
TABLES = [
    {
        "intro": "A small shop sells these items.",
        "columns": ("item", "price", "stock"),
        "rows": ["pen", "ruler", "mug", "lamp", "scarf", "candle", "basket"],
        "values": (range(2, 40), range(3, 90)),
        "cell": [
            (1, "What is the price of the {row}?", "the price of the {row} is {v}."),
            (2, "How many pieces of the {row} are in stock?", "there are {v} pieces of the {row} in stock."),
        ],
        "top": [
            (1, max, "Which item has the highest price?", "the item with the highest price is the {v}."),
            (2, min, "Which item is lowest in stock?", "the item with the lowest stock is the {v}."),
        ],
    },
    {
        "intro": "These pupils sing in the choir.",
        "columns": ("pupil", "age", "town"),
        "rows": NAMES,
        "values": (range(9, 18), ["Ashford", "Brookside", "Elmwood", "Fairview", "Hilltop", "Lakeside"]),
        "cell": [
            (1, "How old is {row}?", "{row} is {v} years old."),
            (2, "Where does {row} live?", "{row} lives in {v}."),
        ],
        "top": [
            (1, max, "Who is the oldest?", "the oldest pupil is {v}."),
            (1, min, "Who is the youngest?", "the youngest pupil is {v}."),
        ],
    },
    {
        "intro": "The weather last Sunday was as follows.",
        "columns": ("place", "degrees", "rain_mm"),
        "rows": ["Harbour", "Valley", "Summit", "Airport", "Old Town", "Island"],
        "values": (range(3, 34), range(1, 60)),
        "cell": [
            (1, "How many degrees were measured at {row}?", "{v} degrees were measured at {row}."),
            (2, "How many millimetres of rain fell at {row}?", "{v} millimetres of rain fell at {row}."),
        ],
        "top": [
            (1, max, "Where was it warmest?", "it was warmest at {v}."),
            (2, max, "Where did most rain fall?", "most of the rain fell at {v}."),
        ],
    },
    {
        "intro": "Here are the next departures.",
        "columns": ("line", "platform", "minutes"),
        "rows": ["Red", "Blue", "Green", "Orange", "Silver", "Violet"],
        "values": (range(1, 13), range(2, 45)),
        "cell": [
            (1, "From which platform does the {row} line leave?", "the {row} line leaves from platform {v}."),
            (2, "In how many minutes does the {row} line leave?", "the {row} line leaves in {v} minutes."),
        ],
        "top": [
            (2, min, "Which line leaves first?", "the first one to leave is the {v} line."),
            (2, max, "Which line leaves last?", "the last one to leave is the {v} line."),
        ],
    },
    {
        "intro": "The shelter keeps a list of its animals.",
        "columns": ("animal", "kilos", "kind"),
        "rows": ["Bella", "Milo", "Coco", "Rocky", "Luna", "Oscar"],
        "values": (range(2, 45), ["beagle", "tabby", "poodle", "rabbit", "terrier", "parrot"]),
        "cell": [
            (1, "How many kilos does {row} weigh?", "{row} weighs {v} kilos."),
            (2, "What kind of animal is {row}?", "{row} is a {v}."),
        ],
        "top": [
            (1, max, "Which animal is the heaviest?", "the heaviest animal is {v}."),
            (1, min, "Which animal is the lightest?", "the lightest animal is {v}."),
        ],
    },
]
READINGS = [
    "{v}",
    "{v}.",
    "the answer: {v}.",
    "the table says {v}.",
    "the answer is {v}.",
    "{say}",
    "according to the table, {say}",
    "I went through the list line by line, and {say}",
]


def draw_table(rng, spec: dict) -> tuple[list[str], list[list]]:
    """Four or five rows with distinct values in every column."""
    rows = shuffled(rng, spec["rows"])[: 4 + rng.randrange(2)]
    columns = [shuffled(rng, values)[: len(rows)] for values in spec["values"]]
    return rows, [[row, *(column[index] for column in columns)] for index, row in enumerate(rows)]


def print_table(style: int, columns, body) -> str:
    """The table as comma-separated lines, with bars, or as a list of named values."""
    if style == 0:
        return "\n".join(",".join(map(str, line)) for line in [columns, *body])
    if style == 1:
        rule = "|".join(["---"] * len(columns))
        lines = [" | ".join(map(str, line)) for line in body]
        return "\n".join([f"| {' | '.join(columns)} |", f"|{rule}|", *(f"| {line} |" for line in lines)])
    return "\n".join(f"- {row[0]}: {columns[1]} {row[1]}, {columns[2]} {row[2]}" for row in body)


def read_table(instruction: str, columns) -> list[list[str]]:
    """Read the printed rows back out of a question, whatever style they were printed in."""
    rows = []
    for line in instruction.splitlines():
        cells = re.split(r"[|,:]", line.strip("|- "))
        cells = [re.sub(rf"^({'|'.join(columns)}) ", "", cell.strip()) for cell in cells]
        if len(cells) == 3 and cells != list(columns) and "---" not in line:
            rows.append(cells)
    return rows


def look_up(rows: list[list[str]], column: int, row: str | None, which) -> str:
    """The cell of a named row, or the name of the row with the extreme number."""
    if row is not None:
        return next(line[column] for line in rows if line[0] == row)
    return which(rows, key=lambda line: int(line[column]))[0]


def tables(name: str, size: int, minimal: bool) -> list[Draft]:
    """Pairs about small tables: two questions to each table."""
    subset = Subset(name, "knowledge", size)
    for index in range(size):
        spec = TABLES[index % len(TABLES)]
        _, body = draw_table(subset.rng, spec)
        shown = print_table(index // 5 % 3, spec["columns"], body)
        row = pick(subset.rng, body)[0]
        column, question, say = pick(subset.rng, spec["cell"])
        question, say, which = question.format(row=row), say.replace("{row}", row), None
        if index % 2:
            (column, which, question, say), row = pick(subset.rng, spec["top"]), None
        asked = f"{spec['intro']}\n\n{shown}\n\n{question}"
        rows = read_table(asked, spec["columns"])
        right = look_up(rows, column, row, which)
        answers = [line[0 if row is None else column] for line in rows]

        def write(template: str, v: str, say=say) -> str:
            return sentence(template.replace("{say}", say).format(v=v))

        others = [o for o in answers if o != right and len(o.split()) == len(right.split())]
        twins = (
            [(write(t, right), write(t, o)) for t in [pick(subset.rng, READINGS)] for o in others]
            if minimal
            else cross([write(t, right) for t in READINGS], [write(t, o) for t in READINGS for o in others])
        )
        where = f"row {row}" if row is not None else f"{which.__name__} of column"
        check = f"Read back from the table: {where}, {spec['columns'][column]} -> {right}."
        subset.add(asked, twins, check, names_only(right, answers))
    return subset.drafts


def build() -> list[Draft]:
    """All pairs about tables."""
    return tables("minimal_tables", 26, minimal=True) + tables("table_lookup", 26, minimal=False)
