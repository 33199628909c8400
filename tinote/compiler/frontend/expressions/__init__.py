"""Expressions: values, their parts, and what operators do to them."""
