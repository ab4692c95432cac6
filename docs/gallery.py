"""Makes docs/gallery/*.png and docs/gallery.md from the real page: python -m docs.gallery [part …].

Needs the built front end, Playwright and a Chromium; every picture is a browser's screenshot. With
the beginnings of names only those pictures are made anew.
"""

import io
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import sync_playwright

import attention_atlas as aa
from attention_atlas.page.hosts.figure import FLAGS, find_browser
from attention_atlas.page.hosts.launch import start
from attention_atlas.page.live.model import LiveModel

PAGE = Path(__file__).parent / "gallery.md"
FOLDER = Path(__file__).parent / "gallery"
TEXTS = [
    "The doctor asked the nurse a question, but she was not sure that the doctor had heard her.",
    "The cat sat on the mat, and the dog lay on the rug.",
    "The farmer offered the traveller his horse because he was tired.",
    "She said that the letter would arrive on Monday, not on Tuesday.",
    "One, two, three, four, five, six, seven, eight.",
    "Paris is the capital of France, and Rome is the capital of Italy.",
    "Why did the old man walk down to the river at night?",
    '"Come in," said the king, "and close the door behind you."',
    "Anna told Mary that Mary would have to wait for Anna.",
    "The ship that the sailors had painted was not the ship that sank.",
    "In the morning the children went to school, and in the evening they came home.",
    "He bought apples, pears, plums, bread and a bottle of milk.",
]
SIZES = {"": (1440, 900), "-narrow": (900, 700)}
HEAD = "L3H2"
EDITS = [
    {"on": True, "edit": {"edit": "ablate", "heads": ["L2H1"], "by": "zero"}},
    {"on": True, "edit": {"edit": "mask", "heads": ["all"], "inputs": [0], "tokens": [5]}},
    {"on": False, "edit": {"edit": "scale", "heads": ["L4H5"], "by": 0.5}},
]
LIT = {"input": 2, "token": {"side": "query", "position": 4}, "pinned": True}

# name → what the person would see, and the picks that lead there
SHOTS: dict[str, tuple[str, dict[str, Any]]] = {
    "matrix": ("All heads as maps of queries (green) and keys (pink)", {"tab": "map"}),
    "single": ("One head: queries and keys as points", {"tab": "map", "mapHead": HEAD}),
    "solid": ("One head in three dimensions", {"tab": "map", "mapHead": HEAD, "map": "umap-3d"}),
    "sentence": (
        "The input of a clicked point, its two strongest keys, its lines, and the head's mean",
        {"tab": "map", "mapHead": HEAD, **LIT},
    ),
    "search": (
        "A search over all heads, ranked by how tightly the hits lie",
        {"tab": "map", "search": "the"},
    ),
    **{
        f"colour-{name}": (f"Coloured by {words}", {"tab": "map", "colour": name})
        for name, words in {
            "position": "position in the input",
            "mod5": "position modulo 5",
            "norm": "vector length",
            "frequency": "how often the token occurs",
            "length": "letters of the token",
            "sentence_length": "length of the input",
            "punctuation": "punctuation",
        }.items()
    },
    "safe": ("The colour-blind safe pair", {"tab": "map", "palette": "safe"}),
    "lines": ("Lines: who looks at whom, a colour a head", {"view": "head"}),
    "all-heads": ("All heads: layers down, heads across", {"view": "model"}),
    "neurons": ("Neurons: query, key, their product, and the softmax", {"view": "neuron"}),
    "heat-map": ("Heat-map: rows look, columns are looked at", {"view": "heat"}),
    "moved-lines": (
        "What is moved, not where a head looks: contributions below zero are orange",
        {"view": "head", "layer": 5, "heads": ["L5H0", "L5H1", "L5H4"], "shown": "contribution"},
    ),
    "moved-all-heads": (
        "All heads by what they move, without sinks",
        {"view": "model", "shown": "moved", "withoutSinks": True},
    ),
    "moved-heat-map": (
        "Contributions as a matrix",
        {"view": "heat", "layer": 5, "heads": ["L5H1"], "shown": "contribution"},
    ),
    "moved-mean": (
        "The mean of a head's contributions beside its map",
        {"tab": "map", "mapHead": HEAD, **LIT, "shown": "contribution", "withoutSinks": True},
    ),
    "logit": (
        "Logit: what each head and each token adds to the next token's logit",
        {"view": "logit", "logitHead": "L4H5"},
    ),
    "directions": (
        "Why here: the few directions that carry a head's attention",
        {"view": "neuron", "layer": 2, "heads": ["L2H1"], "basis": "directions"},
    ),
    "token-set": (
        "Several tokens together: what they look at",
        {"view": "head", "chosen": {"side": "query", "positions": [8, 9, 10]}},
    ),
    "reading": (
        "Reading: the text coloured by what one token looks at",
        {"view": "read", "token": {"side": "query", "position": 19}, "pinned": True},
    ),
    "checkpoints": (
        "A line a head over checkpoints of one model",
        {
            "tab": "heads",
            "versus": [2, 3],
            "layer": 2,
            "heads": ["L2H1"],
        },  # places among the other atlases
    ),
    "heads": (
        "What each head is: kinds, two scores, one score's distribution, every score, the card",
        {"tab": "heads"},
    ),
    "heads-score": (
        "The same, coloured by a score and sorted by it",
        {"tab": "heads", "score": "induction", "order": "induction", "layer": 4, "heads": ["L4H5"]},
    ),
    "heads-alike": (
        "Heads that do alike lie near each other; only parallel ones are listed",
        {"tab": "heads", "across": "alike", "kinds": ["parallel"]},
    ),
    "compare": (
        "Two models on the same texts: RI, importance, kinds",
        {"tab": "heads", "versus": [0]},
    ),
    "compare-reactions": (
        "Their reactions to one input, side by side",
        {"tab": "heads", "versus": [0]},
    ),
    "compare-differ": (
        "The heads that differ most, and all heads on one map",
        {"tab": "heads", "versus": [0]},
    ),
    "lab": (
        "The Lab: what I changed, what the model then says, where attention changed",
        {"tab": "lab", "edits": EDITS, "labAt": 9, "layer": 4, "heads": ["L4H3"]},
    ),
    "lab-difference": (
        "Lines before and after an edit, and their difference",
        {"edits": EDITS, "labView": "difference", "layer": 4, "heads": ["L4H2"]},
    ),
}
# name → what is scrolled to
SCROLLED = {
    "compare-reactions": "[data-testid=reaction-input]",
    "compare-differ": "[data-testid=head-map]",
    "checkpoints": "[data-testid=head-lines]",
}

