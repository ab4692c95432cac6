"""Which tests come with the package? Their names alone, without loading what runs them."""

from pathlib import Path

SHIPPED = Path(__file__).parent / "shipped"


def shipped_names() -> list[str]:
    """Return the names of the tests that come with the package."""
    return sorted(path.stem for path in SHIPPED.glob("*.json"))
