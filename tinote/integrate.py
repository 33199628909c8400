"""`ti.integrate`: ordinary differential equations over fields."""

from tinote.kit.integrate import Implicit, RungeKutta, Symplectic
from tinote.kit.stiff import BDF

__all__ = ["BDF", "Implicit", "RungeKutta", "Symplectic"]
