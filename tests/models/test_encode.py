from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from tokenizers import Tokenizer, models, normalizers

from attention_atlas.models.encode import Encoded, collate, encode
from attention_atlas.models.inputs import Input, read_inputs
from attention_atlas.models.load import Loaded, load
from attention_atlas.names.errors import InputError
from tests.tolerance import chain_tolerance

Make = Callable[..., Any]
PAIR = Input("pair", text="the uncharacteristic cat", second="it sat")


def run(loaded: Loaded, items: list[Encoded]) -> tuple[Any, dict[str, torch.Tensor]]:
    tensors, real = collate(items, loaded)
    with torch.no_grad():
        return loaded.model(**tensors, output_hidden_states=True), real


def test_a_pair_knows_its_boundary_spans_and_words(minilm: Path) -> None:
    tokens = encode(load(minilm, device="cpu"), PAIR).streams["text"]
    pieces = ["un", "##cha", "##rac", "##ter", "##istic"]
    assert tokens.text == ["[CLS]", "the", *pieces, "cat", "[SEP]", "it", "sat", "[SEP]"]
    spans = zip(tokens.start[1:8], tokens.end[1:8], strict=True)
    plain = ["the", "un", "cha", "rac", "ter", "istic", "cat"]
    assert ["the uncharacteristic cat"[a:b] for a, b in spans] == plain
    assert tokens.special == [True] + [False] * 7 + [True] + [False] * 2 + [True]
    assert tokens.segment == [-1] + [0] * 7 + [-1] + [1] * 2 + [-1]
    assert tokens.word == [-1, 0, 1, 1, 1, 1, 1, 2, -1, 3, 4, -1]
    assert (tokens.start[8:], tokens.end[8:]) == ([-1, 0, 3, -1], [-1, 2, 6, -1])


def test_a_masked_word_in_the_text_is_special_and_an_unknown_word_is_not(
    gpt: Any, make_tokenizer: Make
) -> None:
    loaded = load(gpt, make_tokenizer(mask_token="sat"))
    tokens = encode(loaded, Input("text", text="the dog sat")).streams["text"]
    assert tokens.text == ["the", "<unk>", "sat"]
    assert tokens.special == [False, False, True]


def test_a_space_ends_a_word_even_if_the_tokenizer_takes_the_text_for_one(gpt: Any) -> None:
    """As Llama's does: it turns spaces into ▁ and then sees a single word."""
    letters = Tokenizer(models.BPE({c: i for i, c in enumerate("▁act")}, []))
    letters.normalizer = normalizers.Replace(" ", "▁")
    loaded = load(gpt, transformers.PreTrainedTokenizerFast(tokenizer_object=letters))
    tokens = encode(loaded, Input("text", text="a cat act")).streams["text"]
    assert tokens.text == ["a", "▁", "c", "a", "t", "▁", "a", "c", "t"]
    assert tokens.word == [0, 1, 1, 1, 1, 2, 2, 2, 2]


def test_a_text_gives_ids_and_mask_with_an_axis_of_one(gpt: Any, make_tokenizer: Make) -> None:
    made = encode(load(gpt, make_tokenizer()), Input("text", text="the cat sat"))
    assert {name: value.tolist() for name, value in made.tensors.items()} == {
        "input_ids": [[4, 5, 6]],
        "attention_mask": [[1, 1, 1]],
    }
    assert not made.truncated


def test_type_ids_reach_only_a_model_that_takes_them(gpt: Any, minilm: Path) -> None:
    bert = load(minilm, device="cpu")
    assert "token_type_ids" in encode(bert, PAIR).tensors
    config = transformers.DistilBertConfig(vocab_size=40000, dim=16, n_layers=1, n_heads=2)
    distil = transformers.DistilBertModel(config)
    assert "token_type_ids" not in encode(load(distil, bert.tokenizer), PAIR).tensors


