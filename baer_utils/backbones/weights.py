"""Which model this is, and whether what was loaded is what was asked for: files, digest, context, precision."""

from __future__ import annotations

import hashlib
import logging
from collections import Counter
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, BitsAndBytesConfig
from transformers.quantizers.base import get_keys_to_not_convert
from transformers.quantizers.quantizers_utils import should_convert_module
from transformers.utils.logging import disable_progress_bar

from baer_utils.presence import in_kernel, is_live

UNSTATED_CONTEXT = 2048  # tokens, for a model that names no limit (ALiBi, state spaces): what such models trained on
DIGEST_WHOLE = 2**28  # bytes up to which a model's file is read whole for its name
QUANTIZED = {"8bit": ("Linear8bitLt", "int8"), "4bit": ("Linear4bit", "uint8")}  # class and storage of each layer


def source_of(model: str | Path) -> dict:
    """What `from_pretrained` must be told to load a Hub id, a folder, or a ``.gguf`` file."""
    path = Path(model)
    if path.suffix == ".gguf":
        return {"pretrained_model_name_or_path": str(path.parent), "gguf_file": path.name}
    return {"pretrained_model_name_or_path": str(model)}


def context_of(config, tokenizer) -> int:
    """Most tokens a model can take: what its config says, else its tokenizer, else `UNSTATED_CONTEXT`."""
    stated = getattr(config, "max_position_embeddings", None) or tokenizer.model_max_length
    return int(stated) if stated and stated < 10**9 else UNSTATED_CONTEXT  # "none" is 10**30 in a tokenizer


def digest_of(path: Path) -> str:
    """Twelve hex digits of a model's files: names, sizes, small files whole, of large ones 64 KiB in every MiB.

    A layer that was trained on changes all over, so it is seen; one byte changed by hand in a large file may not be.
    """
    files = [path] if path.is_file() else sorted(f for f in path.iterdir() if f.is_file())
    total = hashlib.sha256()
    for file in files:
        size = file.stat().st_size
        total.update(f"{file.name}|{size}|".encode())
        with file.open("rb") as handle:
            if size <= DIGEST_WHOLE:
                total.update(handle.read())
                continue
            for start in (*range(0, size, 2**20), size - 2**16):
                handle.seek(start)
                total.update(handle.read(2**16))
    return total.hexdigest()[:12]


def load_model(source: dict, *, dtype: str, device: str, quantization: str | None):
    """A causal language model ready to be asked, of exactly the precision that was asked for.

    Parameters
    ----------
    source : from `source_of`.
    dtype : of the weights; of quantised weights, what they are multiplied in, and of all others.
    device : torch device.
    quantization : None, "8bit" (LLM.int8, outlier threshold 6) or "4bit" (nf4, no double quantisation), both through
        bitsandbytes. The output head stays as it is, as transformers has it.

    Raises
    ------
    ValueError : when other weights came, such as those of files that are quantised already (`check_precision`).
    """
    kind = getattr(torch, dtype)
    if in_kernel() and not is_live():
        disable_progress_bar()  # papermill would keep the bar in the copy
    if quantization is None:
        model = AutoModelForCausalLM.from_pretrained(**source, dtype=kind).to(device)
    else:
        logging.getLogger("bitsandbytes").setLevel(logging.ERROR)  # it says at every layer what is said here once
        config = BitsAndBytesConfig(
            load_in_8bit=quantization == "8bit", load_in_4bit=quantization == "4bit", bnb_4bit_quant_type="nf4",
            bnb_4bit_compute_dtype=kind, bnb_4bit_use_double_quant=False,
        )  # fmt: skip
        model = AutoModelForCausalLM.from_pretrained(
            **source, dtype=kind, quantization_config=config, device_map=device
        )
        for layer in model.modules():  # else some processors multiply 4-bit weights in bfloat16 whatever was asked for
            if hasattr(layer, "support_avx512bf16_for_cpu") and dtype != "bfloat16":
                layer.support_avx512bf16_for_cpu = False
    check_precision(model, dtype, quantization)
    return model.eval()


def check_precision(model, dtype: str, quantization: str | None) -> None:
    """Refuse a model whose weights are not what was asked for, saying what they are.

    Every linear layer that transformers would quantise must be quantised, and hold most of the weights beside
    embeddings and head (a mixture whose experts are no linear layers would not); without quantisation, most of these
    must be stored as `dtype`. So must most of all weights that are not quantised (models keep small parts in float32).
    """
    kept = [*get_keys_to_not_convert(model), *(model._keep_in_fp32_modules or ())]
    kinds: Counter = Counter()
    others: Counter = Counter()
    for name, module in model.named_modules():
        quantisable = not isinstance(module, torch.nn.Embedding) and should_convert_module(name, kept)
        for weight in module.parameters(recurse=False):
            storage, linear = str(weight.dtype).removeprefix("torch."), isinstance(module, torch.nn.Linear)
            if weight.is_floating_point():
                others[storage] += weight.numel()
            if quantisable and weight.ndim > 1:
                size = module.in_features * module.out_features if linear else weight.numel()  # 4 bits lie packed
                kinds[type(module).__name__, storage] += size
    wanted = QUANTIZED.get(quantization)
    right = {kind: size for kind, size in kinds.items() if (kind == wanted if wanted else kind[1] == dtype)}
    missed = {name for name, _ in kinds.keys() - right.keys() if name in ("Linear", "Conv1D")} if wanted else ()
    if not missed and 2 * sum(right.values()) > kinds.total() and others.most_common(1)[0][0] == dtype:
        return
    came = ", ".join(f"{count:,} in {name} ({storage})" for (name, storage), count in kinds.most_common())
    raise ValueError(
        f"the weights must be loaded as dtype={dtype}, quantization={quantization or 'none'}; what came is {came}, "
        f"and of all weights that are not quantised, {', '.join(f'{n:,} are {s}' for s, n in others.most_common())}. "
        "Ask for the precision that the files have, or use files with plain weights."
    )
