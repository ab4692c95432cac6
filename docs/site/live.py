"""Which live pages does the site show? Saved pages of the built-in models, each one file."""

import tempfile
from pathlib import Path

import attention_atlas as aa
from docs.gallery import TEXTS, drawn
from docs.site.source import frame

# name → its title, and what to do there
PAGES = {
    "lines": (
        "Lines: who looks at whom",
        "Point at a token to see what it looks at; click to keep it. The squares are heads.",
    ),
    "all-heads": ("All heads on one sentence", "Click a small picture to open it."),
    "matrix": (
        "Every head as a map",
        "Queries are green, keys are pink. Click a panel to enter it, or search for a word.",
    ),
    "heads": ("What each head is", "Kinds and scores. Click a head for its card."),
    "image": ("Where patches look", "Click a patch to see what it looks at."),
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
    parts = [
        f"## {title}\n\n{about}\n\n{frame(f'live/{name}.html', title)}"
        for name, (title, about) in PAGES.items()
    ]
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
