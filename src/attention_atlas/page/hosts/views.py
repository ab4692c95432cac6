"""See attention: head, model and neuron view, and the maps of all heads, in one line each.

aa.head_view(atlas)                      an atlas, or what aa.capture gives
aa.head_view(attention, tokens)          plain tensors, with the arguments of BertViz
aa.model_view(…)  aa.neuron_view(atlas)
aa.matrix_view(atlas)  aa.map_view(atlas, head="L5H1")
aa.image_view(atlas, input=3, head="L5H1")
view.save("page.html" | "figure.svg" | "figure.png")        view.picks
"""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attention_atlas.names.errors import InputError, PickError
from attention_atlas.names.head import Head
from attention_atlas.page.answers.maps import map_files, map_points
from attention_atlas.page.answers.pictures import has_pictures
from attention_atlas.page.answers.plain_attention import GivenTower, make
from attention_atlas.page.answers.subject import Subject
from attention_atlas.page.hosts.find_attention import find_attention
from attention_atlas.page.live.answers import Answers
from attention_atlas.page.wire.constants import COLOURS
from attention_atlas.page.wire.picks import read_picks
from attention_atlas.store.manifest import Tower
from attention_atlas.store.maps import read_map
from attention_atlas.store.patch_places import seated
from attention_atlas.store.reader import StoredAtlas
from attention_atlas.studies.measure import measure

_ENDINGS = (".html", ".svg", ".png")


class Html:
    """A page as text, in the shape that BertViz returns: `.data`."""

    def __init__(self, data: str):
        self.data = data

    def _repr_html_(self) -> str:
        from html import escape

        return (
            f'<iframe srcdoc="{escape(self.data)}" sandbox="allow-scripts" '
            'style="width:100%;height:640px;border:0"></iframe>'
        )


class View:
    """One view of an atlas or of plain attention; a notebook shows it."""

    def __init__(self, subject: Subject, picks: dict[str, Any], model: Any = None):
        self.subject = subject
        self._picks = read_picks(picks)
        self._model = model
        self._widget: Any = None

    def __repr__(self) -> str:
        tab = self._picks["tab"]
        kind = self._picks["view"] if tab == "text" else tab
        return f"<View: {kind} of {self.subject!r}>"

    @property
    def picks(self) -> dict[str, Any]:
        """What the person picked: head, token, hidden tokens and so on."""
        return dict(self._widget.picks if self._widget is not None else self._picks)

    @picks.setter
    def picks(self, picks: dict[str, Any]) -> None:
        self._picks = read_picks({**self.picks, **picks})
        if self._widget is not None:
            self._widget.picks = self._picks

    @property
    def widget(self) -> Any:
        """The notebook widget behind the view, made on first use."""
        if self._widget is None:
            from attention_atlas.page.hosts.widget import AtlasWidget
            from attention_atlas.page.live.model import LiveModel

            options = {"tab": self._picks["tab"], "chrome": "cell"}
            model = None if self._model is None else LiveModel(self._model)
            self._widget = AtlasWidget(self.subject, dict(self._picks), options, model)
        return self._widget

    def _repr_mimebundle_(self, **options: Any) -> Any:
        return self.widget._repr_mimebundle_(**options)

    def save(self, path: str | Path, exact: bool = False) -> Path:
        """Write page.html, figure.svg or figure.png; `exact` puts whole rows into the page."""
        target = Path(path)
        if target.suffix not in _ENDINGS:
            raise InputError(f"{target.name} is no kind of file; end it in {', '.join(_ENDINGS)}")
        if target.suffix == ".html":
            from attention_atlas.page.hosts.export import save_page

            save_page(target, self.subject, self.picks, exact=exact)
        else:
            from attention_atlas.page.hosts.figure import save_figure

            save_figure(target, self.subject, self.picks)
        return target

    def html(self, exact: bool = False) -> Html:
        """The saved page as text."""
        from attention_atlas.page.hosts.export import page_pieces

        return Html(b"".join(page_pieces(self.subject, self.picks, exact=exact)).decode())


