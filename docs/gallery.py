"""Makes docs/gallery/*.png and docs/gallery.md from the real page: python -m docs.gallery.

Needs the built front end, Playwright and a Chromium; every picture is a browser's screenshot.
"""

import tempfile
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

import attention_atlas as aa
from attention_atlas.serve.figure import FLAGS, find_browser

PAGE = Path(__file__).parent / "gallery.md"
FOLDER = Path(__file__).parent / "gallery"
TEXT = "The doctor asked the nurse a question, but she was not sure that the doctor had heard her."
PAIR = ("The cat sat on the mat.", "The dog lay on the rug.")
SIZES = {"": (1440, 900), "-narrow": (900, 700)}

# name → what the person would see, the view, the picks that lead there
SHOTS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "lines": ("Lines: who looks at whom, a colour a head", "head", {}),
    "all-heads": ("All heads: layers down, heads across", "model", {}),
    "neurons": ("Neurons: query, key, their product, and the softmax", "neuron", {}),
    "heat-map": ("Heat-map: rows look, columns are looked at", "heat", {}),
}


def shoot(page: Any, file: Path, name: str, theme: str, size: tuple[int, int]) -> None:
    _, view, picks = SHOTS[name]
    page.set_viewport_size({"width": size[0], "height": size[1]})
    wanted = {"view": view, "theme": theme, "layer": 3, "heads": ["L3H2"], **picks}
    page.goto("about:blank")
    page.goto(f"{file.as_uri()}")
    page.wait_for_selector("html[data-state=ready]")
    page.evaluate("picks => window.attentionAtlas.setPicks(picks)", wanted)
    page.wait_for_timeout(1_500)


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    lines = ["# Gallery", "", "Made by `python -m docs.gallery` from the real page.", ""]
    with tempfile.TemporaryDirectory() as place, sync_playwright() as play:
        file = Path(place) / "page.html"
        atlas = aa.capture("builtin:gpt", [TEXT, *PAIR], progress=False)
        aa.head_view(atlas).save(str(file), exact=True)
        browser = play.chromium.launch(executable_path=find_browser(), args=list(FLAGS))
        page = browser.new_page()
        for name, (caption, _, _) in SHOTS.items():
            lines += [f"## {caption}", ""]
            for theme in ("light", "dark"):
                for suffix, size in SIZES.items():
                    shoot(page, file, name, theme, size)
                    picture = f"{name}-{theme}{suffix}.png"
                    page.screenshot(path=str(FOLDER / picture))
                    lines += [f"![{caption}, {theme}](gallery/{picture})", ""]
        browser.close()
    PAGE.write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
