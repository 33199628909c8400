"""Pictures, charts, meshes and videos as data and files."""
