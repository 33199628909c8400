"""A loop while it is brought into lanes: its values, control flow, memory and stacks."""
