"""What a trained model leaves behind: a folder that `from_pretrained` reads.

Weights are stored as fp16. The configuration says float32, so that a plain `from_pretrained`
computes in float32: half precision is for the disk, not for the arithmetic.
"""

import json
import shutil
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json")


def save_model(model: Any, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    tied = set(model.all_tied_weights_keys)
    weights = {
        name: tensor.detach().to("cpu", torch.float16).contiguous()
        for name, tensor in model.state_dict().items()
        if name not in tied
    }
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    config = model.config.to_diff_dict()
    config.update(architectures=[type(model).__name__], dtype="float32")
    config.pop("transformers_version", None)
    (folder / "config.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")


def copy_tokenizer(source: Path, folder: Path) -> None:
    for name in TOKENIZER_FILES:
        shutil.copyfile(source / name, folder / name)
