"""Python syntax trees to IR."""
