"""The adapter's file: fp16 tensors, and in its header what they were trained on top of."""

import hashlib
import re
from pathlib import Path

import torch
from encoder import Encoder
from safetensors import safe_open
from safetensors.torch import save_file

MANIFEST = Path(__file__).parents[2] / "encoder-worker/model-hub/src/manifest.rs"
WEIGHTS = "model.safetensors"


def verified(model_dir: Path) -> str:
    """The weights' SHA-256; an error unless they are those that Toolgate fetches."""
    actual = hashlib.sha256((model_dir / WEIGHTS).read_bytes()).hexdigest()
    if actual != packaged():
        raise SystemExit(f"{model_dir / WEIGHTS} is {actual}, not the packaged {packaged()}")
    return actual


def packaged() -> str:
    """The SHA-256 that the product's source names."""
    found = re.search(WEIGHTS + r'",[\s\d_]*,\s*"([0-9a-f]{64})"', MANIFEST.read_text("utf-8"))
    if found is None:
        raise SystemExit(f"{MANIFEST} names no {WEIGHTS}")
    return found[1]


def write(encoder: Encoder, path: Path, base: str, scale: float) -> None:
    """Writes the additions; `scale` is in alpha, as whoever merges them takes alpha / rank."""
    tensors = {}
    for name, layer in encoder.layers.items():
        tensors[f"{name}.lora_A.weight"] = layer.lora_A.detach().half().cpu().contiguous()
        tensors[f"{name}.lora_B.weight"] = layer.lora_B.detach().half().cpu().contiguous()
    rank = next(iter(encoder.layers.values())).lora_A.shape[0]
    about = {
        "base_sha256": base,
        "rank": str(rank),
        "alpha": f"{scale * rank:g}",
        "name": path.stem,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    save_file(tensors, path, {"format": "pt", **about})


def read(model_dir: Path, path: Path, scale: float | None = None) -> Encoder:
    """An encoder with a file's additions, merged; `scale` in place of the file's own."""
    with safe_open(path, "pt") as file:
        about = file.metadata()
        tensors = {name: file.get_tensor(name).float() for name in file.keys()}  # noqa: SIM118
    rank = int(about["rank"])
    encoder = Encoder(model_dir, rank, min(int(name.split(".")[2]) for name in tensors))
    with torch.no_grad():
        for name, layer in encoder.layers.items():
            layer.lora_A.copy_(tensors[f"{name}.lora_A.weight"])
            layer.lora_B.copy_(tensors[f"{name}.lora_B.weight"])
    encoder.set_scale(float(about["alpha"]) / rank if scale is None else scale)
    return encoder
