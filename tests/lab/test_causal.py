"""Are the effects of heads those of a plain loop that edits one head of one input at a time?

The loop uses `aa.ablate` over whole passes. Direct effects are worked out by hand from the modules.
"""

from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

import attention_atlas as aa
from attention_atlas.edits.anatomy import anatomy
from attention_atlas.edits.apply import editing
from attention_atlas.edits.inputs import freeze
from attention_atlas.lab.causal.exchange import Pool
from attention_atlas.lab.causal.slopes import slopes
from attention_atlas.lab.causal.sweep import Sweep
from attention_atlas.lab.causal.task import prepare, task_of
from attention_atlas.models.encode import encode
from attention_atlas.models.inputs import read_inputs
from attention_atlas.models.load import load
from tests.edits.shapes import HEADS, LAYERS, SHAPES, WORDS, first, split
from tests.lab.test_replay import ALBERT
from tests.tolerance import chain_tolerance

pytestmark = pytest.mark.filterwarnings("ignore")
LENGTHS = (7, 5, 7, 6)
TEXTS = [
    "The doctor asked the nurse a question.", "She knew that he was late.", "Why not?",
    "One cat, two cats and one cat again.", "The old man gave the boy his medicine.",
]  # fmt: skip


def texts(kind: str = "text") -> list[dict[str, Tensor]]:
    dice = torch.Generator().manual_seed(3)
    ids = [torch.randint(10, WORDS, (1, n), generator=dice) for n in LENGTHS]
    if kind == "text":
        return [{"input_ids": each} for each in ids]
    targets = [torch.randint(10, WORDS, (1, n - 1), generator=dice) for n in LENGTHS]
    return [
        {"input_ids": each, "decoder_input_ids": target}
        for each, target in zip(ids, targets, strict=True)
    ]


def next_loss(logits: Tensor, tensors: dict[str, Tensor]) -> float:
    ids = tensors.get("decoder_input_ids", tensors["input_ids"])
    return float(F.cross_entropy(logits[0, :-1].double(), ids[0, 1:]))


def naive(
    model: Any, inputs: list[dict[str, Tensor]], names: list[str], by: str, loss: Any = next_loss
) -> Any:
    """The mean effect of each head, one head and one input at a time, over whole passes."""
    loaded = load(model)
    known = anatomy(loaded, [encode(loaded, each) for each in read_inputs(inputs)[:2]])
    options: dict[str, Any] = {} if by == "zero" else {"from_": inputs}
    if by == "resample":
        options["seed"] = 5
    effects = np.zeros((len(inputs), len(names)))
    for number, tensors in enumerate(inputs):
        with torch.no_grad():
            plain = loss(model(**tensors).logits, tensors)
            for place, name in enumerate(names):
                with editing(loaded, [aa.ablate(name, by, **options)], known) as stack:
                    stack.numbers, stack.own = (number,), {number: freeze(tensors)}
                    changed = loss(model(**tensors).logits, tensors)
                effects[number, place] = changed - plain
    return effects.mean(0)


OFTEN = {("GPT-2", "mean"), ("Llama", "resample"), ("T5", "zero")}


@pytest.mark.parametrize(
    ("name", "by"),
    [
        pytest.param(*pair, marks=() if pair in OFTEN else pytest.mark.full)
        for pair in product(["GPT-2", "Llama", "T5"], ["zero", "mean", "resample"])
    ],
)
def test_effects_are_those_of_a_plain_loop(name: str, by: str) -> None:
    model = SHAPES[name].build()
    inputs = texts("pair" if name == "T5" else "text")
    table = aa.causal(model, inputs, by=by, seed=5, progress=False)
    heads = list(table["head"])[:: 5 if name == "T5" else 1]
    expected = naive(model, inputs, heads, by)
    found = table.set_index("head").loc[heads, "effect"].to_numpy()
    # In float64; what models compute in float32 is off by 1e-6 of the largest logit (see shapes).
    assert np.abs(found - expected).max() <= 1e-5
    assert np.abs(expected).max() > 1e-2
    assert len(table) == HEADS * LAYERS * (3 if name == "T5" else 1)
    assert set(table["n"]) == {len(LENGTHS)}


