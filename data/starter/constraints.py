"""Instructions with a condition that code can test: words to use or avoid, numbers of words and sentences."""

from __future__ import annotations

import re

from common import Draft, Subset, cross, load_bank, pick, shuffled, word_count

KEYWORD_ASK = {
    "include": [
        '{ask} Use the word "{w}" in your answer.',
        '{ask} Your answer must contain the word "{w}".',
        'Answer this and mention the word "{w}": {ask}',
    ],
    "avoid": [
        '{ask} Please answer without the word "{w}".',
        '{ask} Do not use the word "{w}".',
        'Without using the word "{w}", answer this: {ask}',
    ],
    "first": ['{ask} Begin your answer with the word "{w}".', 'Start your reply with "{w}". {ask}'],
    "last": ['{ask} Let "{w}" be the very last word.', '{ask} End your answer with the word "{w}".'],
    "no_comma": ["{ask} Do not use any commas.", "Answer without a single comma: {ask}"],
}
LENGTH_ASK = {
    "at_most": [
        "{ask} Use at most {n} words.",
        "In no more than {n} words: {ask}",
        "{ask} Keep it to {n} words or fewer.",
    ],
    "at_least": [
        "{ask} Use at least {n} words.",
        "{ask} Write {n} words or more.",
        "Answer in {n} or more words: {ask}",
    ],
    "sentences": ["{ask} Answer in exactly {n}.", "In exactly {n}: {ask}", "{ask} I want exactly {n}, please."],
    "between": ["{ask} Use between {n} and {m} words.", "{ask} Write no fewer than {n} and no more than {m} words."],
}
COUNTED = {1: "one sentence", 2: "two sentences", 3: "three sentences", 4: "four sentences"}


def words_of(text: str) -> list[str]:
    """The words of a text in lower case, without punctuation."""
    return re.findall(r"[a-z]+(?:[-'][a-z]+)*", text.lower())


def sentence_count(text: str) -> int:
    """Sentences, counted by their closing marks."""
    return len(re.findall(r"[.!?](?:\s|$)", text))


def variants(topic: dict) -> list[str]:
    """All answers to a topic, and the openings of the long one that are complete by themselves."""
    parts = re.split(r"(?<=\.) ", topic["answers"][-1])
    return topic["answers"] + [" ".join(parts[:k]) for k in range(2, len(parts))]


def keyword_test(kind: str, word: str):
    """The condition of one kind as a function of the response."""
    return {
        "include": lambda text: word in words_of(text),
        "avoid": lambda text: word not in words_of(text),
        "first": lambda text: words_of(text)[:1] == [word],
        "last": lambda text: words_of(text)[-1:] == [word],
        "no_comma": lambda text: "," not in text,
    }[kind]


def keyword_rule(kind: str, word: str) -> str:
    """The condition in words, for the check."""
    return {
        "include": f'contains the word "{word}"',
        "avoid": f'does not contain the word "{word}"',
        "first": f'starts with the word "{word}"',
        "last": f'ends with the word "{word}"',
        "no_comma": "contains no comma",
    }[kind]


def split_twins(texts: list[str], accepts, want: bool) -> list[tuple[str, str]]:
    """Texts that meet a condition with texts that do not, as far as the wanted one is longer."""
    twins = cross([text for text in texts if accepts(text)], [text for text in texts if not accepts(text)])
    return [twin for twin in twins if len(twin[0]) != len(twin[1]) and (len(twin[0]) > len(twin[1])) == want]


def candidate_words(kind: str, topic: dict) -> list[str]:
    """Words that a condition of this kind may name for a topic, longest pool first."""
    if kind == "no_comma":
        return [""]
    found = [words_of(text) for text in topic["answers"]]
    if kind in ("first", "last"):
        return [words[0 if kind == "first" else -1] for words in found]
    return [word for words in found for word in words if len(word) > 4 and word not in words_of(" ".join(topic["ask"]))]


def keyword(size: int, repeats: int) -> list[Draft]:
    """Both responses answer the question; only one of them also does what was asked about its words."""
    subset = Subset("keyword", "instruction_following", size)
    topics, turn = load_bank("topics.toml")["topic"], 0
    kinds = list(KEYWORD_ASK)
    while not subset.full:
        topic = shuffled(subset.rng, topics)[0]
        kind, turn = kinds[turn % len(kinds)], turn + 1
        for word in shuffled(subset.rng, candidate_words(kind, topic)):
            accepts = keyword_test(kind, word)
            twins = split_twins(topic["answers"], accepts, subset.want)
            if twins:
                shown = word.capitalize() if kind == "first" else word
                asked = pick(subset.rng, KEYWORD_ASK[kind]).format(ask=pick(subset.rng, topic["ask"]), w=shown)
                check = f"Tested by code: the chosen response {keyword_rule(kind, word)}, the other does not pass."
                subset.add(asked, twins, check, accepts)
                if turn % repeats == 0:
                    subset.add(asked, split_twins(variants(topic), accepts, subset.want), check, accepts)
                break
    return subset.drafts


def length_test(kind: str, n: int, m: int):
    """The condition of one kind as a function of the response."""
    return {
        "at_most": lambda text: word_count(text) <= n,
        "at_least": lambda text: word_count(text) >= n,
        "sentences": lambda text: sentence_count(text) == n,
        "between": lambda text: n <= word_count(text) <= m,
    }[kind]


def length_limits(rng, kind: str) -> tuple[int, int, str]:
    """The numbers of one condition and how the check names it."""
    if kind == "sentences":
        n = pick(rng, [1, 2, 2, 3, 3, 4])
        return n, n, f"has exactly {COUNTED[n]}"
    n = pick(rng, {"at_most": [12, 15, 20, 25], "at_least": [15, 20, 25, 30], "between": [10, 15, 20]}[kind])
    m = n + pick(rng, [10, 15])
    return (
        n,
        m,
        {
            "at_most": f"has at most {n} words",
            "at_least": f"has at least {n} words",
            "between": f"has {n} to {m} words",
        }[kind],
    )


def length_limit(size: int, repeats: int) -> list[Draft]:
    """Both responses answer the question; only one has the length that was asked for."""
    subset = Subset("length_limit", "instruction_following", size)
    topics, turn = load_bank("topics.toml")["topic"], 0
    while not subset.full:
        topic = shuffled(subset.rng, topics)[0]
        kind, turn = list(LENGTH_ASK)[turn % len(LENGTH_ASK)], turn + 1
        n, m, rule = length_limits(subset.rng, kind)
        shown = COUNTED[n] if kind == "sentences" else n
        asked = pick(subset.rng, LENGTH_ASK[kind]).format(ask=pick(subset.rng, topic["ask"]), n=shown, m=m)
        accepts = length_test(kind, n, m)
        check = f"Tested by code: the chosen response {rule}, the other does not pass."
        for _ in range(2 if turn % repeats == 0 else 1):
            if not subset.full:
                subset.add(asked, split_twins(variants(topic), accepts, subset.want), check, accepts)
    return subset.drafts


def build() -> list[Draft]:
    """All pairs about conditions on the text."""
    return keyword(84, 5) + length_limit(68, 5)
