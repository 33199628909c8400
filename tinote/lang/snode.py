"""`ti.lang.snode`: the levels of layout trees, and what is active in sparse ones."""

from tinote.lang.data.tree import Level as SNode
from tinote.lang.data.tree import deactivate_all_snodes
from tinote.lang.maths.sparse import activate, append, deactivate, is_active, rescale_index
from tinote.lang.maths.vectors import length
from tinote.lang.session.missing import refusing

__all__ = [
    "SNode",
    "activate",
    "append",
    "deactivate",
    "deactivate_all_snodes",
    "is_active",
    "length",
    "rescale_index",
]

__getattr__ = refusing(__name__)
