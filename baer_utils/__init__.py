"""A judge book that adapts its evidence: the small tested module behind the notebooks."""

__version__ = "0.1.0"
