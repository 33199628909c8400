"""The files that outlive the process: what is kept, what is refused, who may write, how much there may be."""

from __future__ import annotations

import multiprocessing
import os
import random
import stat
from pathlib import Path

import pytest

from tinote.runtime import store as cache
from tinote.runtime.digest import digest
from tinote.runtime.store import DiskStore, folder_of, limit_of

KEY = digest("a", "key")
OTHER = digest("another")


@pytest.fixture
def store(tmp_path: Path) -> DiskStore:
    return DiskStore(tmp_path / "cache")


def files(store: DiskStore) -> list[Path]:
    """All but the note of how much was written."""
    return sorted(path for path in store.folder.iterdir() if path.name != ".written")


def test_what_was_put_is_got(store: DiskStore) -> None:
    assert store.get(KEY) is None
    store.put(KEY, b"content")
    store.put(OTHER, b"")
    assert store.get(KEY) == b"content"
    assert store.get(OTHER) == b""
    store.put(KEY, b"newer")
    assert DiskStore(store.folder).get(KEY) == b"newer"
    assert store.usage().entries == 2


def test_keys_tell_parts_apart() -> None:
    assert digest("ab", "c") != digest("a", "bc") != digest("abc") != digest("abc", "")
    assert digest("é") == digest("é".encode())


@pytest.mark.parametrize("key", ["", "../x", "ABC", "a/b", "zz", ".writing-1"])
def test_only_digests_are_keys(store: DiskStore, key: str) -> None:
    with pytest.raises(ValueError, match="not a key"):
        store.get(key)
    with pytest.raises(ValueError, match="not a key"):
        store.put(key, b"")


def test_any_flipped_bit_is_noticed_and_the_entry_written_anew(store: DiskStore) -> None:
    content = random.Random(1).randbytes(300)
    store.put(KEY, content)
    (path,) = files(store)
    whole = path.read_bytes()
    for position in range(len(whole)):
        damaged = bytearray(whole)
        damaged[position] ^= 1 << (position % 8)
        path.write_bytes(damaged)
        assert store.get(KEY) is None, position
        assert not path.exists()
    store.put(KEY, content)
    assert store.get(KEY) == content


def test_cut_lengthened_and_renamed_entries_are_refused(store: DiskStore) -> None:
    store.put(KEY, b"content")
    (path,) = files(store)
    whole = path.read_bytes()
    for damaged in (b"", whole[:5], whole[:-1], whole + b"\0"):
        path.write_bytes(damaged)
        assert store.get(KEY) is None
    path.with_name(OTHER).write_bytes(whole)
    assert store.get(OTHER) is None, "a good entry under another's name answers another question"


def test_links_folders_and_pipes_are_no_entries(store: DiskStore, tmp_path: Path) -> None:
    store.put(OTHER, b"content")
    (store.folder / KEY).symlink_to(store.folder / OTHER)
    assert store.get(KEY) is None
    (store.folder / KEY).unlink()
    (store.folder / KEY).mkdir()
    assert store.get(KEY) is None
    store.put(KEY, b"x")
    assert store.get(OTHER) == b"content"
    (store.folder / KEY).rmdir()
    os.mkfifo(store.folder / KEY)
    assert store.get(KEY) is None


