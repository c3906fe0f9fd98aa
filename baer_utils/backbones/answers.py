"""The parts that answers of all interfaces have in common, and what becomes of an answer of an unknown shape."""

from __future__ import annotations

from collections.abc import Callable

from baer_utils.backbones.base import Failure


def understood(parse: Callable, choice: dict | Failure, *others):
    """What is read out of a choice; a `Failure` goes through, and a choice of an unknown shape becomes one."""
    if isinstance(choice, Failure):
        return choice
    try:
        return parse(choice, *others)
    except (AttributeError, IndexError, KeyError, OverflowError, TypeError, ValueError) as error:
        return Failure(f"an answer must have the shape of the OpenAI protocol; this one has not ({error!r}).")


def cached(choice: dict) -> int:
    """Prompt tokens that a server says it had already; 0 where it does not say."""
    return ((choice.get("usage") or {}).get("prompt_tokens_details") or {}).get("cached_tokens") or 0


def in_order(answer: dict | Failure, count: int) -> list[dict | Failure]:
    """The choices of an answer by their index, which is the place of their prompt in the request."""
    if isinstance(answer, Failure):
        return [answer] * count
    choices = answer.get("choices")
    choices = choices if isinstance(choices, list) and all(isinstance(c, dict) for c in choices) else []
    by_index = {choice.get("index", 0): choice for choice in choices}
    if len(choices) != count or sorted(by_index) != list(range(count)):
        return [Failure(f"a server must give one choice for each of {count} prompts; it gave {len(choices)}.")] * count
    usage = {"usage": answer.get("usage")} if count == 1 else {}
    return [by_index[n] | usage for n in range(count)]