PICKED = {"token": {"side": "query", "position": 29}, "pinned": True}
AT_STAR = {"tab": "image", "input": 5}

# The same, of builtin:vit over pictures that training/draw.py draws
VISION: dict[str, tuple[str, dict[str, Any]]] = {
    "image-arrows": (
        "Image: from each patch to what it looks at most",
        {**AT_STAR, "layer": 0, "heads": ["L0H0"]},
    ),
    "image-patch": (
        "What one patch looks at",
        {**AT_STAR, "layer": 2, "heads": ["L2H3"], **PICKED},
    ),
    "image-key": (
        "Which patches look at one",
        {
            **AT_STAR,
            "layer": 2,
            "heads": ["L2H1"],
            "token": {"side": "key", "position": 29},
            "pinned": True,
        },
    ),
    "image-flows": (
        "All weights from 0.1 on, wider and clearer with weight",
        {**AT_STAR, "layer": 2, "heads": ["L2H3"], "arrows": False, "flows": True},
    ),
    "image-rollout": (
        "Attention rolled out from the last layer back to the first",
        {**AT_STAR, "layer": 5, "heads": ["L5H0"], "combine": "rollout", **PICKED},
    ),
    "patches": (
        "One head of a vision model: points are patches, framed green (query) or pink (key)",
        {"tab": "map", "mapHead": "L3H2", "layer": 3, "heads": ["L3H2"]},
    ),
    "patches-hue": (
        "Patches framed by their hue",
        {"tab": "map", "mapHead": "L2H0", "layer": 2, "heads": ["L2H0"], "colour": "hue"},
    ),
    "patches-matrix": (
        "All heads of a vision model, coloured by brightness; dots until one zooms in",
        {"tab": "map", "colour": "brightness"},
    ),
    "patches-picked": (
        "A clicked patch: its picture beside the map",
        {"tab": "map", "mapHead": "L3H2", "layer": 3, "heads": ["L3H2"], "input": 5, **PICKED},
    ),
}


