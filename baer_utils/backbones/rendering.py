"""From a prompt to token ids: the chat template around trusted text, untrusted text inserted as plain tokens.

The template is rendered once per shape of prompt with a placeholder for every untrusted piece, then cut at the
placeholders. Template pieces are tokenised with control tokens alive, untrusted pieces with control tokens disabled,
and the ids are concatenated: a response that spells ``<|im_end|>`` stays six harmless tokens.
"""

from __future__ import annotations

import re
from functools import lru_cache

from baer_utils.prompts import Prompt

DATE = "26 Jul 2024"  # some templates print today's date unless told one, and outputs would change between days
_MARK = "\ue000{}\ue001"


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
        words = [
            t.content for t in tokenizer.added_tokens_decoder.values() if not t.special and len(t.content.strip()) > 1
        ]
        self._words = (
            re.compile("|".join(re.escape(w) for w in sorted(words, key=len, reverse=True))) if words else None
        )
        self._frame = lru_cache(maxsize=4096)(self._render_frame)
        self._trusted = lru_cache(maxsize=4096)(self._trusted_ids)

    def ids(self, prompt: Prompt) -> list[int]:
        """Token ids of a whole prompt: template, content, a generation to go on from, stub."""
        shape = tuple((s.role, s.text if s.trusted else None) for s in prompt.segments)
        untrusted = [n for n, s in enumerate(prompt.segments) if not s.trusted]
        ids: list[int] = []
        for piece, position in zip(self._frame(shape), [*untrusted, None], strict=True):
            ids += piece
            if position is not None:
                content = self.untrusted_ids(prompt.segments[position].text)
                ids += content[: prompt.cut] if position in prompt.responses else content
        return ids + list(prompt.continue_ids or ()) + list(self._trusted(prompt.stub))

    def untrusted_ids(self, text: str) -> list[int]:
        """Token ids of somebody else's text; no control token can come out of it."""
        pieces = [text]
        if self._words is not None:
            cuts = [0, *(match.start() + 1 for match in self._words.finditer(text)), len(text)]
            pieces = [text[start:end] for start, end in zip(cuts, cuts[1:], strict=False)]
        encoded = self.tokenizer(pieces, add_special_tokens=False, split_special_tokens=True)["input_ids"]
        return [token for piece in encoded for token in piece]

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
        pieces = re.split(_MARK.format(r"\d+"), self._template(messages))
        if len(pieces) != holes + 1:
            raise ValueError(
                f"a chat template must show every piece of content once; it showed {len(pieces) - 1} of {holes}. "
                "Give a model whose template keeps system and user content as it is."
            )
        frame = [self._trusted(piece) for piece in pieces]
        if self.tokenizer.chat_template is None and self.tokenizer.bos_token_id is not None:
            frame[0] = (*self.tokenizer("", add_special_tokens=True)["input_ids"], *frame[0])
        return frame

    def _template(self, messages: list[dict[str, str]]) -> str:
        if self.tokenizer.chat_template is None:
            return "\n\n".join(message["content"] for message in messages) + "\n\n"
        return self.tokenizer.apply_chat_template(
            messages, tokenize=False, add_generation_prompt=True, enable_thinking=self.thinking, date_string=DATE
        )
