"""From a prompt to token ids: the chat template around trusted text, untrusted text inserted as plain tokens.

The template is rendered once per shape of prompt with a placeholder for every untrusted piece, then cut at the
placeholders. Template pieces are tokenised with control tokens alive, untrusted pieces with control tokens disabled,
and the ids are concatenated: a response that spells ``<|im_end|>`` stays six harmless tokens.
"""

from __future__ import annotations

import re
from datetime import datetime
from functools import lru_cache

from jinja2 import TemplateError

from baer_utils.prompts import Prompt

TODAY = datetime(2024, 7, 26)  # what templates that print today's date are told: outputs would change between days
_NOW = re.compile(r"""strftime_now\(\s*(['"])(.*?)\1\s*\)""")
_MARK = "\ue000{}\ue001"
_REMEDY = "Give a model with another template, or take the template out of its tokenizer: it then gets plain text."


class Renderer:
    """Renders prompts for one tokenizer.

    Parameters
    ----------
    tokenizer : a transformers tokenizer.
    thinking : whether templates that know a thinking mode switch it on.
    """

    def __init__(self, tokenizer, *, thinking: bool = False):
        self.tokenizer = tokenizer
        self.thinking = thinking
        # control words that are not flagged special (a thinking tag, say) would survive `split_special_tokens`
        control = {n: t for n, t in tokenizer.added_tokens_decoder.items() if t.special or len(t.content.strip()) > 1}
        words = sorted((t.content for t in control.values() if not t.special), key=len, reverse=True)
        self._control = frozenset(control) - {tokenizer.unk_token_id}
        self._words = re.compile("|".join(map(re.escape, words))) if words else None
        self._frame = lru_cache(maxsize=4096)(self._render_frame)
        self._trusted = lru_cache(maxsize=4096)(self._trusted_ids)

    def ids(self, prompt: Prompt) -> list[int]:
        """Token ids of a whole prompt: template, content, a generation to go on from, stub."""
        return self.ids_and_content(prompt)[0]

    def ids_and_content(self, prompt: Prompt) -> tuple[list[int], int]:
        """Token ids of a whole prompt, and how many of them, from the first, are its shared content."""
        shape = tuple((s.role, s.text if s.trusted else None) for s in prompt.segments)
        untrusted = [n for n, s in enumerate(prompt.segments) if not s.trusted]
        ids: list[int] = []
        content = 0
        for number, (piece, position) in enumerate(zip(self._frame(shape), [*untrusted, None], strict=True), 1):
            ids += piece
            if position is not None:
                text = self.untrusted_ids(prompt.segments[position].text)
                ids += text[: prompt.cut] if position in prompt.responses else text
            if number == prompt.shared:
                content = len(ids)
        return ids + list(prompt.continue_ids or ()) + list(self._trusted(prompt.stub)), content

    def untrusted_ids(self, text: str) -> list[int]:
        """Token ids of somebody else's text; no control token can come out of it.

        Half a surrogate pair, which no tokenizer takes, becomes a question mark. A piece that still yields a control
        token (a tokenizer may find one in other spellings of it) is read character by character.
        """
        pieces = [text.encode("utf-8", "replace").decode()]
        if self._words is not None:
            cuts = [0, *(match.start() + 1 for match in self._words.finditer(pieces[0])), len(pieces[0])]
            pieces = [pieces[0][start:end] for start, end in zip(cuts, cuts[1:], strict=False)]
        ids: list[int] = []
        for piece, found in zip(pieces, self._plain(pieces), strict=True):
            if not self._control.isdisjoint(found):
                found = [token for one in self._plain(list(piece)) for token in one if token not in self._control]
            ids += found
        return ids

    def label_ids(self, labels: tuple[str, str]) -> tuple[list[int], list[int]]:
        """Token ids of two labels: with and without a leading space, each spelling only where both are one token.

        Raises
        ------
        ValueError : when no spelling has one token of its own for each label.
        """
        found: tuple[list[int], list[int]] = ([], [])
        for space in ("", " "):
            ids = [self.untrusted_ids(space + label) for label in labels]
            if all(len(i) == 1 for i in ids):
                for known, (token,) in zip(found, ids, strict=True):
                    known += [token] if token not in known else []
        if not found[0] or set(found[0]) & set(found[1]):
            raise ValueError(f"labels must be single, distinct tokens of the judge; {labels} are not. Choose others.")
        return found

    def _plain(self, pieces: list[str]) -> list[list[int]]:
        return self.tokenizer(pieces, add_special_tokens=False, split_special_tokens=True)["input_ids"]

    def _trusted_ids(self, text: str) -> tuple[int, ...]:
        return tuple(self.tokenizer(text, add_special_tokens=False)["input_ids"]) if text else ()

    def _render_frame(self, shape: tuple) -> list[tuple[int, ...]]:
        messages: list[dict[str, str]] = []
        holes = 0
        for role, text in shape:
            if not messages or messages[-1]["role"] != role:
                messages.append({"role": role, "content": ""})
            messages[-1]["content"] += _MARK.format(holes) if text is None else text
            holes += text is None
        # with a group, split returns the numbers of the placeholders between the pieces
        pieces = re.split(_MARK.format(r"(\d+)"), self._conversation(messages))
        if pieces[1::2] != [str(n) for n in range(holes)]:
            raise ValueError(
                f"a chat template must show every piece of content once, in order; of {holes} it showed "
                f"{', '.join(pieces[1::2]) or 'none'}. {_REMEDY}"
            )
        frame = [self._trusted(piece) for piece in pieces[::2]]
        if self.tokenizer.chat_template is None and self.tokenizer.bos_token_id is not None:
            first = self.tokenizer("", add_special_tokens=True)["input_ids"][:1]
            frame[0] = (*(token for token in first if token == self.tokenizer.bos_token_id), *frame[0])
        return frame

    def _conversation(self, messages: list[dict[str, str]]) -> str:
        """The template around the messages; a model without a system role gets that text at the head of the user's."""
        if self.tokenizer.chat_template is None:
            return "\n\n".join(message["content"] for message in messages) + "\n\n"
        attempts = [messages]
        if messages[0]["role"] == "system" and len(messages) > 1:
            joined = f"{messages[0]['content']}\n\n{messages[1]['content']}"
            attempts.append([{**messages[1], "content": joined}, *messages[2:]])
        for attempt in attempts:
            try:
                text = self._template(attempt)
            except TemplateError as error:
                reason = f"it says: {error}"
                continue
            if all(message["content"].strip() in text for message in attempt):
                return text
            reason = "it leaves some out or changes it"
        raise ValueError(f"a chat template must show system and user content as it is; {reason}. {_REMEDY}")

    def _template(self, messages: list[dict[str, str]]) -> str:
        template = _NOW.sub(lambda call: repr(TODAY.strftime(call[2])), self.tokenizer.get_chat_template())
        return self.tokenizer.apply_chat_template(
            messages, chat_template=template, tokenize=False, add_generation_prompt=True,
            enable_thinking=self.thinking, date_string=TODAY.strftime("%d %b %Y"),
        )  # fmt: skip
