"""From a prompt to token ids: the chat template around trusted text, untrusted text inserted as plain tokens.

The template is rendered once per shape of prompt with a placeholder for every untrusted piece, then cut at the
placeholders. Template pieces are tokenised with control tokens alive, untrusted pieces with control tokens disabled,
and the ids are concatenated: a response that spells ``<|im_end|>`` stays six harmless tokens.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from functools import lru_cache

from jinja2 import TemplateError

from baer_utils.prompts import THINKING, Prompt, open_thought

TODAY = datetime(2024, 7, 26)  # what templates that print today's date are told: outputs would change between days
_NOW = re.compile(r"""strftime_now\(\s*(['"])(.*?)\1\s*\)""")
_MARK = "\ue000{}\ue001"
_REMEDY = "Give a model with another template, or take the template out of its tokenizer: it then gets plain text."


class Renderer:
    """Renders prompts for one tokenizer.

    Parameters
    ----------
    tokenizer : a transformers tokenizer.
    thinking : whether the judge thinks before it writes freely. Where its answer is begun for it, to be read after a
        stub or measured as a likelihood, it never does: a thought that a template opens all the same is closed.

    Raises
    ------
    ValueError : for thinking with a template that has no thinking mode.
    """

    def __init__(self, tokenizer, *, thinking: bool = False):
        self.tokenizer = tokenizer
        self.thinking = thinking
        # control words that are not flagged special (a thinking tag, say) would survive `split_special_tokens`
        control = {n: t for n, t in tokenizer.added_tokens_decoder.items() if t.special or len(t.content.strip()) > 1}
        words = sorted((t.content for t in control.values() if not t.special), key=len, reverse=True)
        self._control = frozenset(control) - {tokenizer.unk_token_id}
        self._words = re.compile("|".join(map(re.escape, words))) if words else None
        marks = {mark for pair in THINKING for mark in pair}
        self._dropped = {n for n, t in control.items() if t.special and t.content not in marks}
        prefixed = tokenizer.convert_ids_to_tokens(tokenizer("a", add_special_tokens=False)["input_ids"])[0] != "a"
        self._anchor = "\n" if prefixed else ""
        self._frame = lru_cache(maxsize=4096)(self._render_frame)
        self._trusted = lru_cache(maxsize=4096)(self._trusted_ids)
        self._untrusted = lru_cache(maxsize=256)(self._untrusted_ids)  # the texts of a block of pairs
        if thinking:
            self._require_a_thinking_mode()

    def ids(self, prompt: Prompt) -> list[int]:
        """Token ids of a whole prompt: template, content, a generation to go on from, stub."""
        return self.ids_and_shared(prompt)[0]

    def ids_and_shared(self, prompt: Prompt) -> tuple[list[int], tuple[int, ...]]:
        """Token ids of a whole prompt, and how many of them come before the end of each piece of its content."""
        shape = tuple((s.role, s.text if s.trusted else None) for s in prompt.segments)
        untrusted = [n for n, s in enumerate(prompt.segments) if not s.trusted]
        ids: list[int] = []
        shared = []
        frame = self._frame(shape, self.thinking and prompt.free)
        for number, (piece, position) in enumerate(zip(frame, [*untrusted, None], strict=True), 1):
            ids += piece
            if position is not None:
                text = self.untrusted_ids(prompt.segments[position].text)
                ids += text[: prompt.cut] if position in prompt.responses else text
            if number <= prompt.shared:
                shared.append(len(ids))
        if prompt.continue_ids is not None:
            ids += prompt.continue_ids
            thought = open_thought(self.tokenizer.decode([*frame[-1], *prompt.continue_ids]))
            ids += self._trusted(_ending(thought).rstrip())  # a thought that ran out of budget ends before the stub
        return ids + list(self._trusted(prompt.stub)), tuple(shared)

    def text(self, ids: Sequence[int]) -> str:
        """Text of generated ids without control tokens, but with the marks of a thought."""
        return self.tokenizer.decode([token for token in ids if token not in self._dropped], skip_special_tokens=False)

    def untrusted_ids(self, text: str) -> list[int]:
        """Token ids of somebody else's text; no control token can come out of it.

        Half a surrogate pair, which no tokenizer takes, becomes a question mark. A piece that still yields a control
        token (a tokenizer may find one in other spellings of it) is read character by character.
        """
        return list(self._untrusted(text))

    def _untrusted_ids(self, text: str) -> tuple[int, ...]:
        pieces = [text.encode("utf-8", "replace").decode()]
        if self._words is not None:
            cuts = [0, *(match.start() + 1 for match in self._words.finditer(pieces[0])), len(pieces[0])]
            pieces = [pieces[0][start:end] for start, end in zip(cuts, cuts[1:], strict=False)]
        ids: list[int] = []
        for piece, found in zip(pieces, self._plain(pieces), strict=True):
            if not self._control.isdisjoint(found):
                found = [token for one in self._plain(list(piece)) for token in one if token not in self._control]
            ids += found
        return tuple(ids)

    def _plain(self, pieces: list[str]) -> list[list[int]]:
        return self._tokens(pieces, split_special_tokens=True)

    def _trusted_ids(self, text: str) -> tuple[int, ...]:
        return tuple(self._tokens([text])[0]) if text else ()

    def _tokens(self, pieces: list[str], **options) -> list[list[int]]:
        """Token ids of pieces from the middle of a text.

        Some tokenizers put a space before whatever they are given; it belongs to a beginning only. There a piece is
        tokenised behind a line break, whose tokens are taken away, unless it makes one token with the piece.
        """
        anchor, *rows = self.tokenizer(
            [self._anchor, *(self._anchor + piece for piece in pieces)], add_special_tokens=False, **options
        )["input_ids"]
        if any(row[: len(anchor)] != anchor for row in rows):
            return self.tokenizer(pieces, add_special_tokens=False, **options)["input_ids"]
        return [row[len(anchor) :] for row in rows]

    def _render_frame(self, shape: tuple, thinking: bool) -> list[tuple[int, ...]]:
        messages: list[dict[str, str]] = []
        holes = 0
        for role, text in shape:
            if not messages or messages[-1]["role"] != role:
                messages.append({"role": role, "content": ""})
            messages[-1]["content"] += _MARK.format(holes) if text is None else text
            holes += text is None
        # with a group, split returns the numbers of the placeholders between the pieces
        text = self._conversation(messages, thinking)
        pieces = re.split(_MARK.format(r"(\d+)"), text)
        if pieces[1::2] != [str(n) for n in range(holes)]:
            raise ValueError(
                f"a chat template must show every piece of content once, in order; of {holes} it showed "
                f"{', '.join(pieces[1::2]) or 'none'}. {_REMEDY}"
            )
        if not thinking:
            pieces[-1] += _ending(open_thought(pieces[-1]))
        first, *rest = pieces[::2]
        frame = [tuple(self.tokenizer(first, add_special_tokens=False)["input_ids"]), *map(self._trusted, rest)]
        begins = self.tokenizer("", add_special_tokens=True)["input_ids"][:1]  # what this tokenizer begins texts with
        if begins == [self.tokenizer.bos_token_id] != list(frame[0][:1]):
            frame[0] = (*begins, *frame[0])  # once, whether the template writes it too or not
        return frame

    def _require_a_thinking_mode(self) -> None:
        asked = [{"role": "user", "content": "?"}]
        on, off = (self._conversation(asked, thinking) for thinking in (True, False))
        if on == off and not open_thought(on):
            raise ValueError(
                "thinking=True needs a chat template with a thinking mode; this one renders the same prompt with "
                "enable_thinking on and off, and opens no thought. Leave thinking out, or give the tokenizer the "
                "template that the model was trained with."
            )

    def _conversation(self, messages: list[dict[str, str]], thinking: bool) -> str:
        """The template around the messages; a model without a system role gets that text at the head of the user's."""
        if self.tokenizer.chat_template is None:
            return "\n\n".join(message["content"] for message in messages) + "\n\n"
        attempts = [messages]
        if messages[0]["role"] == "system" and len(messages) > 1:
            joined = f"{messages[0]['content']}\n\n{messages[1]['content']}"
            attempts.append([{**messages[1], "content": joined}, *messages[2:]])
        for attempt in attempts:
            try:
                text = self._template(attempt, thinking)
            except TemplateError as error:
                reason = f"it says: {error}"
                continue
            if all(message["content"].strip() in text for message in attempt):
                return text
            reason = "it leaves some out or changes it"
        raise ValueError(f"a chat template must show system and user content as it is; {reason}. {_REMEDY}")

    def _template(self, messages: list[dict[str, str]], thinking: bool) -> str:
        template = _NOW.sub(lambda call: repr(TODAY.strftime(call[2])), self.tokenizer.get_chat_template())
        return self.tokenizer.apply_chat_template(
            messages, chat_template=template, tokenize=False, add_generation_prompt=True,
            enable_thinking=thinking, thinking=thinking, date_string=TODAY.strftime("%d %b %Y"),
        )  # fmt: skip


def _ending(mark: str) -> str:
    """What ends a thought, before the answer."""
    return f"\n{mark}\n\n" if mark else ""
