"""Digests: keys computed from contents."""

from __future__ import annotations

try:
    # What hashlib has too; but hashlib loads OpenSSL, a fifth of the time that a warm first call takes.
    from _blake2 import blake2b
except ImportError:
    from hashlib import blake2b

__all__ = ["blake2b", "digest"]


def digest(*parts: str | bytes | memoryview) -> str:
    """A key: the digest of these parts, distinguished by their lengths."""
    found = blake2b(digest_size=20)
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        found.update(len(data).to_bytes(8, "little"))
        found.update(data)
    return found.hexdigest()
