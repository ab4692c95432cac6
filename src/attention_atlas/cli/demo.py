"""attention-atlas demo: show two built-in models; needs no network."""

from typing import TYPE_CHECKING, Annotated

import typer

from attention_atlas.cli.hosting import Hosting, show
from attention_atlas.cli.talk import receipt_table, say, summary

if TYPE_CHECKING:
    from attention_atlas.store.reader import StoredAtlas


def demo(
    hosting: Hosting,
    as_text: Annotated[
        bool,
        typer.Option("--text", help="Print the receipt and each head's top link instead."),
    ] = False,
) -> None:
    """Look at two built-in models over two hundred sentences; needs no network."""
    from attention_atlas.studies.demo import MODELS, demo_atlases

    atlases = demo_atlases(say)
    if not as_text:
        from attention_atlas.page.hosts.demo_story import DEMO_STORY
        from attention_atlas.page.live.model import LiveModel

        for atlas in atlases:
            say(f"{atlas.manifest.model}: {summary(atlas)}")
        show(atlases, hosting, [LiveModel(name) for name in MODELS], story=DEMO_STORY)
        return
    for atlas in atlases:
        print(f"{atlas.manifest.model}: {summary(atlas)}")
        print(receipt_table(atlas.receipt))
        print()
        print("The strongest link of each head (from → to), without the first token:")
        for line in strongest_links(atlas):
            print(line)


def strongest_links(atlas: "StoredAtlas") -> list[str]:
    """Find the pair of tokens with the largest weight of each head; returns a line a head."""
    import numpy as np

    from attention_atlas.names.head import Head

    lines = []
    for tower in atlas.towers:
        prefix = tower.name if len(atlas.towers) > 1 else ""
        for layer in tower.layers:
            best = [(0.0, "", "")] * layer.heads
            for number in range(len(atlas)):
                rows = atlas.tokens(number, layer.queries)["text"].tolist()
                columns = atlas.tokens(number, layer.keys)["text"].tolist()
                weights = atlas.layer_weights(number, layer.layer, tower.name)[:, 1:, 1:]
                for head, matrix in enumerate(weights):
                    if matrix.size and matrix.max() > best[head][0]:
                        i, j = np.unravel_index(matrix.argmax(), matrix.shape)
                        best[head] = (float(matrix.max()), rows[i + 1], columns[j + 1])
            lines += [
                f"  {Head(prefix, layer.layer, head)!s:10} {weight:.2f}  {source} → {target}"
                for head, (weight, source, target) in enumerate(best)
            ]
    return lines