def test_a_too_long_text_says_so_and_is_cut_when_asked(minilm: Path) -> None:
    loaded = load(minilm, device="cpu")
    long = Input("text", text="cat " * 810)
    with pytest.raises(InputError, match="has 812 tokens and model takes 512; cut it or pass trun"):
        encode(loaded, long)
    cut = encode(loaded, long, truncate=True)
    assert cut.truncated and cut.tensors["input_ids"].shape == (1, 512)
    assert cut.streams["text"].text[::511] == ["[CLS]", "[SEP]"]


def test_a_padded_batch_computes_what_each_input_alone_computes(minilm: Path) -> None:
    loaded = load(minilm, device="cpu")
    items = [encode(loaded, one) for one in (PAIR, Input("text", text="a cat"))]
    together, real = run(loaded, items)
    assert real["text"].sum(dim=1).tolist() == [len(item.streams["text"]) for item in items]
    for i, item in enumerate(items):
        alone = run(loaded, [item])[0].last_hidden_state[0]
        off = (together.last_hidden_state[i, real["text"][i]] - alone).abs().max()
        assert off <= chain_tolerance(alone, layers=6, width=384)


def test_pads_never_move_real_tokens_even_if_the_tokenizer_pads_left(
    gpt: Any, make_tokenizer: Make
) -> None:
    loaded = load(gpt, make_tokenizer(padding_side="left"))
    items = [encode(loaded, Input("text", text=text)) for text in ("the cat sat on", "le chat")]
    together, real = run(loaded, items)
    alone = run(loaded, items[1:])[0].hidden_states[-1][0]
    off = (together.hidden_states[-1][1, real["text"][1]] - alone).abs().max()
    assert off <= chain_tolerance(alone, layers=2, width=16)
    assert loaded.tokenizer.padding_side == "left"


def test_a_tokenizer_without_a_pad_token_is_left_as_it_is(gpt: Any, make_tokenizer: Make) -> None:
    loaded = load(gpt, make_tokenizer(pad_token=None))
    items = [encode(loaded, Input("text", text=text)) for text in ("the cat sat", "le")]
    tensors, _ = collate(items, loaded)
    assert tensors["input_ids"].tolist() == [[4, 5, 6], [9, 2, 2]]  # </s> is 2
    assert tensors["attention_mask"].tolist() == [[1, 1, 1], [1, 0, 0]]
    assert loaded.tokenizer.pad_token is None


def test_a_target_is_what_the_decoder_reads_behind_its_start(t5: Any, make_tokenizer: Make) -> None:
    loaded = load(t5, make_tokenizer(ends=True))
    made = encode(loaded, Input("pair", text="the cat", second="le chat"))
    assert made.streams["encoder"].text == ["the", "cat", "</s>"]
    decoder = made.streams["decoder"]
    assert decoder.text == ["<pad>", "le", "chat"]
    assert (decoder.start, decoder.end) == ([-1, 0, 3], [-1, 2, 7])
    assert decoder.segment == [-1, 1, 1]
    labels = torch.tensor([[9, 10, 2]])
    by_labels = t5(input_ids=made.tensors["input_ids"], labels=labels).logits
    assert torch.equal(t5(**made.tensors).logits, by_labels)


def test_without_a_target_the_decoder_reads_what_the_model_writes(
    t5: Any, make_tokenizer: Make
) -> None:
    loaded = load(t5.train(), make_tokenizer(ends=True))
    made = encode(loaded, Input("text", text="the cat"))
    assert t5.training
    written = t5.eval().generate(made.tensors["input_ids"], max_new_tokens=32, do_sample=False)
    assert made.tensors["decoder_input_ids"].tolist() == written[:, :-1].tolist()
    # greedy: each token read is the likeliest after those before it
    guessed = t5(**made.tensors).logits.argmax(dim=-1)
    assert guessed[0, :-1].tolist() == made.tensors["decoder_input_ids"][0, 1:].tolist()


def test_a_decoder_that_cannot_write_reads_its_start(make_tokenizer: Make, t5: Any) -> None:
    plain = transformers.T5Model(t5.config)
    made = encode(load(plain, make_tokenizer(ends=True)), Input("text", text="the cat"))
    assert made.tensors["decoder_input_ids"].tolist() == [[0]]
    assert made.streams["decoder"].text == ["<pad>"]


