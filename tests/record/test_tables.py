"""Tables of shards that do not have the same columns become one."""

from typing import Any

import pyarrow as pa

from attention_atlas.record.write.tables import token_table
from attention_atlas.store.patch_places import places


def test_columns_that_only_some_shards_have_join_whatever_their_kind() -> None:
    base = {name: [0] for name in ("id", "start", "end", "segment", "word", "row", "column")}
    plain = {"text": ["a"], "special": [False], **base}
    rows: list[dict[str, Any]] = [
        plain,
        plain | {"known shape": [None]},
        plain | {"known shape": ["disc"], "image": [0], "left": [0.5]},
    ]
    tables = [token_table([(i, "text", one)]) for i, one in enumerate(rows)]
    joined = pa.concat_tables(tables, promote_options="permissive")
    assert joined.column("known shape").to_pylist() == [None, None, "disc"]
    assert places(joined.to_pandas().assign(top=0.0, right=1.0, bottom=1.0)) is not None
