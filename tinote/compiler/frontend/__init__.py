"""The front end: from Python syntax trees to IR."""
