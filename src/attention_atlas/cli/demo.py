"""attention-atlas demo: two built-in models, no network."""

from typing import TYPE_CHECKING, Annotated

import typer

from attention_atlas.cli.hosting import Hosting, show
from attention_atlas.cli.talk import receipt_table, say, summary

if TYPE_CHECKING:
    from attention_atlas.store.reader import StoredAtlas


def demo(
    hosting: Hosting,
    as_text: Annotated[
        bool, typer.Option("--text", help="Print the receipt and each head's best link instead.")
    ] = False,
) -> None:
    """Look at two built-in models over two hundred sentences; needs no network."""
    from attention_atlas.studies.demo import MODELS, demo_atlases

    atlases = demo_atlases(say)
    if not as_text:
        from attention_atlas.page.live.model import LiveModel

        for atlas in atlases:
            say(f"{atlas.manifest.model}: {summary(atlas)}")
        show(atlases, hosting, [LiveModel(name) for name in MODELS])
        return
    for atlas in atlases:
        print(f"{atlas.manifest.model}: {summary(atlas)}")
        print(receipt_table(atlas.receipt))
        print()
        print("The strongest link of each head (who looks → at whom), first token left out:")
        for line in strongest_links(atlas):
            print(line)


def strongest_links(atlas: "StoredAtlas") -> list[str]:
    """For each head, the pair of tokens with the largest weight over all inputs."""
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
                for head, one in enumerate(weights):
                    if one.size and one.max() > best[head][0]:
                        i, j = np.unravel_index(one.argmax(), one.shape)
                        best[head] = (float(one.max()), rows[i + 1], columns[j + 1])
            lines += [
                f"  {Head(prefix, layer.layer, head)!s:10} {weight:.2f}  {source} → {target}"
                for head, (weight, source, target) in enumerate(best)
            ]
    return lines
