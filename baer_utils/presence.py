"""Is a reader there? Bars and live views need a notebook kernel with a front end; everybody else is spared them.

This file asks the environment and nothing else, and imports nothing that is slow.
"""

from __future__ import annotations

import os
import sys

STATIC = "BAER_STATIC"  # environment variable: 1 where notebooks run without a reader, who alone can use a widget


def in_kernel() -> bool:
    """Whether this process is a notebook's kernel."""
    return getattr(_shell(), "kernel", None) is not None


def is_live() -> bool:
    """Whether this is a kernel whose front end says that it is there.

    Returns
    -------
    True where a Jupyter server names the session of an open notebook (`JPY_SESSION_NAME`), in Colab
    (`COLAB_RELEASE_TAG`), and in VS Code, which puts the file's name among the variables. papermill and nbconvert do
    none of it. The environment variable `BAER_STATIC` decides before that: ``1`` means no (`make book` sets it, also
    when it is started out of a notebook), ``0`` means yes, for a front end that is not recognised.
    """
    asked = os.environ.get(STATIC, "")
    if asked:
        return asked == "0"
    named = any(name in os.environ for name in ("JPY_SESSION_NAME", "COLAB_RELEASE_TAG"))
    return in_kernel() and (named or "__vsc_ipynb_file__" in _shell().user_ns)


def _shell() -> object | None:
    """IPython's shell; None where IPython was never imported, so that no kernel can run here."""
    return sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
