"""How do pictures and sounds become tensors, alone or together with a text?"""

from collections import OrderedDict
from dataclasses import replace
from difflib import SequenceMatcher
from typing import Any
from weakref import WeakKeyDictionary

import torch

from attention_atlas.images.pixel_origins import Make, Shown, shown
from attention_atlas.models.inputs import Input
from attention_atlas.models.limits import longest
from attention_atlas.models.load import Loaded
from attention_atlas.models.media import for_processor, open_image
from attention_atlas.models.processors import part
from attention_atlas.models.sound import heard, samples
from attention_atlas.models.text import tokenize, too_long
from attention_atlas.models.tokens import Encoded, Tokens, bare_tokens, text_tokens
from attention_atlas.names.errors import InputError


def encode_alone(loaded: Loaded, given: Input) -> Encoded:
    """Encode a picture or a sound for a model that reads nothing else; it has no text tokens."""
    if len(given.images) > 1:
        raise InputError(
            f"{loaded.name} takes one image at a time and was given {len(given.images)} as one "
            "input; give each its own"
        )
    if given.images:
        prepare: Any = part(loaded.processor, "image_processor")
        pictures = [for_processor(open_image(image)) for image in given.images]
        batch = prepare(images=pictures, return_tensors="pt")

        def again(others: list[Any]) -> Any:
            return prepare(images=others, return_tensors="pt")

        return Encoded(_tensors_of(batch), {}, False, _shown(loaded, again, pictures))
    prepare = part(loaded.processor, "feature_extractor")
    rate = int(prepare.sampling_rate)
    audio = samples(loaded, given, rate)
    tensors = _tensors_of(prepare(audio, sampling_rate=rate, return_tensors="pt"))
    return Encoded(tensors, {}, False, heard=heard(tensors, prepare, len(audio)))


def encode_mixed(loaded: Loaded, given: Input, stream: str, truncate: bool) -> Encoded:
    """Encode a text with pictures or a sound, for dual and multimodal models."""
    processor: Any = loaded.processor
    image_token = getattr(processor, "image_token", None)
    options: dict[str, Any] = {"return_tensors": "pt"}
    limit, cut = longest(loaded), False
    if given.images:
        options["images"] = [for_processor(open_image(image)) for image in given.images]
        prompt = _with_places(given.text or "", image_token, len(given.images))
    else:
        extractor: Any = part(processor, "feature_extractor")
        rate = int(extractor.sampling_rate)
        options.update(audio=[samples(loaded, given, rate)], sampling_rate=rate)
        prompt = _with_places(given.text or "", getattr(processor, "audio_token", None), 1)
    if truncate and image_token is None and limit is not None:
        cut = len(tokenize(loaded, prompt)["input_ids"]) > limit
        options.update(truncation=True, max_length=limit)
    try:
        batch = processor(text=[prompt], **options)
    except (ValueError, TypeError, IndexError) as error:
        raise InputError(f"{loaded.name} cannot take this input: {_first(error)}") from error
    tensors = _tensors_of(batch)
    ids = tensors["input_ids"]
    if limit is not None and ids.shape[1] > limit:
        raise InputError(too_long(loaded, ids.shape[1], limit))
    tensors.setdefault("attention_mask", torch.ones_like(ids))
    tokens = _aligned(loaded, ids[0].tolist(), given.text or "")

    def again(others: list[Any]) -> Any:
        return processor(text=[prompt], **{**options, "images": others})

    if given.images:
        return Encoded(
            tensors, {stream: tokens}, cut, shown=_shown(loaded, again, options["images"])
        )
    sound = heard(tensors, extractor, len(options["audio"][0]))
    return Encoded(tensors, {stream: tokens}, cut, heard=sound)


def _shown(loaded: Loaded, make: Make, pictures: list[Any]) -> Shown | None:
    """Ask the processor what its tensors show, once for pictures of the same sizes."""
    known = _SHOWN.setdefault(loaded.processor, OrderedDict())
    sizes = tuple(picture.size for picture in pictures)
    if sizes not in known:
        try:
            known[sizes] = shown(make, sizes)
        except (ValueError, TypeError, IndexError, KeyError, RuntimeError):
            known[sizes] = None  # it takes real pictures only; patches then have no places
        if len(known) > _MOST_SIZES:
            known.popitem(last=False)
    return known[sizes]


_MOST_SIZES = 1_000
_SHOWN: "WeakKeyDictionary[Any, OrderedDict[Any, Shown | None]]" = WeakKeyDictionary()


def _with_places(text: str, token: str | None, count: int) -> str:
    """Put a placeholder for each picture or sound before a text that has none."""
    if token is None:
        return text
    if token not in text:
        return token * count + text
    if text.count(token) != count:
        raise InputError(
            f"the text has {token} {text.count(token)} times and {count} were given; "
            "write it once for each, or leave it out"
        )
    return text


def _aligned(loaded: Loaded, ids: list[int], text: str) -> Tokens:
    """Align tokens with the text: a placeholder becomes many, the others keep their place."""
    tokens = _without_text(bare_tokens(ids, loaded.tokenizer))
    if not text:
        return tokens
    plain = text_tokens(tokenize(loaded, text), loaded.tokenizer, text)
    shown = [i for i, special in enumerate(tokens.special) if not special]
    written = [i for i, special in enumerate(plain.special) if not special]
    match = SequenceMatcher(
        None, [ids[i] for i in shown], [plain.id[i] for i in written], autojunk=False
    )
    for block in match.get_matching_blocks():
        for k in range(block.size):
            i, j = shown[block.a + k], written[block.b + k]
            tokens.start[i], tokens.end[i] = plain.start[j], plain.end[j]
            tokens.segment[i], tokens.word[i] = plain.segment[j], plain.word[j]
    return tokens


def _without_text(tokens: Tokens) -> Tokens:
    n = len(tokens)
    return replace(tokens, start=[-1] * n, end=[-1] * n, segment=[-1] * n, word=[-1] * n)


def _tensors_of(batch: Any) -> dict[str, torch.Tensor]:
    return {name: value for name, value in batch.items() if isinstance(value, torch.Tensor)}


def _first(error: Exception) -> str:
    return " ".join(str(error).split()).split(". ")[0].removesuffix(".")[:200]
