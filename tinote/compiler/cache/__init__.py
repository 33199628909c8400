"""What earlier processes compiled: how it is looked up, described by value, and written."""
