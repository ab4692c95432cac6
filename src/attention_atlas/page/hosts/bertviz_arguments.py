"""How are BertViz's arguments read? An atlas or plain attention comes out of them."""

from collections.abc import Mapping, Sequence
from typing import Any

from attention_atlas.names.errors import InputError
from attention_atlas.page.answers.read_attention import GivenTower, make_attention
from attention_atlas.page.answers.subject import Subject
from attention_atlas.page.hosts.find_attention import find_attention
from attention_atlas.store.reader import StoredAtlas


def read_subject(given: Mapping[str, Any], caller: Any) -> Subject:
    """Read the arguments of a view (name → value); return the atlas or plain attention in them.

    caller is the frame that called the view; its variables are searched if attention is empty.
    """
    attention, tokens, prettify = (given[n] for n in ("attention", "tokens", "prettify_tokens"))
    if isinstance(attention, StoredAtlas):
        return attention
    if given["include_layers"] is not None and not len(given["include_layers"]):
        raise InputError("include_layers is empty; name at least one layer, or leave it out")
    both = {name: given[name] for name in _BOTH}
    if attention is None:
        sides = {"encoder": both["encoder_tokens"], "decoder": both["decoder_tokens"]}
        streams = {name: texts for name, texts in sides.items() if texts is not None}
        return make_attention(_sides(given), streams, None, prettify)
    if any(argument is not None for argument in both.values()):
        raise InputError(
            "attention is for models with one tower; for an encoder–decoder leave it out and give "
            "encoder_attention, decoder_attention and cross_attention"
        )
    if tokens is None:
        raise InputError("tokens are missing; give the tokens that the model read")
    other = find_attention(caller.f_locals, len(tokens)) if _is_empty(attention) else None
    tower = GivenTower(
        "self", attention if other is None else other[0], "text", "text", given["include_layers"]
    )
    subject = make_attention([tower], {"text": tokens}, given["sentence_b_start"], prettify)
    if other is not None:
        subject.notes.append(f"the attention given was empty; shown is {other[1]}")
    return subject


_BOTH = (
    "encoder_attention", "decoder_attention", "cross_attention", "encoder_tokens", "decoder_tokens",
)  # fmt: skip


def _is_empty(attention: Any) -> bool:
    return isinstance(attention, tuple | list) and not attention


def _sides(given: Mapping[str, Any]) -> list[GivenTower]:
    """Return the towers of an encoder–decoder whose attention was given."""
    encoder, decoder, cross, encoder_tokens, decoder_tokens = (given[name] for name in _BOTH)
    if encoder is None and decoder is None and cross is None:
        raise InputError(
            "there is nothing to show; give an Atlas, attention with tokens, or the attention of "
            "an encoder–decoder"
        )
    if encoder_tokens is None and (encoder is not None or cross is not None):
        raise InputError("encoder_tokens are missing; give the tokens that the encoder read")
    if decoder_tokens is None and (decoder is not None or cross is not None):
        raise InputError("decoder_tokens are missing; give the tokens that the decoder read")
    known = (
        ("encoder", encoder, "encoder", "encoder"),
        ("decoder", decoder, "decoder", "decoder"),
        ("cross", cross, "decoder", "encoder"),
    )
    return [
        GivenTower(name, attention, queries, keys, _kept(attention, given["include_layers"]))
        for name, attention, queries, keys in known
        if attention is not None
    ]


def _kept(attention: Any, layers: Sequence[int] | None) -> list[int] | None:
    """Return the asked layers that a tower has; encoder and decoder may differ in depth."""
    return None if layers is None else [layer for layer in layers if layer < len(attention)]
