"""How is attention shown in one line? Head, model and neuron view, maps of all heads, pictures.

aa.head_view(atlas)                      an atlas, as aa.capture returns it
aa.head_view(attention, tokens)          plain tensors, with the arguments of BertViz
aa.model_view(…)  aa.neuron_view(atlas)
aa.matrix_view(atlas)  aa.map_view(atlas, head="L5H1")
aa.image_view(atlas, input=3, head="L5H1")
view.save("page.html" | "figure.svg" | "figure.png")        view.picks
"""

from collections.abc import Sequence
from typing import Any

from attention_atlas.names.arguments import caller, shown
from attention_atlas.names.errors import InputError, PickError
from attention_atlas.page.answers.pictures import has_pictures
from attention_atlas.page.answers.plain_attention import Attention
from attention_atlas.page.hosts.bertviz_arguments import read_subject
from attention_atlas.page.hosts.first_picks import (
    first_head,
    first_head_with_patches,
    map_picks,
    patch_pick,
    set_picks,
    shown_heads,
    text_picks,
    theme,
)
from attention_atlas.page.hosts.view_object import View, view_or_html
from attention_atlas.store.reader import StoredAtlas
from attention_atlas.studies.measure import measure


def head_view(
    attention: Any = None,
    tokens: Sequence[str] | None = None,
    sentence_b_start: int | None = None,
    prettify_tokens: bool = True,
    layer: int | None = None,
    heads: Sequence[int | str] | None = None,
    encoder_attention: Any = None,
    decoder_attention: Any = None,
    cross_attention: Any = None,
    encoder_tokens: Sequence[str] | None = None,
    decoder_tokens: Sequence[str] | None = None,
    include_layers: Sequence[int] | None = None,
    html_action: str | None = None,
    *,
    input: int = 0,
    tower: str | None = None,
    model: Any = None,
    pick: Sequence[int] = (),
    side: str = "query",
    together: str = "mean",
) -> Any:
    """Show lines from the tokens that look to the tokens they look at, for one or several heads.

    attention is an Atlas or plain tensors with `tokens`; the other arguments are BertViz's.
    html_action "return" returns an object with the page in `.data`, "view" displays it at once.
    With the model of an atlas, the notebook can add new texts and edit attention.
    pick is positions of tokens whose attention is shown, as tokens that look (side "query") or are
    looked at ("key"); together is the mean of several tokens or their sum.
    """
    subject = read_subject(locals(), caller())
    picks = text_picks(subject, "head", input, tower, layer, heads)
    picks = set_picks(subject, picks, pick, side, together)
    return view_or_html(View(subject, picks, model), html_action)


def model_view(
    attention: Any = None,
    tokens: Sequence[str] | None = None,
    sentence_b_start: int | None = None,
    prettify_tokens: bool = True,
    display_mode: str = "auto",
    encoder_attention: Any = None,
    decoder_attention: Any = None,
    cross_attention: Any = None,
    encoder_tokens: Sequence[str] | None = None,
    decoder_tokens: Sequence[str] | None = None,
    include_layers: Sequence[int] | None = None,
    include_heads: Sequence[int] | None = None,
    html_action: str | None = None,
    *,
    input: int = 0,
    tower: str | None = None,
    model: Any = None,
    pick: Sequence[int] = (),
    side: str = "query",
) -> Any:
    """Show all layers and heads as small pictures. Arguments as in `head_view`."""
    subject = read_subject(locals(), caller())
    picks = text_picks(subject, "model", input, tower, None, None)
    picks = set_picks(subject, picks, pick, side, "mean")
    picks["theme"] = theme(display_mode)
    picks["shownLayers"] = (
        None if include_layers is None else [int(layer) for layer in include_layers]
    )
    picks["shownHeads"] = shown_heads(subject, include_heads)
    return view_or_html(View(subject, picks, model), html_action)


def neuron_view(
    atlas: Any,
    *,
    layer: int | None = None,
    head: int | str | None = None,
    input: int = 0,
    tower: str | None = None,
    model: Any = None,
    pick: Sequence[int] = (),
    together: str = "mean",
    basis: str = "neurons",
    display_mode: str = "auto",
    html_action: str | None = None,
) -> Any:
    """Show how query and key make each weight of one head, neuron by neuron; needs an Atlas.

    pick is positions of tokens that look, taken together as their mean or sum. basis="directions"
    shows the 3 to 8 directions that carry the head's attention instead of its neurons.
    """
    if basis not in ("neurons", "directions"):
        raise InputError(f"basis is {basis!r}; there is neurons and directions")
    if not isinstance(atlas, StoredAtlas):
        raise InputError(
            "the neuron view needs queries and keys, which plain attention does not have; "
            "capture them: aa.neuron_view(aa.capture(model, text))"
        )
    picks = text_picks(atlas, "neuron", input, tower, layer, [0 if head is None else head])
    picks = set_picks(atlas, picks, pick, "query", together)
    picks |= {"theme": theme(display_mode), "basis": basis}
    return view_or_html(View(atlas, picks, model), html_action)


