"""Does TransformerLens, with patching of its own, find the same numbers, and how long does it take?

    pip install --target FOLDER --no-deps transformer_lens einops fancy_einsum jaxtyping beartype \
        typeguard wadler_lindig datasets multiprocess dill xxhash fsspec wandb
    PYTHONPATH=FOLDER python -m benchmarks.transformer_lens

It is installed beside the environment, without its dependencies, so that torch and transformers
stay what they are. Both sides get the same live model, the same tokens and the same metric (the
difference of two logits at the last token), and patch from the clean into the corrupt input. Each
side gets a copy of the model, since TransformerLens rebuilds the one that it is given.
"""

import copy
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from transformers import GPT2Config, GPT2LMHeadModel

import attention_atlas as aa
from attention_atlas.models.load import load
from benchmarks.machine import about

RESULTS = Path(__file__).parent / "transformer_lens.md"
TOKENS = 15
WHATS = ("output", "query", "key", "value", "pattern")
Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Case:
    """One model with a clean and a corrupt input."""

    name: str
    model: Any
    clean: Tensor  # (1, N)
    corrupt: Tensor
    answer: int
    wrong: int

    @property
    def pair(self) -> dict[str, Any]:
        return {
            "clean": {"input_ids": self.clean}, "corrupt": {"input_ids": self.corrupt},
            "answer": self.answer, "wrong": self.wrong,
        }  # fmt: skip

    def metric(self, logits: Tensor) -> Tensor:
        return logits[0, -1, self.answer] - logits[0, -1, self.wrong]


def random_case() -> Case:
    """The shape of GPT-2 with random weights, large enough that heads matter."""
    torch.manual_seed(0)
    model = GPT2LMHeadModel(GPT2Config()).eval()
    for weights in model.parameters():
        if weights.dim() > 1:
            torch.nn.init.normal_(weights, std=0.05)
    clean = torch.randint(0, 50257, (1, TOKENS))
    corrupt = clean.clone()
    corrupt[0, 4] = 1234
    return Case("GPT-2 shape, random weights (12 × 12)", model, clean, corrupt, 17, 4321)


def builtin_case() -> Case:
    loaded = load("builtin:gpt", device="cpu")
    text = "He saw the lady near the church and he saw the lady. He saw the"
    ids = [loaded.tokenizer(words, return_tensors="pt")["input_ids"]
           for words in (text, text.replace("lady", "horse"))]  # fmt: skip
    words = [loaded.tokenizer(word, add_special_tokens=False)["input_ids"][-1]
             for word in (" lady", " horse")]  # fmt: skip
    return Case("builtin:gpt (6 × 6)", loaded.model, *ids, *words)


class Lens:
    """The same model in TransformerLens."""

    def __init__(self, case: Case):
        bridges = import_module("transformer_lens.model_bridge")
        self.case = case
        self.patching = import_module("transformer_lens.patching")
        self.model = bridges.TransformerBridge.boot_transformers(
            "gpt2",
            hf_model=copy.deepcopy(case.model),
            tokenizer=load("builtin:gpt").tokenizer,
            device="cpu",
        )
        self.model.eval()
        self.given = {"model": self.model, "corrupted_tokens": case.corrupt,
                      "patching_metric": case.metric}  # fmt: skip

    def heads(self, what: str, by_position: bool = False) -> Numbers:
        """The metric with each head patched, (L, H) or (L, N, H)."""
        side = {"output": "out", "query": "q", "key": "k", "value": "v", "pattern": "pattern"}[what]
        name = f"get_act_patch_attn_head_{side}_{'by' if by_position else 'all'}_pos"
        with torch.no_grad():
            _, cache = self.model.run_with_cache(self.case.clean)
            found = getattr(self.patching, name)(clean_cache=cache, **self.given)
        return np.asarray(found.detach().double())

    def apart(self) -> str:
        """How far the plain logits of both sides are apart: what rounding alone does."""
        with torch.no_grad():
            plain = self.case.model(self.case.corrupt).logits
            largest = float((self.model(self.case.corrupt) - plain).abs().max())
        return f"Plain logits of {self.case.name} differ by {largest:.1e} between the two."

    def paths(self, what: str) -> Numbers:
        """The metric of each path, (L, H, L, H)."""
        with torch.no_grad():
            _, clean = self.model.run_with_cache(self.case.clean)
            _, corrupt = self.model.run_with_cache(self.case.corrupt)
            found = self.patching.get_act_patch_direct_path_all_sources(
                clean_cache=clean, corrupted_cache=corrupt, component=what[0], verbose=False,
                **self.given,
            )  # fmt: skip
        return np.asarray(found.detach().double())


