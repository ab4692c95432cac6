"""builtin:vit, a small vision transformer that names the shape or pattern in an image.

    python -m training.vit OUT [--device cuda]

Every batch is drawn anew, so no image is seen twice and held-out images are just another seed.
"""

import argparse
import json
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional as F
from transformers import ViTConfig, ViTForImageClassification

from training.draw import KINDS, SIZE, Pencil
from training.fit import Plan, Row, fit, write_curve
from training.folder import save_model

PATCH = 8

PROCESSOR = {
    "image_processor_type": "ViTImageProcessor",
    "do_resize": True,
    "size": {"height": SIZE, "width": SIZE},
    "resample": 2,
    "do_rescale": True,
    "rescale_factor": 1 / 255,
    "do_normalize": True,
    "image_mean": [0.5, 0.5, 0.5],
    "image_std": [0.5, 0.5, 0.5],
}


def configuration() -> ViTConfig:
    return ViTConfig(
        image_size=SIZE,
        patch_size=PATCH,
        hidden_size=96,
        num_hidden_layers=6,
        num_attention_heads=4,
        intermediate_size=288,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        id2label=dict(enumerate(KINDS)),
        label2id={kind: number for number, kind in enumerate(KINDS)},
    )


def pixels(images: Tensor) -> Tensor:
    """8-bit images as the image processor hands them over: from -1 to 1."""
    return images.float() / 127.5 - 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--steps", type=int, default=4500)
    parser.add_argument("--each", type=int, default=40)
    parser.add_argument("--probe-every", type=int, default=250)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()

    torch.manual_seed(given.seed)
    device = torch.device(given.device)
    pencil = Pencil(device, given.seed + 1)
    held_out, truth = Pencil(device, given.seed + 2).draw(each=100)
    model = ViTForImageClassification(configuration()).to(device)

    def loss_of_a_batch() -> Tensor:
        images, labels = pencil.draw(given.each)
        return F.cross_entropy(model(pixels(images)).logits.float(), labels)

    def probe() -> Row:
        logits = model(pixels(held_out)).logits
        return {
            "held_out_loss": F.cross_entropy(logits, truth).item(),
            "accuracy": (logits.argmax(1) == truth).float().mean().item(),
        }

    plan = Plan(given.steps, rate=1e-3, warm_up=500, probe_every=given.probe_every, decay=0.05)
    curve = []
    for row in fit(model, loss_of_a_batch, probe, plan):
        curve.append(row)
        save_model(model, given.out)
        write_curve(curve, given.out / "curve.csv")
    (given.out / "preprocessor_config.json").write_text(json.dumps(PROCESSOR, indent=2) + "\n")


if __name__ == "__main__":
    main()
