"""`ti.geometry`: trees of points, boxes and triangles, and signed distances."""

from tinote.kit.shapes import (
    DistanceGrid,
    box,
    capsule,
    cone,
    cylinder,
    difference,
    intersection,
    on_segment,
    on_segments,
    on_triangle,
    plane,
    point_segment,
    point_triangle,
    segment_segment,
    smooth_union,
    sphere,
    torus,
    union,
)
from tinote.kit.surfaces import TriangleTree
from tinote.kit.trees import BoxTree, PointTree

__all__ = [
    "BoxTree", "DistanceGrid", "PointTree", "TriangleTree", "box", "capsule", "cone", "cylinder", "difference",
    "intersection", "on_segment", "on_segments", "on_triangle", "plane", "point_segment", "point_triangle",
    "segment_segment", "smooth_union", "sphere", "torus", "union",
]  # fmt: skip
