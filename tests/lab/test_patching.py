"""Are recovered shares those of surgery by hand, and do both directions say what they should?

The surgeon knows the modules of a GPT-2 by name and works with plain hooks of torch.
"""

from typing import Any

import pytest
import torch
from torch import Tensor

import attention_atlas as aa
from attention_atlas.lab.patching.result import Patching
from tests.edits.shapes import (
    HEADS,
    LAYERS,
    SHAPES,
    TOLERANCE,
    first,
    keeping,
    logits,
    projection_given,
    split,
)

GPT = SHAPES["GPT-2"]
ANSWER, WRONG = 17, 55
PROJECTION = "transformer.h.{}.attn.c_proj"
Case = tuple[Any, dict[str, Tensor], dict[str, Tensor]]


@pytest.fixture
def case() -> Case:
    """A GPT-2 in float64, a clean and a corrupt input that differ in two tokens."""
    model = GPT.build("eager")
    clean = first(GPT.tensors())
    corrupt = {"input_ids": clean["input_ids"].clone()}
    corrupt["input_ids"][0, [1, 4]] = torch.tensor([90, 91])
    return model, clean, corrupt


def pair(case: Case, **more: Any) -> dict[str, Any]:
    return {"clean": case[1], "corrupt": case[2], "answer": ANSWER, "wrong": WRONG, **more}


def metric(model: Any, tensors: dict[str, Tensor]) -> float:
    last = logits(model, tensors)[0, -1]
    return float(last[ANSWER] - last[WRONG])


def moved(model: Any, tensors: dict[str, Tensor]) -> list[Tensor]:
    """What the heads of each layer move, (N, H, D)."""
    seen: list[Tensor] = []
    handles = [
        model.get_submodule(PROJECTION.format(layer)).register_forward_pre_hook(
            lambda _module, args: seen.append(split(args[0], HEADS)[0].clone())
        )
        for layer in range(LAYERS)
    ]
    logits(model, tensors)
    for handle in handles:
        handle.remove()
    return seen


