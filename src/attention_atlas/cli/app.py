"""The command line: data on stdout, talk on stderr.

Our own errors are one line on stderr and exit code 2. Nothing heavy is imported before a command
runs, so `--help` answers at once.
"""

import json
import sys
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from attention_atlas.cli import heads as cli_heads
from attention_atlas.names.errors import AtlasError, InputError

if TYPE_CHECKING:
    from attention_atlas.page.live.desks import Models
    from attention_atlas.store.manifest import Receipt
    from attention_atlas.store.reader import Atlas

app = typer.Typer(
    name="attention-atlas",
    help="See, measure and test what attention does inside any transformer.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


class Part(StrEnum):
    query = "query"
    key = "key"
    value = "value"
    weights = "weights"


Model = Annotated[
    str, typer.Argument(metavar="MODEL", help="A hub id, a folder, a .gguf file or builtin:gpt.")
]
Inputs = Annotated[
    str, typer.Argument(metavar="INPUTS", help="A file, a folder of pictures or a quoted text.")
]
Output = Annotated[Path, typer.Option("-o", "--output", help="The atlas folder to write.")]
Column = Annotated[str | None, typer.Option(help="The column of a table that holds the text.")]
SecondColumn = Annotated[
    str | None, typer.Option(help="The column of a second text, for pairs or targets.")
]
Limit = Annotated[int | None, typer.Option(min=1, help="At most so many inputs, drawn by seed.")]
Truncate = Annotated[bool, typer.Option("--truncate", help="Cut inputs that are too long.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace an atlas that is there.")]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1 …")]
Dtype = Annotated[str | None, typer.Option(help="float32, float16, bfloat16 or auto (as stored).")]
Remote = Annotated[
    bool, typer.Option("--trust-remote-code", help="Run code that comes with the model.")
]

Host = Annotated[str, typer.Option(help="Where to listen; beyond this machine a token is needed.")]
Port = Annotated[int | None, typer.Option(min=0, max=65535, help="8642 or a free one, if unset.")]
Browser = Annotated[bool, typer.Option("--browser/--no-browser", help="Open a browser.")]
Exact = Annotated[bool, typer.Option("--exact", help="Put whole rows and vectors into the page.")]


@app.callback()
def _root() -> None:
    """Typer needs this to keep a command's name even while there is only one."""


@app.command()
def check(
    model: Model,
    inputs: Annotated[
        str | None,
        typer.Argument(metavar="[INPUTS]", help="What to check it on; made up if unset."),
    ] = None,
    device: Device = "auto",
    dtype: Dtype = None,
    trust_remote_code: Remote = False,
    as_json: Annotated[bool, typer.Option("--json", help="The receipt as JSON.")] = False,
) -> None:
    """Can this model be captured exactly? Prints the receipt; exits 0 only if so, else 1."""
    from attention_atlas.record.prove.check import check as make

    receipt = make(model, inputs, device=device, dtype=dtype, trust_remote_code=trust_remote_code)
    if as_json:
        from attention_atlas.store.manifest import plain

        print(json.dumps(plain({**asdict(receipt), "exact": receipt.exact}), indent=1))
    else:
        print(receipt_table(receipt))
    raise typer.Exit(0 if receipt.exact else 1)


@app.command()
def capture(
    model: Model,
    inputs: Inputs,
    output: Output,
    column: Column = None,
    second_column: SecondColumn = None,
    keep: Annotated[list[Part] | None, typer.Option(help="What to store; may be repeated.")] = None,
    batch_size: Annotated[int, typer.Option(min=1)] = 8,
    limit: Limit = None,
    seed: int = 0,
    generate: Annotated[int, typer.Option(min=0, help="Tokens to let the model write.")] = 0,
    truncate: Truncate = False,
    overwrite: Overwrite = False,
    device: Device = "auto",
    dtype: Dtype = None,
    trust_remote_code: Remote = False,
) -> None:
    """Run MODEL over INPUTS and store its attention in an atlas folder. Resumes if interrupted."""
    from attention_atlas.record.write.capture import capture as run

    parts = tuple(str(part) for part in keep) if keep else ("query", "key", "value")
    try:
        atlas = run(
            model, inputs, path=output, column=column, second_column=second_column, keep=parts,
            batch_size=batch_size, limit=limit, seed=seed, generate=generate, truncate=truncate,
            overwrite=overwrite, device=device, dtype=dtype, trust_remote_code=trust_remote_code,
        )  # fmt: skip
    except KeyboardInterrupt:
        say(f"stopped; run the same command again and {output} goes on where it is")
        raise typer.Exit(130) from None
    say(summary(atlas))
    print(output)


class Method(StrEnum):
    pca = "pca"
    tsne = "tsne"
    umap = "umap"


@app.command()
def layout(
    atlas: Annotated[Path, typer.Argument(metavar="ATLAS", help="An atlas folder.")],
    method: Annotated[Method, typer.Option(help="How places are found.")] = Method.umap,
    dims: Annotated[int, typer.Option(min=2, max=3)] = 2,
    tokens: Annotated[int, typer.Option(min=1, help="At most so many tokens a head.")] = 5000,
    seed: int = 0,
    device: Device = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="Each head's fidelity as JSON.")] = False,
) -> None:
    """Lay out all queries and keys of every head of an atlas. Resumes if interrupted."""
    from attention_atlas.store.reader import open_atlas

    made = open_atlas(atlas).layout(method, dims, tokens=tokens, seed=seed, device=device)
    figures = {head: made.of(head)[1] for group in made.groups.values() for head in group.heads}
    if as_json:
        print(json.dumps(figures, indent=1))
        return
    print(f"{'head':14} {'correlation':>12} {'trustworthy':>12} {'kept':>8}")
    for head, figure in figures.items():
        print(
            f"{head:14} {figure['map.correlation']:12.3f} {figure['map.trust']:12.3f} "
            f"{figure['map.kept']:8.3f}"
        )


