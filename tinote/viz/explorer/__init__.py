"""The IR explorer."""
