"""What each kind of server can be asked; knows no server and makes no call."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Capability:
    """What one interface of a server offers.

    Attributes
    ----------
    read : "exact" where the probability of every label comes back; "bounds" where only the likeliest tokens are listed,
        so that a label may be missing from them.
    generate, likelihood : whether texts are written, and whether the likelihood of a given text can be asked.
    token_ids : whether prompts are token ids: our own rendering, in which no response can act as a control token.
    seeds : whether a sampled text can be asked for again.
    """

    read: str
    generate: bool
    likelihood: bool
    token_ids: bool
    seeds: bool


CAPABILITIES = {
    "completions": Capability(read="exact", generate=True, likelihood=True, token_ids=True, seeds=True),
    "chat": Capability(read="bounds", generate=True, likelihood=False, token_ids=False, seeds=True),
}


def verbs_of(api: str) -> frozenset[str]:
    """The verbs that servers with this interface answer: some of "read", "generate", "likelihood"."""
    can = CAPABILITIES[api]
    offered = {"read": bool(can.read), "generate": can.generate, "likelihood": can.likelihood}
    return frozenset(verb for verb, offers in offered.items() if offers)


def check_api(api: str) -> Capability:
    """The row of `CAPABILITIES`.

    Raises
    ------
    ValueError : for an interface that is not in the table.
    """
    if api not in CAPABILITIES:
        raise ValueError(f"api must be one of {', '.join(CAPABILITIES)}; it is {api!r}.")
    return CAPABILITIES[api]
