"""`ti.units`: the SI's units, which types of numbers may have: `ti.f32[ti.units.m / ti.units.s]`.

Every unit of `TABLE` in `tinote/ir/units.py` is an attribute, with the SI's prefixes as well: `ti.units.km`,
`ti.units.GPa`.
"""

from typing import TYPE_CHECKING, Any

from tinote.errors import no_attribute
from tinote.ir.units import TABLE, Unit, named
from tinote.ir.units import parse as unit

__all__ = ["Unit", "unit", *TABLE]  # pyright: ignore[reportUnsupportedDunderAll]

globals().update(TABLE)

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        found = None if name.startswith("_") else named(name)
        if found is None:
            raise no_attribute("module 'tinote.units'", name, () if name.startswith("_") else __all__)
        return found
