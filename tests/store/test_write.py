"""Does overwriting an atlas leave nothing of the old one, and nothing else touched?"""

from pathlib import Path

from attention_atlas.store.write import Writer
from tests.planted import planted


def test_overwriting_deletes_all_that_is_the_atlas_and_nothing_else(tmp_path: Path) -> None:
    folder = tmp_path / "x.atlas"
    planted(folder, 2)
    of_the_atlas = ("relations.parquet", "scores.parquet", "kinds.parquet", "labels.parquet")
    for name in (*of_the_atlas, "notes.txt"):
        (folder / name).write_bytes(b"old")
    for name in ("images", "layouts", "scores.0123456789ab.parts"):
        (folder / name).mkdir()
        (folder / name / "old").write_bytes(b"old")
    Writer(folder, "another", {}, overwrite=True)
    assert sorted(path.name for path in folder.iterdir()) == ["capture.json", "notes.txt"]
