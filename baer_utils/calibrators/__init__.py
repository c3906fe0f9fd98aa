"""Audits of judge panels, and what a joint pattern of outputs is worth: `Audit`, `PatternCalibrator` and its kin."""

from baer_utils.calibrators.audit import Audit, Coding, CompleteCases
from baer_utils.calibrators.base import PanelCalibrator
from baer_utils.calibrators.building import audit_from_runs, audit_from_tables, bin_scores, net_symbols
from baer_utils.calibrators.cells import Cells, cell_means, cells_of, one_cell, refine
from baer_utils.calibrators.parametric import LogisticCalibrator, VoteCalibrator
from baer_utils.calibrators.pattern import PatternCalibrator
from baer_utils.calibrators.splitting import Split, split_audit
from baer_utils.calibrators.symbols import encode, encode_as, named_columns, recode, route_labels

__all__ = [
    "Audit", "Cells", "Coding", "CompleteCases", "LogisticCalibrator", "PanelCalibrator", "PatternCalibrator", "Split",
    "VoteCalibrator", "audit_from_runs", "audit_from_tables", "bin_scores", "cell_means", "cells_of", "encode",
    "encode_as", "named_columns", "net_symbols", "one_cell", "recode", "refine", "route_labels", "split_audit",
]  # fmt: skip
