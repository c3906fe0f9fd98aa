"""One expert per pair, chosen by a reliability that cannot see the order of the responses (Eq. 7)."""

from baer_utils.routing.ablations import SubsetLookup, confidence_switch, fit_subset_lookup, out_of_fold_lookup
from baer_utils.routing.choosing import Reliability, best_available, route, routed_score
from baer_utils.routing.comparing import OutOfFold, fit_reliability, out_of_fold_routes
from baer_utils.routing.keeping import pack_model, unpack_model
from baer_utils.routing.models import MODELS, MOST_COMPARED

__all__ = [
    "MODELS", "MOST_COMPARED", "OutOfFold", "Reliability", "SubsetLookup", "best_available", "confidence_switch",
    "fit_reliability", "fit_subset_lookup", "out_of_fold_lookup", "out_of_fold_routes", "pack_model",
    "route", "routed_score", "unpack_model",
]  # fmt: skip
