"""`ti.lang.enums`."""

from tinote.lang.data.layout import Layout
from tinote.lang.session.missing import refusing

__all__ = ["Layout"]

__getattr__ = refusing(__name__)
