"""Pictures: the IR explorer, live views, the drop-in GUI. Nothing below calls up into this floor."""
