"""Old notebooks run after a change of the import; bad input is told in one sentence."""

import json
import re
from collections.abc import Callable
from importlib.metadata import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import attention_atlas as aa
from attention_atlas.names.errors import AtlasError, InputError, PickError
from attention_atlas.page.hosts.view_object import Html, View
from attention_atlas.page.live.answers import Answers
from attention_atlas.page.wire.packing import unpack
from tests import atlases
from tests.token_columns import token_list

BERT = Path(aa.__file__).parent / "models/builtin/bert"
TOKENS = ["[CLS]", "the", "cat", "[SEP]"]


def _even(layers: int = 2, heads: int = 3, n: int = 4, m: int | None = None) -> Any:
    """Random weights (L, H, N, M) whose rows sum to one."""
    draws = np.random.default_rng(0).random((layers, heads, n, m or n))
    return (draws / draws.sum(axis=-1, keepdims=True)).astype(np.float32)


def _weights(view: View, head: str) -> Any:
    return unpack(Answers(view.subject).packet(f"rows/0/{head}")[0])["weights"]


# The three examples of BertViz's README ----------------------------------------------------------


def _example(start: str) -> str:
    """The code block of BertViz's own README, as its package ships it, that begins so."""
    about = metadata("bertviz")
    readme = about.get_payload() or about["Description"]  # type: ignore[attr-defined]
    blocks: list[str] = re.findall(r"```python\n(.*?)```", readme, re.DOTALL)
    return next(block for block in blocks if block.lstrip().startswith(start))


def _local(code: str, hub: str, folder: Path) -> str:
    """The import changed and the model replaced; `result` is what the last call gives."""
    changed = code.replace("from bertviz import", "from attention_atlas import")
    changed = changed.replace(hub, str(folder))
    calls = list(re.finditer(r"^(model_view|head_view)\(", changed, re.MULTILINE))
    at = calls[-1].start()
    return changed[:at] + "result = " + changed[at:]


class OldTokenizer:
    """The two methods of a tokenizer that transformers 5 took away and the README uses."""

    def __init__(self, inner: Any):
        self.inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def __call__(self, *given: Any, **options: Any) -> Any:
        return self.inner(*given, **options)

    encode_plus = __call__

    def as_target_tokenizer(self) -> Any:
        from contextlib import nullcontext

        return nullcontext()


@pytest.fixture
def old_tokenizers(monkeypatch: pytest.MonkeyPatch) -> None:
    import transformers

    load = transformers.AutoTokenizer.from_pretrained

    def from_pretrained(*given: Any, **options: Any) -> OldTokenizer:
        return OldTokenizer(load(*given, **options))

    monkeypatch.setattr(transformers.AutoTokenizer, "from_pretrained", from_pretrained)


def _run(code: str) -> dict[str, Any]:
    names: dict[str, Any] = {}
    exec(code, names)
    return names


def test_the_single_sentence_example_runs() -> None:
    code = _example(
        "from transformers import AutoTokenizer, AutoModel, utils\nfrom bertviz import model"
    )
    names = _run(_local(code, "microsoft/xtremedistil-l12-h384-uncased", BERT))
    view, outputs = names["result"], names["outputs"]
    assert view.picks["view"] == "model"
    expected = outputs.attentions[3][0, 2].detach().numpy()
    np.testing.assert_array_equal(_weights(view, "L3H2"), expected)
    assert view.subject.notes == ["the attention given was empty; shown is outputs.attentions"]


@pytest.mark.usefixtures("old_tokenizers")
def test_the_sentence_pair_example_runs() -> None:
    code = _example("from bertviz import head_view\nfrom transformers import AutoTokenizer")
    names = _run(_local(code, "bert-base-uncased", BERT))
    view, model = names["result"], names["model"]
    with torch.inference_mode():
        outputs = model(names["input_ids"], token_type_ids=names["token_type_ids"])
    expected = outputs.attentions[5][0, 1].numpy()
    np.testing.assert_allclose(_weights(view, "L5H1"), expected, atol=1e-6)
    info = unpack(Answers(view.subject).packet("input/0")[0])
    assert info["boundary"] == names["sentence_b_start"]
    assert token_list(info["streams"][0])[info["boundary"]]["segment"] == 1


