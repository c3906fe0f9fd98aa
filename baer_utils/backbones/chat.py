"""The chat interface in both directions, for servers that take messages only: nothing is known of their tokens.

What the local judge does inside the assistant's turn is asked for in words here, and three bytes of text stand for
one token wherever lengths are compared (English has four or more to a token, most other scripts about three): a prompt
that does not fit after all is refused by the server and counted. The server renders, so a response that spells a
control word of the served model may act as one; a server that takes token ids is better asked with api=completions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from baer_utils.backbones.base import Failure
from baer_utils.prompts import Prompt

UNIT = 3  # bytes of UTF-8 that count as one token
LISTED = 20  # likeliest tokens asked for; the most that servers give
GO_ON = "Go on right after these words, without repeating them: "


class Chat:
    """Prompts to request bodies and answers to readings; `ids` of a text are its bytes, three to a number."""

    path = "/v1/chat/completions"
    rows_at_once = 1
    retokenised = 0

    def units(self, prompt: Prompt) -> list[int]:
        """Numbers that name the messages, as many as they have tokens or more."""
        return pack("".join(f"{m['role']}:{len(m['content'])}:{m['content']}" for m in self.row(prompt)))

    def count(self, text: str) -> int:
        """Tokens of a text, estimated."""
        return len(pack(text))

    def body(self, rows: Sequence[list[dict]]) -> dict:
        """The part of a request that says what is asked about."""
        return {"messages": rows[0]}

    def row(self, prompt: Prompt) -> list[dict[str, str]]:
        """The messages of a prompt: its own, the judge's earlier text, and in words what its answer goes on from."""
        messages: list[dict[str, str]] = []
        for number, (role, text, _) in enumerate(prompt.segments):
            if prompt.cut is not None and number in prompt.responses:
                text = unpack(pack(text)[: prompt.cut]) if self.count(text) > prompt.cut else text
            if not messages or messages[-1]["role"] != role:
                messages.append({"role": role, "content": ""})
            messages[-1]["content"] += text.encode("utf-8", "replace").decode()
        stub = f'{GO_ON}"{prompt.stub.strip()}"' if prompt.stub else ""
        if prompt.continue_ids is not None:
            return [*messages, {"role": "assistant", "content": unpack(prompt.continue_ids)},
                    {"role": "user", "content": stub}]  # fmt: skip
        messages[-1]["content"] += f"\n\n{stub}" if stub else ""
        return messages

    def tokens(self, row: list[dict], choice: dict, ids: Sequence[int]) -> tuple[int, int]:
        """Tokens of a prompt and of a new text, as the server counts them; estimated where it does not."""
        usage = choice.get("usage") or {}
        prompt = usage.get("prompt_tokens") or sum(self.count(message["content"]) for message in row)
        return prompt, (usage.get("completion_tokens") or len(ids)) if ids else 0

    def read_settings(self, labels: tuple[str, str]) -> dict:
        """One token, and the likeliest ones in its place."""
        return {"max_tokens": 1, "temperature": 0.0, "logprobs": True, "top_logprobs": LISTED}

    def side(self, labels: tuple[str, str]) -> Callable[[str], int | None]:
        """From a listed token to the label that alone begins with it (``in`` for "incorrect"), or None."""

        def side_of(token: str) -> int | None:
            text = token.removeprefix(" ")
            begun = [number for number, label in enumerate(labels) if text and label.startswith(text)]
            return begun[0] if len(begun) == 1 else None

        return side_of

    def listed(self, choice: dict, labels: tuple[str, str]) -> dict[str, float] | Failure:
        """Log-probabilities of the tokens that a choice lists for its first position."""
        try:
            first = choice["logprobs"]["content"][0]
            found = {entry["token"]: float(entry["logprob"]) for entry in [*first["top_logprobs"], first]}
            return {token: value for token, value in found.items() if not math.isnan(value)}
        except (KeyError, TypeError, IndexError):
            return Failure("a server must give log-probabilities for reads; this answer has none. Leave out experts "
                           "that read, or use another server.")  # fmt: skip

    def text_settings(self, budget: int, temperature: float, top_p: float) -> dict:
        """A text of at most so many tokens."""
        return {"max_tokens": budget, "temperature": temperature, "top_p": top_p}

    def text(self, choice: dict, prompt: Prompt) -> tuple[str, list[int], str] | Failure:
        """A text, its ids, and why it ended; words that it was to go on from are left out where it repeats them."""
        reason, written = choice.get("finish_reason"), (choice.get("message") or {}).get("content") or ""
        if reason not in ("stop", "length"):
            return Failure(f'a text must end with "stop" or "length"; the server says {reason!r}.')
        text = written.lstrip().removeprefix(prompt.stub.strip()) if prompt.stub else written
        return text, pack(text), reason


def pack(text: str) -> list[int]:
    """A text as numbers, three bytes of UTF-8 each, filled up with spaces."""
    data = text.encode("utf-8", "replace")
    data += b" " * (-len(data) % UNIT)
    return [int.from_bytes(data[k : k + UNIT], "big") for k in range(0, len(data), UNIT)]


def unpack(units: Sequence[int]) -> str:
    """The text of `pack`; a character cut in two at the end is left out."""
    return b"".join(unit.to_bytes(UNIT, "big") for unit in units).decode("utf-8", "ignore")
