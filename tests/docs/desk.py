"""What lies in the folder of somebody who follows the documents?

The names of the documents are real here: `your/model` is a folder with a small GPT, `photos/` holds
pictures, `x.atlas` an atlas. So every line runs as it is printed.
"""

import contextlib
import json
import shutil
from pathlib import Path
from typing import Any

import torch
import transformers

import attention_atlas as aa
from attention_atlas.models.load import load
from tests.docs.blocks import blocks
from tests.docs.follow import run_command
from training.draw import KINDS, Pencil

FIRST = "The doctor asked the nurse a question, but she was not sure that he had heard her."
# What several documents build by the same line is built once.
BUILT = (
    ("your/model", "texts.txt", "your.atlas"),
    ("google/vit-base-patch16-224", "photos/", "photos.atlas"),
)
TREES = """\
# text = The king sleeps.
1\tThe\tthe\tDET\t_\t_\t2\tdet\t_\t_
2\tking\tking\tNOUN\t_\t_\t3\tnsubj\t_\t_
3\tsleeps\tsleep\tVERB\t_\t_\t0\troot\t_\tSpaceAfter=No
4\t.\t.\tPUNCT\t_\t_\t3\tpunct\t_\t_
"""


def furnish(desk: Path) -> None:
    """Fill a folder with all that the documents name."""
    texts = [FIRST, "The king sleeps.", *short_texts()]
    (desk / "texts.txt").write_text("\n".join(texts) + "\n", encoding="utf-8")
    (desk / "trees.conllu").write_text(TREES + "\n", encoding="utf-8")
    _models(desk)
    _photos(desk / "photos")
    test = next(block for block in blocks("docs/tests.md") if block.language == "json")
    (desk / "bias.json").write_text(json.dumps(json.loads(test.code)), encoding="utf-8")
    atlas = aa.capture("builtin:gpt", texts, path=desk / "x.atlas", progress=False)
    atlas.layout("pca", progress=False)
    aa.capture("builtin:gpt", texts[:4], path=desk / "a.atlas", progress=False)
    aa.capture("builtin:bert", texts[:4], path=desk / "b.atlas", progress=False)
    with contextlib.chdir(desk):  # the lines that build are then skipped by what is already done
        for model, inputs, path in BUILT:
            assert run_command(["attention-atlas", "build", model, inputs, "-o", path]) == 0
    for step in (0, 500, 1000):
        shutil.copytree(desk / "your" / "model", desk / "run" / f"checkpoint-{step}")


def short_texts() -> list[str]:
    """Many texts, since an estimate needs many, and short ones, since maps of them take time."""
    pairs = ((who, where) for who in ("cat", "king", "boy", "ship", "dog", "man") for where in
             ("river", "door", "house", "garden", "wood", "king"))  # fmt: skip
    return [f"The {who} saw the {where}." for who, where in pairs]


def _models(desk: Path) -> None:
    here = Path(aa.__file__).parent / "models" / "builtin"
    for name, model in {
        "your/model": "gpt", "gpt2": "gpt", "google/vit-base-patch16-224": "vit"
    }.items():  # fmt: skip
        shutil.copytree(here / model, desk / name)
    _adapter(desk / "my-lora")
    _segmenter(desk / "your" / "segmenter")
    _long(desk / "long.atlas")


def _adapter(path: Path) -> None:
    import peft

    settings = peft.LoraConfig(r=2, target_modules=["c_attn"], init_lora_weights=False)
    model: Any = load("builtin:gpt").model
    peft.get_peft_model(model, settings).save_pretrained(str(path))


def _segmenter(path: Path) -> None:
    settings = transformers.SegformerConfig(
        num_encoder_blocks=2, depths=[1, 1], sr_ratios=[2, 1], hidden_sizes=[8, 8],
        num_attention_heads=[1, 1], patch_sizes=[3, 3], strides=[2, 2], decoder_hidden_size=8,
        num_labels=3,
    )  # fmt: skip
    transformers.SegformerForSemanticSegmentation(settings).save_pretrained(path)
    transformers.SegformerImageProcessor(size={"height": 32, "width": 32}).save_pretrained(path)


def _long(path: Path) -> None:
    """An atlas of one input that is long enough for tiles."""
    settings = transformers.LlamaConfig(
        vocab_size=64, hidden_size=16, intermediate_size=16, num_hidden_layers=6,
        num_attention_heads=2, num_key_value_heads=2, max_position_embeddings=4096,
    )  # fmt: skip
    torch.manual_seed(0)
    model = transformers.LlamaForCausalLM(settings).eval()
    ids = torch.randint(64, (1, 3200), generator=torch.Generator().manual_seed(0))
    aa.capture(model, [{"input_ids": ids}], path=path, progress=False)


def _photos(folder: Path) -> None:
    from PIL import Image

    folder.mkdir()
    images, _ = Pencil(torch.device("cpu"), seed=5).draw(1)
    for kind, image in list(zip(KINDS, images, strict=True))[:4]:
        Image.fromarray(image.permute(1, 2, 0).numpy()).save(folder / f"{kind}.png")
