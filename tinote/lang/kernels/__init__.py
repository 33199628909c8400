"""What runs: kernels, device functions, their arguments and instances."""
