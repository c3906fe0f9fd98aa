"""A live view for a reader, its static side for everybody else.

This file knows nothing about what a view shows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from IPython.display import HTML
from ipywidgets import VBox, Widget

from baer_utils.presence import is_live


class LiveView(VBox):
    """Widgets with their static side beside them, for front ends that cannot show widgets."""

    def __init__(self, children: list[Widget], static: str):
        super().__init__(children)
        self.static = static

    def _repr_mimebundle_(self, **kwargs) -> dict[str, Any]:
        return {"text/html": self.static} | super()._repr_mimebundle_(**kwargs)


def shown(live: Callable[[], LiveView], static: Callable[[], str]) -> LiveView | HTML:
    """The live view for a reader; for anybody else its static side, and then no widget is made at all."""
    return live() if is_live() else HTML(static())
