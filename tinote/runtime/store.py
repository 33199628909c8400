"""The store on disk: compiled code that outlives the process, by the digest of its source text.

    store = open_store()
    data = store.get(key)              # None: not there, or not to be trusted
    store.put(key, data)

An entry is one file, named after its key and sealed by a digest over key and content: what was damaged, cut short or
renamed is taken for missing, removed and written anew. Readers in other processes see a whole entry or none (a rename
puts it in its place). The folder belongs to the user alone; one that others could have written to is not used. A disk
that is full or read-only costs time and is no error. Nothing in an entry is ever run as Python.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import stat
import sys
import time
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tinote.runtime.digest import blake2b, digest
from tinote.system import IS_WINDOWS, PLAIN_FILE, is_own

FOLDER_VARIABLE = "TINOTE_CACHE_DIR"
LIMIT_VARIABLE = "TINOTE_CACHE_LIMIT"
DEFAULT_LIMIT = 256 << 20

_MAGIC = b"tinote\x01\n"
_SEAL_BYTES = 32
_HEAD_BYTES = len(_MAGIC) + _SEAL_BYTES
_KEY_LETTERS = frozenset("0123456789abcdef")
_UNFINISHED = ".writing-"
_UNFINISHED_SECONDS = 3600.0
_WRITTEN = ".written"
_WRITTEN_BLOCK = 4096
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_LARGEST_ENTRY = 1 << 28
#: a path, its size in bytes, when it was last used
_Entry = tuple[str, int, float]
#: folders without text that machine code depends on
_NO_CODE = ("__pycache__", "ad", "capture", "cli", "inspect", "magics", "static", "viz")


@cache
def package_stamp() -> str:
    """Stands for the text of this package, except for what makes no code: who changes it finds no entries of the old
    text.
    """
    package = os.path.dirname(os.path.dirname(__file__))
    found = [str(sys.implementation.cache_tag)]
    waiting = [package]
    while waiting:
        with os.scandir(waiting.pop()) as listing:
            for item in listing:
                if item.name.endswith((".py", ".ll")):
                    status = item.stat()
                    found.append(f"{item.name} {status.st_size} {status.st_mtime_ns} {status.st_ctime_ns}")
                elif item.name not in _NO_CODE and item.is_dir():
                    waiting.append(item.path)
    return digest("\n".join(sorted(found)))


def folder_of(environment: Mapping[str, str] = os.environ) -> Path:
    """Where entries lie: `TINOTE_CACHE_DIR`, else `tinote` in the user's cache folder. A `~` stays where the system
    knows no home folder: in a container a user may be a mere number.
    """
    named = environment.get(FOLDER_VARIABLE)
    if named:
        return Path(os.path.expanduser(named))
    base = environment.get("LOCALAPPDATA" if IS_WINDOWS else "XDG_CACHE_HOME")
    return Path(os.path.expanduser(base if base and os.path.isabs(base) else "~/.cache"), "tinote")


def limit_of(environment: Mapping[str, str] = os.environ) -> int:
    """How many bytes the entries may take: `TINOTE_CACHE_LIMIT`, as in `64M`; 0 switches the cache off. What cannot be
    read as a size counts as the default.
    """
    text = environment.get(LIMIT_VARIABLE, "").strip().lower().removesuffix("b").removesuffix("i")
    number, unit = (text[:-1], text[-1]) if text[-1:] in _UNITS and text[-1:] else (text, "")
    try:
        return max(0, int(float(number) * _UNITS[unit]))
    except (ValueError, OverflowError):
        return DEFAULT_LIMIT


class Usage(NamedTuple):
    """What a store holds: how many entries, of how many bytes."""

    entries: int
    nbytes: int


class DiskStore:
    """Entries in one folder, at most about `limit` bytes of them: the least recently used go first.

    `problem` says why the folder is not used, if so.
    """

    def __init__(self, folder: Path, limit: int = DEFAULT_LIMIT) -> None:
        self.folder = folder
        self.limit = limit
        self.problem = "" if limit else f"switched off ({LIMIT_VARIABLE}=0)"
        if limit and folder.parts[:1] and folder.parts[0].startswith("~"):
            self.problem = (
                f"{folder} is nowhere, as the user has no home folder; {FOLDER_VARIABLE} can name another one"
            )
        self._ready = False
        self._counter = itertools.count()

    def get(self, key: str) -> bytes | None:
        """The content under a key, or `None`."""
        if not self._usable():
            return None
        path = self._path(key)
        try:
            # A link could lead to something that never ends.
            file = os.open(path, os.O_RDONLY | PLAIN_FILE)
        except OSError:
            return None
        try:
            status = os.fstat(file)
            if not stat.S_ISREG(status.st_mode) or not is_own(status):
                return None
            whole = _read(file, status.st_size + 1) if status.st_size <= _LARGEST_ENTRY else b""
        except (OSError, MemoryError):
            return None
        finally:
            os.close(file)
        content = whole[_HEAD_BYTES:]
        if whole[:_HEAD_BYTES] != _MAGIC + _seal(key, content):
            with contextlib.suppress(OSError):
                os.unlink(path)
            return None
        with contextlib.suppress(OSError):
            os.utime(path)
        return content

    def put(self, key: str, content: bytes) -> None:
        """Keep the content under a key. What cannot be kept is dropped silently."""
        if not self._usable() or _HEAD_BYTES + len(content) > min(self.limit // 4, _LARGEST_ENTRY):
            return
        path = self._path(key)
        unfinished = self.folder / f"{_UNFINISHED}{os.getpid()}-{next(self._counter)}-{key[:8]}"
        try:
            file = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | PLAIN_FILE, 0o600)
            try:
                _write(file, _MAGIC + _seal(key, content) + content)
            finally:
                os.close(file)
            os.replace(unfinished, path)
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(unfinished)
            return
        if self._is_time_to_evict(_HEAD_BYTES + len(content)):
            self._evict()

    def usage(self) -> Usage:
        """What is there now."""
        found = list(self._entries()) if self._usable() else []
        return Usage(len(found), sum(nbytes for _, nbytes, _ in found))

    def clear(self) -> Usage:
        """Remove every entry; what was removed."""
        removed = [entry for entry in self._entries() if _remove(entry[0])] if self._usable() else []
        return Usage(len(removed), sum(nbytes for _, nbytes, _ in removed))

    def _path(self, key: str) -> Path:
        if not key or not _KEY_LETTERS.issuperset(key):
            raise ValueError(f"{key!r} is not a key")
        return self.folder / key

    def _usable(self) -> bool:
        """Whether the folder exists and belongs to this user; makes it if need be."""
        if self._ready or self.problem:
            return not self.problem
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            status = self.folder.stat()
        except OSError as error:
            self.problem = f"{self.folder} cannot be used: {error.strerror}"
            return False
        if not stat.S_ISDIR(status.st_mode):
            self.problem = f"{self.folder} is not a folder"
        elif not is_own(status):
            self.problem = f"{self.folder} belongs to another user"
        elif status.st_mode & 0o022 and not IS_WINDOWS:
            self.problem = f"others may write to {self.folder}: chmod 700 it after a look at what it holds"
        elif status.st_mode & 0o077 and not IS_WINDOWS:
            with contextlib.suppress(OSError):
                self.folder.chmod(0o700)
        self._ready = not self.problem
        return self._ready

    def _entries(self) -> Iterator[_Entry]:
        try:
            with os.scandir(self.folder) as listing:
                for item in listing:
                    # Another process may have removed it since.
                    with contextlib.suppress(OSError):
                        status = item.stat(follow_symlinks=False)
                        if _KEY_LETTERS.issuperset(item.name) and stat.S_ISREG(status.st_mode):
                            yield item.path, status.st_size, status.st_mtime
                        elif item.name.startswith(_UNFINISHED) and _is_abandoned(status.st_mtime):
                            os.unlink(item.path)
        except OSError:
            return

    def _is_time_to_evict(self, nbytes: int) -> bool:
        """Whether this process and others together have written so much, with these bytes, since one of them looked at
        all entries last, which takes a second where there are many. A file notes it by its length: a byte for each
        block, and one that says that somebody has looked.
        """
        try:
            flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | PLAIN_FILE
            file = os.open(self.folder / _WRITTEN, flags, 0o600)
            try:
                noted = os.fstat(file).st_size
                blocks = -(-nbytes // _WRITTEN_BLOCK)
                due = noted == 0 or (noted + blocks) * _WRITTEN_BLOCK > self.limit // 16
                if due:
                    os.ftruncate(file, 0)
                os.write(file, bytes(1 if due else blocks))
            finally:
                os.close(file)
        except OSError:
            return True
        return due

    def _evict(self) -> None:
        """Remove the entries that were not used for longest, down to four fifths of the limit."""
        entries = sorted(self._entries(), key=lambda entry: entry[2])
        excess = sum(nbytes for _, nbytes, _ in entries) - self.limit
        if excess <= 0:
            return
        excess += self.limit // 5
        for path, nbytes, _ in entries:
            if excess <= 0:
                return
            if _remove(path):
                excess -= nbytes


def _is_abandoned(written: float) -> bool:
    return time.time() - written > _UNFINISHED_SECONDS


def _remove(path: str) -> bool:
    try:
        os.unlink(path)
    except OSError:
        return False
    return True


def _seal(key: str, content: bytes) -> bytes:
    seal = blake2b(key.encode(), digest_size=_SEAL_BYTES, person=b"tinote entry")
    seal.update(content)
    return seal.digest()


def _read(file: int, nbytes: int) -> bytes:
    pieces: list[bytes] = []
    while nbytes > 0:
        piece = os.read(file, nbytes)
        if not piece:
            break
        pieces.append(piece)
        nbytes -= len(piece)
    return b"".join(pieces)


def _write(file: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(file, rest) :]


_stores: dict[tuple[Path, int], DiskStore] = {}


def open_store() -> DiskStore:
    """The user's store, as the environment names it now."""
    key = (folder_of(), limit_of())
    found = _stores.get(key)
    if found is None:
        found = _stores[key] = DiskStore(*key)
    return found
