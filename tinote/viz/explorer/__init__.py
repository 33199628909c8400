"""The IR explorer: how stages are shown and compared. What the stages are: `compiler/inspect/stages.py`."""
