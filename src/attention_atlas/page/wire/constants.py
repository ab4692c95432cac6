"""Which names, choices and limits do Python and the page share? Declared here, generated there.

What a lower package needs too is declared in that package and only imported here.
"""

from attention_atlas.layout import methods
from attention_atlas.measure import arrows, kinds
from attention_atlas.store import pooling, pyramids, tiles

KIND_COLOURS = kinds.KIND_COLOURS
METHODS = {name: method.title for name, method in methods.METHODS.items()}
DIMS = methods.DIMS

# Colours of map points, besides the columns of the atlas.
COLOURS = {
    "side": "query or key", "norm": "vector length", "direction": "direction of the head",
}  # fmt: skip
# Numbers of a head besides its scores.
HEAD_NUMBERS = {
    "margin": "margin of the kind", "agree": "inputs that agree", "odd": "worth a look",
}  # fmt: skip
SIDE_COLOURS = {
    "default": {"query": "#5FB96C", "key": "#E3378F"},
    "safe": {"query": "#2B7BBA", "key": "#E1812C"},
}

LONGEST_TEXT = 20_000  # characters of an added text
MOST_WAITING = 8  # edits, added texts and tests of labels of one page or notebook cell
MOST_EDITS = 100  # edits of one input at once
MOST_GENERATED = 200  # new tokens of the Lab's text
LARGEST_ANSWER = 4_000_000  # exact weights in one packet
LONG_INPUT = 2048  # tokens; a longer input is shown by tiles, and its lines by windows
TILE = tiles.TILE  # cells of a tile's side
FAINTEST_CELL = pooling.FAINTEST_CELL  # a mean weight below this has no colour
MOST_WITHOUT = pyramids.MOST_WITHOUT  # keys taken out at once
FAINTEST = arrows.FAINTEST  # a strongest key with less weight gets no arrow
UNIT = 65535  # weights, places and number columns are sent as whole numbers from 0 to this
SIGNED_UNIT = 32767  # the same of numbers with signs, from minus this
NO_KIND = 255  # number of the kind of a head that has none
