"""Code generation for vectorised loops: values, control flow, memory and stacks in lanes."""
