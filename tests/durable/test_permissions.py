"""Files with events belong to their owner; a folder that becomes inaccessible is a typed error."""

import os
import shutil
import stat
import tempfile
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bayescontrol import BernoulliBandit
from bayescontrol._support.files import FileLock, lock_folder
from bayescontrol.durable import (
    DurableAgent,
    LogStore,
    SnapshotNotKept,
    export_log,
    open_agent,
    open_store,
)
from bayescontrol.errors import StoreFailed, Unwritable

SHOP = BernoulliBandit(["red", "blue"])
NOBODY = 65534


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder of a user for whom permissions matter."""
    for _ in range(2):  # compile and import: the other user cannot read our files
        with open_agent(f"sqlite:///{tmp_path / 'shop.db'}", "shop", SHOP) as agent:
            agent.observe(agent.act(), 1)
    path = Path(tempfile.mkdtemp(prefix="bayescontrol-"))
    if os.geteuid() == 0:
        os.chown(path, NOBODY, NOBODY)
    yield path
    path.chmod(0o700)
    shutil.rmtree(path)


def as_user(work: Callable[[], None]) -> None:
    """Do the work in a forked process, which is not root."""
    process = os.fork()
    if process == 0:
        code = 1
        try:
            if os.geteuid() == 0:
                os.setgroups([])
                os.setgid(NOBODY)
                os.setuid(NOBODY)
            work()
            code = 0
        except BaseException:
            traceback.print_exc()
        os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 0


@pytest.mark.parametrize("open_it", [lambda url: open_agent(url, "shop", SHOP), open_store])
def test_close_in_a_folder_without_permission_is_a_typed_error_and_releases_the_lock(
    folder: Path, open_it: Callable[[str], DurableAgent | LogStore]
) -> None:
    path = folder / "shop.db"

    def work() -> None:
        with open_agent(f"sqlite:///{path}", "shop", SHOP) as agent:
            agent.act()
        opened = open_it(f"sqlite:///{path}")
        folder.chmod(0o500)
        with pytest.raises(StoreFailed, match=r"shop\.db: Permission denied; the file is closed"):
            opened.close()
        opened.close()  # idempotent
        folder.chmod(0o700)
        FileLock(Path(f"{path}-lock")).release()  # raises LockHeld if it is locked
        with open_agent(f"sqlite:///{path}", "shop", SHOP) as again:
            assert again.head == 2

    as_user(work)


def test_a_folder_that_becomes_inaccessible_is_not_taken_for_a_removed_file(folder: Path) -> None:
    url = f"sqlite:///{folder / 'shop.db'}"

    def work() -> None:
        agent = open_agent(url, "shop", SHOP)
        agent.act()
        folder.chmod(0)
        with pytest.raises(StoreFailed, match=r"became inaccessible \(Permission denied\)"):
            agent.act()
        with pytest.warns(SnapshotNotKept), pytest.raises(StoreFailed, match="Permission denied"):
            agent.close()
        folder.chmod(0o700)
        with open_agent(url, "shop", SHOP) as again:
            assert again.head == 3  # the second decision was on disk

    as_user(work)


def test_a_results_folder_that_becomes_inaccessible_is_a_typed_error(folder: Path) -> None:
    def work() -> None:
        with pytest.raises(Unwritable, match="Permission denied"), lock_folder(folder):
            folder.chmod(0o500)
        folder.chmod(0o700)
        FileLock(folder / ".lock").release()

    as_user(work)


def test_stores_backups_and_exports_are_readable_by_their_owner_only(tmp_path: Path) -> None:
    umask = os.umask(0)
    try:
        with open_agent(f"sqlite:///{tmp_path / 'shop.db'}", "shop", SHOP) as agent:
            agent.act()
            agent.backup(tmp_path / "copy.db")
            export_log(agent, tmp_path / "shop.jsonl")
            names = ["shop.db", "shop.db-wal", "copy.db", "shop.jsonl"]
            modes = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in names]
    finally:
        os.umask(umask)
    assert modes == [0o600] * 4


def test_a_mode_that_the_owner_chose_stays(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    open_agent(f"sqlite:///{path}", "shop", SHOP).close()
    path.chmod(0o640)
    with open_agent(f"sqlite:///{path}", "shop", SHOP) as agent:
        agent.act()
        for suffix in ("", "-wal"):
            assert stat.S_IMODE(Path(f"{path}{suffix}").stat().st_mode) == 0o640, suffix