def test_both_sides_of_an_encoder_decoder_are_padded(t5: Any, make_tokenizer: Make) -> None:
    loaded = load(t5, make_tokenizer(ends=True))
    pairs = [("the cat sat", "le"), ("the", "le chat le")]
    items = [encode(loaded, Input("pair", text=a, second=b)) for a, b in pairs]
    together, real = run(loaded, items)
    assert real["encoder"].tolist() == [[True] * 4, [True] * 2 + [False] * 2]
    assert real["decoder"].tolist() == [[True] * 2 + [False] * 2, [True] * 4]
    for i, item in enumerate(items):
        alone = run(loaded, [item])[0].logits[0]
        off = (together.logits[i, real["decoder"][i]] - alone).abs().max()
        assert off <= chain_tolerance(alone, layers=3, width=16)  # the head is the third


def test_ready_made_tensors_keep_their_pads_but_pads_are_no_tokens(
    gpt: Any, make_tokenizer: Make
) -> None:
    given = {"input_ids": np.array([[0, 4, 5]]), "attention_mask": np.array([[0, 1, 1]])}
    (entry,) = read_inputs(given)
    for loaded, expected in (
        (load(gpt, make_tokenizer()), ["the", "cat"]),
        (load(gpt), ["4", "5"]),
    ):
        made = encode(loaded, entry)
        assert made.streams["text"].text == expected
        tensors, real = collate([made], loaded)
        assert tensors["input_ids"].tolist() == [[0, 4, 5]]
        assert real["text"].tolist() == [[False, True, True]]


def test_ready_made_embeddings_have_places_but_no_ids(gpt: Any) -> None:
    (entry,) = read_inputs({"inputs_embeds": torch.zeros(1, 3, 16)})
    tokens = encode(load(gpt), entry).streams["text"]
    assert (tokens.text, tokens.id) == (["0", "1", "2"], [-1, -1, -1])


def test_a_tokenizer_of_another_model_is_found_out(gpt: Any, minilm: Path) -> None:
    loaded = load(gpt, load(minilm, device="cpu").tokenizer)
    with pytest.raises(InputError, match="is beyond the 20 tokens that GPT2LMHeadModel knows"):
        encode(loaded, Input("text", text="the cat"))


def test_a_tokenizer_in_plain_python_gives_tokens_without_places(gpt: Any, tmp_path: Path) -> None:
    loaded = load(gpt, Letters())
    tokens = encode(loaded, Input("text", text="abc")).streams["text"]
    assert tokens.text == ["a", "b", "c"]
    assert (tokens.start, tokens.word, tokens.segment) == ([-1] * 3, [-1] * 3, [0] * 3)


class Letters(transformers.PythonBackend):  # type: ignore[misc]
    """A slow tokenizer: one token a letter."""

    @property
    def vocab_size(self) -> int:
        return 20

    def get_vocab(self) -> dict[str, int]:
        return {chr(97 + i): i for i in range(20)}

    def _tokenize(self, text: str, **_: Any) -> list[str]:
        return list(text)

    def _convert_token_to_id(self, token: str) -> int:
        return ord(token) - 97

    def _convert_id_to_token(self, index: int) -> str:
        return chr(97 + index)


def test_a_model_without_a_tokenizer_asks_for_it(gpt: Any) -> None:
    with pytest.raises(InputError, match="GPT2LMHeadModel has nothing that prepares text; pass"):
        encode(load(gpt), Input("text", text="the cat"))


def test_inputs_of_different_kinds_do_not_share_a_batch(t5: Any, make_tokenizer: Make) -> None:
    loaded = load(t5, make_tokenizer())
    item = encode(loaded, Input("text", text="the cat"))
    other = Encoded({"pixel_values": torch.zeros(1, 3, 4, 4)}, {}, False)
    with pytest.raises(ValueError, match="different kinds"):
        collate([item, other], loaded)
