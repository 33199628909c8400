"""The view of broken access rules."""
