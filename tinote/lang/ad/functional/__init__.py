"""Derivatives of functions: `grad`, `vjp`, `jvp`, `jacobian`, `hvp`, and forward mode."""