@pytest.mark.usefixtures("old_tokenizers")
def test_the_encoder_decoder_example_runs(tmp_path: Path) -> None:
    model, tokenizer = atlases.marian()
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    starts = (
        "from transformers import AutoTokenizer, AutoModel\n",
        "encoder_input_ids",
        "from bertviz import model_view\nmodel_view(\n",
    )
    code = "\n".join(_example(start) for start in starts)
    names = _run(_local(code, "Helsinki-NLP/opus-mt-en-de", tmp_path))
    view, outputs = names["result"], names["outputs"]
    assert [tower.name for tower in view.subject.towers] == ["encoder", "decoder", "cross"]
    assert [tower.depth for tower in view.subject.towers] == [2, 3, 3]
    expected = outputs.cross_attentions[2][0, 1].detach().numpy()
    np.testing.assert_array_equal(_weights(view, "cross.L2H1"), expected)


# What may be given -------------------------------------------------------------------------------


def _stacked(array: Any) -> Any:
    return array


def _tuple_of_batches(array: Any) -> Any:
    return tuple(layer[None] for layer in array)


def _list_of_layers(array: Any) -> Any:
    return list(array)


def _tensors(array: Any) -> Any:
    return tuple(torch.tensor(layer[None], requires_grad=True) for layer in array)


def _stacked_tensor(array: Any) -> Any:
    return torch.tensor(array)


@pytest.mark.parametrize(
    "given", [_stacked, _tuple_of_batches, _list_of_layers, _tensors, _stacked_tensor]
)
def test_torch_and_numpy_stacked_or_by_layer_show_the_same(given: Callable[[Any], Any]) -> None:
    weights = _even()
    view = aa.head_view(given(weights), TOKENS)
    np.testing.assert_array_equal(_weights(view, "L1H2"), weights[1, 2])


def test_half_precision_is_taken() -> None:
    weights = _even()
    view = aa.model_view(torch.tensor(weights).bfloat16(), TOKENS)
    np.testing.assert_allclose(_weights(view, "L0H0"), weights[0, 0], rtol=2**-8)  # u of bfloat16
    assert view.subject.notes == [] or "sum" in view.subject.notes[0]


def test_layers_with_unequal_heads_are_taken() -> None:
    view = aa.model_view([_even(1, 2)[0], _even(1, 5)[0]], TOKENS)
    assert [layer.heads for layer in view.subject.towers[0].layers] == [2, 5]


def test_positional_arguments_are_in_the_order_of_bertviz() -> None:
    view = aa.head_view(_even(), TOKENS, 2, True, 1, [0, 2])
    assert (view.picks["layer"], view.picks["heads"]) == (1, ["L1H0", "L1H2"])
    dark = aa.model_view(_even(), TOKENS, 2, True, "dark")
    assert dark.picks["theme"] == "dark"


@pytest.mark.parametrize("view", ["head_view", "model_view"])
def test_every_argument_of_bertviz_is_known_under_its_name(view: str) -> None:
    import inspect

    import bertviz

    theirs = list(inspect.signature(getattr(bertviz, view)).parameters)
    ours = inspect.signature(getattr(aa, view)).parameters
    plain = [name for name, one in ours.items() if one.kind is one.POSITIONAL_OR_KEYWORD]
    assert plain == theirs


def test_included_layers_keep_their_numbers() -> None:
    weights = _even(layers=4)
    view = aa.model_view(weights, TOKENS, include_layers=[1, 3], include_heads=[2])
    assert [layer.layer for layer in view.subject.towers[0].layers] == [1, 3]
    assert (view.picks["shownLayers"], view.picks["shownHeads"]) == ([1, 3], [2])
    np.testing.assert_array_equal(_weights(view, "L3H2"), weights[3, 2])


