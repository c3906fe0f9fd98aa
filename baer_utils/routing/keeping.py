"""A fitted reliability model as bytes, and back: skops, no pickle, nothing in them but what the model learnt.

skops writes memory addresses into its archive; here they become running numbers, so that the same model gives the same
bytes. Reading builds objects of the listed types only.
"""

from __future__ import annotations

import io
import json
import zipfile
from itertools import count

from baer_utils.routing.models import Fitted

SCHEMA = "schema.json"
# beyond what skops trusts by itself: the nodes of a forest, and those of histogram boosting
TYPES = ("sklearn.tree._tree.Tree", "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor")


def pack_model(fitted: Fitted) -> bytes:
    """A fitted model, or the constant that stands for one, as a skops archive that is the same for the same model."""
    import skops.io  # loads every library that scikit-learn can work with, so not before it is needed

    source = zipfile.ZipFile(io.BytesIO(skops.io.dumps(fitted)))
    names: dict[str, str] = {}
    schema = _renumbered(json.loads(source.read(SCHEMA)), names, count())
    parts = [(new, source.read(old)) for old, new in names.items()]
    parts.append((SCHEMA, json.dumps(schema, sort_keys=True, separators=(",", ":")).encode()))
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:  # not compressed: that differs from one zlib to the next
        for name, data in parts:
            archive.writestr(zipfile.ZipInfo(name), data)
    return packed.getvalue()


def unpack_model(packed: bytes) -> Fitted:
    """The model of `pack_model`.

    Raises
    ------
    ValueError
        when the archive names a type that no reliability model is made of; nothing of it is built.
    """
    import skops.io

    strange = sorted(set(skops.io.get_untrusted_types(data=packed)) - set(TYPES))
    if strange:
        raise ValueError(
            f"a frozen router must be made of scikit-learn's own types and {', '.join(TYPES)}; this one also names "
            f"{', '.join(strange)}. Do not load it; freeze the head again."
        )
    return skops.io.loads(packed, trusted=list(TYPES))


def _renumbered(node: object, names: dict[str, str], ids: count) -> object:
    """A schema whose object ids and file names are running numbers, in the order in which they occur."""
    if isinstance(node, list):
        return [_renumbered(entry, names, ids) for entry in node]
    if not isinstance(node, dict):
        return node
    node = {key: next(ids) if key == "__id__" else _renumbered(entry, names, ids) for key, entry in node.items()}
    if isinstance(node.get("file"), str):
        node["file"] = names.setdefault(node["file"], f"{len(names)}.{node['file'].rpartition('.')[2]}")
    return node