def transplanted(
    case: Case, base: dict[str, Tensor], source: dict[str, Tensor], layer: int, place: Any
) -> float:
    """The metric with what one head moves at some tokens, (tokens, head), taken from a source."""
    model = case[0]
    theirs = moved(model, source)[layer]

    def hook(_module: Any, args: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        heads = split(args[0], HEADS).clone()
        heads[(0, *place)] = theirs[place]
        return heads.flatten(-2), *args[1:]

    handle = model.get_submodule(PROJECTION.format(layer)).register_forward_pre_hook(hook)
    value = metric(model, base)
    handle.remove()
    return value


def share(case: Case, patched: float) -> float:
    model, clean, corrupt = case
    low = metric(model, corrupt)
    return (patched - low) / (metric(model, clean) - low)


def assert_shares(study: Patching, expected: dict[Any, float], columns: list[str]) -> None:
    for row in study.table.to_dict("records"):
        key = tuple(row[column] for column in columns)
        assert row["recovered"] == pytest.approx(expected[key], abs=TOLERANCE), key
    assert len(study.table) == len(expected)


def test_the_share_of_each_head_is_that_of_surgery_in_both_directions(case: Case) -> None:
    model, clean, corrupt = case
    study = aa.patching(model, pair(case))
    every: Any = slice(None)
    expected = {
        (direction, f"L{layer}H{head}"): share(
            case, transplanted(case, base, source, layer, (every, head))
        )
        for direction, base, source in (("denoise", corrupt, clean), ("noise", clean, corrupt))
        for layer in range(LAYERS)
        for head in range(HEADS)
    }
    assert_shares(study, expected, ["direction", "head"])
    assert study.table["recovered"].abs().max() > 1e-3


def test_the_share_of_each_head_and_token_is_that_of_surgery(case: Case) -> None:
    model, clean, corrupt = case
    study = aa.patching(model, pair(case), positions="each", direction="denoise", heads="L1")
    expected = {
        (f"L1H{head}", token): share(case, transplanted(case, corrupt, clean, 1, (token, head)))
        for head in range(HEADS)
        for token in range(clean["input_ids"].shape[1])
    }
    assert_shares(study, expected, ["head", "position"])


@pytest.mark.parametrize("what", ["pattern", "query", "key", "value"])
def test_other_sides_are_those_of_edits_one_by_one(case: Case, what: str) -> None:
    model, clean, corrupt = case
    study = aa.patching(model, pair(case), what=what, direction="denoise", heads="L1")
    expected = {}
    for head in range(HEADS):
        with aa.edit(model, aa.patch(f"L1H{head}", what, from_=clean), inputs=[corrupt]):
            patched = metric(model, corrupt)
        expected[(f"L1H{head}",)] = share(case, patched)
    assert_shares(study, expected, ["head"])


@pytest.mark.parametrize("name", ["probability", "loss"])
def test_other_metrics_are_read_from_the_logits(case: Case, name: str) -> None:
    model, clean, _ = case
    study = aa.patching(model, pair(case), metric=name, heads="L0H1", direction="denoise")
    last = torch.log_softmax(logits(model, clean)[0, -1], -1)[ANSWER]
    expected = float(last.exp()) if name == "probability" else -float(last)
    assert study.table["clean"].tolist() == pytest.approx([expected], rel=1e-9)


def test_a_path_is_the_senders_message_to_one_head_alone(case: Case) -> None:
    """By hand: what the sender moves in the source; the receiver's query, key or value where only
    that differs and all else is held; the base input with that vector."""
    model = case[0]
    for what, part in (("query", 0), ("key", 1), ("value", 2)):
        study = aa.patching(model, pair(case), through="L1H2", what=what, direction="denoise")
        expected = {
            (f"L0H{head}", "L1H2"): share(case, path_by_hand(case, head, 2, part))
            for head in range(HEADS)
        }
        assert_shares(study, expected, ["head", "through"])
    assert study.table["recovered"].abs().max() > 1e-4


def path_by_hand(case: Case, sender: int, receiver: int, part: int) -> float:
    """From a head of layer 0 to the query, key or value (part 0, 1, 2) of a head of layer 1.

    Between them lies one feed-forward layer, which gives what it gives plainly.
    """
    model, clean, corrupt = case
    theirs = moved(model, clean)[0]
    columns = slice(32 * part + 8 * receiver, 32 * part + 8 * receiver + 8)
    seen: list[Tensor] = []

    def send(_module: Any, args: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        heads = split(args[0], HEADS).clone()
        heads[0, :, sender] = theirs[:, sender]
        return heads.flatten(-2), *args[1:]

    def keep(_module: Any, _args: Any, output: Tensor) -> None:
        seen.append(output[..., columns].clone())

    def receive(_module: Any, _args: Any, output: Tensor) -> Tensor:
        changed = output.clone()
        changed[..., columns] = seen[0]
        return changed

    makes = model.get_submodule("transformer.h.1.attn.c_attn")
    between: list[Tensor] = []
    handle = model.transformer.h[0].mlp.register_forward_hook(
        lambda _module, _args, output: between.append(output)
    )
    logits(model, corrupt)
    handle.remove()
    handles = [
        model.transformer.h[0].mlp.register_forward_hook(lambda *_given: between[0]),
        model.get_submodule(PROJECTION.format(0)).register_forward_pre_hook(send),
        makes.register_forward_hook(keep),
    ]
    logits(model, corrupt)
    for handle in handles:
        handle.remove()
    handle = makes.register_forward_hook(receive)
    value = metric(model, corrupt)
    handle.remove()
    return value


def test_nothing_between_carries_a_path() -> None:
    """Four layers: by hand, all but the sender is held at what it gives plainly on the way."""
    import transformers as hf

    torch.manual_seed(0)
    config = hf.GPT2Config(vocab_size=99, n_embd=32, n_layer=4, n_head=HEADS, n_positions=64)
    model = hf.GPT2LMHeadModel(config).double().eval()
    for parameter in model.parameters():
        if parameter.dim() > 1:
            torch.nn.init.normal_(parameter, std=0.2)
    model.set_attn_implementation("eager")
    clean = first(GPT.tensors())
    corrupt = {"input_ids": clean["input_ids"].clone()}
    corrupt["input_ids"][0, 2] = 80
    base, source = held(model, corrupt), held(model, clean)
    seen: list[Tensor] = []
    for layer in range(4):
        base[layer][:, 1] = source[layer][:, 1] if layer == 0 else base[layer][:, 1]
    fed: list[Tensor] = []
    hooks = [
        block.mlp.register_forward_hook(lambda _module, _args, output: fed.append(output))
        for block in model.transformer.h
    ]
    logits(model, corrupt)
    for hook in hooks:
        hook.remove()
    hooks = [
        model.transformer.h[layer].attn.c_proj.register_forward_pre_hook(_giving(base[layer]))
        for layer in range(3)
    ] + [
        model.transformer.h[layer].mlp.register_forward_hook(_made(fed[layer]))
        for layer in range(3)
    ]
    makes = model.transformer.h[3].attn.c_attn
    hooks.append(makes.register_forward_hook(lambda _m, _a, out: seen.append(out[..., :8].clone())))
    logits(model, corrupt)
    for hook in hooks:
        hook.remove()

    def receive(_module: Any, _args: Any, output: Tensor) -> Tensor:
        changed = output.clone()
        changed[..., :8] = seen[0]
        return changed

    handle = makes.register_forward_hook(receive)
    patched = metric(model, corrupt)
    handle.remove()
    expected = share((model, clean, corrupt), patched)
    study = aa.patching(
        model, pair((model, clean, corrupt)), heads="L0H1", through="L3H0", what="query",
        direction="denoise",
    )  # fmt: skip
    assert study.table["recovered"].tolist() == pytest.approx([expected], abs=TOLERANCE)


def held(model: Any, tensors: dict[str, Tensor]) -> list[Tensor]:
    seen: list[Tensor] = []
    hooks = [
        block.attn.c_proj.register_forward_pre_hook(
            lambda _module, args: seen.append(split(args[0], HEADS)[0].clone())
        )
        for block in model.transformer.h
    ]
    logits(model, tensors)
    for hook in hooks:
        hook.remove()
    return seen


def _made(output: Tensor) -> Any:
    return lambda *_given: output


def _giving(heads: Tensor) -> Any:
    return lambda _module, args: (heads.flatten(-2)[None], *args[1:])


def test_heads_that_share_a_key_are_patched_together_and_have_one_share() -> None:
    shape = SHAPES["Llama"]
    model, clean, corrupt = shape.build("eager"), first(shape.tensors()), first(shape.tensors(5))
    ask = {"clean": clean, "corrupt": corrupt, "answer": ANSWER, "wrong": WRONG}
    table = aa.patching(model, ask, what="key", heads="L1H0", direction="noise").table
    assert table["head"].tolist() == ["L1H0", "L1H1"]
    assert table["recovered"].nunique() == 1
    through = aa.patching(model, ask, through="L1H2", what="value", direction="noise").table
    assert set(through["through"]) == {"L1H2+L1H3"}


def test_the_picture_has_a_square_a_head_and_the_table_is_saved(case: Case, tmp_path: Any) -> None:
    study = aa.patching(case[0], [pair(case), pair(case)])
    picture = study.picture("noise")
    assert picture.count("<title>") == LAYERS * HEADS
    assert "output, noise" in picture and "<title>L1H3: " in picture
    assert study.summary()["pairs"].unique().tolist() == [2]
    study.save(tmp_path / "study.svg")
    study.save(tmp_path / "study.csv")
    assert (tmp_path / "study.svg").read_text("utf-8") == study.picture()
    assert (tmp_path / "study.csv").read_text("utf-8").count("\n") == 2 * 2 * LAYERS * HEADS + 1
    with pytest.raises(aa.PickError, match="no direction 'up' was studied"):
        study.picture("up")
    with pytest.raises(aa.InputError, match=r"saved as \.svg or \.csv"):
        study.save(tmp_path / "study.pdf")


def test_paths_are_refused_where_a_norm_follows_the_sum() -> None:
    shape = SHAPES["BERT"]
    ask = {"clean": first(shape.tensors()), "corrupt": first(shape.tensors(5)), "answer": ANSWER}
    with pytest.raises(aa.ModelError, match="so single paths cannot be told apart"):
        aa.patching(shape.build("eager"), ask, metric="loss", through="L1H0")


@pytest.mark.filterwarnings("ignore")  # what the models themselves warn of
@pytest.mark.parametrize("name", SHAPES)
def test_a_head_of_every_shape_is_patched_as_by_surgery(name: str) -> None:
    """Language models are read at their last token, the classifier of pictures at its labels."""
    shape = SHAPES[name]
    model, clean, corrupt = shape.build("eager"), first(shape.tensors()), first(shape.tensors(5))

    def difference(tensors: dict[str, Tensor]) -> float:
        found = logits(model, tensors)[0]
        return float((found if found.dim() == 1 else found[-1])[[3, 5]].diff()[0])

    seen: list[Tensor] = []
    with projection_given(shape, model, keeping(seen)):
        difference(clean)

    def change(heads: Tensor) -> Tensor:
        heads[:, :, 2] = seen[0][:, :, 2]
        return heads

    with projection_given(shape, model, change):
        patched = difference(corrupt)
    high, low = difference(clean), difference(corrupt)
    ask = {"clean": clean, "corrupt": corrupt, "answer": 5, "wrong": 3}
    study = aa.patching(model, ask, heads=f"{shape.layer}H2", direction="denoise")
    assert study.table["recovered"].tolist() == pytest.approx(
        [(patched - low) / (high - low)], abs=TOLERANCE / abs(high - low)
    )
