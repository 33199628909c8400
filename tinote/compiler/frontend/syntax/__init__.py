"""Statements and subscripts: the handlers of Python's syntax nodes."""
