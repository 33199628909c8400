"""Values that a derivative needs again: what is kept of memory, and when."""
