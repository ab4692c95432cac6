"""Which packets are there? One row each; a new packet is a file and a row.

The server, the saved page and the TypeScript of the front end are made from this table.
"""

from functools import partial

from attention_atlas.names.errors import PickError
from attention_atlas.page.answers.about import about_session
from attention_atlas.page.answers.added import map_extra
from attention_atlas.page.answers.all_tokens import all_column, all_info, all_points, all_tokens
from attention_atlas.page.answers.comparison import comparison, reaction
from attention_atlas.page.answers.directions import along, head_directions, saved_directions
from attention_atlas.page.answers.gaze import gaze
from attention_atlas.page.answers.heads import (
    alike_heads,
    head_card,
    head_scores,
    saved_cards,
    saved_scores,
)
from attention_atlas.page.answers.inputs import input_info, saved_inputs
from attention_atlas.page.answers.logit import logit
from attention_atlas.page.answers.maps import map_norms, map_places, map_points, saved_maps
from attention_atlas.page.answers.mean_pattern import mean_pattern, saved_means
from attention_atlas.page.answers.packet import EXACT, LIVE, Packet
from attention_atlas.page.answers.partners import partners
from attention_atlas.page.answers.pictures import picture, thumbs
from attention_atlas.page.answers.saved_pictures import saved_gazes, saved_pictures, saved_sheets
from attention_atlas.page.answers.session import Session
from attention_atlas.page.answers.sinks import saved_sinks, sinks
from attention_atlas.page.answers.tiles import overview, saved_overviews, tile
from attention_atlas.page.answers.vectors import saved_vectors, vectors
from attention_atlas.page.answers.weights import edges, layer, rows, saved_edges, saved_rows
from attention_atlas.page.wire.about import About
from attention_atlas.page.wire.all_tokens import AllColumn, AllInfo, AllPoints, AllTokens
from attention_atlas.page.wire.compare import ComparedModels, Reaction
from attention_atlas.page.wire.directions import DirectionColumn, HeadDirections
from attention_atlas.page.wire.heads import AlikeHeads, HeadCard, HeadScores
from attention_atlas.page.wire.image import Gaze, Picture, Thumbs
from attention_atlas.page.wire.lab import EditProofs
from attention_atlas.page.wire.maps import (
    MapExtra,
    MapNorms,
    MapPlaces,
    MapPoints,
    MapProgress,
    MeanPattern,
    Partners,
)
from attention_atlas.page.wire.queue import Queued
from attention_atlas.page.wire.text import (
    Edges,
    InputInfo,
    LayerWeights,
    LogitAdds,
    RowWeights,
    Sinks,
    Vectors,
)
from attention_atlas.page.wire.tiles import OverviewPacket, TilePacket

_WEIGHTS, _MAP = "exact weights" + EXACT, "this map" + LIVE
_ALL = "tokens beyond the map's sample" + LIVE
_LAB = "a model to edit; open the atlas with attention-atlas serve x.atlas --model MODEL"
_TILES = "tiles of long inputs" + LIVE
_LOGIT = "what heads add to a logit" + LIVE
_NO_SINKS = (
    "scores without sinks; measure the atlas before it is saved: attention-atlas measure "
    "--without-sinks"
)
_HEADS, _MODELS = "what heads do" + LIVE, "these models" + LIVE


def _progress(session: Session) -> MapProgress:
    return MapProgress("idle") if session.work is None else session.work.progress()


def _queue(session: Session, page: str) -> Queued:
    return Queued(()) if session.queue is None else session.queue.of_page(page)


def _edit_receipt(session: Session) -> EditProofs:
    if session.work is None:
        raise PickError("plain attention has no model to edit; capture the model: aa.capture(…)")
    return session.work.edit_receipt()


