"""The IR explorer: how stages are shown and compared. The stages themselves are in `compiler/inspect/stages.py`."""
