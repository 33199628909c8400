"""The record of a tape, the memory that it saves (`saved_values.py`), and the reverse sweep."""
