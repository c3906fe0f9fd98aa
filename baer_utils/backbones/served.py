"""What servers say about a model when they are first met, and the tokenizer that belongs to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import PurePath

from baer_utils.backbones.base import Failure
from baer_utils.backbones.transport import Refused, Transport
from baer_utils.backbones.weights import context_of, source_of

PATH = "/v1/models"
NO_SUCH_PAGE = (404, 405, 501)


@dataclass
class Served:
    """A model as its servers tell it.

    Attributes
    ----------
    root : what they loaded, a Hub id or a folder of theirs; empty where they do not say.
    version : the part of the judge's name that tells it, empty where it says nothing new.
    context : most tokens of a prompt and its answer; 0 where they do not say.
    unreachable : a sentence for each server that did not answer.
    """

    root: str = ""
    version: str = ""
    context: int = 0
    unreachable: list[str] = field(default_factory=list)


def served_model(transport: Transport, model: str) -> Served:
    """Ask every server for a model.

    Raises
    ------
    ConnectionError : when none answers, or one refuses us.
    ValueError : when one does not serve the model, or two have loaded different ones under its name.
    """
    found, served = {}, Served()
    answers = transport.get(PATH)
    for url, answer in answers.items():
        if isinstance(answer, Refused) and answer.status in NO_SUCH_PAGE:
            continue  # a server that does not tell what it serves; its first answer will
        if isinstance(answer, Refused):
            raise ConnectionError(f"a server must let us in; {answer.reason}")
        if isinstance(answer, Failure):
            served.unreachable.append(f"A server did not answer when it was first met: {answer.reason}")
            continue
        models = {m["id"]: m for m in answer.get("data") or [] if isinstance(m, dict) and "id" in m}
        if model not in models:
            raise ValueError(f"{url} must serve {model}; it serves {', '.join(sorted(models)) or 'nothing'}.")
        found[url] = models[model]
    if len(served.unreachable) == len(answers):
        raise ConnectionError(
            f"a server must be there; none answers. {served.unreachable[-1]} Start it, or correct its address."
        )
    roots = {m.get("root") or "" for m in found.values()}
    if len({_last(root) for root in roots}) > 1:
        raise ValueError(f"servers of one judge must serve the same model; {model} is {' and '.join(sorted(roots))}.")
    served.root = min(roots, default="")
    served.version = "" if served.root in ("", model) else f"@{_last(served.root)}"
    served.context = min((m["max_model_len"] for m in found.values() if m.get("max_model_len")), default=0)
    return served


def load_tokenizer(sources: Sequence[str]):
    """The tokenizer from the first of these folders or Hub ids that has one, and the context its model states.

    Raises
    ------
    ValueError : when none has one.
    """
    from transformers import AutoConfig, AutoTokenizer

    for source in filter(None, sources):
        try:
            tokenizer = AutoTokenizer.from_pretrained(**source_of(source))
        except (OSError, ValueError):
            continue
        try:
            config = AutoConfig.from_pretrained(**source_of(source)).get_text_config()
        except (OSError, ValueError):
            config = None
        return tokenizer, context_of(config, tokenizer)
    raise ValueError(
        f"the tokenizer of the served model must be at hand; {' and '.join(filter(None, sources))} is neither a folder "
        "here nor a model of the Hub that can be reached. Add tokenizer=<folder or Hub id>, or use api=chat."
    )


def _last(root: str) -> str:
    """A Hub id as it is; of a folder its name, for folders lie elsewhere on every machine."""
    return PurePath(root).name if root.startswith("/") else root
