"""From the language's values to numbers, tasks and bytes."""
