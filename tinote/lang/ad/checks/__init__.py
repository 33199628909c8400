"""Gradients compared with differences."""
