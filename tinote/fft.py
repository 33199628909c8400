"""`ti.fft`: fast Fourier transforms of fields."""

from tinote.kit.fft import Poisson, Transform, frequency

__all__ = ["Poisson", "Transform", "frequency"]
