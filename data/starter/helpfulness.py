"""Answers on and off the topic, complete and cut off, and in the language that was asked for."""

from __future__ import annotations

import re

from common import Draft, Subset, cross, load_bank, pick, sentence, series, shuffled

WORDS = {
    "English": "the is are it they you can in and to of we not",
    "Spanish": "el los las una y por lo puedes podemos del hace hacen necesitas gusta carta",
    "French": "le les une des du et il elle elles nous peut dans pour avec sur ton tu au l est",
    "German": "der die das ist ein eine einen und im man den mit wir auf nach kann ohne dort du nicht",
}
LANGUAGE_ASK = [
    "Answer in {l}: {ask}",
    "{ask} Please reply in {l}.",
    "{ask} (Answer in {l}, please.)",
    "I am learning {l}, so answer me in {l}. {ask}",
]
LIST_ASK = ["Give me {c} tips for {g}.", "What are {c} tips for {g}?", "I need {c} pieces of advice on {g}."]
LONG_INTROS = [
    "Of course! Here are {c} tips for {g} that many people find useful:",
    "Sure, these {c} tips for {g} should help you:",
    "Gladly. I have collected {c} tips for {g}:",
]
SHORT_INTROS = ["", "Here are {c} tips:", "My {c} tips:"]
HANGING = [
    "a",
    "an",
    "and",
    "are",
    "as",
    "at",
    "because",
    "by",
    "for",
    "from",
    "if",
    "in",
    "into",
    "is",
    "it",
    "its",
    "no",
    "not",
    "of",
    "on",
    "one",
    "or",
    "since",
    "so",
    "that",
    "the",
    "their",
    "then",
    "to",
    "until",
    "what",
    "when",
    "where",
    "which",
    "while",
    "with",
    "without",
    "you",
    "your",
]
COUNT = {3: "three", 4: "four"}


def is_about(text: str, topic: dict) -> bool:
    """Whether a text holds one of the words that belong to a topic."""
    return any(re.search(rf"\b{re.escape(key)}", text.lower()) for key in topic["keys"])


def on_topic(size: int, repeats: int) -> list[Draft]:
    """An answer to the question against an answer to another one, half of the time from the same part of life."""
    subset, bank = Subset("on_topic", "helpfulness", size), load_bank("topics.toml")
    topics, akin = bank["topic"], [sorted(pair) for pair in bank["akin"]]
    questions = [(topic, ask) for topic in topics for ask in topic["ask"]]
    while not subset.full:
        for turn, (topic, ask) in enumerate(shuffled(subset.rng, questions)):
            others = [
                other
                for other in topics
                if other is not topic
                and sorted([other["id"], topic["id"]]) not in akin
                and (other["family"] == topic["family"]) == (turn % 2 == 0)
            ]
            strays = [text for other in others for text in other["answers"] if not is_about(text, topic)]
            check = f"Tested by code: only the chosen response holds a word of the topic ({', '.join(topic['keys'])})."
            for _ in range(2 if turn % repeats == 0 else 1):
                subset.add(ask, cross(topic["answers"], strays), check, lambda text, topic=topic: is_about(text, topic))
    return subset.drafts


def cut(rng, text: str) -> str:
    """The text up to a word in its second half that cannot end a sentence, or else to any word that ends none."""
    words = text.split()
    places = [k for k in range(max(3, len(words) // 2), len(words)) if words[k - 1][-1] not in ".,:"]
    hanging = [k for k in places if words[k - 1] in HANGING]
    return " ".join(words[: pick(rng, hanging or places)])


def ends_whole(whole: list[str]):
    """Accepts a text that is one of the complete ones."""
    return lambda text: text in whole


def prose_pair(subset: Subset, topic: dict, ask: str) -> None:
    """A complete answer against one that stops in the middle of a sentence."""
    whole = topic["answers"]
    check = "Compared by code: the other response is the beginning of a complete answer and stops before its end."
    subset.add(ask, cross(whole, [cut(subset.rng, text) for text in whole]), check, ends_whole(whole))


def list_pair(subset: Subset, topic: dict, style: int) -> None:
    """All the tips that were asked for against a list that stops early, sometimes after a whole item."""
    rng = subset.rng
    items = shuffled(rng, topic["items"])[: pick(rng, [3, 4])]
    words = {"c": COUNT[len(items)], "g": topic["goal"]}

    def write(kept: list[str], intro: str, tail: str = "") -> str:
        start = intro.format(**words)
        if style == 0:
            body = "\n".join(f"- {item}" for item in kept) + (f"\n- {tail}" if tail else "")
            return f"{start}\n{body}".strip()
        if style == 1:
            lines = [f"{k}. {item.capitalize()}." for k, item in enumerate(kept, 1)]
            return "\n".join(
                [*([start] if start else []), *lines, *([f"{len(kept) + 1}. {tail.capitalize()}"] if tail else [])]
            )
        body = f"{', '.join(kept)}, {tail}" if tail else f"{series(kept)}."
        return sentence(f"{start} {body}".strip())

    fewer = items[: len(items) - 1 - rng.randrange(2)]
    tail = pick(rng, ["", items[len(fewer)].rsplit(" ", 1)[0]])
    intros = [pick(rng, SHORT_INTROS), pick(rng, LONG_INTROS)]
    twins = cross([write(items, intro) for intro in intros], [write(fewer, intro, tail) for intro in intros])
    check = f"Counted by code: all {len(items)} tips are there in the chosen response, fewer in the other."
    subset.add(
        pick(rng, LIST_ASK).format(**words), twins, check, lambda text: all(item in text.lower() for item in items)
    )


def complete(size: int) -> list[Draft]:
    """Complete against cut-off answers, in prose and as lists."""
    subset, topics, turn = Subset("complete", "helpfulness", size), load_bank("topics.toml")["topic"], 0
    while not subset.full:
        for topic in shuffled(subset.rng, topics):
            turn += 1
            if turn % 5 < 2:
                list_pair(subset, topic, turn % 3)
            else:
                prose_pair(subset, topic, pick(subset.rng, topic["ask"]))
    return subset.drafts


def language_of(text: str) -> str:
    """The language whose small words occur most often in the text."""
    words = re.findall(r"[^\W\d_]+", text.lower())
    scores = {name: sum(word in known.split() for word in words) for name, known in WORDS.items()}
    ranked = sorted(scores, key=lambda name: -scores[name])
    if scores[ranked[0]] == scores[ranked[1]]:
        raise ValueError(f"the language of a text must be clear from its small words; {text!r} gives {scores}")
    return ranked[0]


def language(size: int, repeats: int) -> list[Draft]:
    """The same content in the language that was asked for and in another one."""
    subset, items = Subset("language", "instruction_following", size), load_bank("languages.toml")["item"]
    names = list(WORDS)
    questions = [(item, names[(k + shift) % 4]) for shift in range(4) for k, item in enumerate(items)]
    for turn, (item, name) in enumerate(questions):
        others = [text for other in names if other != name for text in item[other]]
        asked = pick(subset.rng, LANGUAGE_ASK).format(l=name, ask=item["ask"])
        check = f"Detected by code from small words: the chosen response is in {name}, the other is not."
        for _ in range(2 if turn % repeats == 0 else 1):
            subset.add(asked, cross(item[name], others), check, lambda text, name=name: language_of(text) == name)
    return subset.drafts


def build() -> list[Draft]:
    """All pairs about doing what a helpful answer has to do."""
    return on_topic(96, 4) + complete(88) + language(68, 5)
