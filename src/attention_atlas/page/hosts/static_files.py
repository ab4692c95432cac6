"""Where are the built pages?

The build hook of the wheel builds `web/` into `static/`; a checkout builds it on install.
"""

from pathlib import Path

from attention_atlas.names.errors import StoreError

STATIC = Path(__file__).parents[1] / "static"
SERVED = {
    "page.js": "text/javascript; charset=utf-8",
    "page.css": "text/css; charset=utf-8",
}


def static(name: str) -> Path:
    """Return the path of a built file; `name` is never from a request."""
    path = STATIC / name
    if not path.is_file():
        raise StoreError(
            f"the web page is not built ({name} is missing); run: pip install . "
            "in the checkout, or make web"
        )
    return path
