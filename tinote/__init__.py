"""tinote: differentiable simulation kernels in notebooks."""

__version__ = "0.1.0"
