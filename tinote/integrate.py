"""`ti.integrate`: ordinary differential equations over fields."""

from tinote.kit.integrate import Implicit, RungeKutta, Solution, Symplectic

__all__ = ["Implicit", "RungeKutta", "Solution", "Symplectic"]
