"""Scenes in space: what they hold, the camera that sees them, and the rasteriser that makes pictures of them."""