def ours(case: Case, what: str, by_position: bool = False) -> Numbers:
    positions = "each" if by_position else None
    table = aa.patching(
        case.model, case.pair, what=what, direction="denoise", positions=positions
    ).table
    layers, heads = case.model.config.n_layer, case.model.config.n_head
    values = table["patched"].to_numpy().reshape(layers, heads, -1)
    return values.transpose(0, 2, 1) if by_position else values[..., 0]


def our_paths(case: Case, what: str) -> Numbers:
    table = aa.patching(case.model, case.pair, what=what, direction="denoise", through="all").table
    layers, heads = case.model.config.n_layer, case.model.config.n_head
    found = np.zeros((layers, heads, layers, heads))
    for sender, receiver, value in zip(
        table["head"], table["through"], table["patched"], strict=True
    ):
        (a, b), (c, d) = (map(int, name[1:].split("H")) for name in (sender, receiver))
        found[a, b, c, d] = value
    return found


def timed(work: Callable[[], Numbers]) -> tuple[Numbers, float]:
    began = time.process_time()
    found = work()
    return found, time.process_time() - began


def row(name: str, mine: Callable[[], Numbers], theirs: Callable[[], Numbers]) -> str:
    """One line of the table: the largest difference, beside how much patches change at all."""
    mine()  # both are warm: we ask a model for its layers only once
    first, seconds = timed(mine)
    second, other = timed(theirs)
    patched = second != 0
    apart = float(np.abs(first - second)[patched].max())
    spread = float(np.ptp(second[patched]))
    line = (
        f"| {name} | {int(patched.sum())} | {apart:.1e} | {spread:.3g} | {seconds:.2f} | "
        f"{other:.2f} | {other / seconds:.1f} |"
    )
    print(line, flush=True)
    return line


def main() -> None:
    torch.set_num_threads(1)  # both sides alike, also on a machine that others use
    lines = [
        "# Patching beside TransformerLens", "", about(), "",
        f"transformer_lens {version('transformer_lens')}, installed beside the environment without "
        "its dependencies, so both run the same torch and transformers. Metric: difference of two "
        "logits, denoise, float32. Times are seconds of one processor core. *Range* is how much "
        "the metric differs between patches. Setting a model up is not counted on either side.", "",
        "| what is patched | patches | largest difference | range | ours, s | TransformerLens, s | "
        "times as fast |",
        "|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    rounding: list[str] = []
    for case in (builtin_case(), random_case()):
        small, lens = case.model.config.n_layer < 12, Lens(case)
        rounding.append(lens.apart())
        for what in WHATS if small else ("output", "pattern"):
            name = f"{case.name}: {what} of each head"
            lines.append(row(name, partial(ours, case, what), partial(lens.heads, what)))
        if small:
            name = f"{case.name}: output of each head and token"
            lines.append(
                row(name, partial(ours, case, "output", True), partial(lens.heads, "output", True))
            )
            for what in ("query", "key", "value"):
                name = f"{case.name}: paths into each {what}"
                lines.append(row(name, partial(our_paths, case, what), partial(lens.paths, what)))
    lines += ["", *rounding]
    RESULTS.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
