"""What the starter sets promise, as checks that name what does not hold, and the table of the README."""

from __future__ import annotations

from statistics import median

from common import Draft, changed_words, word_count

LIMITS = {  # fewest pairs, subsets and task types, and the fewest pairs of a subset
    "starter_correctness": (400, 6, 3, 24),
    "starter_preference": (600, 6, 3, 24),
}
OVERALL, EACH = (0.45, 0.55), (0.35, 0.65)  # share of pairs whose longer response is the chosen one
MEDIAN_CHARACTERS = 320
# A mark that shows the label in most pairs of a subset would let a judge win without reading. Where the mark is the
# task itself (a cut-off text has no full stop) the pair (subset, mark) is excused.
MARKS = {
    "ends with a mark": lambda text: text[-1] in ".!?",
    "starts with a capital": lambda text: text[0].isupper(),
    "has a digit": lambda text: any(letter.isdigit() for letter in text),
    "has several lines": lambda text: "\n" in text,
    "has a comma": lambda text: "," in text,
    "has two sentences": lambda text: ". " in text,
    "has a fence": lambda text: "```" in text,
    "starts with I": lambda text: text.split()[0] in ("I", "I'm", "I'd"),
}
MARK_LIMIT = 0.5
EXCUSED = {("complete", "ends with a mark")}


def longer_share(records: list[dict]) -> float:
    """Share of pairs whose longer response, in characters, is the chosen one; equal lengths count half."""
    gaps = [len(record["chosen"]) - len(record["rejected"]) for record in records]
    return sum(1.0 if gap > 0 else 0.5 if gap == 0 else 0.0 for gap in gaps) / len(gaps)


def by_subset(records: list[dict]) -> dict[str, list[dict]]:
    """Records grouped by subset, in order of first appearance."""
    groups: dict[str, list[dict]] = {}
    for record in records:
        groups.setdefault(record["subset"], []).append(record)
    return groups


def label_failures(drafts: list[Draft], records: list[dict]) -> list[str]:
    """Pairs whose label the code does not confirm, that are blank or equal, or whose minimal twins differ too much."""
    found = []
    for draft, record in zip(drafts, records, strict=True):
        name = record["pair_id"]
        if not draft.accepts(draft.chosen):
            found.append(f"{name}: the chosen response must pass its check: {draft.chosen!r}")
        if draft.accepts(draft.rejected):
            found.append(f"{name}: the rejected response must fail its check: {draft.rejected!r}")
        if not all(record[key].strip() == record[key] != "" for key in ("instruction", "chosen", "rejected", "check")):
            found.append(f"{name}: no text may be blank or padded")
        if draft.subset.startswith("minimal_") and not 1 <= changed_words(draft.chosen, draft.rejected) <= 2:
            found.append(f"{name}: minimal twins must differ in one or two words")
    seen: set[tuple] = set()
    for record in records:
        key = (record["instruction"], *sorted([record["chosen"], record["rejected"]]))
        if key in seen or record["chosen"] == record["rejected"]:
            found.append(f"{record['pair_id']}: every pair must be new and its responses different")
        seen.add(key)
    return found


def mark_failures(subset: str, records: list[dict]) -> list[str]:
    """Marks that show the label of a subset in more than half of its pairs, net of those where they mislead."""
    found = []
    for mark, has in MARKS.items():
        net = sum(has(record["chosen"]) - has(record["rejected"]) for record in records) / len(records)
        if abs(net) > MARK_LIMIT and (subset, mark) not in EXCUSED:
            found.append(f"{subset}: '{mark}' must not give the label away; it does in {net:+.0%} of the pairs")
    return found


def failures(benchmark: str, drafts: list[Draft], records: list[dict]) -> list[str]:
    """Everything that does not hold, in words; empty when all is well."""
    pairs, subsets, task_types, smallest = LIMITS[benchmark]
    groups = by_subset(records)
    found = label_failures(drafts, records)
    for what, count, fewest in [
        ("pairs", len(records), pairs),
        ("subsets", len(groups), subsets),
        ("task types", len({record["task_type"] for record in records}), task_types),
    ]:
        if count < fewest:
            found.append(f"{benchmark}: at least {fewest} {what} are promised, there are {count}")
    for name, members, (low, high) in [(benchmark, records, OVERALL), *((n, g, EACH) for n, g in groups.items())]:
        if not low <= longer_share(members) <= high:
            found.append(
                f"{name}: the longer response may win in {low:.0%} to {high:.0%}, not {longer_share(members):.0%}"
            )
    for name, members in groups.items():
        if len(members) < smallest:
            found.append(f"{name}: at least {smallest} pairs are promised, there are {len(members)}")
        found += mark_failures(name, members)
    if median(len(record[key]) for record in records for key in ("chosen", "rejected")) >= MEDIAN_CHARACTERS:
        found.append(f"{benchmark}: the median response must stay under {MEDIAN_CHARACTERS} characters")
    return found


def table(benchmark: str, records: list[dict]) -> str:
    """The Markdown table of one benchmark: a row for each subset and one for all."""
    lines = [
        f"**`{benchmark}`**",
        "",
        "| subset | task type | pairs | questions | longer response wins | median words |",
        "|---|---|---|---|---|---|",
    ]
    for name, members in [*by_subset(records).items(), ("all", records)]:
        task = members[0]["task_type"] if name != "all" else f"{len({record['task_type'] for record in records})} types"
        questions = len({record["instruction"] for record in members})
        words = median(word_count(record[key]) for record in members for key in ("chosen", "rejected"))
        lines.append(
            f"| {name} | {task} | {len(members)} | {questions} | {100 * longer_share(members):.0f} % | {words:g} |"
        )
    return "\n".join(lines)
