"""Restoring memory: the log of overwritten values, and states of fields.

`journal/saved_values.py` decides what is saved.
"""