def test_the_folder_is_the_users_own(store: DiskStore) -> None:
    store.put(KEY, b"content")
    assert stat.S_IMODE(store.folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(files(store)[0].stat().st_mode) == 0o600
    store.folder.chmod(0o755)
    assert DiskStore(store.folder).get(KEY) == b"content"
    assert stat.S_IMODE(store.folder.stat().st_mode) == 0o700, "others can no longer look in"
    store.folder.chmod(0o777)
    shared = DiskStore(store.folder)
    assert shared.get(KEY) is None
    assert "others may write" in shared.problem
    shared.put(OTHER, b"x")
    assert len(files(store)) == 1


def test_a_folder_or_entry_of_somebody_else_is_not_used(store: DiskStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store.put(KEY, b"content")
    other = DiskStore(store.folder)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    assert store.get(KEY) is None, "the entry is another user's"
    assert other.get(KEY) is None
    assert "another user" in other.problem


def test_a_disk_that_takes_nothing_is_survived(store: DiskStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store.put(KEY, b"content")

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", full)
        store.put(OTHER, b"x")
    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", full)
        store.put(OTHER, b"x")
    assert store.get(OTHER) is None
    assert store.get(KEY) == b"content"
    assert [path.name for path in files(store)] == [KEY], "nothing half-written stays"


def test_a_folder_that_cannot_be_made_is_survived(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for folder in (tmp_path / "file", tmp_path / "file" / "below", Path("/proc/tinote")):
        store = DiskStore(folder)
        store.put(KEY, b"x")
        assert store.get(KEY) is None
        assert store.problem
        assert store.usage() == store.clear() == (0, 0)


def test_the_least_recently_used_go_first(tmp_path: Path) -> None:
    store = DiskStore(tmp_path, limit=64_000)
    keys = [digest(str(number)) for number in range(60)]
    for number, key in enumerate(keys):
        store.put(key, bytes(2_000))
        # Files written within one tick of the clock cannot be distinguished by age.
        os.utime(tmp_path / key, (number, number)) if (tmp_path / key).exists() else None
        assert store.get(keys[0]) is not None, "what is used stays"
        assert store.usage().nbytes <= 64_000 * 17 // 16 + 2_100
    assert store.get(keys[-1]) is not None
    assert store.get(keys[1]) is None
    assert store.usage().nbytes > 32_000


def test_an_entry_too_large_for_the_limit_is_not_kept(tmp_path: Path) -> None:
    store = DiskStore(tmp_path / "cache", limit=10_000)
    store.put(KEY, bytes(9_000))
    assert store.get(KEY) is None


def test_what_killed_processes_left_is_swept(store: DiskStore) -> None:
    store.put(KEY, b"x")
    old, fresh = store.folder / ".writing-1-0-aaaa", store.folder / ".writing-2-0-aaaa"
    for path in (old, fresh):
        path.write_bytes(b"half")
    os.utime(old, (0, 0))
    assert store.usage().entries == 1
    assert not old.exists()
    assert fresh.exists(), "somebody may still be writing it"


def test_clear_says_what_it_removed_and_touches_nothing_else(store: DiskStore) -> None:
    store.put(KEY, b"x")
    (store.folder / "notes.txt").write_text("mine")
    usage = store.usage()
    assert usage.entries == 1
    assert store.clear() == usage
    assert store.get(KEY) is None
    assert [path.name for path in files(store)] == ["notes.txt"]


def _hammer(folder: Path, seed: int, failures: object) -> None:
    store = DiskStore(folder, limit=40_000)
    generator = random.Random(seed)
    for _ in range(300):
        key = digest(str(generator.randrange(12)))
        found = store.get(key)
        if found is not None and found != key.encode() * 50:
            failures.put(key)  # type: ignore[attr-defined]
        store.put(key, key.encode() * 50)


def test_several_processes_at_once(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    failures = context.Queue()
    processes = [context.Process(target=_hammer, args=(tmp_path / "cache", seed, failures)) for seed in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(600)
    assert [process.exitcode for process in processes] == [0, 0, 0]
    assert failures.empty()
    store = DiskStore(tmp_path / "cache", limit=40_000)
    names = {path.name for path in files(store)}
    assert names
    assert all(store.get(name) == name.encode() * 50 for name in names), "no half-written entry, no left-over"


def test_the_environment_names_folder_and_limit() -> None:
    assert folder_of({"TINOTE_CACHE_DIR": "/somewhere"}) == Path("/somewhere")
    assert folder_of({"XDG_CACHE_HOME": "/caches"}) == Path("/caches/tinote")
    assert folder_of({"XDG_CACHE_HOME": "relative"}) == folder_of({}) == Path("~/.cache/tinote").expanduser()
    sizes = {"1000": 1000, "64M": 64 << 20, "64MiB": 64 << 20, "1.5 g": 3 << 29, "2kb": 2048, "0": 0, "-1": 0}
    for text, size in sizes.items():
        assert limit_of({"TINOTE_CACHE_LIMIT": text}) == size, text
    for text in ("", "lots", "infM", "M"):
        assert limit_of({"TINOTE_CACHE_LIMIT": text}) == cache.DEFAULT_LIMIT, text


@pytest.mark.parametrize("environment", [{}, {"TINOTE_CACHE_DIR": "~/kept"}, {"TINOTE_CACHE_DIR": "~nobody-like-it/x"}])
def test_a_user_without_a_home_has_no_store(
    environment: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unknown(user: object) -> None:
        raise KeyError(user)

    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr("pwd.getpwuid", unknown)
    monkeypatch.chdir(tmp_path)
    store = DiskStore(folder_of(environment))
    store.put(KEY, b"x")
    assert store.get(KEY) is None
    assert "no home folder; TINOTE_CACHE_DIR can name another one" in store.problem
    assert list(tmp_path.iterdir()) == [], "no folder of the name ~ arises"


def test_a_limit_of_nothing_switches_it_off(tmp_path: Path) -> None:
    store = DiskStore(tmp_path / "cache", limit=0)
    store.put(KEY, b"x")
    assert store.get(KEY) is None
    assert not store.folder.exists()
    assert "switched off" in store.problem
