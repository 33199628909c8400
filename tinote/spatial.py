"""`ti.spatial`: neighbours within a radius."""

from tinote.kit.spatial import CellGrid, NeighbourList

__all__ = ["CellGrid", "NeighbourList"]
