"""The grammars of the IR are its documentation: they list every operation, and nothing else."""

from __future__ import annotations

import re
from types import ModuleType

import pytest

from tinote.compiler.frontend.functions import activations
from tinote.ir import lanes, nodes
from tinote.ir.custom_vjp import CustomVJP
from tinote.ir.nodes import MemoryOp, Op


def _operations(module: ModuleType) -> set[str]:
    """The operations that a module defines."""
    classes = [c for c in vars(module).values() if isinstance(c, type) and issubclass(c, Op)]
    return {c.__name__ for c in classes if c.__module__ == module.__name__}


def _listed(module: ModuleType) -> list[str]:
    assert module.__doc__ is not None
    grammar = re.split(r"^    op +=", module.__doc__, flags=re.MULTILINE)[1].partition("\n\n")[0]
    return re.findall(r"^(?: +\|)? +([A-Z_]\w+)\s", grammar, re.MULTILINE)


def test_the_grammar_lists_every_operation() -> None:
    operations = _operations(nodes) | {CustomVJP.__name__}
    found = _listed(nodes)
    assert len(found) == len(set(found))
    assert set(found) == {name for name in operations if not name.startswith("_")} - {Op.__name__, MemoryOp.__name__}


@pytest.mark.parametrize("module", [lanes, activations])
def test_modules_with_operations_of_their_own_list_them(module: ModuleType) -> None:
    found = _listed(module)
    assert len(found) == len(set(found))
    assert set(found) == _operations(module)
    assert nodes.__doc__ is not None
    path = "/".join(module.__name__.split(".")[-2:]) + ".py"
    described = nodes.__doc__.partition(path)[2].partition(".py")[0]
    assert set(found) <= set(re.findall(r"\w+", described))


def test_no_other_module_has_operations() -> None:
    def below(kind: type[Op]) -> set[type[Op]]:
        return {kind}.union(*(below(one) for one in kind.__subclasses__()))

    at = {kind.__module__ for kind in below(Op) if kind.__module__.startswith("tinote.")}
    assert at == {nodes.__name__, lanes.__name__, activations.__name__, CustomVJP.__module__}