def test_only_cross_attention_may_be_given() -> None:
    view = aa.head_view(
        cross_attention=_even(2, 3, 4, 2), encoder_tokens=["a", "b"], decoder_tokens=TOKENS
    )
    (tower,) = view.subject.towers
    assert (tower.name, tower.role) == ("cross", "cross")


def test_prettify_off_shows_the_marks() -> None:
    raw = ["Ġa", "b", "Ġc", "d"]
    for prettify, first in ((True, "·a"), (False, "Ġa")):
        view = aa.head_view(_even(), raw, prettify_tokens=prettify)
        (stream,) = unpack(Answers(view.subject).packet("input/0")[0])["streams"]
        tokens = token_list(stream)
        assert (tokens[0]["text"], tokens[0]["raw"]) == (first, "Ġa")


def test_a_causal_model_is_told_from_its_weights() -> None:
    even = np.tri(4)[None] / np.arange(1, 5)[None, :, None]
    assert aa.head_view([even], TOKENS).subject.towers[0].role == "causal"
    assert aa.head_view(_even(), TOKENS).subject.towers[0].role == "self"


def test_attention_that_does_not_sum_to_one_is_shown_with_a_note() -> None:
    weights = _even()
    weights[1, 0, 2] *= 0.25
    view = aa.head_view(weights, TOKENS)
    (note,) = view.subject.notes
    assert "sum to less than one (from 0.25)" in note
    about = unpack(Answers(view.subject).packet("about")[0])
    assert about["notes"] == [note]


# What may not -------------------------------------------------------------------------------------

NAN = _even()
NAN[1, 2, 3, 0] = np.nan


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: aa.head_view(_even(), TOKENS[:3]), "has 4 rows and there are 3 text tokens"),
        (lambda: aa.head_view(NAN, TOKENS), "layer 1 of self attention holds NaN, first in head 2"),
        (lambda: aa.head_view(np.ones((2, 2, 3, 4, 4)), TOKENS), "is a batch of 2; give one input"),
        (lambda: aa.head_view(_even() * 9, TOKENS), "give weights after the softmax"),
        (lambda: aa.head_view(-_even(), TOKENS), "give weights after the softmax"),
        (lambda: aa.head_view((None, None), TOKENS), "is None; load the model with"),
        (lambda: aa.head_view((), TOKENS), "give outputs.attentions instead of outputs[-1]"),
        (lambda: aa.head_view(3, TOKENS), "attention is a int; give a tuple"),
        (lambda: aa.head_view(_even()), "tokens are missing"),
        (lambda: aa.head_view(np.ones((2, 3)), TOKENS), "has shape (3,)"),
        (lambda: aa.head_view("gpt2", TOKENS), "cannot be read as numbers"),
        (lambda: aa.head_view(), "there is nothing to show"),
        (lambda: aa.head_view(_even(), TOKENS, 4), "sentence_b_start is 4"),
        (lambda: aa.head_view(_even(), TOKENS, layer=7), "self has no layer 7; it has 0, 1"),
        (lambda: aa.head_view(_even(), TOKENS, heads=[5]), "there is no head 5"),
        (lambda: aa.head_view(_even(), TOKENS, heads=["5.1"]), "no head is named '5.1'"),
        (lambda: aa.head_view(_even(), TOKENS, include_layers=[9]), "asks for layer 9"),
        (lambda: aa.model_view(_even(), TOKENS, include_heads=[9]), "asks for head 9"),
        (lambda: aa.model_view(_even(), TOKENS, display_mode="pink"), "display_mode is 'pink'"),
        (lambda: aa.head_view(_even(), TOKENS, html_action="x"), "html_action is 'x'"),
        (lambda: aa.head_view(_even(), TOKENS, encoder_tokens=["a"]), "attention is for models"),
        (lambda: aa.head_view(encoder_attention=_even()), "encoder_tokens are missing"),
        (lambda: aa.neuron_view(_even()), "the neuron view needs queries and keys"),
        (lambda: aa.head_view(_even(), TOKENS).save("page.pdf"), "cannot save page.pdf"),
    ],
)
def test_bad_input_is_told_in_one_sentence(call: Callable[[], Any], sentence: str) -> None:
    with pytest.raises((InputError, PickError)) as told:
        call()
    assert sentence in str(told.value) and "\n" not in str(told.value)