def test_models_that_share_layers_run_whole_and_give_the_same() -> None:
    albert, tokenizer = ALBERT.build(), load("builtin:bert").tokenizer
    albert.resize_token_embeddings(len(tokenizer))
    table = aa.causal(albert, TEXTS[:3], tokenizer, by="zero", progress=False)
    assert table["direct"].isna().all() and "cannot start at a layer" in table.attrs["notes"][0]
    hidden = hide(tokenizer, TEXTS[:3], 0)
    expected = naive(albert, [each[0] for each in hidden], list(table["head"]), "zero",
                     masked_loss(hidden))  # fmt: skip
    assert np.abs(table["effect"] - expected).max() <= 1e-5


def test_a_classifier_loses_the_label_that_it_gives_itself() -> None:
    model = SHAPES["ViT"].build()
    pictures = SHAPES["ViT"].tensors()["pixel_values"]
    inputs = [{"pixel_values": pictures[:1]}, {"pixel_values": pictures[1:]}]
    labels = [int(model(**each).logits.argmax()) for each in inputs]

    def own_label(logits: Tensor, tensors: dict[str, Tensor]) -> float:
        place = 0 if torch.equal(tensors["pixel_values"], pictures[:1]) else 1
        return float(F.cross_entropy(logits, torch.tensor([labels[place]])))

    table = aa.causal(model, inputs, by="zero", progress=False)
    expected = naive(model, inputs, list(table["head"]), "zero", own_label)
    assert np.abs(table["effect"] - expected).max() <= 1e-5
    assert table.attrs["predicts"] == "label"
    assert table["low"].isna().all()  # two inputs give no interval


Hidden = list[tuple[dict[str, Tensor], list[int], Tensor]]


def hide(tokenizer: Any, lines: list[str], seed: int) -> Hidden:
    """Tensors with hidden tokens, drawn as documented, where they are and what they were."""
    hidden = []
    for number, text in enumerate(lines):
        coded = tokenizer(text, return_tensors="pt", return_special_tokens_mask=True)
        special = coded.pop("special_tokens_mask")[0].tolist()
        plain = [place for place, flag in enumerate(special) if not flag]
        count = max(1, round(0.15 * len(plain)))
        drawn = np.random.default_rng([seed, number]).permutation(plain)[:count].tolist()
        ids = coded["input_ids"].clone()
        coded["input_ids"][0, drawn] = tokenizer.mask_token_id
        hidden.append((dict(coded), drawn, ids[0, drawn]))
    return hidden


def masked_loss(hidden: Hidden) -> Any:
    def loss(logits: Tensor, tensors: dict[str, Tensor]) -> float:
        right = next(x for x in hidden if torch.equal(x[0]["input_ids"], tensors["input_ids"]))
        return float(F.cross_entropy(logits[0, right[1]].double(), right[2]))

    return loss


def test_masked_tokens_are_predicted_by_models_that_look_both_ways() -> None:
    bert = load("builtin:bert")
    table = aa.causal(bert, TEXTS[:3], by="zero", seed=2, progress=False)
    hidden = hide(bert.tokenizer, TEXTS[:3], 2)
    heads = list(table["head"])[::5]
    expected = naive(bert.model, [x[0] for x in hidden], heads, "zero", masked_loss(hidden))
    got = table.set_index("head")["effect"].loc[heads].to_numpy()
    config = bert.model.config
    with torch.no_grad():
        logits = bert.model(**hidden[0][0]).logits
    # A loss moves by at most twice what a logit does.
    bound = 2 * chain_tolerance(logits, config.num_hidden_layers, config.hidden_size)
    assert np.abs(got - expected).max() <= bound
    assert np.abs(expected).max() > 10 * bound
    assert table.attrs["predicts"] == "masked"


