"""Gradients against differences."""
