"""The Lab with other models: masks, labels, no head, two sides, pictures, shared keys."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers as hf
from PIL import Image

import attention_atlas as aa
from attention_atlas.models.load import load
from attention_atlas.names.errors import ModelError
from attention_atlas.page.live.answers import Answers, make_answers
from attention_atlas.page.live.model import LiveModel, give_out
from tests import atlases
from tests.page.test_lab import edit, probabilities, told

SMALL: dict[str, Any] = {
    "vocab_size": 20, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
    "intermediate_size": 48, "max_position_embeddings": 64, "pad_token_id": 0,
}  # fmt: skip
VISION: dict[str, Any] = {
    "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48,
    "image_size": 32, "patch_size": 8,
}  # fmt: skip
TEXT = "she sees the small elephant"


def spread(model: Any) -> Any:
    """The model with random weights so large that its attention is far from even."""
    torch.manual_seed(0)
    for parameter in model.parameters():
        if parameter.dim() > 1:
            torch.nn.init.normal_(parameter, std=0.2)
    return model.eval()


def answers_of(model: Any, processor: Any, inputs: Any) -> Answers:
    atlas = aa.capture(model, inputs, processor, progress=False)
    (answers,) = make_answers([atlas], [LiveModel(model, processor)])
    return answers


@pytest.mark.full
def test_a_masked_language_model_predicts_its_masks() -> None:
    bert = load("builtin:bert")
    text = f"The doctor asked the {bert.tokenizer.mask_token} a question."
    answers = answers_of(bert.model, bert.processor, [text])
    cut = aa.ablate("L0")
    answer = edit(answers, cut.to_json())
    ids = bert.tokenizer(text, return_tensors="pt")
    place = ids["input_ids"][0].tolist().index(bert.tokenizer.mask_token_id)
    assert answer["predicts"] == "masked"
    (prediction,) = answer["predictions"]
    assert prediction["position"] == place
    changed, close = probabilities(bert, ids, cut)
    for token in prediction["tokens"]:
        assert token["after"] == pytest.approx(changed[place, token["id"]], abs=close)


def test_a_text_without_masks_is_noted() -> None:
    bert = load("builtin:bert")
    answers = answers_of(bert.model, bert.processor, ["The doctor asked a question."])
    assert "no masked token" in edit(answers, aa.ablate("L0H0").to_json())["notes"][0]


def test_a_pair_is_read_as_a_pair() -> None:
    bert = load("builtin:bert")
    answers = answers_of(bert.model, bert.processor, [atlases.PAIR])
    answer = edit(answers, aa.ablate("L0H0").to_json())
    assert told(answers.packet(f"input/{answer['input']}"))["boundary"] > 0


def test_a_classifier_predicts_its_labels() -> None:
    config = hf.BertConfig(**SMALL, id2label={0: "good", 1: "bad"}, label2id={"good": 0, "bad": 1})
    model = spread(hf.BertForSequenceClassification(config))
    answers = answers_of(model, atlases.word_tokenizer(), [TEXT])
    answer = edit(answers, aa.pattern("L1", "even").to_json())
    assert answer["predicts"] == "label"
    (prediction,) = answer["predictions"]
    assert prediction["position"] == -1
    assert {token["text"] for token in prediction["tokens"]} == {"good", "bad"}
    assert sum(token["after"] for token in prediction["tokens"]) == pytest.approx(1)


def test_a_model_without_a_head_shows_the_rest_and_says_so() -> None:
    model = spread(hf.BertModel(hf.BertConfig(**SMALL)))
    answers = answers_of(model, atlases.word_tokenizer(), [TEXT])
    answer = edit(answers, aa.mask("L0", token=0).to_json())
    assert (answer["predicts"], answer["predictions"]) == ("", [])
    assert answer["notes"] == [
        "BertModel has no head, so it predicts nothing; capture and serve the model with its head "
        "to see predictions"
    ]
    assert max(entry["attention"] for entry in answer["change"]) > 0.1
    assert told(answers.packet("about"))["predicts"] == ""


def test_both_sides_of_an_encoder_decoder_can_be_edited() -> None:
    model, tokenizer = atlases.marian()
    given = {"text": TEXT, "second": "sie sieht den kleinen elefanten"}
    answers = answers_of(spread(model), tokenizer, [given])
    for tower in ("encoder", "decoder", "cross"):
        answer = edit(answers, aa.pattern(f"{tower}.L0", "even").to_json(), generate=3)
        assert answer["predicts"] == "next" and answer["text"] is not None
        rows = told(answers.packet(f"rows/{answer['input']}/{tower}.L0H0"))["weights"]
        np.testing.assert_allclose(rows[-1], 1 / rows.shape[1], atol=1e-6)
        change = {entry["head"]: entry["attention"] for entry in answer["change"]}
        assert change[f"{tower}.L0H0"] > 0


def test_tokens_are_those_of_the_side_that_is_edited() -> None:
    model, tokenizer = atlases.marian()
    given = {"text": TEXT, "second": "sie sieht den kleinen elefanten"}
    answers = answers_of(spread(model), tokenizer, [given])
    cut = aa.mask("cross.L0H0", edges=[(2, 1)])
    (done,) = edit(answers, cut.to_json())["edits"]
    assert done["sentence"] == "in cross.L0H0 token 2 “sieht” cannot see token 1 “sees”"
    own = aa.ablate("decoder.L0H0", positions=[1])
    (done,) = edit(answers, own.to_json())["edits"]
    assert done["sentence"] == "what decoder.L0H0 moves is zero, at token 1 “sie”"


def test_a_text_that_the_decoder_wrote_itself_is_read_again_as_it_was() -> None:
    model, tokenizer = atlases.marian()
    answers = answers_of(spread(model), tokenizer, [TEXT])
    answer = edit(answers, aa.ablate("decoder.L0H0").to_json())
    mine, plain = (told(answers.packet(f"input/{number}")) for number in (answer["input"], 0))
    np.testing.assert_equal(mine["streams"], plain["streams"])


def test_a_picture_can_be_edited(tmp_path: Path) -> None:
    pixels = np.random.default_rng(0).integers(0, 255, (32, 32, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(tmp_path / "a.png")
    model = spread(hf.ViTForImageClassification(hf.ViTConfig(**VISION, num_labels=3)))
    processor = hf.ViTImageProcessor(size={"height": 32, "width": 32})
    atlas = aa.capture(model, str(tmp_path), processor, progress=False)
    live = LiveModel(model, processor)
    assert give_out([live], [atlas]) == [live], "a server takes the model"
    (answers,) = make_answers([atlas], [live])
    about = told(answers.packet("about"))
    assert about["can_edit"] and not about["can_add"]
    answer = edit(answers, aa.mask("L0", token=3).to_json())
    assert answer["predicts"] == "label" and len(answer["predictions"][0]["tokens"]) == 3
    number = answer["input"]
    assert told(answers.packet(f"picture/{number}/0"))["input"] == number
    assert len(told(answers.packet(f"input/{number}"))["pictures"]) == 1
    hidden = told(answers.packet(f"rows/{number}/L0H0"))["weights"][:, 3]
    assert (hidden == 0).all()
    assert told(answers.packet(f"gaze/{number}/encoder/0/0"))["input"] == number


def test_a_server_refuses_another_model_of_pictures(tmp_path: Path) -> None:
    Image.new("RGB", (32, 32), "red").save(tmp_path / "a.png")
    processor = hf.ViTImageProcessor(size={"height": 32, "width": 32})
    first, second = (spread(hf.ViTModel(hf.ViTConfig(**VISION))) for _ in range(2))
    with torch.no_grad():
        second.layers[0].attention.q_proj.weight.mul_(-1)
    atlas = aa.capture(first, str(tmp_path), processor, progress=False)
    with pytest.raises(ModelError, match="is not the model of this atlas"):
        give_out([LiveModel(second, processor)], [atlas])


def test_an_edit_of_a_shared_key_names_the_heads_that_it_touches() -> None:
    config = hf.LlamaConfig(**SMALL, num_key_value_heads=2, bos_token_id=1, eos_token_id=1)
    model = spread(hf.LlamaForCausalLM(config))
    answers = answers_of(model, atlases.word_tokenizer(), [TEXT])
    key = aa.neuron("L1H0", "key", 0, 5.0, shared=True)
    (done,) = edit(answers, key.to_json())["edits"]
    assert done["sentence"] == "neuron 0 of the key of L1H0 is set to 5; L1H1 reads the same"
    assert done["touches"] == ["L1H0", "L1H1"]


def test_a_traced_model_is_edited_in_what_its_heads_move_and_else_refused() -> None:
    config = hf.BloomConfig(vocab_size=20, hidden_size=32, n_layer=2, n_head=4)
    model = spread(hf.BloomForCausalLM(config))
    answers = answers_of(model, atlases.word_tokenizer(), [TEXT])
    cut = aa.ablate("L0H0")
    answer = edit(answers, cut.to_json(), generate=2)
    ids = atlases.word_tokenizer()(TEXT, return_tensors="pt")["input_ids"]
    changed, close = probabilities(load((model, atlases.word_tokenizer())), {"input_ids": ids}, cut)
    for token in answer["predictions"][0]["tokens"]:
        assert token["after"] == pytest.approx(changed[-1, token["id"]], abs=close)
    packet, done = answers.perform("edit", {"input": 0, "edits": [aa.mask("L0", 1).to_json()]})
    assert not done and b"only what its heads move can be edited" in packet


def test_a_sound_cannot_be_read_again_and_says_so() -> None:
    config = hf.WhisperConfig(
        vocab_size=20, d_model=16, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
        decoder_attention_heads=2, encoder_ffn_dim=16, decoder_ffn_dim=16, pad_token_id=0,
        bos_token_id=1, eos_token_id=2, decoder_start_token_id=1, num_mel_bins=8,
        max_source_positions=12, max_target_positions=16,
    )  # fmt: skip
    model = spread(hf.WhisperForConditionalGeneration(config))
    heard = torch.randn(1, 8, 24, generator=torch.Generator().manual_seed(0))
    given = {"input_features": heard, "decoder_input_ids": torch.tensor([[1, 5, 6]])}
    atlas = aa.capture(model, [given], progress=False)
    (answers,) = make_answers([atlas], [LiveModel(model)])
    packet, done = answers.perform("edit", {"input": 0, "edits": []})
    assert not done and b"edit an input of text or pictures" in packet
