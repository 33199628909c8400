"""The grammar at the top of `nodes.py` is the IR's documentation: it lists every operation, and nothing else."""

from __future__ import annotations

import re

from tinote.ir import nodes
from tinote.ir.custom_vjp import CustomVJP
from tinote.ir.nodes import Memory, Op


def test_the_grammar_lists_every_operation() -> None:
    classes = [c for c in vars(nodes).values() if isinstance(c, type) and issubclass(c, Op)]
    operations = {c.__name__ for c in (*classes, CustomVJP) if not c.__name__.startswith("_")} - {"Op", Memory.__name__}
    assert nodes.__doc__ is not None
    grammar = nodes.__doc__.partition("op        =")[2].partition("\n\n")[0]
    listed = re.findall(r"^(?:\s+\|)?\s+([A-Z]\w+)\s", grammar, re.MULTILINE)
    assert len(listed) == len(set(listed))
    assert set(listed) == operations