# The views ---------------------------------------------------------------------------------------


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
) -> Any:
    """Lines from the tokens that look to those looked at, one or several heads at once.

    attention is an Atlas or plain tensors with `tokens`; the other arguments are BertViz's.
    html_action "return" gives an object with the page in `.data`, "view" displays at once.
    """
    subject = _subject(locals(), sys._getframe(1))
    return _given(View(subject, _picks(subject, "head", input, tower, layer, heads)), html_action)


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
) -> Any:
    """All layers and heads as small pictures. Arguments as in `head_view`."""
    subject = _subject(locals(), sys._getframe(1))
    picks = _picks(subject, "model", input, tower, None, None)
    picks["theme"] = _theme(display_mode)
    picks["shownLayers"] = None if include_layers is None else [int(one) for one in include_layers]
    picks["shownHeads"] = _shown_heads(subject, include_heads)
    return _given(View(subject, picks), html_action)


def neuron_view(
    atlas: Any,
    *,
    layer: int | None = None,
    head: int | str | None = None,
    input: int = 0,
    tower: str | None = None,
    display_mode: str = "auto",
    html_action: str | None = None,
) -> Any:
    """How query and key come to each weight of one head, neuron by neuron; needs an Atlas."""
    if not isinstance(atlas, StoredAtlas):
        raise InputError(
            "the neuron view needs queries and keys, which plain attention has not; capture them: "
            "aa.neuron_view(aa.capture(model, text))"
        )
    picks = _picks(atlas, "neuron", input, tower, layer, [0 if head is None else head])
    picks["theme"] = _theme(display_mode)
    return _given(View(atlas, picks), html_action)


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
    """The maps of all heads, a row a layer: where each head's queries and keys lie.

    map is the name of a layout, as umap-2d, the first there is if unset; colour is side, norm or a
    column, as position or one of your own. With a model, new texts can be added in the notebook.
    """
    picks = _map_picks(atlas, map, colour, search, display_mode)
    return _given(View(atlas, picks, model), html_action)


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
    """The map of one head, large. Arguments as in `matrix_view`."""
    picks = _map_picks(atlas, map, colour, search, display_mode, head or _first_head(atlas))
    return _given(View(atlas, picks, model), html_action)


