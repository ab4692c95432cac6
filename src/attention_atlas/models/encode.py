"""How does an input become the model's tensors, and which tokens are in them?

Each kind of input has one line in `_KINDS`: what the model must take, and the function that
prepares it. What a model takes is asked of the parameters of its forward pass.
"""

from collections.abc import Callable
from dataclasses import replace

import torch

from attention_atlas.models.batch import collate
from attention_atlas.models.inputs import Input
from attention_atlas.models.limits import longest
from attention_atlas.models.load import Loaded
from attention_atlas.models.multimodal import encode_alone, encode_mixed
from attention_atlas.models.processors import part
from attention_atlas.models.signature import Signature, signature
from attention_atlas.models.target import with_decoder
from attention_atlas.models.text import encode_text, refuse_foreign_ids, too_long
from attention_atlas.models.tokens import Encoded, Tokens, bare_tokens
from attention_atlas.names.errors import InputError

__all__ = ["Encoded", "Tokens", "collate", "encode", "longest"]

_PREPARED_BY = {"text": "tokenizer", "image": "image_processor", "sound": "feature_extractor"}


def encode(loaded: Loaded, input: Input, *, truncate: bool = False) -> Encoded:
    """Encode one input; returns its tensors with a leading axis of 1, and its tokens."""
    takes = signature(loaded.model)
    needs, prepare = _KINDS[input.kind]
    _refuse_misfit(loaded, takes, needs)
    encoded = prepare(loaded, input, takes, truncate)
    if takes.two_sided:
        encoded = with_decoder(loaded, input, encoded, truncate)
    return replace(encoded, tensors={n: t for n, t in encoded.tensors.items() if takes.accepts(n)})


def _refuse_misfit(loaded: Loaded, takes: Signature, needs: tuple[str, ...]) -> None:
    given = " with ".join(needs)
    if not set(needs) <= set(takes.kinds):
        wanted = " and ".join(takes.kinds) or "ready-made tensors only"
        raise InputError(f"{loaded.name} takes {wanted} and was given {given}; give what it takes")
    if any(part(loaded.processor, _PREPARED_BY[need]) is None for need in needs):
        raise InputError(
            f"{loaded.name} has nothing that prepares {given}; "
            "pass its tokenizer or processor, or give ready-made tensors"
        )
    # dual models (CLIP) need both to compare; multimodal language models read either alone
    both = {"text", "image"}
    dual = both <= set(takes.kinds) and not loaded.model.can_generate()
    if dual and needs and set(needs) != both:
        raise InputError(
            f"{loaded.name} takes text and image together and was given only {given}; "
            "give both, as in {'text': …, 'image': …}"
        )


def _text(loaded: Loaded, given: Input, takes: Signature, truncate: bool) -> Encoded:
    second = None if takes.two_sided else given.second
    return encode_text(loaded, given.text or "", second, takes.stream, truncate)


def _media(loaded: Loaded, given: Input, takes: Signature, truncate: bool) -> Encoded:
    if "text" in takes.kinds:
        return encode_mixed(loaded, given, takes.stream, truncate)
    return encode_alone(loaded, given)


def _tensors(loaded: Loaded, given: Input, takes: Signature, truncate: bool) -> Encoded:
    """Take ready-made tensors; places that their own mask leaves out are no tokens."""
    tensors = {name: torch.as_tensor(value) for name, value in (given.tensors or {}).items()}
    sequence = tensors.get("input_ids", tensors.get("inputs_embeds"))
    if sequence is None:
        return Encoded(tensors, {}, False)
    if sequence.ndim < 2 or len(sequence) != 1:
        raise InputError(
            f"tensors of shape {tuple(sequence.shape)} are not one input; "
            "give each input its own, with a leading axis of 1"
        )
    n = sequence.shape[1]
    mask = tensors.setdefault("attention_mask", torch.ones(1, n, dtype=torch.long))
    real = mask[0].nonzero()[:, 0].tolist() if mask.ndim == 2 else list(range(n))
    limit = longest(loaded)
    if limit is not None and len(real) > limit:
        raise InputError(too_long(loaded, len(real), limit))
    if "input_ids" not in tensors:
        places = bare_tokens(list(range(n)), None)
        return Encoded(tensors, {takes.stream: replace(places, id=[-1] * n).at(real)}, False)
    if "image" not in takes.kinds:  # placeholders may lie beyond the vocabulary
        refuse_foreign_ids(loaded, sequence)
    tokens = bare_tokens(sequence[0].tolist(), loaded.tokenizer)
    return Encoded(tensors, {takes.stream: tokens.at(real)}, False)


_Prepare = Callable[[Loaded, Input, Signature, bool], Encoded]
_KINDS: dict[str, tuple[tuple[str, ...], _Prepare]] = {
    "text": (("text",), _text),
    "pair": (("text",), _text),
    "image": (("image",), _media),
    "image-text": (("image", "text"), _media),
    "audio": (("sound",), _media),
    "tensors": ((), _tensors),
}
