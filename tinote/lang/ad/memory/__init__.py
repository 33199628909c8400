"""How memory comes back: the log of overwritten values, states of fields. What is kept: `journal/saved_values.py`."""
