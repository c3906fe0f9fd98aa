"""What is read out of a judge's own text: a verdict, two scores, a list of claims; never a guess, never a thought."""

from __future__ import annotations

import re

from baer_utils.prompts.words import VERDICT_MARKER

_SCORE_B = re.compile(r"(?m)^\W*Response B\W{1,4}(\d)(?:\s*/\s*(?:9|10))?\b(?!\.\d)")
# the marker, then a letter that ends the line or is followed by "is" or "because": "... is A clear one" names nobody,
# nor does "A/B" or "A & B"
_VERDICT = re.compile(
    r"(?i:better response is)\W{1,6}(?:(?i:response)\W{1,3})?\(?([AB])\b(?!\s*[/&|+])(?!\s+(?!is\b|because\b)\w)"
)
THINKING = (("<think>", "</think>"), ("[THINK]", "[/THINK]"), ("<seed:think>", "</seed:think>"))
_THOUGHT = re.compile(
    "|".join(rf"\A(?:(?!{o}).)*?{c}|{o}.*?(?:{c}|\Z)" for o, c in (map(re.escape, marks) for marks in THINKING)),
    re.DOTALL,
)


def without_thinking(text: str) -> str:
    """What a judge says once it has thought: its own text without everything between the marks of `THINKING`.

    A thought whose opening mark stood in the prompt goes from the first word; one that was cut short, to the last. A
    text without marks comes back as it is.
    """
    said = _THOUGHT.sub("", text)
    return text if said == text else said.strip()


def open_thought(text: str) -> str:
    """The mark that would end a thought that `text` leaves open; empty where none is."""
    return next((close for mark, close in THINKING if text.rfind(mark) > text.rfind(close)), "")


def final_verdict(text: str) -> str | None:
    """Letter of the last marked verdict in a judge's own text, or None.

    Only newly generated text may be passed. The last line that holds `VERDICT_MARKER` counts. Where it names no letter
    or both, or follows directly on a marked line that names the other (an echo of the instruction), nothing is parsed.
    There is no fallback: a text without a clear verdict has none.

    A judge that quotes a response's marked verdict in that line has it read as its own: the text does not tell whose it
    is. What a response says counts for nothing unless the judge writes it.
    """
    lines = [line for line in text.splitlines() if line.strip()]
    marked = [VERDICT_MARKER.lower() in line.lower() for line in lines]
    if not any(marked):
        return None
    last = len(marked) - 1 - marked[::-1].index(True)
    named = set(_VERDICT.findall(lines[last]))
    if named and last and marked[last - 1]:
        named |= set(_VERDICT.findall(lines[last - 1]))
    return named.pop() if len(named) == 1 else None


def two_scores(text: str) -> str | None:
    """Letter of the better response in a text of two scores, "tie" for equal ones, None where nothing is clear.

    `text` goes on from the stub "Response A:". A marked verdict counts before the scores, even against them.
    """
    letter = final_verdict(text)
    if letter:
        return letter
    scores = re.match(r"\D{0,3}(\d)(?:\s*/\s*(?:9|10))?\b(?!\.\d)", text), _SCORE_B.findall(text)
    if scores[0] is None or len(scores[1]) != 1:
        return None
    a, b = int(scores[0][1]), int(scores[1][0])
    return "tie" if a == b else "A" if a > b else "B"


def claim_graph(text: str, most: int = 4) -> list[tuple[str, tuple[int, ...]]]:
    """Claims of a numbered list with the positions of the earlier claims that each rests on; the last is the answer.

    `text` goes on from the stub "1.". A bracket that points at the claim itself, forwards or nowhere is dropped, which
    also cuts every cycle. Fewer than two claims: an empty list, and the whole response counts as one claim.
    """
    claims: list[tuple[str, tuple[int, ...]]] = []
    for line in re.split(r"(?m)^\s*\d+[.)]\s*", text)[:most]:
        body = " ".join(line.split())
        named = [int(n) - 1 for bracket in re.findall(r"\[([\d,\s]+)\]", body) for n in re.findall(r"\d+", bracket)]
        claim = re.sub(r"\s*\[[\d,\s]*\]", "", body).strip()
        if claim:
            claims.append((claim, tuple(sorted({n for n in named if 0 <= n < len(claims)}))))
    return claims if len(claims) > 1 else []
