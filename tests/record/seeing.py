"""Small random models that see, in which every token still shows what it was made of.

What attention and MLPs would add to the residual stream is taken out, so a token of any layer
depends on its own patch alone. So the picture itself can be asked where a token sits: brighten a
spot and see which token changes.
"""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
import transformers as hf
from PIL import Image
from tokenizers import Tokenizer, models, pre_tokenizers

WIDTH: dict[str, Any] = {
    "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 16,
}  # fmt: skip
# What writes into the residual stream, as model authors call it.
_WRITERS = (
    "attention.output.dense", "attention.o_proj", "output.dense", "self_attn.out_proj", "mlp.fc2",
    "attn.proj", "mlp.down_proj", "self_attn.o_proj", "attention.out_proj", "mlp.lin2",
    "mlp.dense2",
)  # fmt: skip
_WORDS = ["<pad>", "<s>", "</s>", "<unk>", "<image>", "<|image_pad|>", "<|video_pad|>",
          "<|vision_start|>", "<|vision_end|>", "what", "is", "this"]  # fmt: skip


def local(model: Any) -> Any:
    """The same model, with each token kept to itself."""
    torch.manual_seed(0)
    for name, parameter in model.named_parameters():
        if parameter.dim() > 1:
            torch.nn.init.normal_(parameter, std=0.3)
        if any(name.endswith((f"{end}.weight", f"{end}.bias")) for end in _WRITERS):
            torch.nn.init.zeros_(parameter)
    return model.eval()


def tokenizer() -> Any:
    inner = Tokenizer(
        models.WordLevel({word: i for i, word in enumerate(_WORDS)}, unk_token="<unk>")
    )
    inner.pre_tokenizer = pre_tokenizers.Whitespace()
    return hf.PreTrainedTokenizerFast(
        tokenizer_object=inner, pad_token="<pad>", bos_token="<s>", eos_token="</s>",
        unk_token="<unk>", extra_special_tokens=_WORDS[4:9],
    )  # fmt: skip


def stretched(height: int, width: int) -> Any:
    return hf.ViTImageProcessorPil(size={"height": height, "width": width})


def cropped(side: int) -> Any:
    return hf.CLIPImageProcessorPil(
        size={"shortest_edge": side}, crop_size={"height": side, "width": side}
    )


def grey(size: tuple[int, int]) -> Image.Image:
    return Image.new("RGB", size, (90, 90, 90))


def spotted(
    size: tuple[int, int], box: npt.NDArray[np.floating], inner: float = 0.5
) -> Image.Image:
    """A grey picture with the middle of a box, in fractions of the picture, made white."""
    pixels = np.array(grey(size))
    middle, half = (box[:2] + box[2:]) / 2, (box[2:] - box[:2]) / 2 * inner
    left, top = np.floor((middle - half) * size).astype(int)
    right, bottom = np.ceil((middle + half) * size).astype(int)
    pixels[max(top, 0) : bottom, max(left, 0) : right] = 255
    return Image.fromarray(pixels)


def save(pictures: list[Image.Image], folder: Path) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{number}.png" for number in range(len(pictures))]
    for picture, path in zip(pictures, paths, strict=True):
        picture.save(path)
    return paths
