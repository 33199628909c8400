"""Functions that branch, with variants on vectors, so that loops which call them vectorise all the same.

LLVM's vectoriser takes the variant that the scalar function's attribute names (the vector function ABI). A variant is
the scalar text read as text on vectors; where any lane takes the rare path, all lanes do.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from tinote.compiler.codegen.llvm.text import TYPES, FunctionText
from tinote.compiler.codegen.llvm.widen import vector_name, widened
from tinote.ir.types import Scalar

__all__ = ["function"]

_VECTOR_BITS = (128, 256, 512)
_PURE = "nounwind willreturn memory(none)"
_BRANCH = re.compile(r"^  br i1 (?P<flag>%[\w.]+),")


def function(f: FunctionText, name: str, t: Scalar, parameters: str, body: Callable[[], str]) -> str:
    """Define a function of floats of type `t`, and its variants, in the module unless they are; its symbol.

    `parameters` has a letter for each: they are called %a and so on. `body` gives the scalar text with its `ret`: where
    it branches, what a true condition leads to must be right for all numbers.
    """
    symbol = f"@{name}.f{t.bits}"
    if symbol not in f.helpers:
        lanes = [bits // t.bits for bits in _VECTOR_BITS]
        letters = "v" * len(parameters)
        variants = [f"_ZGV_LLVM_N{n}{letters}_{symbol[1:]}({vector_name(symbol, n)[1:]})" for n in lanes]
        text = body()
        typed = ", ".join(f"{TYPES[t]} %{letter}" for letter in parameters)
        # A variant must not be dropped before loops are vectorised, and an argument that is the same in all calls must
        # not go from the scalar function, which would no longer have the parameters of its variants.
        definition = f"define weak_odr hidden {TYPES[t]} {symbol}({typed})"
        attributes = f'noinline {_PURE} "vector-function-abi-variant"="{",".join(variants)}"'
        f.helpers[symbol] = f"{definition} {attributes} {{\n{text}}}\n"
        for n in lanes:
            f.helpers[vector_name(symbol, n)] = f"{widened(definition, n)} {_PURE} {{\n{_on_vectors(text, n)}}}\n"
    return symbol


def _on_vectors(text: str, lanes: int) -> str:
    lines: list[str] = []
    for line in text.splitlines():
        if branch := _BRANCH.match(line):
            flag = branch["flag"]
            lines.append(f"  {flag}.any = call i1 @llvm.vector.reduce.or.v{lanes}i1(<{lanes} x i1> {flag})")
            lines.append(line.replace(flag, f"{flag}.any", 1))
        else:
            lines.append(widened(line, lanes))
    return "\n".join(lines) + "\n"
