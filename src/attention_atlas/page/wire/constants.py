"""Which names, choices and limits do Python and the page share? Declared here, generated there.

What a lower room needs too is declared in that room and only named here.
"""

from attention_atlas.layout import methods
from attention_atlas.measure import arrows, kinds

KIND_COLOURS = kinds.KIND_COLOURS
METHODS = {name: method.title for name, method in methods.METHODS.items()}
DIMS = methods.DIMS

# What colours the points of a map besides the columns that its atlas has.
COLOURS = {"side": "query or key", "norm": "vector length"}
# Numbers of a head besides its scores.
HEAD_NUMBERS = {
    "margin": "margin of the kind", "agree": "inputs that agree", "odd": "worth a look",
}  # fmt: skip
SIDE_COLOURS = {
    "default": {"query": "#5FB96C", "key": "#E3378F"},
    "safe": {"query": "#2B7BBA", "key": "#E1812C"},
}

LONGEST_TEXT = 20_000  # letters of a text that is added
LARGEST_ANSWER = 4_000_000  # exact weights in one packet
FAINTEST = arrows.FAINTEST  # a weaker strongest key is not worth an arrow
UNIT = 65535  # weights, places and columns of numbers travel as so many parts of their range
NO_KIND = 255  # in place of a kind's number, where a head has none
