"""Which arguments do several tools share, and within which limits?"""

from typing import Annotated, Literal

from pydantic import Field

MOST_NUMBER = 1_000_000_000  # of an input or a token

InputNumber = Annotated[
    int, Field(ge=0, le=MOST_NUMBER, description="Number of an input, from 0; see inputs.")
]
HeadName = Annotated[str, Field(max_length=80, description="A head, as in L5H1.")]
Position = Annotated[
    int | None, Field(ge=0, le=MOST_NUMBER, description="Position of a token, from 0.")
]
Side = Annotated[
    Literal["query", "key"],
    Field(description="Whether the token looks (query) or is looked at (key)."),
]
Start = Annotated[int, Field(ge=0, le=MOST_NUMBER, description="The first one to list.")]
Limit = Annotated[int, Field(ge=1, le=200, description="How many to list.")]
