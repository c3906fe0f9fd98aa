"""Which tokens are a label, and which of them a model really says: the probe of a judge at load time.

A letter may be the token "A" or the token " A", and which one follows a chat template and a stub is the model's habit.
Both are counted where both labels have them. The probe asks a small fixed pair in every way the bank reads, and shows
where the probability goes, so that a judge that writes its letter in a third way is seen before its reads are believed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
from numpy.typing import NDArray

from baer_utils.prompts import (
    AFTER_THINKING,
    CORRECTNESS,
    LABELS,
    Key,
    Prompt,
    one_claim,
    one_response,
    thought_through,
    two_responses,
)

# how vocabularies write the space that a token brings: none, byte-level, sentencepiece
BEFORE = ("", "Ġ", "▁")
LOOKED_AT = 50  # likeliest next tokens that are searched for other ways to write a label


def label_tokens(tokenizer, labels: Sequence[str]) -> tuple[list[int], ...]:
    """Token ids of each label, with and without a leading space: each spelling only where it is one token of all.

    Looked up in the vocabulary, because a tokenizer that puts a space before every text (sentencepiece) never gives the
    bare spelling when it is asked to tokenise a label; tokenised where the vocabulary writes in another way.

    Raises
    ------
    ValueError : when no spelling is a single token of every label, or two labels share one.
    """
    found: tuple[list[int], ...] = tuple([] for _ in labels)
    for before in BEFORE:
        _add(found, [_whole(tokenizer, label, before + label) for label in labels])
    for space in ("", " "):
        _add(found, [_only(tokenizer(space + label, add_special_tokens=False)["input_ids"]) for label in labels])
    if not found[0] or len({token for ids in found for token in ids}) < sum(map(len, found)):
        raise ValueError(
            f"labels must be single, distinct tokens of the judge; {', '.join(map(repr, labels))} are not. "
            "Choose others."
        )
    return found


def _whole(tokenizer, label: str, piece: str) -> int | None:
    """The token that the vocabulary writes as `piece`, if it is the label and nothing else."""
    token = tokenizer.convert_tokens_to_ids(piece)
    known = token is not None and token != tokenizer.unk_token_id
    return token if known and tokenizer.decode([token]).strip() == label else None


def _only(ids: Sequence[int]) -> int | None:
    return ids[0] if len(ids) == 1 else None


def _add(found: tuple[list[int], ...], tokens: Sequence[int | None]) -> None:
    if None not in tokens:
        for known, token in zip(found, tokens, strict=True):
            known += [token] if token not in known else []


@dataclass(frozen=True)
class LabelProbe:
    """What a judge says where its label is read, after one stub, about a small fixed pair.

    Attributes
    ----------
    stub : the text right before the label.
    counted : probability of every token that counts as a label, by the token's text.
    other : the likeliest token that does not count, and its probability.
    missed : the likeliest token that writes a label in a way that does not count, where it is likelier than every
        token that does; else None.
    """

    stub: str
    counted: dict[str, float]
    other: tuple[str, float]
    missed: tuple[str, float] | None

    def __str__(self) -> str:
        said = ", ".join(f"{text!r} {share:.1%}" for text, share in self.counted.items())
        text, share = self.other
        return f"After {self.stub.strip()!r} the labels are {said}; likeliest beside them: {text!r} {share:.1%}."

    @property
    def warning(self) -> str:
        """A sentence where the judge writes its label as a token that is not counted; else empty."""
        if self.missed is None:
            return ""
        text, share = self.missed
        return (
            f"After {self.stub.strip()!r} the judge writes its label as {text!r} ({share:.1%}), which is not one of "
            f"the tokens that count ({', '.join(map(repr, self.counted))}). Use another stub or other labels."
        )


def probed_prompts() -> list[tuple[Prompt, tuple[str, str]]]:
    """One prompt for every stub that the bank reads after, about a small fixed pair, and its labels."""
    pair = SimpleNamespace(
        pair_id="probe", instruction="What is 2 plus 2?", response_a="It is 4.", response_b="It is 5."
    )
    both, alone = Key("probe", "probe", "ab"), Key("probe", "probe", "a")
    thought = two_responses(pair, "ab", "deliberate", both), one_response(pair, "a", "audit", alone)
    return [
        (two_responses(pair, "ab", "direct", both), LABELS),
        (thought_through(thought[0], (), AFTER_THINKING["deliberate"], both), LABELS),
        (one_response(pair, "a", "pointwise", alone), CORRECTNESS),
        (thought_through(thought[1], (), AFTER_THINKING["audit"], alone), CORRECTNESS),
        (one_claim(pair, pair.response_a, alone), CORRECTNESS),
    ]


def probe(tokenizer, stub: str, labels: Sequence[str], probability: NDArray) -> LabelProbe:
    """Where the probability of the next token goes.

    Parameters
    ----------
    tokenizer : the judge's.
    stub, labels : what was asked.
    probability : one value per token of the vocabulary, after the last token of the prompt.
    """
    ids = [token for spellings in zip(*label_tokens(tokenizer, labels), strict=True) for token in spellings]
    order = np.argsort(-probability, kind="stable")[: LOOKED_AT + len(ids)]
    others = [(_shown(tokenizer, token), float(probability[token])) for token in order.tolist() if token not in ids]
    counted = {_shown(tokenizer, token): float(probability[token]) for token in ids}
    missed = next(((text, share) for text, share in others if _writes(text, labels)), None)
    if missed and missed[1] <= max(counted.values()):
        missed = None
    return LabelProbe(stub, counted, others[0], missed)


def _shown(tokenizer, token: int) -> str:
    """Text of a token with the space it brings, which decoding alone would drop at the beginning of a text."""
    piece, text = tokenizer.convert_ids_to_tokens(token) or "", tokenizer.decode([token])
    return f" {text}" if piece.startswith(BEFORE[1:]) and not text.startswith(" ") else text


def _writes(text: str, labels: Sequence[str]) -> bool:
    """Whether a token is a label in another case, or between other marks than a space."""
    return re.sub(r"[\W_]", "", text).lower() in {label.lower() for label in labels}
