"""How is a model loaded: which revision, onto which device, in which numbers?"""

from dataclasses import dataclass
from typing import Any

from attention_atlas.names.options import option


@dataclass(frozen=True)
class Loading:
    """What a person may choose when a model is loaded."""

    device: str = option("auto", "auto, cpu, cuda, cuda:1 …")
    dtype: Any = option(None, "float32, float16, bfloat16 or auto (as stored).", type=str | None)
    revision: str | None = option(None, "A branch, tag or commit of a model on the hub.")
    trust_remote_code: bool = option(False, "Run code that comes with the model.")
    gguf_file: str | None = None
    device_map: str | None = option(None, "auto: spread the model over GPUs, CPU and disk.")
    bits: int | None = option(None, "8 or 4: weights of so many bits (bitsandbytes).")
    adapter: str | None = option(None, "A PEFT adapter to put on the model: folder or hub id.")
