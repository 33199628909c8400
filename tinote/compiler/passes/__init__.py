"""Transformations of the IR, one file and one verb each."""
