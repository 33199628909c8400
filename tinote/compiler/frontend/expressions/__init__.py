"""Expressions: values, their parts, and operators on them."""