@given(
    st.lists(st.integers(0, 3), min_size=0, max_size=5),
    st.integers(0, 5),
)
def test_any_shape_is_shown_or_refused_but_never_crashes(shape: list[int], count: int) -> None:
    try:
        view = aa.head_view(np.ones(shape, np.float32), ["x"] * count)
    except AtlasError:
        return
    assert Answers(view.subject).packet("edges/0/self")[1]


# The view itself ---------------------------------------------------------------------------------


def test_an_atlas_is_viewed_by_its_names(seq2seq: aa.Atlas) -> None:
    view = aa.head_view(seq2seq, heads=["cross.L2H1"])
    assert (view.picks["tower"], view.picks["layer"]) == ("cross", 2)
    assert view.picks["heads"] == ["cross.L2H1"]
    assert aa.neuron_view(seq2seq, tower="decoder", layer=1, head=1).picks["heads"] == [
        "decoder.L1H1"
    ]
    with pytest.raises(PickError, match="there is no input 5"):
        aa.head_view(seq2seq, input=5)


def test_picks_can_be_set_and_only_known_ones(gpt: aa.Atlas) -> None:
    view = aa.head_view(gpt)
    view.picks = {"threshold": 0.1}
    assert view.picks["threshold"] == 0.1 and view.picks["view"] == "head"
    with pytest.raises(PickError, match="nothing of picks is called 'tresholt'"):
        view.picks = {"tresholt": 0.1}


@pytest.mark.usefixtures("stand_in")
def test_the_widget_answers_packets_and_follows_picks(
    gpt: aa.Atlas, monkeypatch: pytest.MonkeyPatch
) -> None:
    view = aa.head_view(gpt)
    sent: list[tuple[Any, Any]] = []
    monkeypatch.setattr(
        view.widget, "send", lambda content, buffers: sent.append((content, buffers))
    )
    view.widget._handle_custom_msg({"kind": "get", "id": "a-1", "path": "input/1"}, [])
    view.widget._handle_custom_msg({"kind": "get", "id": "a-2", "path": "nothing"}, [])
    view.widget._handle_custom_msg("noise", [])
    assert [content for content, _ in sent] == [
        {"kind": "answer", "id": "a-1"},
        {"kind": "answer", "id": "a-2"},
    ]
    assert unpack(sent[0][1][0])["number"] == 1
    assert "error" in unpack(sent[1][1][0])
    view.widget.picks = {**view.picks, "layer": 4}
    assert view.picks["layer"] == 4
    assert "application/vnd.jupyter.widget-view+json" in str(view._repr_mimebundle_())


@pytest.mark.usefixtures("stand_in")
def test_returned_html_has_its_text_in_data() -> None:
    page = aa.head_view(_even(), TOKENS, html_action="return")
    assert isinstance(page, Html) and page.data.startswith("<html>file.html<script ")
    assert "&lt;html&gt;" in page._repr_html_()


@pytest.mark.usefixtures("stand_in")
def test_no_token_can_end_the_script_it_is_stored_in(tmp_path: Path) -> None:
    evil = ["</script><img src=x onerror=alert(1)>", "<!--", "]]>", "x"]
    page = aa.head_view(_even(), evil).save(tmp_path / "page.html")
    text = page.read_text(encoding="utf-8")
    assert "<img" not in text and text.count("<!--") == 0
    (options,) = re.findall(r'id="atlas-options">(.*?)</script>', text)
    assert json.loads(options)["picks"]["view"] == "head"