def text_view(
    atlas: Any,
    *,
    heads: Sequence[int | str] | None = None,
    pick: Sequence[int] = (),
    side: str = "query",
    together: str = "mean",
    input: int = 0,
    layer: int | None = None,
    tower: str | None = None,
    model: Any = None,
    display_mode: str = "auto",
    html_action: str | None = None,
) -> Any:
    """Show the text itself, coloured by what the picked tokens look at, or what looks at them.

    Without `pick`, the colour is how much each token is looked at. Arguments as in `head_view`.
    """
    if not isinstance(atlas, StoredAtlas | Attention):
        raise InputError(
            f"atlas is {shown(atlas)}; give an atlas, as aa.capture and aa.open return it"
        )
    picks = text_picks(atlas, "read", input, tower, layer, heads)
    picks = set_picks(atlas, picks, pick, side, together)
    picks["theme"] = theme(display_mode)
    return view_or_html(View(atlas, picks, model), html_action)


def matrix_view(
    atlas: Any,
    map: str | None = None,
    *,
    colour: str = "side",
    search: str = "",
    model: Any = None,
    display_mode: str = "auto",
    html_action: str | None = None,
) -> Any:
    """Show the maps of all heads, one row per layer: where each head's queries and keys lie.

    map is the name of a layout, such as umap-2d; unset, the first one. colour is side, norm or a
    column, such as position or one of your own. With a model, the notebook can add new texts
    and edit attention.
    """
    picks = map_picks(atlas, map, colour, search, display_mode)
    return view_or_html(View(atlas, picks, model), html_action)


def map_view(
    atlas: Any,
    head: str | None = None,
    map: str | None = None,
    *,
    colour: str = "side",
    search: str = "",
    model: Any = None,
    display_mode: str = "auto",
    html_action: str | None = None,
) -> Any:
    """Show the map of one head, large. Arguments as in `matrix_view`."""
    picks = map_picks(atlas, map, colour, search, display_mode, head or first_head(atlas))
    return view_or_html(View(atlas, picks, model), html_action)


def image_view(
    atlas: Any,
    *,
    input: int = 0,
    head: str | None = None,
    patch: tuple[int, int] | None = None,
    side: str = "query",
    combine: str = "head",
    picture: int = -1,
    model: Any = None,
    display_mode: str = "auto",
    html_action: str | None = None,
) -> Any:
    """Show where a head looks on a picture: overlay of the picked patch, arrows, flows.

    patch is row and column; side says whether it looks (query) or is looked at (key); combine is
    head, mean (over the heads of a layer) or rollout.
    """
    if not isinstance(atlas, StoredAtlas) or not has_pictures(atlas):
        raise InputError(
            "the image view needs an atlas of pictures; capture one: "
            "aa.image_view(aa.capture(model, folder))"
        )
    if side not in ("query", "key") or combine not in ("head", "mean", "rollout"):
        raise InputError(
            f"side is {side!r} and combine is {combine!r}; there is query and key, and head, mean "
            "and rollout"
        )
    first = head or first_head_with_patches(atlas)
    picks = text_picks(atlas, "head", input, None, None, [first])
    token = None if patch is None else patch_pick(atlas, picks, patch, side, max(0, picture))
    return view_or_html(
        View(atlas, {
            **picks, "tab": "image", "token": token, "pinned": token is not None,
            "combine": combine, "picture": picture, "theme": theme(display_mode),
        }, model),
        html_action,
    )  # fmt: skip


def heads_view(atlas: Any, *, score: str = "kind", head: str | None = None) -> View:
    """Show what each head is: kind, scores, similar heads; measure the atlas if it is not yet."""
    if not isinstance(atlas, StoredAtlas):
        raise InputError(
            "heads are measured over an atlas; capture one: aa.heads_view(aa.capture(model, texts))"
        )
    scores = measure(atlas)
    if score != "kind" and score not in scores.measures:
        known = ", ".join(["kind", *scores.measures])
        raise PickError(f"there is no score {score!r}; there is {known}")
    picks = text_picks(atlas, "head", 0, None, None, None if head is None else [head])
    return View(atlas, {**picks, "tab": "heads", "score": score})


def first_view(atlas: StoredAtlas) -> View:
    """Return the image view of an atlas of pictures, or the head view of any other."""
    view: View = image_view(atlas) if has_pictures(atlas) else head_view(atlas)
    return view
