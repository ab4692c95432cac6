"""Records docs/motion.webp, the picture that moves in the README: python -m docs.motion.

Needs the built page, Playwright and a Chromium. Each frame is a real state of the page.
"""

import io
import tempfile
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import sync_playwright

import attention_atlas as aa
from attention_atlas.page.hosts.figure import FLAGS, find_browser
from attention_atlas.page.hosts.launch import start
from attention_atlas.page.live.model import LiveModel
from docs.gallery import EDITS, HEAD, LIT, TEXTS

TARGET = Path(__file__).parent / "motion.webp"
SCREEN, SHOWN = (1280, 800), (960, 600)
FIRST = {"tab": "map", "theme": "light", "layer": 3, "heads": [HEAD], "mapHead": None}
# The picks of each frame beside those before it, and for how many milliseconds it stays.
FRAMES: tuple[tuple[dict[str, Any], int], ...] = (
    (FIRST, 1800),
    ({"colour": "mod5"}, 1600),
    ({"colour": "side", "search": "the"}, 1600),
    ({"search": "", "mapHead": HEAD}, 1600),
    (dict(LIT), 2200),
    ({"tab": "text", "view": "head", "token": None, "pinned": False}, 2000),
    ({"view": "model"}, 2000),
    ({"tab": "heads"}, 2200),
    ({"tab": "lab", "input": 0, "edits": EDITS, "labAt": 9, "layer": 4, "heads": ["L4H3"]}, 2600),
    ({"tab": "text", "view": "head", "labView": "difference"}, 2200),
)


def main() -> None:
    with tempfile.TemporaryDirectory() as place, sync_playwright() as play:
        atlas = aa.capture("builtin:gpt", TEXTS, path=Path(place) / "x.atlas", progress=False)
        atlas.layout("umap", progress=False)
        browser = play.chromium.launch(executable_path=find_browser(), args=list(FLAGS))
        page = browser.new_page(viewport={"width": SCREEN[0], "height": SCREEN[1]})
        page.add_init_script("try { localStorage['attention-atlas-hints'] = 'seen' } catch {}")
        with start([atlas], port=0, models=[LiveModel("builtin:gpt")]) as running:
            page.goto(running.url)
            page.wait_for_selector("html[data-state=ready]")
            frames = [frame(page, picks) for picks, _ in FRAMES]
        browser.close()
    frames[0].save(
        TARGET, save_all=True, append_images=frames[1:], duration=[stays for _, stays in FRAMES],
        loop=0, quality=80, method=6,
    )  # fmt: skip
    print(f"{TARGET}: {len(frames)} frames, {TARGET.stat().st_size:,} bytes")


def frame(page: Any, picks: dict[str, Any]) -> Image.Image:
    """Set what is picked and wait; returns the screen, made smaller."""
    page.evaluate("picks => window.attentionAtlas.setPicks(picks)", picks)
    page.wait_for_timeout(6_000 if "edits" in picks else 1_500)  # the model is run for edits
    screen = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    return screen.resize(SHOWN, Image.Resampling.LANCZOS)


if __name__ == "__main__":
    main()
