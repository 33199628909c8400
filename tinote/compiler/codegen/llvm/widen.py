"""Widens straight-line LLVM text from scalars to vectors.

    %v3 = fadd float %v1, 0x3FF0000000000000
        -> %v3 = fadd <16 x float> %v1, splat (float 0x3FF0000000000000)
    %v4 = call i32 @llvm.smax.i32(i32 %v2, i32 0)
        -> %v4 = call <16 x i32> @llvm.smax.v16i32(<16 x i32> %v2, <16 x i32> splat (i32 0))

LLVM's instructions are the same on vectors, so text written once, for a scalar, serves both. A function that is not an
intrinsic is called once for each lane, unless it is a helper that does not branch.
"""

from __future__ import annotations

import re

_TOKEN = re.compile(
    r"(?P<name>[@%][\w.$-]+)"
    r"|(?P<immediate>\bi1 (?:true|false)(?=\)$))"
    r"|(?P<type>\b(?:half|float|double|i1|i8|i16|i32|i64)\b)"
    r"|(?P<literal>(?<![\w.])(?:0xH?[0-9A-F]+|-?\d+|true|false)(?![\w.]))"
)
_SUFFIX = re.compile(r"(?<=\.)[fi]\d+\b")
#: A function of the module's own, not an intrinsic, and a call of one.
OWN_NAME = re.compile(r"@(?!llvm\.)[\w.]+")
OWN_CALL = re.compile(rf"call (?P<type>\w+) (?P<name>{OWN_NAME.pattern})\((?P<arguments>.*)\)$")


def widened(text: str, lanes: int) -> str:
    """Instructions on scalars as instructions on vectors. Every operand other than a literal is a vector already."""
    last = ""

    def replace(found: re.Match[str]) -> str:
        nonlocal last
        word = found.group()
        match found.lastgroup:
            case "type":
                last = word
                return f"<{lanes} x {word}>"
            case "literal":
                return f"splat ({last} {word})"
            case "name" if word[0] == "@":
                return vector_name(word, lanes)
            case _:
                return word  # a variable, or a constant operand of an intrinsic

    return _TOKEN.sub(replace, text)


def vector_name(name: str, lanes: int) -> str:
    """The name of a scalar function's vector form."""
    return _SUFFIX.sub(lambda found: f"v{lanes}{found.group()}", name)
