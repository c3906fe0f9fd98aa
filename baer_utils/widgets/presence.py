"""Is a reader there? A live view needs a kernel with a front end; everybody else gets the static side.

This file knows nothing about what a view shows.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from IPython import get_ipython
from IPython.display import HTML
from ipywidgets import VBox, Widget

from baer_utils.reports import STATIC


class LiveView(VBox):
    """Widgets with their static side beside them, for front ends that cannot show widgets."""

    def __init__(self, children: list[Widget], static: str):
        super().__init__(children)
        self.static = static

    def _repr_mimebundle_(self, **kwargs) -> dict[str, Any]:
        return {"text/html": self.static} | super()._repr_mimebundle_(**kwargs)


def is_live() -> bool:
    """Whether widgets make sense here.

    Returns
    -------
    True in a kernel whose front end says that it is one: a Jupyter server names the session of every notebook that is
    open (`JPY_SESSION_NAME`), VS Code puts the file's name among the variables. papermill and nbconvert do neither.
    The environment variable `BAER_STATIC` decides before that: ``1`` means no (`make book` sets it, also when it is
    started out of a notebook), ``0`` means yes, for a front end that is not recognised.
    """
    asked = os.environ.get(STATIC, "")
    if asked:
        return asked == "0"
    shell = get_ipython()
    if getattr(shell, "kernel", None) is None:
        return False
    return "JPY_SESSION_NAME" in os.environ or "__vsc_ipynb_file__" in shell.user_ns


def shown(live: Callable[[], LiveView], static: Callable[[], str]) -> LiveView | HTML:
    """The live view for a reader; for anybody else its static side, and then no widget is made at all."""
    return live() if is_live() else HTML(static())