for command in cli_heads.COMMANDS:
    app.command()(command)


@app.command()
def build(
    model: Model,
    inputs: Inputs,
    output: Output,
    method: Annotated[str, typer.Option(help="umap, tsne, pca; several with commas.")] = "umap",
    dims: Annotated[str, typer.Option(help="2, 3 or 2,3.")] = "2",
    tokens: Annotated[int, typer.Option(min=1, help="At most so many on a map.")] = 5000,
    column: Column = None,
    second_column: SecondColumn = None,
    batch_size: Annotated[int, typer.Option(min=1)] = 8,
    limit: Limit = None,
    seed: int = 0,
    truncate: Truncate = False,
    overwrite: Overwrite = False,
    device: Device = "auto",
    dtype: Dtype = None,
    trust_remote_code: Remote = False,
) -> None:
    """Capture MODEL over INPUTS, lay out and measure every head. Resumes if stopped."""
    from attention_atlas.studies.build import Wanted
    from attention_atlas.studies.build import build as run

    wanted = Wanted(_words(method), _numbers(dims), tokens, seed, device)
    try:
        atlas = run(
            model, inputs, output, wanted, column=column, second_column=second_column,
            batch_size=batch_size, limit=limit, truncate=truncate, overwrite=overwrite,
            dtype=dtype, trust_remote_code=trust_remote_code,
        )  # fmt: skip
    except KeyboardInterrupt:
        say(f"stopped; run the same command again and {output} goes on where it is")
        raise typer.Exit(130) from None
    say(f"{summary(atlas)}; see it with: attention-atlas serve {output}")
    print(output)


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _numbers(text: str) -> list[int]:
    try:
        return [int(word) for word in _words(text)]
    except ValueError:
        raise InputError(f"--dims {text!r} is no number; give 2, 3 or 2,3") from None


