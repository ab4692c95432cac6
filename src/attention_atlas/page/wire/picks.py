"""What did the person choose?

The same picks are in the address, in the notebook widget and in a saved page.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from attention_atlas.page.wire.lab import EditPick
from attention_atlas.page.wire.reading import plain, read


@dataclass(frozen=True)
class TokenPick:
    """The picked token."""

    side: Literal["query", "key"]
    position: int


@dataclass(frozen=True)
class TokenSet:
    """Several picked tokens, seen together."""

    side: Literal["query", "key"]
    positions: Sequence[int]


@dataclass(frozen=True)
class Picks:
    """What the person chose."""

    input: int = 0
    other: int | None = None  # a second input to compare with
    tower: str = ""
    heads: Sequence[str] = ()
    token: TokenPick | None = None
    pinned: bool = False
    chosen: TokenSet | None = None  # several tokens; they are shown instead of `token`
    together: Literal["mean", "sum"] = "mean"  # how the attention of `chosen` is taken together
    layer: int = 0
    view: Literal["head", "model", "neuron", "heat", "logit", "read"] = "head"
    hidden: dict[str, Sequence[int]] = field(default_factory=dict)  # stream → positions
    filter: Literal["all", "aa", "ab", "ba", "bb"] = "all"
    threshold: float = 0.0
    topk: int = 0  # 0: no limit
    words: bool = False
    theme: Literal["auto", "light", "dark"] = "auto"
    sort: bool = False
    basis: Literal["neurons", "directions"] = "neurons"  # of the neuron view
    valueWeighted: bool = False  # noqa: N815  as the front end writes it
    shownLayers: Sequence[int] | None = None  # noqa: N815  of the model view; None: all
    shownHeads: Sequence[int] | None = None  # noqa: N815
    tab: str = "text"  # one of the page's tabs; only the page knows which it has
    map: str = ""  # empty: the first map
    mapHead: str | None = None  # noqa: N815  None: the matrix of all heads
    colour: str = "side"  # side, norm, direction, or the name of a column
    direction: int = 0  # of the picked head's query–key form, which colours the map
    scaledNorms: bool = False  # noqa: N815
    search: str = ""
    searchKind: Literal["exact", "prefix", "regex"] = "exact"  # noqa: N815
    camera: Sequence[float] | None = None  # None: all points are in view
    lines: bool = True  # from each query to its strongest keys
    labels: bool = True
    sizeByNorm: bool = False  # noqa: N815
    palette: Literal["default", "safe"] = "default"
    score: str = "kind"  # what colours the picture of heads: kind, or a score
    across: str = "entropy"  # the two scores of the scatter; "alike" and "": the map of heads
    up: str = "importance-chosen"
    kinds: Sequence[str] = ()  # only heads of these kinds; empty: all
    order: str = "head"  # what the table of heads is sorted by; a minus before it: largest last
    lineScore: str = "away"  # noqa: N815  of the lines per head over compared models
    versus: Sequence[int] = ()  # indexes of the `atlases` of `about` to compare with
    picture: int = -1  # which picture of the input the image view shows; -1: all side by side
    combine: Literal["head", "mean", "rollout"] = "head"
    overlay: bool = True  # heat over the picture for the picked patch
    arrows: bool = True  # the strongest key of each patch
    flows: bool = False  # everything at or above flowsFrom
    flowsFrom: float = 0.1  # noqa: N815
    patches: Literal["off", "border", "fill"] = "border"  # how the map draws points of patches
    keeps: Literal["any", "part", "most"] = "any"  # heads whose map keeps less are dimmed
    trueNear: bool = False  # noqa: N815  a token's true strongest partners, and the nearest on the map
    only: str = ""  # heads in the table: a score and its least or greatest value, as in entropy>=2
    edits: Sequence[EditPick] = ()  # of the Lab, in their order
    labView: Literal["before", "after", "difference"] = "after"  # noqa: N815
    shown: Literal["weights", "moved", "contribution"] = "weights"  # what every view draws
    withoutSinks: bool = False  # noqa: N815  rows are then softmaxes over the other keys
    logitToken: int | None = None  # noqa: N815  whose logit is told apart; None: the next token
    logitAgainst: int | None = None  # noqa: N815  a second token or class; None: no difference
    logitHead: str = ""  # noqa: N815  the head that colours the text; empty: all heads together
    labAt: int | None = None  # noqa: N815  position whose prediction is shown; None: the last token
    # Of inputs longer than LONG_INPUT:
    pooled: Literal["strongest", "mean"] = "strongest"  # what a cell of the heat-map shows
    tileView: Sequence[float] | None = None  # noqa: N815  row, column, tokens in view; None: all
    key: int | None = None  # picked in the heat-map together with the query `token`
    window: Sequence[int] | None = None  # first query and key of the lines; None: at the token


def read_picks(given: Mapping[str, Any]) -> dict[str, Any]:
    """Check the given picks and return all picks, with defaults for those not given."""
    picks: dict[str, Any] = plain(read(Picks, "picks", dict(given)))
    return picks