def image_view(
    atlas: Any,
    *,
    input: int = 0,
    head: str | None = None,
    patch: tuple[int, int] | None = None,
    side: str = "query",
    combine: str = "head",
    picture: int = -1,
    display_mode: str = "auto",
    html_action: str | None = None,
) -> Any:
    """Where a head looks on a picture: overlay of the picked patch, arrows, flows.

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
    first = head or _first_with_patches(atlas)
    picks = _picks(atlas, "head", input, None, None, [first])
    token = None if patch is None else _patch(atlas, picks, patch, side, max(0, picture))
    return _given(
        View(atlas, {
            **picks, "tab": "image", "token": token, "pinned": token is not None,
            "combine": combine, "picture": picture, "theme": _theme(display_mode),
        }),
        html_action,
    )  # fmt: skip


def heads_view(atlas: Any, *, score: str = "kind", head: str | None = None) -> View:
    """What each head is: kinds, scores, heads alike; measures the atlas if nobody did yet."""
    if not isinstance(atlas, StoredAtlas):
        raise InputError(
            "heads are measured over an atlas; capture one: aa.heads_view(aa.capture(model, texts))"
        )
    scores = measure(atlas)
    if score != "kind" and score not in scores.measures:
        there = ", ".join(["kind", *scores.measures])
        raise PickError(f"there is no score {score!r}; there is {there}")
    picks = _picks(atlas, "head", 0, None, None, None if head is None else [head])
    return View(atlas, {**picks, "tab": "heads", "score": score})


def first_view(atlas: StoredAtlas) -> View:
    """The image view of pictures, the head view of all else."""
    made: View = image_view(atlas) if has_pictures(atlas) else head_view(atlas)
    return made


def _given(view: View, html_action: str | None) -> Any:
    if html_action == "return":
        return view.html()
    if html_action == "view":
        from IPython.display import display

        display(view)
        return None
    if html_action is not None:
        raise InputError(f"html_action is {html_action!r}; there is 'view' and 'return'")
    return view


# What is looked at -------------------------------------------------------------------------------


def _subject(given: Mapping[str, Any], caller: Any) -> Subject:
    """From the arguments of a view, by their names; `caller` is the frame that gave them."""
    attention, tokens, prettify = (given[n] for n in ("attention", "tokens", "prettify_tokens"))
    if isinstance(attention, StoredAtlas):
        return attention
    both = {name: given[name] for name in _BOTH}
    if attention is None:
        sides = {"encoder": both["encoder_tokens"], "decoder": both["decoder_tokens"]}
        streams = {name: texts for name, texts in sides.items() if texts is not None}
        return make(_sides(given), streams, None, prettify)
    if any(one is not None for one in both.values()):
        raise InputError(
            "attention is for models with one tower; for an encoder–decoder leave it out and give "
            "encoder_attention, decoder_attention and cross_attention"
        )
    if tokens is None:
        raise InputError("tokens are missing; give the tokens that the model read")
    found = find_attention(caller.f_locals, len(tokens)) if _is_empty(attention) else None
    part = GivenTower(
        "self", attention if found is None else found[0], "text", "text", given["include_layers"]
    )
    subject = make([part], {"text": tokens}, given["sentence_b_start"], prettify)
    if found is not None:
        subject.notes.append(f"the attention given was empty; shown is {found[1]}")
    return subject


_BOTH = (
    "encoder_attention", "decoder_attention", "cross_attention", "encoder_tokens", "decoder_tokens",
)  # fmt: skip


def _is_empty(attention: Any) -> bool:
    return isinstance(attention, tuple | list) and not attention


def _sides(given: Mapping[str, Any]) -> list[GivenTower]:
    """The towers of an encoder–decoder, those that were given."""
    encoder, decoder, cross, encoder_tokens, decoder_tokens = (given[name] for name in _BOTH)
    if encoder is None and decoder is None and cross is None:
        raise InputError(
            "there is nothing to see; give an Atlas, attention with tokens, or the attention of "
            "an encoder–decoder"
        )
    if encoder_tokens is None and (encoder is not None or cross is not None):
        raise InputError("encoder_tokens are missing; give the tokens that the encoder read")
    if decoder_tokens is None and (decoder is not None or cross is not None):
        raise InputError("decoder_tokens are missing; give the tokens that the decoder read")
    known = (
        ("encoder", encoder, "encoder", "encoder"),
        ("decoder", decoder, "decoder", "decoder"),
        ("cross", cross, "decoder", "encoder"),
    )
    return [
        GivenTower(name, one, queries, keys, _those_there(one, given["include_layers"]))
        for name, one, queries, keys in known
        if one is not None
    ]


def _those_there(given: Any, layers: Sequence[int] | None) -> list[int] | None:
    """Encoder and decoder may differ in depth: each keeps the asked layers that it has."""
    return None if layers is None else [one for one in layers if one < len(given)]


# What is picked at first -------------------------------------------------------------------------


def _picks(
    subject: Subject,
    view: str,
    input: int,
    tower: str | None,
    layer: int | None,
    heads: Sequence[int | str] | None,
) -> dict[str, Any]:
    answers = Answers(subject)
    answers.answer(f"input/{input}")  # says what there is, if not this
    names = [one for one in heads or () if isinstance(one, str)]
    if names and layer is None:
        first = Head.parse(names[0])
        tower, layer = first.tower or tower, first.layer
    where = _tower(subject, tower)
    number = where.layers[0].layer if layer is None else layer
    found = where.find(number)
    if found is None:
        there = ", ".join(str(one.layer) for one in where.layers)
        raise PickError(f"{where.name} has no layer {number}; it has {there}")
    picked = range(found.heads) if heads is None else [_number(one) for one in heads]
    beyond = [one for one in picked if not 0 <= one < found.heads]
    if beyond:
        raise PickError(
            f"there is no head {beyond[0]}: layer {number} has heads 0 to {found.heads - 1}"
        )
    prefix = where.name if len(subject.towers) > 1 else ""
    return {
        "view": view,
        "input": input,
        "tower": where.name,
        "layer": number,
        "heads": [str(Head(prefix, number, one)) for one in picked],
    }


def _map_picks(
    atlas: Any, map: str | None, colour: str, search: str, display_mode: str,
    head: str | None = None,
) -> dict[str, Any]:  # fmt: skip
    if not isinstance(atlas, StoredAtlas):
        raise InputError(
            "a map needs queries and keys, which plain attention has not; capture them: "
            "aa.matrix_view(aa.capture(model, texts))"
        )
    there = map_files(atlas)
    if map is not None and map not in there:
        names = ", ".join(there) or "none yet; make one: atlas.layout('umap')"
        raise PickError(f"no map is named {map!r}; there is {names}")
    shown = map or next(iter(there), "")
    if colour not in COLOURS and shown:
        _check_colour(atlas, shown, colour)
    picks = _picks(atlas, "head", 0, None, None, None if head is None else [head])
    return {
        **picks, "tab": "map", "map": shown, "mapHead": head,
        "colour": colour, "search": search, "theme": _theme(display_mode),
    }  # fmt: skip


def _check_colour(atlas: StoredAtlas, name: str, colour: str) -> None:
    """Refuse a colour that the menu of the page would not have."""
    groups = read_map(map_files(atlas)[name]).groups
    columns = [one.name for group in groups for one in map_points(atlas, name, group).columns]
    if colour not in columns:
        there = ", ".join(dict.fromkeys([*COLOURS, *columns]))
        raise PickError(f"no colour is named {colour!r}; there is {there}")


def _first_with_patches(atlas: StoredAtlas) -> str:
    """The first head that looks at patches."""
    for tower in atlas.towers:
        for layer in tower.layers:
            if seated(atlas.tokens(0, layer.keys)).any():
                prefix = tower.name if len(atlas.towers) > 1 else ""
                return str(Head(prefix, layer.layer, 0))
    return str(atlas.heads()["head"].iloc[0])


def _patch(
    atlas: StoredAtlas, picks: dict[str, Any], patch: tuple[int, int], side: str, picture: int
) -> dict[str, Any]:
    """The token of a row and a column, as a pick."""
    layer = _tower(atlas, picks["tower"]).find(picks["layer"])
    assert layer is not None
    frame = atlas.tokens(picks["input"], layer.queries if side == "query" else layer.keys)
    there = seated(frame) & (frame[["row", "column"]].to_numpy() == patch).all(axis=1)
    if "image" in frame:
        there &= frame["image"].to_numpy() == picture
    found = frame["position"][there]
    if not len(found):
        rows, columns = int(frame["row"].max()) + 1, int(frame["column"].max()) + 1
        raise PickError(
            f"there is no patch {patch} in picture {picture}; it has {rows} × {columns}"
        )
    return {"side": side, "position": int(found.iloc[0])}


def _first_head(atlas: Any) -> str | None:
    return str(atlas.heads()["head"].iloc[0]) if isinstance(atlas, StoredAtlas) else None


def _tower(subject: Subject, name: str | None) -> Tower:
    if name is None:
        return subject.towers[0]
    found = next((tower for tower in subject.towers if tower.name == name), None)
    if found is None:
        there = ", ".join(tower.name for tower in subject.towers)
        raise PickError(f"no tower is named {name!r}; there is {there}")
    return found


def _number(head: int | str) -> int:
    return Head.parse(head).head if isinstance(head, str) else int(head)


def _shown_heads(subject: Subject, heads: Sequence[int] | None) -> list[int] | None:
    if heads is None:
        return None
    most = max(layer.heads for tower in subject.towers for layer in tower.layers)
    beyond = [one for one in heads if not 0 <= one < most]
    if beyond:
        raise PickError(f"include_heads asks for head {beyond[0]}; there are 0 to {most - 1}")
    return [int(one) for one in heads]


def _theme(display_mode: str) -> str:
    if display_mode not in ("auto", "light", "dark"):
        raise InputError(f"display_mode is {display_mode!r}; there is auto, light and dark")
    return display_mode