@app.command()
def label(
    atlas: Annotated[Path, typer.Argument(metavar="ATLAS", help="An atlas folder.")],
    model: Annotated[str, typer.Option(help="A segmentation model: a hub id or a folder.")],
    device: Device = "auto",
    dtype: Dtype = None,
    trust_remote_code: Remote = False,
    as_json: Annotated[bool, typer.Option("--json", help="The counts as JSON.")] = False,
) -> None:
    """Name what each patch of an atlas shows, by a segmentation model, to colour maps by."""
    from attention_atlas.studies.measure import label as run

    counts = run(atlas, model, device=device, dtype=dtype, trust_remote_code=trust_remote_code)
    if as_json:
        print(json.dumps(counts, indent=1, ensure_ascii=False))
        return
    for name, count in counts.items():
        print(f"{count:8} {name}")


class ProbeKind(StrEnum):
    hue = "hue"
    brightness = "brightness"
    gratings = "gratings"
    shapes = "shapes"


@app.command()
def probes(
    kind: Annotated[ProbeKind, typer.Argument(metavar="KIND", help="What is known of them.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="The folder to write.")],
    size: Annotated[int, typer.Option(min=14, help="Pixels a side.")] = 224,
    seed: int = 0,
) -> None:
    """Make pictures whose value is known at every place: hue, brightness, gratings or shapes."""
    from attention_atlas.images.probes import write_probes

    count = write_probes(str(kind), output, size, seed)
    say(f"{count} pictures; capture them: attention-atlas build MODEL {output} -o x.atlas")
    print(output)


@app.command()
def view(
    model: Model,
    text: Annotated[
        str, typer.Argument(metavar="TEXT", help="What the model reads, or the file of a picture.")
    ],
    text_b: Annotated[
        str | None, typer.Argument(metavar="[TEXT_B]", help="A second text, or the target.")
    ] = None,
    save: Annotated[
        Path | None, typer.Option(help="Write page.html, figure.svg or figure.png instead.")
    ] = None,
    exact: Exact = False,
    host: Host = "127.0.0.1",
    port: Port = None,
    browser: Browser = True,
    device: Device = "auto",
    dtype: Dtype = None,
    trust_remote_code: Remote = False,
) -> None:
    """Run MODEL on one TEXT, or a picture, and look at its attention."""
    from attention_atlas.models.media import IMAGE_SUFFIXES
    from attention_atlas.record.write.capture import capture as run

    given: object = {"text": text} if text_b is None else {"text": text, "second": text_b}
    if text.lower().endswith(IMAGE_SUFFIXES) and Path(text).is_file():
        given = Path(text) if text_b is None else {"image": text, "text": text_b}
    atlas = run(model, [given], device=device, dtype=dtype, trust_remote_code=trust_remote_code)
    say(summary(atlas))
    if save is None:
        show([atlas], host, port, browser)
        return
    from attention_atlas.page.hosts.views import first_view

    print(first_view(atlas).save(save, exact=exact))


@app.command()
def serve(
    atlases: Annotated[list[Path], typer.Argument(metavar="ATLAS...", help="Atlas folders.")],
    model: Annotated[
        list[str] | None,
        typer.Option(help="The atlas's model, so that texts can be added; may be repeated."),
    ] = None,
    host: Host = "127.0.0.1",
    port: Port = None,
    browser: Browser = True,
    device: Device = "auto",
    dtype: Dtype = None,
    trust_remote_code: Remote = False,
) -> None:
    """Show atlases in the browser; another --host than this machine gets a token in its link."""
    from attention_atlas.page.live.model import LiveModel, give_out
    from attention_atlas.store.reader import open_atlas

    opened = [open_atlas(path) for path in atlases]
    options = {"device": device, "dtype": dtype, "trust_remote_code": trust_remote_code}
    models = give_out([LiveModel(name, **options) for name in model or ()], opened)
    show(opened, host, port, browser, models)


@app.command()
def export(
    atlas: Annotated[Path, typer.Argument(metavar="ATLAS", help="An atlas folder.")],
    output: Annotated[
        Path, typer.Argument(metavar="OUTPUT", help="page.html, figure.svg, figure.png or folder/.")
    ],
    exact: Exact = False,
) -> None:
    """Write an atlas as one HTML file, a figure, or a folder for any web host."""
    from attention_atlas.store.reader import open_atlas

    opened = open_atlas(atlas)
    if output.suffix:
        from attention_atlas.page.answers.maps import map_files
        from attention_atlas.page.hosts.views import first_view, matrix_view

        mapped = output.suffix == ".html" and map_files(opened)
        (matrix_view if mapped else first_view)(opened).save(output, exact=exact)
    else:
        from attention_atlas.page.hosts.export import save_folder

        save_folder(output, opened, exact=exact)
    print(output)


@app.command()
def demo(
    as_text: Annotated[
        bool, typer.Option("--text", help="Print the receipt and each head's best link instead.")
    ] = False,
    host: Host = "127.0.0.1",
    port: Port = None,
    browser: Browser = True,
) -> None:
    """Look at two built-in models over two hundred sentences; needs no network."""
    from attention_atlas.studies.demo import MODELS, demo_atlases

    atlases = demo_atlases(say)
    if not as_text:
        from attention_atlas.page.live.model import LiveModel

        for atlas in atlases:
            say(f"{atlas.manifest.model}: {summary(atlas)}")
        show(atlases, host, port, browser, [LiveModel(name) for name in MODELS])
        return
    for atlas in atlases:
        print(f"{atlas.manifest.model}: {summary(atlas)}")
        print(receipt_table(atlas.receipt))
        print()
        print("The strongest link of each head (who looks → at whom), first token left out:")
        for line in strongest_links(atlas):
            print(line)


def show(
    atlases: "list[Atlas]", host: str, port: int | None, browser: bool, models: "Models" = ()
) -> None:
    """Serve until interrupted."""
    from attention_atlas.page.hosts.launch import serve as run

    run(atlases, host, port, browser=browser, say=say, models=models)


def receipt_table(receipt: "Receipt") -> str:
    """The receipt as a table for people."""
    head = f"{'layer':16} {'weights':>9} {'output':>9} {'stored':>9}  "
    rows = [
        f"{one.tower + ' ' + str(one.layer):16} {one.weights_error:9.1e} {one.output_error:9.1e} "
        f"{'–' if one.stored_error is None else format(one.stored_error, '.1e'):>9}  "
        f"{'exact' if one.exact else 'NOT EXACT: ' + one.reason}"
        for one in receipt.layers
    ]
    missing = [f"not seen: {name}" for name in receipt.missing]
    verdict = (
        f"exact, by way of {receipt.how}, in {receipt.dtype}: "
        f"worst error {receipt.worst_error:.1e}, bound {receipt.bound:.0e}"
        if receipt.exact
        else "not exact"
    )
    return "\n".join([head.rstrip(), *rows, *missing, verdict])


def strongest_links(atlas: "Atlas") -> list[str]:
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


def summary(atlas: "Atlas") -> str:
    receipt = atlas.receipt
    lost = [f"{one.tower} {one.layer} ({one.reason})" for one in receipt.layers if not one.exact]
    proof = (
        f"capture exact ({receipt.worst_error:.1e})"
        if receipt.exact
        else f"left out, not exact: {', '.join([*lost, *receipt.missing])}"
    )
    skipped = atlas.manifest.options.get("skipped") or []
    left_out = f" ({len(skipped)} left out)" if skipped else ""
    return f"{atlas.manifest.inputs} inputs{left_out}, {atlas.manifest.tokens} tokens; {proof}"


def say(text: str) -> None:
    print(text, file=sys.stderr)


def main() -> None:
    """The entry point: our own errors become one line and exit code 2."""
    try:
        app()
    except AtlasError as problem:
        say(f"attention-atlas: {problem}")
        sys.exit(2)
