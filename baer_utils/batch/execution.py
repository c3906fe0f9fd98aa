"""Executes one notebook with papermill, in a kernel of the interpreter that is running now.

This file knows papermill's habits so that nothing else has to: which kernel it would pick, what it logs, that it takes
braces in a path for a template, that it writes the machine's paths into what it saves. It decides neither what is run
nor what happens after an error; it only says where the notebook stopped and why.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import re
import sys
import tempfile
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

from baer_utils.batch.forking import Nursery
from baer_utils.batch.parameters import Notebook
from baer_utils.presence import STATIC
from baer_utils.reports import REPOSITORY

QUIET = ["--IPKernelApp.log_level=50"]  # else the kernel writes about its sockets and its own end
ERROR_LINES = 12  # of a failing notebook's traceback, its end
LONGEST_SOCKET = 90  # bytes of a socket's path; systems allow 104 or 108
LARGEST_COPY = 1_000_000  # bytes of an executed copy; larger ones are slow to open and to keep


class NotebookFailed(RuntimeError):
    """A notebook stopped with an error; the message says which, where, why, and what is left on disk.

    `place` holds the same in short, for tables: `stopped` (which cell) and `error` (its last line).
    """

    def __init__(self, message: str, **place: str):
        super().__init__(message)
        self.place = place


class _OwnSpecs(KernelSpecManager):
    """Finds no installed kernel, so that "python3" is the interpreter that is running now."""

    def _kernel_dirs_default(self) -> list[str]:
        return []


class _OwnKernel(AsyncKernelManager):
    """Talks to its kernel through sockets in a folder of its own.

    A TCP port is free when it is chosen and may be taken when the kernel binds it, as happens where kernels start side
    by side; a file in one's own folder is nobody else's.
    """

    nursery: Nursery | None = None
    folder = ""

    @default("connection_file")
    def _own_file(self) -> str:
        return os.path.join(self.folder, "kernel.json")

    @default("transport")
    def _own_sockets(self) -> str:
        return "tcp" if sys.platform == "win32" or len(os.fsencode(self.folder)) > LONGEST_SOCKET else "ipc"

    @default("kernel_spec_manager")
    def _own_specs(self) -> KernelSpecManager:
        return _OwnSpecs(parent=self)

    async def _async_launch_kernel(self, kernel_cmd: list[str], **settings: Any) -> None:
        if self.nursery is None:
            return await super()._async_launch_kernel(kernel_cmd, **settings)
        arguments = kernel_cmd[kernel_cmd.index("ipykernel_launcher") + 1 :]
        kernel = self.nursery.fork(arguments, str(settings.get("cwd") or Path.cwd()), settings["env"])
        self.provisioner.process, self.provisioner.pid, self.provisioner.pgid = kernel, kernel.pid, kernel.pid


def execute(notebook: Notebook, values: dict[str, Any], copy: Path, nursery: Nursery | None = None) -> int:
    """Run a notebook, in its own folder, into `copy`, which grows cell by cell and stays if a cell fails.

    Parameters
    ----------
    notebook : the notebook to run.
    values : name -> value put behind its parameters cell; papermill does not refuse unknown names, so check before.
    copy : the executed notebook.
    nursery : where the kernel is forked; a fresh process if not given.

    Returns
    -------
    how many outputs were cut because the copy had become too large (`LARGEST_COPY`).

    Raises
    ------
    NotebookFailed
        saying which cell stopped, with its error's last lines, or that the kernel died.
    """
    logging.getLogger("papermill").setLevel(logging.ERROR)
    paths = [str(path).replace("{", "{{").replace("}", "}}") for path in (notebook.path, copy)]  # else: templates
    variables = {"PYDEVD_DISABLE_FILE_VALIDATION": "1", "HF_HUB_DISABLE_PROGRESS_BARS": "1"}  # quiet in the copy
    variables[STATIC] = "1"  # nobody is there to press a button
    sockets = tempfile.TemporaryDirectory(prefix="kernel-", ignore_cleanup_errors=True)
    with sockets as folder, environment(PYTHONPATH=str(REPOSITORY), **variables):
        manager = type("Kernel", (_OwnKernel,), {"nursery": nursery, "folder": folder})
        kernel = {"kernel_name": "python3", "kernel_manager_class": manager, "extra_arguments": QUIET}
        try:
            papermill.execute_notebook(
                *paths,
                parameters=values,
                cwd=notebook.path.parent,
                language="python",
                progress_bar=False,
                shutdown_kernel="immediate",
                **kernel,
            )
        except PapermillExecutionError as error:
            where, end = _where_it_stopped(error)
            place = {"stopped": where, "error": f"{error.ename}: {error.evalue}".splitlines()[0]}
            raise NotebookFailed(f"{notebook.name} stopped in its {where}:\n{end}", **place) from None
        except DeadKernelError:
            died = "its kernel died, which mostly means that memory ran out or that it was killed"
            raise NotebookFailed(f"{notebook.name} stopped: {died}.", stopped="kernel", error=died) from None
    executed = nbformat.read(copy, as_version=4)
    for key in ("input_path", "output_path"):  # where the machine keeps it is nobody's business
        executed.metadata["papermill"].pop(key, None)
    cut = shorten_outputs(executed)
    nbformat.write(executed, copy)
    return cut


def shorten_outputs(notebook: nbformat.NotebookNode, limit: int = LARGEST_COPY) -> int:
    """Replace the largest outputs by a line that says so, until the notebook fits; returns how many were replaced."""
    cells = [cell for cell in notebook.cells if cell.get("outputs")]
    sizes = [(len(json.dumps(output)), cell, number) for cell in cells for number, output in enumerate(cell["outputs"])]
    total = len(nbformat.writes(notebook).encode())
    cut = 0
    for size, cell, number in sorted(sizes, key=lambda entry: -entry[0]):
        if total <= limit:
            break
        text = f"An output of {size:,} characters was cut here: executed copies stay below {limit:,} bytes.\n"
        cell["outputs"][number] = nbformat.v4.new_output("stream", name="stdout", text=text)
        total = len(nbformat.writes(notebook).encode())
        cut += 1
    return cut


def _where_it_stopped(error: PapermillExecutionError) -> tuple[str, str]:
    trace = re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(error.traceback)).splitlines()
    first = next((line.strip() for line in error.source.splitlines() if line.strip()), "")
    end = "\n".join(f"    {line}" for line in trace[-ERROR_LINES:])
    return f"code cell {error.exec_count}, which begins {first!r}", end


@contextlib.contextmanager
def environment(**variables: str) -> Iterator[None]:
    """Environment variables that hold inside a `with` block, for child processes too."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None) if value is None else os.environ.__setitem__(name, value)
