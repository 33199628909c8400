"""`ti.sampling`: streams of random numbers, distributions, and even sequences."""

from tinote.kit.sampling import Stream, even, halton, stream

__all__ = ["Stream", "even", "halton", "stream"]
