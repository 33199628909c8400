"""Kernels, device functions, their arguments and instances."""
