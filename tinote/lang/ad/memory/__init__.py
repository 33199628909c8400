"""How memory comes back: the log of overwritten values, and states of fields. What is kept: `journal/saved_values.py`."""
