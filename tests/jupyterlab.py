"""A JupyterLab of its own for the checks: a port nobody uses, no settings of the user's, and ended in every case."""

from __future__ import annotations

import json
import os
import secrets
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import psutil
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement

from baer_utils.reports import REPOSITORY

PATIENCE = 300  # seconds; kernels start slowly where much else runs
SETTINGS = {  # nothing is asked of the network, and nothing is written into a notebook behind the reader's back
    "apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
    "docmanager-extension/plugin": {"autosave": False},
}
THEMES = {"light": "JupyterLab Light", "dark": "JupyterLab Dark"}
STATE = """
const panel = window.jupyterapp?.shell.currentWidget;
if (!panel?.sessionContext || !panel.content?.widgets) return null;
const cells = panel.content.widgets.filter(cell => cell.model.type === 'code');
const outputs = cells.flatMap(cell => cell.model.outputs.toJSON().map(output => [cell.model.id, output]));
return {kernel: panel.sessionContext.kernelDisplayStatus, cells: cells.length,
  run: cells.filter(cell => cell.model.executionCount !== null).length, pending: cells.filter(cell =>
  cell.node.querySelector('.jp-InputPrompt')?.textContent.includes('*')).length,
  errors: outputs.filter(([id, output]) => output.output_type === 'error').map(([id, output]) =>
  `cell ${id}: ${output.ename}: ${output.evalue}`)};
"""
CELL = """
return jupyterapp.shell.currentWidget.content.widgets.find(cell => cell.model.id === arguments[0] ||
  cell.model.type === 'code' && cell.model.sharedModel.source.includes(arguments[0] + '(')).node;
"""
CHANGE_THEME = "return jupyterapp.commands.execute('apputils:change-theme', {theme: arguments[0]})"
LABEL = "//*[contains(concat(' ', @class, ' '), ' {} ')][normalize-space()='{}']"


@contextmanager
def jupyterlab(log: Path) -> Iterator[Callable[[str], str]]:
    """JupyterLab with the repository as its root; yields path of a notebook -> address that opens it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    token = secrets.token_hex(16)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch, log.open("w") as file:
        folders = {name: f"{scratch}/{name}" for name in ("CONFIG_DIR", "DATA_DIR", "RUNTIME_DIR")}
        folders |= {name: f"{scratch}/{name}" for name in ("SETTINGS_DIR", "WORKSPACES_DIR")}
        own = {"PYTHONPATH": str(REPOSITORY)}  # kernels do not start in it
        own |= {f"JUPYTER{'LAB' * (name[0] in 'SW')}_{name}": folder for name, folder in folders.items()}
        for name, values in SETTINGS.items():
            path = Path(folders["SETTINGS_DIR"], "@jupyterlab", f"{name}.jupyterlab-settings")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(values))
        command = [
            sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--expose-app-in-browser",
            "--ip=127.0.0.1", f"--port={port}", "--ServerApp.port_retries=0", f"--ServerApp.root_dir={REPOSITORY}",
            f"--IdentityProvider.token={token}", "--LabApp.extension_manager=readonly",
        ]  # fmt: skip
        process = subprocess.Popen(command, cwd=REPOSITORY, env={**os.environ, **own}, stdout=file, stderr=file)
        try:
            _wait_for_server(f"http://127.0.0.1:{port}/api", process, log)
            yield lambda path: f"http://127.0.0.1:{port}/lab/tree/{path}?token={token}"
        finally:
            _end(process)


def _wait_for_server(address: str, process: subprocess.Popen, log: Path) -> None:
    until = time.monotonic() + PATIENCE
    while process.poll() is None and time.monotonic() < until:
        with suppress(httpx.HTTPError):
            if httpx.get(address, trust_env=False).status_code == 200:
                return
        time.sleep(0.5)
    raise AssertionError(f"JupyterLab did not start:\n{log.read_text()[-2000:]}")


def _end(process: subprocess.Popen) -> None:
    """End the server, and the kernels that it leaves."""
    family = []
    with suppress(psutil.NoSuchProcess):
        family = psutil.Process(process.pid).children(recursive=True)
    process.terminate()
    with suppress(subprocess.TimeoutExpired):
        process.wait(30)
    for member in (process, *family):
        with suppress(psutil.NoSuchProcess, ProcessLookupError):
            member.kill()
    process.wait()


def wait(what: Callable[[], Any], said: str, *, seconds: float = PATIENCE) -> Any:
    """The first true value of `what`, asked again and again; AssertionError after `seconds`."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        value = what()
        if value:
            return value
        time.sleep(0.3)
    raise AssertionError(f"JupyterLab, after {seconds} s: {said}")


def idle(driver: webdriver.Chrome) -> dict:
    """The open notebook once its kernel has nothing left to do: cells, how many were run, and their errors."""
    time.sleep(0.5)  # until what was just done has reached the kernel

    def settled() -> dict | None:
        state = driver.execute_script(STATE)
        return state if state and state["kernel"] == "idle" and not state["pending"] else None

    return wait(settled, "the kernel is not idle")


def run_all(driver: webdriver.Chrome, address: str) -> dict:
    """Open a notebook, choose Run All Cells in the menu, and wait for the last cell."""
    driver.get(address)
    idle(driver)
    driver.execute_script("jupyterapp.shell.collapseLeft()")  # as who reads on a small screen does
    for place, label in (("lm-MenuBar-itemLabel", "Run"), ("lm-Menu-itemLabel", "Run All Cells")):
        found = wait(lambda: driver.find_elements(By.XPATH, LABEL.format(place, label)), f"no menu {label}")  # noqa: B023
        found[0].click()
    wait(lambda: (state := idle(driver))["run"] == state["cells"] or state["errors"], "the last cell was not run")
    return idle(driver)


def cell(driver: webdriver.Chrome, name: str) -> WebElement:
    """The cell of this id, or the first that calls the function of this name, scrolled to."""
    found = driver.execute_script(CELL, name)
    driver.execute_script("arguments[0].scrollIntoView({block: 'start'})", found)
    return found


def change_theme(driver: webdriver.Chrome, scheme: str) -> None:
    """The theme of JupyterLab: "light" or "dark"."""
    driver.execute_script(CHANGE_THEME, THEMES[scheme])
    wait(lambda: driver.find_element(By.TAG_NAME, "body").get_attribute("data-jp-theme-name") == THEMES[scheme],
         "the theme does not change")  # fmt: skip
