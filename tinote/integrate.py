"""`ti.integrate`: ordinary differential equations over fields."""

from tinote.kit.integrate import Implicit, RungeKutta, Symplectic

__all__ = ["Implicit", "RungeKutta", "Symplectic"]
