"""What a kernel finds in Python around it: names, functions, and what they may do."""
