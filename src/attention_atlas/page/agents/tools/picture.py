"""How does it look? A picture of a view, and the link that opens the same state in the page."""

import base64
import io
import tempfile
from pathlib import Path
from typing import Annotated, Any, Literal

from mcp_types import CallToolResult, ImageContent, TextContent
from pydantic import Field

from attention_atlas.names.errors import AtlasError, PickError
from attention_atlas.names.progress import bar
from attention_atlas.page.agents.answer import Answer, fit, text_of
from attention_atlas.page.agents.arguments import InputNumber, Position, Side
from attention_atlas.page.agents.bench import USUAL_ADDRESS, AgentBench
from attention_atlas.page.answers.edited import is_edited
from attention_atlas.page.hosts.first_picks import (
    first_head_with_patches,
    map_picks,
    set_picks,
    text_picks,
)
from attention_atlas.page.hosts.link import link
from attention_atlas.page.hosts.views import image_view
from attention_atlas.page.wire.picks import read_picks

Shown = Literal["lines", "heat", "all", "neurons", "text", "map", "maps", "heads", "image"]
_VIEWS = {"lines": "head", "heat": "heat", "all": "model", "neurons": "neuron", "text": "read"}
_WIDEST = 1400  # pixels of the longer side


class PictureAnswer(Answer):
    """A view as picks of the page, with a link; the picture is beside this text."""

    view: str
    link: str
    how_to_open: str
    picks: dict[str, Any]
    width: int | None = None
    height: int | None = None
    no_picture: str = ""


def picture(
    bench: AgentBench,
    view: Annotated[
        Shown,
        Field(description="lines, heat, neurons, text: of a head; all: of all heads; map: of one "
              "head; maps: of all; heads: kinds and scores; image: on a picture."),
    ] = "lines",
    input: InputNumber = 0,
    head: Annotated[str | None, Field(max_length=80, description="A head, as in L5H1.")] = None,
    token: Position = None,
    side: Side = "query",
    map: Annotated[str | None, Field(max_length=60, description="As in umap-2d.")] = None,
    theme: Annotated[Literal["light", "dark"], Field(description="Colours.")] = "light",
    png: Annotated[bool, Field(description="Draw it; otherwise only the link.")] = True,
) -> Annotated[CallToolResult, PictureAnswer]:  # fmt: skip
    """Draw a view of the atlas as PNG and give the link that opens the same in the page."""
    if is_edited(input):
        raise PickError("an edited input has no picture; ask for its attention, or edit in a page")
    if head is not None:
        bench.find_head(head)
    picks = read_picks({**_picks(bench, view, input, head, token, side, map), "theme": theme})
    answer = PictureAnswer(
        view=view, link=link(bench.page or USUAL_ADDRESS, picks), how_to_open=_how(bench),
        picks=_told(picks),
    )  # fmt: skip
    drawn: bytes | None = None
    if png:
        try:
            drawn, width, height = _draw(bench, picks)
            answer = answer.model_copy(update={"width": width, "height": height})
        except AtlasError as problem:  # no browser here: the link and the page in the chat remain
            answer = answer.model_copy(update={"no_picture": str(problem)})
    answer = fit(answer)
    content: list[Any] = [TextContent(type="text", text=text_of(answer))]
    if drawn is not None:
        data = base64.b64encode(drawn).decode()
        content.append(ImageContent(type="image", data=data, mime_type="image/png"))
    return CallToolResult(content=content, structured_content=answer.model_dump(mode="json"))


def _picks(
    bench: AgentBench, view: str, input: int, head: str | None, token: int | None, side: str,
    map: str | None,
) -> dict[str, Any]:  # fmt: skip
    atlas, heads = bench.atlas, None if head is None else [head]
    if view in ("map", "maps"):
        first = None if view == "maps" else head or str(atlas.heads()["head"].iloc[0])
        return map_picks(atlas, map, "side", "", "light", first)
    if view == "heads":
        return {**text_picks(atlas, "head", input, None, None, heads), "tab": "heads"}
    if view == "image":
        chosen = head or first_head_with_patches(atlas)
        picks: dict[str, Any] = image_view(atlas, input=input, head=chosen).picks
    else:
        one = [0] if view in ("neurons", "heat") else None
        picks = text_picks(atlas, _VIEWS[view], input, None, None, heads or one)
    return picks if token is None else set_picks(atlas, picks, [token], side, "mean")


def _told(picks: dict[str, Any]) -> dict[str, Any]:
    """Return the picks that differ from those of a new page."""
    start = read_picks({})
    return {name: value for name, value in picks.items() if value != start[name]}


def _how(bench: AgentBench) -> str:
    if bench.page:
        return "the page of this server is running; open the link in a browser"
    return f"run attention-atlas serve {bench.name} --no-browser, then open the link in a browser"


def _draw(bench: AgentBench, picks: dict[str, Any]) -> tuple[bytes, int, int]:
    """Return a picture as PNG, with its width and height."""
    from PIL import Image

    from attention_atlas.page.hosts.figure import save_figure

    with tempfile.TemporaryDirectory(prefix="attention-atlas-") as folder:
        path = Path(folder) / "figure.png"
        with bar("picture", 2, show=False) as tick:
            tick(0)
            save_figure(path, bench.atlas, picks)
            tick(1)
            drawn = Image.open(path)
            drawn.thumbnail((_WIDEST, _WIDEST))
            out = io.BytesIO()
            drawn.save(out, "PNG", optimize=True)
            tick(2)
    return out.getvalue(), drawn.width, drawn.height