_ROWS = [
    Packet("about", About, about_session, lambda _: ["about"], of="session", changes=True),
    Packet("progress", MapProgress, _progress, of="session", changes=True),
    Packet("queue/{page}", Queued, _queue, of="session", changes=True),
    Packet(
        "edit_receipt", EditProofs, _edit_receipt, missing=_LAB, of="session", changes=True
    ),
    # Text
    Packet("input/{input:int}", InputInfo, input_info, saved_inputs),
    Packet(
        "edges/{input:int}/{tower}/{layer:int?}/{rows?}/{columns?}", Edges, edges, saved_edges,
        _WEIGHTS,
    ),
    Packet("rows/{input:int}/{head}/{rows?}", RowWeights, rows, saved_rows, _WEIGHTS),
    Packet("layer/{input:int}/{tower}/{layer:int}", LayerWeights, layer, missing=_WEIGHTS),
    Packet(
        "vectors/{input:int}/{head}", Vectors, vectors, saved_vectors,
        "query and key vectors" + EXACT,
    ),
    Packet(
        "directions/{head}", HeadDirections, head_directions, saved_directions,
        "the directions of this head" + LIVE,
    ),
    Packet("sinks/{input:int}/{tower}", Sinks, sinks, saved_sinks),
    Packet(
        "logit/{input:int}/{position}/{token}/{against?}", LogitAdds, logit, missing=_LOGIT
    ),
    # Long inputs
    Packet(
        "tile/{input:int}/{head}/{level:int}/{row:int}/{column:int}/{without?}", TilePacket, tile,
        missing=_TILES, slow=True,
    ),
    Packet(
        "overview/{input:int}/{head}/{sampled:int}/{without?}", OverviewPacket, overview,
        saved_overviews, _TILES, slow=True,
    ),
    # Image
    Packet("picture/{input:int}/{picture:int}", Picture, picture, saved_pictures),
    Packet("gaze/{input:int}/{tower}/{layer:int}/{how}", Gaze, gaze, saved_gazes),
    Packet("thumbs/{level:int}", Thumbs, thumbs, saved_sheets),
    # Map
    Packet("map/{name}/{group}", MapPlaces, map_places, partial(saved_maps, word="map"), _MAP),
    Packet(
        "points/{name}/{group}", MapPoints, map_points, partial(saved_maps, word="points"), _MAP
    ),
    Packet(
        "norms/{name}/{group}", MapNorms, map_norms, partial(saved_maps, word="norms"),
        "vector lengths" + LIVE, slow=True,
    ),
    Packet("along/{map}/{head}/{direction:int}", DirectionColumn, along, missing=_MAP),
    Packet("extra/{name}/{group}/{input:int}", MapExtra, map_extra, missing=_MAP, slow=True),
    Packet("partners/{input:int}/{head}/{side}/{position:int}", Partners, partners, missing=_MAP),
    Packet("all/{name}/{head}", AllInfo, all_info, missing=_ALL, of="session", changes=True),
    Packet("all_places/{name}/{head}", AllPoints, all_points, missing=_ALL, slow=True),
    Packet("all_tokens/{stream}", AllTokens, all_tokens, missing=_ALL, slow=True),
    Packet("all_column/{name}/{group}/{column}", AllColumn, all_column, missing=_ALL, slow=True),
    Packet(
        "mean/{head}/{how?}/{without?}", MeanPattern, mean_pattern, saved_means, _MAP, slow=True
    ),
    # Heads
    Packet(
        "heads", HeadScores, head_scores, partial(saved_scores, word="heads"), _HEADS, slow=True
    ),
    Packet(
        "heads_without_sinks", HeadScores, partial(head_scores, without_sinks=True),
        partial(saved_scores, word="heads_without_sinks", without_sinks=True), _NO_SINKS, slow=True,
    ),
    Packet(
        "alike", AlikeHeads, alike_heads, partial(saved_scores, word="alike"), _HEADS, slow=True
    ),
    Packet(
        "card/{head}", HeadCard, head_card, partial(saved_cards, word="card"), _HEADS, slow=True
    ),
    Packet(
        "card_without_sinks/{head}", HeadCard, partial(head_card, without_sinks=True),
        partial(saved_cards, word="card_without_sinks", without_sinks=True), _NO_SINKS, slow=True,
    ),
    # Models side by side; a saved comparison holds those that it was made for
    Packet(
        "compare/{which}", ComparedModels, comparison, missing=_MODELS, of="session", slow=True
    ),
    Packet(
        "compare_without_sinks/{which}", ComparedModels, partial(comparison, without_sinks=True),
        missing=_NO_SINKS, of="session", slow=True,
    ),
    Packet(
        "reaction/{which}/{place:int}", Reaction, reaction, missing=_MODELS, of="session",
        slow=True,
    ),
]  # fmt: skip
PACKETS = {row.word: row for row in _ROWS}
