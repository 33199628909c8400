"""Machine code of earlier processes: what it is looked up by, and where."""
