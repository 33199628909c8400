"""The access rules of differentiable programs, checked for each element."""
