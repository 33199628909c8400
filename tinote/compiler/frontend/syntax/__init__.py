"""What each class of Python's syntax nodes does in a kernel."""
