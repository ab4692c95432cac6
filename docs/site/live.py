"""Which live pages does the site show? Saved pages of the built-in models, each one file."""

import tempfile
from pathlib import Path

import attention_atlas as aa
from docs.gallery import TEXTS, drawn
from docs.site.source import frame

# name → what it is
PAGES = {
    "lines": "Lines: who looks at whom. Point at a token; click to keep it. The squares are heads.",
    "all-heads": "All heads of a small GPT on one sentence. Click one to open it.",
    "matrix": "Every head as a map of queries (green) and keys (pink). Click a panel to enter it.",
    "heads": "What each head is: kinds and scores. Click a head for its card.",
    "image": "Where patches look on a picture. Click a patch.",
}
_ABOUT = (
    "# Live pages\n\nEach frame is one HTML file that `view.save(…)` wrote while this site was "
    "built; it needs no server and no network. Everything in it can be pointed at, clicked "
    "and searched.\n"
)


def write_live_pages(folder: Path) -> None:
    """Write every live page into a folder, and beside it the document that shows them all."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place:
        for name, view in _views(Path(place)).items():
            view.save(folder / f"{name}.html")
    parts = [f"## {about}\n\n{frame(f'live/{name}.html', name)}" for name, about in PAGES.items()]
    (folder.parent / "live.md").write_text("\n".join([_ABOUT, *parts]), encoding="utf-8")


def _views(place: Path) -> dict[str, aa.View]:
    text = aa.capture("builtin:gpt", TEXTS, path=place / "gpt.atlas", progress=False)
    text.layout("umap", progress=False)
    pictures = drawn(place)[4:6]
    seen = aa.capture("builtin:vit", pictures, path=place / "vit.atlas", progress=False)
    return {
        "lines": aa.head_view(text, layer=3, heads=[2]),
        "all-heads": aa.model_view(text),
        "matrix": aa.matrix_view(text),
        "heads": aa.heads_view(text),
        "image": aa.image_view(seen, input=1, head="L2H3"),
    }
