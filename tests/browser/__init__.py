"""Tests that drive a real browser: a package, so that its browser ends with it (`conftest.py`)."""
