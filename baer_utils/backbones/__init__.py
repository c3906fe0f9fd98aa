"""Where answers come from: `open_backbone` turns one line of text into a judge."""

from __future__ import annotations

from urllib.parse import parse_qsl

from baer_utils.backbones.base import Backbone

FORMS = "replay:<name>, smollm2-135m, or hf:<Hub id or folder>[?dtype=bfloat16&quantization=4bit&thinking=true]"
OPTIONS = ("dtype", "device", "quantization", "thinking")


def open_backbone(text: str) -> Backbone:
    """Open a judge by name; a local model loads its weights at its first call, not here.

    Parameters
    ----------
    text : ``replay:<name>`` (recorded answers), ``smollm2-135m`` (the embedded judge), or
        ``hf:<Hub id or folder>[?dtype=float32&device=cpu&quantization=4bit&thinking=true]`` (any causal language
        model); the embedded judge takes the same options.

    Raises
    ------
    ValueError : for a name of no known form, or an option that the form does not have.
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
    raise ValueError(f"BACKBONE must be {FORMS}; it is {text!r}.")


def _options(text: str) -> dict:
    options = dict(parse_qsl(text.partition("?")[2], keep_blank_values=True))
    unknown = sorted(set(options) - set(OPTIONS))
    if unknown:
        raise ValueError(f"a model takes the options {', '.join(OPTIONS)}; {text!r} has {', '.join(unknown)}.")
    if "thinking" in options:
        if options["thinking"] not in ("true", "false"):
            raise ValueError(f"thinking must be true or false; {text!r} has {options['thinking']!r}.")
        options["thinking"] = options["thinking"] == "true"
    return options