def test_the_direct_effect_is_the_change_of_what_enters_the_last_norm() -> None:
    """GPT-2: the projection of the change is added to the last residual, by hand."""
    model = SHAPES["GPT-2"].build()
    inputs = texts()
    table = aa.causal(model, inputs, by="zero", progress=False).set_index("head")
    for layer in range(LAYERS):
        projection = model.transformer.h[layer].attn.c_proj
        for head in range(HEADS):
            effects = [_direct_gpt2(model, each, projection, head) for each in inputs]
            assert table.loc[f"L{layer}H{head}", "direct"] == pytest.approx(
                np.mean(effects), abs=1e-5
            )
    assert np.allclose(table["gap"], table["direct"] - table["effect"], rtol=0, atol=1e-12)


def _direct_gpt2(model: Any, tensors: dict[str, Tensor], projection: Any, head: int) -> float:
    seen: dict[str, Tensor] = {}
    hooks = [
        projection.register_forward_pre_hook(lambda _m, args: seen.update(moved=args[0])),
        model.transformer.ln_f.register_forward_pre_hook(
            lambda _m, args: seen.update(residual=args[0])
        ),
    ]
    with torch.no_grad():
        plain = next_loss(model(**tensors).logits, tensors)
        for hook in hooks:
            hook.remove()
        without = split(seen["moved"], HEADS).clone()
        without[:, :, head] = 0
        change = projection(without.flatten(-2)) - projection(seen["moved"])
        logits = model.lm_head(model.transformer.ln_f(seen["residual"] + change))
    return next_loss(logits, tensors) - plain


def test_the_direct_effect_passes_through_norms_that_stand_after_layers() -> None:
    """BERT: every later dense layer adds what it added in the plain run, by hand."""
    bert = load("builtin:bert")
    table = aa.causal(bert, TEXTS[:2], by="zero", seed=2, progress=False).set_index("head")
    assert table["direct"].notna().all()
    last = bert.model.config.num_hidden_layers - 1
    assert (table["direct"] - table["effect"]).abs().max() > 1e-3
    layer = bert.model.bert.encoder.layer[last]
    head, width = 1, layer.attention.self.attention_head_size
    text = bert.tokenizer(TEXTS[0], return_tensors="pt")
    kept: dict[str, Tensor] = {}
    hooks = [
        layer.attention.output.dense.register_forward_pre_hook(
            lambda _m, args: kept.update(moved=args[0])),
        layer.attention.output.register_forward_pre_hook(
            lambda _m, args: kept.update(entered=args[1])),
        layer.output.dense.register_forward_hook(
            lambda _m, _args, output: kept.update(added=output)),
    ]  # fmt: skip
    with torch.no_grad():
        bert.model(**text)
        for hook in hooks:
            hook.remove()
        moved = kept["moved"].clone()
        moved[..., head * width : (head + 1) * width] = 0
        out = layer.attention.output
        middle = out.LayerNorm(out.dense(moved) + kept["entered"])
        logits = bert.model.cls(layer.output.LayerNorm(kept["added"] + middle))
    from attention_atlas.lab.blocks import giving, keeping
    from attention_atlas.lab.causal.frozen import find_freezing, gives
    from attention_atlas.lab.replay import Replay

    replay = Replay(bert, dict(text))
    freezing = find_freezing(replay)
    with keeping(freezing.matrices) as frozen:
        replay = Replay(bert, dict(text))
    named = next(x for x in replay.known.layers if x.number == last)
    live = freezing.projections[named]
    with giving(gives(frozen, 1, live)):
        mine = replay.forward([aa.ablate(f"L{last}H{head}")], 1, replay.starts[named])["logits"]
    assert float((mine - logits).abs().max()) <= 1e-5 * float(logits.abs().max())


def test_the_control_is_the_mean_of_the_other_heads_of_the_layer() -> None:
    table = aa.causal(SHAPES["GPT-2"].build(), texts(), by="zero", progress=False)
    rows = table.set_index("head")["effect"]
    others = np.mean([rows["L1H0"], rows["L1H1"], rows["L1H3"]])
    assert table.set_index("head").loc["L1H2", "control"] == pytest.approx(others)


def test_the_head_that_copies_matters_most_on_repeated_words() -> None:
    """`builtin:gpt` loses its copying without L4H5 (docs/edits.md)."""
    gpt = load("builtin:gpt")
    dice = torch.Generator().manual_seed(0)
    rows = torch.randint(300, 2000, (6, 12), generator=dice)
    inputs = [{"input_ids": torch.cat([row, row])[None]} for row in rows]
    table = aa.causal(gpt, inputs, by="zero", progress=False)
    best = table.sort_values("effect", ascending=False).iloc[0]
    assert best["head"] == "L4H5"
    assert best["low"] > 0.1 and best["q"] < 0.01