def drawn(folder: Path) -> list[Path]:
    """One picture of every kind, as files."""
    import torch

    from training.draw import KINDS, Pencil

    images, _ = Pencil(torch.device("cpu"), seed=5).draw(1)
    paths = [folder / f"{kind}.png" for kind in KINDS]
    for path, image in zip(paths, images, strict=True):
        Image.fromarray(image.permute(1, 2, 0).numpy()).save(path)
    return paths


def checkpoints(folder: Path) -> list[aa.Atlas]:
    """Two later states of builtin:gpt, in which one head loses its queries step by step."""
    import torch

    from attention_atlas.models.load import load

    loaded, atlases = load("builtin:gpt"), []
    for step in (1, 2):
        with torch.no_grad():
            loaded.model.transformer.h[2].attn.c_attn.weight[:, 32:64] *= 0.4
        given: Any = (loaded.model, loaded.processor)
        path = folder / f"step-{step}.atlas"
        atlases.append(aa.capture(given, TEXTS, path=path, progress=False))
    return atlases


def shoot(page: Any, url: str, name: str) -> Iterator[tuple[str, bytes]]:
    """Open the page once and photograph it in both themes and sizes; yields suffix and picture."""
    _, picks = {**SHOTS, **VISION}[name]
    page.set_viewport_size({"width": 1440, "height": 900})
    page.goto("about:blank")
    page.goto(url)
    page.wait_for_selector("html[data-state=ready]")
    wanted = {"tab": "text", "theme": "light", "layer": 3, "heads": [HEAD], **picks}
    page.evaluate("picks => window.attentionAtlas.setPicks(picks)", wanted)
    page.wait_for_timeout(6_000 if "edits" in picks else 1_500)  # the model is run for edits
    for theme, sizes in {"light": ("", "-narrow"), "dark": ("-narrow", "")}.items():
        page.evaluate("theme => window.attentionAtlas.setPicks({ theme })", theme)
        for suffix in sizes:
            width, height = SIZES[suffix]
            page.set_viewport_size({"width": width, "height": height})
            page.wait_for_timeout(700)
            if name in SCROLLED:
                page.locator(SCROLLED[name]).evaluate("one => one.scrollIntoView()")
                page.wait_for_timeout(300)
            yield f"{theme}{suffix}", page.screenshot()


def save(picture: bytes, path: Path) -> None:
    """256 colours are enough for a screen of few, and a third of the bytes."""
    whole = Image.open(io.BytesIO(picture)).convert("RGB")
    few = whole.quantize(256, kmeans=3, dither=Image.Dither.NONE)  # small patches keep their colour
    few.save(path, optimize=True)


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    every = {**SHOTS, **VISION}
    chosen = [name for name in every if not sys.argv[1:] or name.startswith(tuple(sys.argv[1:]))]
    lines = ["# Gallery", "", "Made by `python -m docs.gallery` from the real page.", ""]
    with tempfile.TemporaryDirectory() as place, sync_playwright() as play:
        atlas = aa.capture("builtin:gpt", TEXTS, path=Path(place) / "x.atlas", progress=False)
        other = aa.capture("builtin:bert", TEXTS, path=Path(place) / "y.atlas", progress=False)
        for dims in (2, 3) if any(every[name][1].get("tab") == "map" for name in chosen) else ():
            atlas.layout("umap", dims=dims, progress=False)
        seen = aa.capture(
            "builtin:vit", drawn(Path(place)), path=Path(place) / "z.atlas", progress=False
        )
        if any(name in VISION for name in chosen):
            seen.layout("umap", progress=False)
        browser = play.chromium.launch(executable_path=find_browser(), args=list(FLAGS))
        page = browser.new_page()
        page.add_init_script("try { localStorage['attention-atlas-hints'] = 'seen' } catch {}")
        later = checkpoints(Path(place)) if "checkpoints" in chosen else []
        models = [LiveModel("builtin:gpt"), None, None, *(None for _ in later)]
        with start([atlas, other, seen, *later], port=0, models=models) as running:
            for name, (caption, _) in every.items():
                lines += [f"## {caption}", ""]
                url = f"{running.url}{2 * (name in VISION)}/"
                for theme in ("light", "dark"):
                    for suffix in SIZES:
                        picture = f"gallery/{name}-{theme}{suffix}.png"
                        lines += [f"![{caption}, {theme}]({picture})", ""]
                if name in chosen:
                    for suffix, shot in shoot(page, url, name):
                        save(shot, FOLDER / f"{name}-{suffix}.png")
        browser.close()
    PAGE.write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
