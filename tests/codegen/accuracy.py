"""How far machine code may be from the exact result of each function, in units of the last place."""

from __future__ import annotations

from tinote.ir import primitives as p

__all__ = ["ULPS"]

#: the others are exact: they are rounded once, as IEEE says
ULPS = {
    p.exp: 2,
    p.log: 2,
    p.sin: 2,
    p.cos: 2,
    p.tan: 4,
    p.asin: 4,
    p.acos: 4,
    p.atan2: 4,
    p.tanh: 4,
    p.power: 2,
    p.rsqrt: 2,
}
