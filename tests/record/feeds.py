"""Two inputs of each kind that the models of the zoo take, as ready tensors.

The first input of a feed is the longest, so that in a batch only the second one is padded.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Generator, Tensor

from attention_atlas.models.tokens import Encoded, bare_tokens

Feed = Callable[[Generator], list[Encoded]]

WORDS = 99
IMAGE = 7  # the id that stands for a piece of a picture inside a text


def encoded(**tensors: Tensor) -> Encoded:
    """Ready tensors as one input; its streams are those that have ids."""
    sides = {"input_ids": "encoder" if "decoder_input_ids" in tensors else "text"}
    sides["decoder_input_ids"] = "decoder"
    streams = {
        stream: bare_tokens(tensors[name][0].tolist(), None)
        for name, stream in sides.items()
        if name in tensors
    }
    return Encoded(tensors, streams, False)


def ids(dice: Generator, n: int, side: str = "") -> dict[str, Tensor]:
    some = torch.randint(10, WORDS, (1, n), generator=dice)
    return {f"{side}input_ids": some, f"{side}attention_mask": torch.ones_like(some)}


def normal(dice: Generator, *shape: int) -> Tensor:
    return torch.randn(1, *shape, generator=dice)


def text(dice: Generator) -> list[Encoded]:
    return [encoded(**ids(dice, n)) for n in (9, 6)]


def long_text(n: int) -> Feed:
    return lambda dice: [encoded(**ids(dice, n)) for _ in range(2)]


def left_padded_text(dice: Generator) -> list[Encoded]:
    first, second = ids(dice, 9), ids(dice, 9)
    second["attention_mask"][0, :3] = 0
    return [encoded(**first), encoded(**second)]


def text_to_text(dice: Generator) -> list[Encoded]:
    return [encoded(**ids(dice, n), **ids(dice, m, "decoder_")) for n, m in ((9, 7), (6, 5))]


def tensor(name: str, *shape: int) -> Feed:
    return lambda dice: [encoded(**{name: normal(dice, *shape)}) for _ in range(2)]


def tensor_to_text(name: str, *shape: int) -> Feed:
    def feed(dice: Generator) -> list[Encoded]:
        heard = [normal(dice, *shape) for _ in range(2)]
        return [
            encoded(**{name: x}, **ids(dice, n, "decoder_"))
            for x, n in zip(heard, (7, 5), strict=True)
        ]

    return feed


def image_and_noise(dice: Generator) -> list[Encoded]:
    """A masked autoencoder shuffles its patches by noise, which it makes up unless given."""
    noise = [torch.rand(1, 16, generator=dice) for _ in range(2)]
    return [encoded(pixel_values=normal(dice, 3, 32, 32), noise=one) for one in noise]


def text_and(name: str, *shape: int) -> Feed:
    return lambda dice: [encoded(**ids(dice, n), **{name: normal(dice, *shape)}) for n in (9, 6)]


def text_with_image(pieces: int, *shape: int, **more: Any) -> Feed:
    """A text that has a picture after its first token; `more` adds tensors made from the ids."""

    def one(dice: Generator, n: int) -> Encoded:
        tensors = ids(dice, n + pieces)
        tensors["input_ids"][0, 1 : 1 + pieces] = IMAGE
        tensors["pixel_values"] = normal(dice, *shape)
        tensors |= {name: make(tensors["input_ids"]) for name, make in more.items()}
        return encoded(**tensors)

    return lambda dice: [one(dice, 6), one(dice, 4)]


def is_image(some: Tensor) -> Tensor:
    return (some == IMAGE).long()


def ones(*shape: int) -> Callable[[Tensor], Tensor]:
    return lambda _ids: torch.ones(1, *shape, dtype=torch.long)


def text_with_packed_image(dice: Generator) -> list[Encoded]:
    """Qwen's way: the patches of all pictures in one row, and grids that say whose they are."""

    def one(n: int) -> Encoded:
        tensors = ids(dice, n)
        tensors["input_ids"][0, 1:7] = torch.tensor([4, *[IMAGE] * 4, 5])
        patches = normal(dice, 16, 3 * 2 * 4 * 4)[0]
        grid = torch.tensor([[1, 4, 4]])
        kinds = is_image(tensors["input_ids"])
        return encoded(
            **tensors, pixel_values=patches, image_grid_thw=grid, mm_token_type_ids=kinds
        )

    return [one(12), one(10)]


image = tensor("pixel_values", 3, 32, 32)
film = tensor("pixel_values", 2, 3, 32, 32)
sound = tensor("input_values", 400)
text_and_image = text_and("pixel_values", 3, 32, 32)
