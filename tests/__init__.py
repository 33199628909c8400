"""The tests, by floor and folder."""
