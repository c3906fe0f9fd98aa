"""Kernels that are forked from one process which has imported what the notebooks import.

A book of many short notebooks spends most of its time importing the same packages in one fresh process after another.
Here one process imports them once, runs nothing else, and forks a child for each kernel: a process of its own, with its
own memory, that ends with its notebook. Where processes cannot be forked safely, kernels start as they always do.
This file knows what notebooks import, and nothing of what they do.
"""

from __future__ import annotations

import ast
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

CAN_FORK = sys.platform == "linux"  # elsewhere system libraries break in forked processes
INLINE = "module://matplotlib_inline.backend_inline"  # read when matplotlib is imported, so before the kernel could say


class Forked:
    """A forked kernel, with the part of `subprocess.Popen` that a kernel manager uses."""

    stdin = stdout = stderr = None

    def __init__(self, nursery: Nursery, pid: int):
        self.nursery, self.pid, self.returncode = nursery, pid, None

    def poll(self) -> int | None:
        """Exit code, negative for a signal, or None while it runs."""
        if self.returncode is None:
            self.returncode = self.nursery.ask({"poll": self.pid})
        return self.returncode

    def wait(self) -> int | None:
        """The exit code of a kernel that `poll` has found ended."""
        return self.poll()

    def send_signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def kill(self) -> None:
        """End it at once."""
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        """Ask it to end."""
        self.send_signal(signal.SIGTERM)


class Nursery:
    """The process that imports and forks, seen from the process that runs the book; it starts with the first kernel.

    Parameters
    ----------
    statements : import statements to run in it before the first fork.
    """

    def __init__(self, statements: Iterable[str]):
        self.statements = tuple(statements)
        self._process: subprocess.Popen | None = None

    def fork(self, arguments: list[str], cwd: str, env: dict[str, str]) -> Forked:
        """A new kernel with the arguments of `ipykernel_launcher`; the first one waits until all is imported."""
        env = {"MPLBACKEND": INLINE, **env}
        if self._process is None:
            self._start(env)
        return Forked(self, self.ask({"arguments": arguments, "cwd": cwd, "env": env}))

    def ask(self, request: dict[str, Any]) -> int | None:
        """One request, one answer; a RuntimeError where the process is gone."""
        answer = ""
        with contextlib.suppress(OSError):
            self._ours.sendall(json.dumps(request).encode() + b"\n")
            answer = self._answers.readline()
        if not answer:
            raise RuntimeError("the process that forks kernels has ended; start the same command again.")
        return json.loads(answer)

    def close(self) -> None:
        """End the process; a kernel that still runs ends with it."""
        if self._process is not None:
            self._answers.close()
            self._ours.close()
            self._process.wait()

    def _start(self, env: dict[str, str]) -> None:
        self._ours, theirs = socket.socketpair()
        command = [sys.executable, "-P", "-m", __name__, str(theirs.fileno()), *self.statements]
        self._process = subprocess.Popen(command, pass_fds=[theirs.fileno()], env=env, start_new_session=True)
        theirs.close()
        self._answers = self._ours.makefile("r", encoding="utf-8")


@contextlib.contextmanager
def nursery(notebooks: Iterable[Path]) -> Iterator[Nursery | None]:
    """A nursery that has imported what these notebooks import, or None where processes cannot be forked."""
    if not CAN_FORK:
        yield None
        return
    opened = Nursery(dict.fromkeys(statement for path in notebooks for statement in import_statements(path)))
    try:
        yield opened
    finally:
        opened.close()


def import_statements(path: Path) -> list[str]:
    """Import statements at the top level of a notebook's code cells, but for cells that are no plain Python."""
    found = []
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        with contextlib.suppress(SyntaxError):
            body = ast.parse("".join(cell["source"])).body if cell["cell_type"] == "code" else []
            found += [ast.unparse(node) for node in body if isinstance(node, ast.Import | ast.ImportFrom)]
    return found


def serve(control: socket.socket, statements: list[str]) -> None:
    """Import, then fork and watch over kernels until the other side hangs up; runs in the nursery's own process."""
    import ipykernel.ipkernel  # noqa: F401
    from ipykernel.kernelapp import IPKernelApp

    for statement in statements:
        with contextlib.suppress(Exception):  # its notebook will meet the same error, and report it
            exec(statement, {})
    warnings.filterwarnings("ignore", message=".*multi-threaded, use of fork", category=DeprecationWarning)
    for line in control.makefile("r", encoding="utf-8"):
        request = json.loads(line)
        answer = _exit_code(request["poll"]) if "poll" in request else os.fork()
        if answer == 0 and "arguments" in request:  # in the child
            os.close(control.detach())
            _settle(request)
            ends_with_parent = f"--IPKernelApp.parent_handle={os.getppid()}"  # its default was read before the fork
            IPKernelApp.launch_instance(argv=[*request["arguments"], ends_with_parent])
            return
        control.sendall(json.dumps(answer).encode() + b"\n")


def _settle(request: dict[str, Any]) -> None:
    os.setsid()  # a signal to the kernel's group reaches what it has started, and nothing else
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    sys.argv = ["ipykernel_launcher", *request["arguments"]]
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)


def _exit_code(pid: int) -> int | None:
    try:
        ended, status = os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return 0
    return os.waitstatus_to_exitcode(status) if ended else None


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])), sys.argv[2:])
