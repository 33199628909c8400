"""Vector variants of functions with branches, so that loops that call them can be vectorised.

LLVM's vectoriser takes the variant that the scalar function's attribute names (the vector function ABI). A variant is
the scalar text read as text on vectors; if one lane takes the rare path, all lanes do.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable

from tinote.compiler.codegen.llvm.text import FunctionText
from tinote.compiler.codegen.llvm.types import TYPES
from tinote.compiler.codegen.llvm.widen import vector_name, widened
from tinote.ir.types import Scalar

__all__ = ["function"]

#: Bits of the vectors for which variants of a function are declared: SSE, AVX and AVX-512.
_VECTOR_BITS = (128, 256, 512)
_PURE = "nounwind willreturn memory(none)"
_BRANCH = re.compile(r"^  br i1 (?P<flag>%[\w.]+),")


def function(
    f: FunctionText,
    name: str,
    t: Scalar,
    parameters: str,
    body: Callable[[], str],
    *,
    of: Scalar | None = None,
    rarely: tuple[str, Callable[[], str]] | None = None,
) -> str:
    """Define a function of floats of type `t`, and its variants, in the module unless they exist. Returns its symbol.

    `parameters` has a letter for each: they are called %a and so on; `of`: their type, where it is another one. `body`
    gives the scalar text with its `ret`: where it branches, the code for a true condition must be right for all
    numbers. `rarely`: a function of one `t` that it calls there, and which does not branch; then there is little else,
    which is inlined once loops have taken their variants.
    """
    symbol = f"@{name}.f{t.bits}"
    if symbol not in f.helpers:
        given = of or t
        lanes = [bits // given.bits for bits in _VECTOR_BITS]
        letters = "v" * len(parameters)
        variants = [f"_ZGV_LLVM_N{n}{letters}_{symbol[1:]}({vector_name(symbol, n)[1:]})" for n in lanes]
        text = body()
        typed = ", ".join(f"{TYPES[given]} %{letter}" for letter in parameters)
        # A variant must not be dropped before loops are vectorised, and an argument that is the same in all calls must
        # not go from the scalar function, which would no longer have the parameters of its variants.
        linkage, inlining = ("weak_odr", "noinline ") if rarely is None else ("weak", "")
        definition = f"define {linkage} hidden {TYPES[t]} {symbol}({typed})"
        attributes = f'{inlining}{_PURE} "vector-function-abi-variant"="{",".join(variants)}"'
        f.helpers[symbol] = f"{definition} {attributes} {{\n{text}}}\n"
        for n in lanes:
            f.helpers[vector_name(symbol, n)] = f"{widened(definition, n)} {_PURE} {{\n{_on_vectors(text, n)}}}\n"
        if rarely is not None:
            called, its_body = f"@{rarely[0]}.f{t.bits}", rarely[1]()
            definition = f"define internal {TYPES[t]} {called}({TYPES[t]} %a)"
            for n in (0, *lanes):
                own, text = (widened(definition, n), widened(its_body, n)) if n else (definition, its_body)
                name = vector_name(called, n) if n else called
                f.helpers[name] = f"{own} noinline cold {_PURE} {{\n{text}}}\n"
    return symbol


@functools.cache  # of the few functions in this folder
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
