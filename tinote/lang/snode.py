"""`ti.lang.snode`: the levels of layout trees."""

from tinote.lang.data.tree import Level as SNode
from tinote.lang.session.missing import refusing

__all__ = ["SNode"]

__getattr__ = refusing(__name__)
