"""Executes one notebook with papermill, in a kernel of the interpreter that is running now.

This file knows papermill's habits so that nothing else has to: which kernel it would pick, what it logs, that it takes
braces in a path for a template, that it writes the machine's paths into what it saves. It decides neither what is run
nor what happens after an error; it only says where the notebook stopped and why.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import papermill
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from nbclient.exceptions import DeadKernelError
from papermill.exceptions import PapermillExecutionError
from traitlets import default

from baer_utils.batch.parameters import Notebook
from baer_utils.reports import REPOSITORY, STATIC

QUIET = ["--IPKernelApp.log_level=50"]  # else the kernel writes about its sockets and its own end
ERROR_LINES = 12  # of a failing notebook's traceback, its end


class NotebookFailed(RuntimeError):
    """A notebook stopped with an error; the message says which, where, why, and what is left on disk."""


class _OwnSpecs(KernelSpecManager):
    """Finds no installed kernel, so that "python3" is the interpreter that is running now."""

    def _kernel_dirs_default(self) -> list[str]:
        return []


class _OwnKernel(AsyncKernelManager):
    @default("kernel_spec_manager")
    def _own_specs(self) -> KernelSpecManager:
        return _OwnSpecs(parent=self)


def execute(notebook: Notebook, values: dict[str, Any], copy: Path) -> None:
    """Run a notebook, in its own folder, into `copy`, which grows cell by cell and stays if a cell fails.

    Parameters
    ----------
    notebook : the notebook to run.
    values : name -> value put behind its parameters cell; papermill does not refuse unknown names, so check before.
    copy : the executed notebook.

    Raises
    ------
    NotebookFailed
        saying which cell stopped, with its error's last lines, or that the kernel died.
    """
    logging.getLogger("papermill").setLevel(logging.ERROR)
    paths = [str(path).replace("{", "{{").replace("}", "}}") for path in (notebook.path, copy)]  # else: templates
    kernel = {"kernel_name": "python3", "kernel_manager_class": _OwnKernel, "extra_arguments": QUIET}
    variables = {"PYDEVD_DISABLE_FILE_VALIDATION": "1", "HF_HUB_DISABLE_PROGRESS_BARS": "1"}  # quiet in the copy
    variables[STATIC] = "1"  # nobody is there to press a button
    with _environment(PYTHONPATH=str(REPOSITORY), **variables):
        try:
            papermill.execute_notebook(
                *paths, parameters=values, cwd=notebook.path.parent, language="python", progress_bar=False, **kernel
            )
        except PapermillExecutionError as error:
            raise NotebookFailed(f"{notebook.name} {_where_it_stopped(error)}") from None
        except DeadKernelError:
            died = "its kernel died, which mostly means that memory ran out or that it was killed"
            raise NotebookFailed(f"{notebook.name} stopped: {died}.") from None
    executed = nbformat.read(copy, as_version=4)
    for key in ("input_path", "output_path"):  # where the machine keeps it is nobody's business
        executed.metadata["papermill"].pop(key, None)
    nbformat.write(executed, copy)


def _where_it_stopped(error: PapermillExecutionError) -> str:
    trace = re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(error.traceback)).splitlines()
    first = next((line.strip() for line in error.source.splitlines() if line.strip()), "")
    end = "\n".join(f"    {line}" for line in trace[-ERROR_LINES:])
    return f"stopped in its code cell {error.exec_count}, which begins {first!r}:\n{end}"


@contextlib.contextmanager
def _environment(**variables: str) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None) if value is None else os.environ.__setitem__(name, value)
