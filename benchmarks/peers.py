"""The packages that contenders need, and how each is kept from finding yesterday's compiled code on disk."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["PEERS", "Peer", "cold_environment", "peer_of", "warm_environment"]


@dataclass(frozen=True, slots=True)
class Peer:
    """A package: the name to import, its distribution, and environment variables that turn its disk cache off."""

    package: str
    distribution: str
    no_cache: Mapping[str, str] = field(default_factory=dict)


PEERS: Mapping[str, Peer] = {
    peer.package: peer
    for peer in (
        Peer("tinote", "tinote"),
        Peer("taichi", "taichi", {"TI_OFFLINE_CACHE": "0"}),
        Peer("quadrants", "quadrants", {"QD_OFFLINE_CACHE": "0"}),
        Peer("jax", "jax", {"JAX_ENABLE_COMPILATION_CACHE": "0"}),
        Peer("optax", "optax", {"JAX_ENABLE_COMPILATION_CACHE": "0"}),
        Peer("diffrax", "diffrax", {"JAX_ENABLE_COMPILATION_CACHE": "0"}),
        Peer("torch", "torch"),
        Peer("warp", "warp-lang"),
        Peer("numba", "numba"),
        Peer("embreex", "embreex"),
        Peer("igl", "libigl"),
        Peer("pyamg", "pyamg"),
        Peer("meshio", "meshio"),
    )
}


def peer_of(package: str) -> Peer:
    """Return the peer; for a package outside the table, one without a switch whose distribution has the same name."""
    return PEERS.get(package) or Peer(package, package)


def cold_environment(package: str | None, empty_folder: Path) -> dict[str, str]:
    """Return variables under which `package` finds nothing cached on disk and leaves nothing behind.

    That is its own switch, and `empty_folder` wherever a package may look for its cache.
    """
    variables = warm_environment(empty_folder)
    return variables | dict(peer_of(package).no_cache) if package else variables


def warm_environment(folder: Path) -> dict[str, str]:
    """Return variables under which packages find and leave compiled code in `folder` alone."""
    return dict.fromkeys(
        (
            "TMPDIR",
            "XDG_CACHE_HOME",
            "TINOTE_CACHE_DIR",
            "TI_OFFLINE_CACHE_FILE_PATH",
            "QD_OFFLINE_CACHE_FILE_PATH",
            "NUMBA_CACHE_DIR",
            "WARP_CACHE_PATH",
        ),
        str(folder),
    )
