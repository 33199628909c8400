"""`ti.GUI` and `ti.ui`."""
