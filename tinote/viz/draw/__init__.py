"""Pictures, charts, meshes and films as data and files."""
