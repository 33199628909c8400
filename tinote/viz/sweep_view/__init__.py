"""The view of a sweep."""
