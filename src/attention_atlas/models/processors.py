"""What turns texts, pictures and sounds into this model's tensors?

A tokenizer, an image processor, a feature extractor, or a processor that holds several of them; a
model may have none, and then takes ready-made tensors only.
"""

from pathlib import Path
from typing import Any

from transformers import (
    AutoConfig,
    AutoFeatureExtractor,
    AutoImageProcessor,
    AutoProcessor,
    AutoTokenizer,
    FeatureExtractionMixin,
    ImageProcessingMixin,
    PreTrainedTokenizerBase,
)
from transformers.models.auto.processing_auto import PROCESSOR_MAPPING

_PARTS: dict[str, type] = {
    "tokenizer": PreTrainedTokenizerBase,
    "image_processor": ImageProcessingMixin,
    "feature_extractor": FeatureExtractionMixin,
}


def part(processor: Any | None, name: str) -> Any | None:
    """Get the tokenizer, image processor or feature extractor of a processor, if it has one."""
    if isinstance(processor, _PARTS[name]):
        return processor
    inner = getattr(processor, name, None)
    return inner if isinstance(inner, _PARTS[name]) else None


def find_processor(place: str | Path, **where: Any) -> Any | None:
    """Make the first processor that the files of `place` allow, else None."""
    for make in (AutoProcessor.from_pretrained, _without_video, *_ALONE):
        try:
            processor = make(place, **where)
        except Exception:  # noqa: S112
            continue
        if not _is_empty(processor):
            return processor
    return None


def _without_video(place: str | Path, **where: Any) -> Any:
    """Make a processor for text and pictures; its part for videos would need torchvision."""
    whole = PROCESSOR_MAPPING[type(AutoConfig.from_pretrained(place, **where))]
    if "video_processor" not in whole.get_attributes():
        raise ValueError(f"{whole.__name__} knows no videos")

    class WithoutVideo(whole):  # type: ignore[misc, valid-type]
        def check_argument_for_proper_class(self, name: str, value: Any) -> Any:
            return None if value is None else super().check_argument_for_proper_class(name, value)

    return WithoutVideo(
        image_processor=_pictures(place, **where),
        tokenizer=AutoTokenizer.from_pretrained(place, **where),
        video_processor=None,
    )


def _pictures(place: str | Path, **where: Any) -> Any:
    """Make an image processor that uses PIL: the same pixels on every machine, no torchvision."""
    return AutoImageProcessor.from_pretrained(place, backend="pil", **where)


_ALONE = (AutoTokenizer.from_pretrained, _pictures, AutoFeatureExtractor.from_pretrained)


def _is_empty(processor: Any) -> bool:
    """Tell whether a tokenizer has only special tokens: transformers makes one for any folder."""
    tokenizer = part(processor, "tokenizer")
    return tokenizer is not None and len(tokenizer) <= len(set(tokenizer.all_special_ids))
