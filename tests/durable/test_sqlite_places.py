"""Locations of a SQLite file: a valid address, an existing folder, a local disk."""

import os
from pathlib import Path
from typing import Any

import pytest

from bayescontrol.durable import open_store, sqlite_file
from bayescontrol.durable.sqlite import SqliteStore
from bayescontrol.errors import NetworkFileSystem, StoreFailed, UnknownStore

MOUNTS = """\
/dev/sda1 / ext4 rw 0 0
tmpfs /tmp tmpfs rw 0 0
box:/export /home/ann/box nfs4 rw 0 0
//server/share /mnt/with\\040space cifs rw 0 0
ann@host: /home/ann/box/local fuse.sshfs rw 0 0
/dev/sdb1 /home/ann/box/disk xfs rw 0 0
broken line
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/home/ann/shop.db", "ext4"),
        ("/home/ann/box/shop.db", "nfs4"),
        ("/home/ann/boxes/shop.db", "ext4"),
        ("/home/ann/box/disk/shop.db", "xfs"),
        ("/home/ann/box/local/shop.db", "fuse.sshfs"),
        ("/mnt/with space/shop.db", "cifs"),
        ("/tmp/shop.db", "tmpfs"),
    ],
)
def test_the_file_system_is_that_of_the_longest_mount_point(path: str, kind: str) -> None:
    assert sqlite_file._file_system(Path(path), MOUNTS) == kind


def test_a_network_file_system_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = tmp_path / "mounts"
    table.write_text(f"/dev/sda1 / ext4 rw 0 0\nbox:/export {tmp_path} nfs4 rw 0 0\n")
    monkeypatch.setattr(sqlite_file.require_local, "__defaults__", (table,))
    with pytest.raises(NetworkFileSystem, match=r"\(nfs4\).*local disk, or use postgresql"):
        SqliteStore(str(tmp_path / "shop.db"))
    assert not (tmp_path / "shop.db").exists()


def test_invalid_locations_of_a_store_are_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreFailed, match="no folder"):
        SqliteStore(str(tmp_path / "missing" / "shop.db"))
    with pytest.raises(StoreFailed, match="not a file"):
        SqliteStore(str(tmp_path))
    for url in ("", "shop.db", "sqlite:shop.db", "sqlite://", "sqlite:///", "http://x", None, 3):
        with pytest.raises(UnknownStore, match="url="):
            open_store(url)  # type: ignore[arg-type]


def test_three_slashes_are_relative_and_four_absolute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    open_store("sqlite:///here.db").close()
    open_store(f"sqlite:///{tmp_path}/there.db").close()
    assert sorted(os.listdir(tmp_path)) == ["here.db", "there.db"]


@pytest.mark.parametrize("name", [["a"], None, 5, ""])
def test_a_name_that_is_not_text_is_refused(name: Any) -> None:
    with pytest.raises(UnknownStore):
        SqliteStore(":memory:").log(name)
