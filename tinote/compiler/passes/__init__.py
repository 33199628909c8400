"""Compiler passes over the IR. Each file holds one pass and is named by its verb."""
