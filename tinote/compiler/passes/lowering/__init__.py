"""Lowering passes: from the language's values to numbers, tasks and byte offsets."""