def test_a_budget_that_is_enough_for_all_inputs_is_exact() -> None:
    model, inputs = SHAPES["GPT-2"].build(), texts()
    whole = aa.causal(model, inputs, by="zero", progress=False)
    rich = aa.causal(model, inputs, by="zero", budget=1000, progress=False)
    assert rich.equals(whole)


@pytest.mark.full
def test_an_estimate_is_made_from_some_inputs_and_says_so() -> None:
    gpt = load("builtin:gpt")
    lines = [f"The number {number} comes before the number {number + 1}." for number in range(60)]
    some = aa.causal(gpt, lines, by="zero", budget=14, progress=False)
    assert 20 <= some.attrs["exact_inputs"] < 60
    assert (some["corpus_low"] >= some["low"]).all() and (some["corpus_high"] <= some["high"]).all()
    assert some["direct"].isna().all() and "estimated" in some.attrs["notes"][0]


def test_slopes_are_differences_of_the_loss_when_a_head_moves_a_little_less() -> None:
    """Central differences of a step h in float64: off by about h² and by rounding over h."""
    model, inputs = SHAPES["GPT-2"].build(), texts()[:1]
    loaded = load(model)
    item = encode(loaded, read_inputs(inputs)[0])
    known, task = anatomy(loaded, [item]), task_of(loaded, item, 0)
    group = prepare(loaded, task, item, 0)
    assert group is not None
    sweep = Sweep(loaded, task, known, Pool("zero", 0), 2048)
    found = slopes(sweep, group)[0]
    step = 1e-4
    for place, head in enumerate(f"L{x}H{y}" for x in range(LAYERS) for y in range(HEADS)):
        ends = []
        for factor in (1 - step, 1 + step):
            with aa.edit(loaded, aa.scale(head, factor), inputs=inputs[0]), torch.no_grad():
                ends.append(next_loss(model(**inputs[0]).logits, inputs[0]))
        assert found[place] == pytest.approx((ends[0] - ends[1]) / (2 * step), abs=1e-5)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"by": "magic"}, "an ablation by 'magic' was asked for; give one of zero, mean, resample"),
        ({"metric": "speed"}, "no metric is called 'speed'; there is loss"),
        ({"budget": 0}, "a budget of 0 plain passes was asked for; give a number above zero"),
        ({"budget": 1}, "a budget of 1 plain passes is enough for 0 of 4 inputs"),
    ],
)
def test_what_cannot_be_asked_is_one_sentence(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(aa.InputError, match=sentence):
        aa.causal(SHAPES["GPT-2"].build(), texts(), progress=False, **options)


def test_resample_needs_other_inputs() -> None:
    with pytest.raises(aa.InputError, match="there is one input"):
        aa.causal(SHAPES["GPT-2"].build(), texts()[:1], progress=False)


def test_a_model_without_a_head_is_refused() -> None:
    model = SHAPES["GPT-2"].build().transformer
    with pytest.raises(aa.ModelError, match="predicts neither tokens nor classes"):
        aa.causal(model, texts(), by="zero", progress=False)


def test_the_model_is_as_before_when_a_sweep_is_stopped() -> None:
    model, tensors = SHAPES["GPT-2"].build(), first(SHAPES["GPT-2"].tensors())
    plain = model(**tensors).logits

    def stop(*_given: Any) -> None:
        if "forward" in model.transformer.h[1].mlp.c_proj.__dict__:  # frozen for direct effects
            raise KeyboardInterrupt

    hook = model.transformer.ln_f.register_forward_hook(stop)
    with pytest.raises(KeyboardInterrupt):
        aa.causal(model, texts(), by="mean", progress=False)
    hook.remove()
    assert torch.equal(model(**tensors).logits, plain)
    for module in model.modules():
        assert "forward" not in module.__dict__
        assert not module._forward_hooks and not module._forward_pre_hooks
