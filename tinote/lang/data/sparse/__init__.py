"""Sparse fields: layout trees whose cells can be inactive."""
