"""What a tape records, what it keeps of memory (`saved_values.py`), and the reverse sweep through that."""
