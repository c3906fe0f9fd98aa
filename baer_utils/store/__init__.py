"""Answers, run tables and sealed labels on disk: what was paid for survives a kill, and what is sealed stays sealed."""

from baer_utils.store.keeping import CALL_SCHEMA, COMPACT_ABOVE, Store, open_store
from baer_utils.store.sealing import openings, record_opening, seal, sealed_labels

__all__ = [
    "CALL_SCHEMA",
    "COMPACT_ABOVE",
    "Store",
    "open_store",
    "openings",
    "record_opening",
    "seal",
    "sealed_labels",
]
