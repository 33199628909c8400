"""`ti.multigrid`: diffusion and Poisson's equation on grids."""

from tinote.kit.multigrid import Diffusion

__all__ = ["Diffusion"]
