"""Analyses that several passes share. They change nothing."""
