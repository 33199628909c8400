"""The Python back end: from IR to plain Python."""
