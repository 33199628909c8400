"""`from tinote._lib import core`: programs ask the native core of the dialect how many indices a field can have, and
for which targets it was built.
"""

from tinote.lang import misc as core

__all__ = ["core"]
