"""IR to plain Python."""
