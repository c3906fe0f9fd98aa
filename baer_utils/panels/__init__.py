"""Who is called for whom, what it costs, and why construction stopped."""

from baer_utils.panels.building import build_policy, plan_jaccard, search_plan
from baer_utils.panels.discovery import DiscoveringPolicy, SliceTree, discover_slices, left_out_loss
from baer_utils.panels.evaluating import evaluate, measure, plan_text, split_interval, summarize_splits
from baer_utils.panels.manner import PAPER, Search
from baer_utils.panels.policy import CallPolicy, call_costs
from baer_utils.panels.report import StoppingReport
from baer_utils.panels.role_policy import RolePolicy
from baer_utils.panels.search import GLOBAL, Grown, Rule, Step, grow, pair_steps
from baer_utils.panels.stable import StablePolicy
from baer_utils.panels.stream import Judged, apply_plan

__all__ = [
    "GLOBAL", "PAPER", "CallPolicy", "DiscoveringPolicy", "Grown", "Judged", "RolePolicy", "Rule", "Search",
    "SliceTree", "StablePolicy", "Step", "StoppingReport", "apply_plan", "build_policy", "call_costs",
    "discover_slices", "evaluate", "grow", "left_out_loss", "measure", "pair_steps", "plan_jaccard", "plan_text",
    "search_plan", "split_interval", "summarize_splits",
]  # fmt: skip
