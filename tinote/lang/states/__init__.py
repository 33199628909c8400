"""Saved states (`ti.save`, `ti.load`): fields, arrays, numbers and the state of random numbers in a file."""
