"""Runs notebooks: what they may be told, how far they are, what a finished run looks like."""

import sys

if "jsonschema" not in sys.modules:
    # half of the time that importing nbformat takes is a grammar of web addresses, which no notebook is checked by
    sys.modules["rfc3987_syntax"] = None
    import jsonschema  # noqa: F401

    del sys.modules["rfc3987_syntax"]
