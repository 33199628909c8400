"""Pictures whose pixels take different numbers of iterations: what lanes that wait for each other gain and lose.

The Julia set with at most 50 iterations a pixel; and spheres and boxes above a plane, found by marching rays along
signed distances, at most 100 steps to what a ray meets, which mirrors it twice. tinote, Taichi and Quadrants run one
program, on one thread and on all. The C is for one thread, its vectors and masks written by hand.
"""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.contract import Case, Contender

__all__ = ["CASES"]

PACKAGES = ("tinote", "taichi", "quadrants")


def rows(one_over: str, all_over: str) -> Iterator[Contender]:
    """Return the rows of the dialect on one thread and on all, and the names of those that they are shown over."""
    for name in PACKAGES:
        yield Contender(name, "benchmarks.pictures.dialect", name, {"threads": 1}, one_over)
    for name in PACKAGES:
        yield Contender(f"{name}, all threads", "benchmarks.pictures.dialect", name, {"threads": 0}, all_over)


CASES = (
    Case(
        "Julia set, 1280 x 640 pixels",
        (*rows("C", ""), Contender("C", "benchmarks.pictures.c_")),
        {"picture": "julia"},
        at_most_over=1.3,
    ),
    Case(
        "ray-marched scene with two bounces, 640 x 360 pixels",
        tuple(rows("taichi", "taichi, all threads")),
        {"picture": "scene"},
        at_most_over=1 / 3,
        tolerance=0.01,
    ),
)
