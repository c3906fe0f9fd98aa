"""Where answers come from: `open_backbone` turns one line of text into a judge."""

from __future__ import annotations

from urllib.parse import parse_qsl

from baer_utils.backbones.base import Backbone

FORMS = (
    "replay:<name>, smollm2-135m, hf:<Hub id or folder>[?dtype=bfloat16&quantization=4bit&thinking=true], or "
    "server:<url>[,<url>]#<model>[?api=chat]"
)
LOCAL_OPTIONS = ("dtype", "device", "quantization", "thinking")
SERVER_OPTIONS = ("api", "tokenizer", "context", "thinking")


def open_backbone(text: str) -> Backbone:
    """Open a judge by name; a local model loads its weights at its first call, not here.

    Parameters
    ----------
    text : ``replay:<name>`` (recorded answers), ``smollm2-135m`` (the embedded judge), or
        ``hf:<Hub id or folder>[?dtype=float32&device=cpu&quantization=4bit&thinking=true]`` (any causal language
        model; the embedded judge takes the same options),
        ``server:<url>[,<url>]#<model>[?api=chat&tokenizer=<folder or Hub id>&context=4096]`` (a model behind servers
        that speak the OpenAI protocol; the key, if they want one, is taken from BAER_API_KEY).

    Raises
    ------
    ValueError : for a name of no known form, or an option that the form does not have.
    ConnectionError : when none of the servers answers.
    """
    kind, _, rest = text.partition(":")
    if kind == "replay" and rest:
        from baer_utils.backbones.replay import open_replay

        return open_replay(rest)
    if text.partition("?")[0] == "smollm2-135m":
        from baer_utils.backbones.embedded import NAME, REVISION, ensure_model
        from baer_utils.backbones.local import TransformersBackbone

        return TransformersBackbone(ensure_model(), label=NAME, revision=REVISION, **_options(text))
    if kind == "hf" and rest.partition("?")[0]:
        from baer_utils.backbones.local import TransformersBackbone

        return TransformersBackbone(rest.partition("?")[0], **_options(text))
    urls, _, model = rest.partition("#")
    if kind == "server" and urls and model.partition("?")[0]:
        from baer_utils.backbones.server import ServerBackbone

        return ServerBackbone(urls.split(","), model.partition("?")[0], **_options(model, SERVER_OPTIONS))
    raise ValueError(f"BACKBONE must be {FORMS}; it is {text!r}.")


def _options(text: str, known: tuple[str, ...] = LOCAL_OPTIONS) -> dict:
    options = dict(parse_qsl(text.partition("?")[2], keep_blank_values=True))
    unknown = sorted(set(options) - set(known))
    if unknown:
        raise ValueError(f"the options here are {', '.join(known)}; {text!r} has {', '.join(unknown)}.")
    if not options.get("context", "1").isdigit():
        raise ValueError(f"context must be a number of tokens; {text!r} has {options['context']!r}.")
    if "context" in options:
        options["context"] = int(options["context"])
    if "thinking" in options:
        if options["thinking"] not in ("true", "false"):
            raise ValueError(f"thinking must be true or false; {text!r} has {options['thinking']!r}.")
        options["thinking"] = options["thinking"] == "true"
    return options
