"""What differs on Windows and macOS: locks, names of files, functions that a system lacks."""

import errno
import fcntl
import re
import subprocess
import sys
from pathlib import Path, PureWindowsPath
from types import SimpleNamespace

import pytest

import attention_atlas as aa
from attention_atlas.store import lock
from attention_atlas.store.manifest import Manifest
from tests.planted import planted


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    atlas = planted(tmp_path_factory.mktemp("planted") / "x.atlas", 2)
    atlas.measure(progress=False)
    atlas.layout("pca", progress=False)
    return atlas.path


def _locking(number: int, mode: int, count: int) -> None:
    """As msvcrt.locking: EACCES where another handle holds the bytes."""
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise PermissionError(errno.EACCES, "Permission denied") from None


def test_windows_locks_a_folder_by_its_own_means(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock, "fcntl", None)
    monkeypatch.setattr(lock, "msvcrt", SimpleNamespace(locking=_locking, LK_NBLCK=2))
    with (
        lock.locked(tmp_path / "x.atlas"),
        pytest.raises(aa.StoreError, match="another capture is writing"),
        lock.locked(tmp_path / "x.atlas"),
    ):
        pass
    with lock.locked(tmp_path / "x.atlas"):
        assert (tmp_path / "x.atlas" / lock.LOCK).exists()
    assert not (tmp_path / "x.atlas").exists()


def test_a_system_without_locks_goes_on_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock, "fcntl", None)
    monkeypatch.setattr(lock, "msvcrt", None)
    with lock.locked(tmp_path), lock.locked(tmp_path):
        pass


RESERVED = re.compile(r"(?i)(con|prn|aux|nul|com\d|lpt\d)(\..*)?")


def test_every_file_of_an_atlas_has_a_name_that_windows_takes(folder: Path) -> None:
    names = [path.relative_to(folder) for path in folder.rglob("*")]
    assert len(names) > 7
    for name in names:
        for part in name.parts:
            assert not re.search(r'[<>:"|?*\\\x00-\x1f]|[. ]$', part), name
            assert not RESERVED.fullmatch(part), name
    assert len({str(name).lower() for name in names}) == len(names), "macOS knows no capitals"


def test_paths_in_the_manifest_have_slashes_everywhere(folder: Path) -> None:
    (shard,) = Manifest.read(folder).shards
    assert shard.file == PureWindowsPath("vectors", "00000.safetensors").as_posix()


def test_an_atlas_is_read_where_a_system_lacks_what_linux_has(folder: Path, tmp_path: Path) -> None:
    """What Windows and macOS do not have is taken away before our code is imported."""
    code = f"""
import os, sys
for name in ("sched_getaffinity", "preadv", "posix_fadvise", "O_DIRECT", "O_NONBLOCK",
             "O_CLOEXEC"):
    if hasattr(os, name):
        delattr(os, name)
sys.modules["fcntl"] = sys.modules["resource"] = None
import attention_atlas as aa
from attention_atlas.page.hosts.connections import MOST, most
from attention_atlas.store.lock import locked
from pathlib import Path
atlas = aa.open({str(folder)!r})
assert atlas.weights(1, "L0H3").shape[0] == len(atlas.tokens(1))
assert len(atlas.heads()) == 5 and most() == MOST
aa.to_headvis(atlas, {str(tmp_path / "headvis")!r})
with locked(Path({str(tmp_path / "locked")!r})):
    print("read")
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.stdout == "read\n", run.stderr[-2000:]
