"""Sparse fields in kernels: places in their storage, loops over what is active, and how it is changed."""
