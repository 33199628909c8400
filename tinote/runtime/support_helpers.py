"""LLVM text of what LLVM's own code generator calls and a process without compiler-rt does not have.

Linked once, when the first object that names one of them is linked.

    __powisf2, __powidf2(base, exponent)    a float to an integer power, by repeated squaring
    __truncdfhf2(value)                     f64 to f16 in one rounding
"""

from __future__ import annotations

__all__ = ["HELPERS", "TEXT"]

HELPERS = ("__powisf2", "__powidf2", "__truncdfhf2")

_POWER = """
define TYPE @NAME(TYPE %base, i32 %exponent) {
entry:
  %negative = icmp slt i32 %exponent, 0
  ; The magnitude as an unsigned number: that of the least i32 is right too.
  %minus = sub i32 0, %exponent
  %magnitude = select i1 %negative, i32 %minus, i32 %exponent
  br label %loop
loop:
  %rest = phi i32 [ %magnitude, %entry ], [ %half, %loop ]
  %square = phi TYPE [ %base, %entry ], [ %squared, %loop ]
  %result = phi TYPE [ 1.0, %entry ], [ %next, %loop ]
  %bit = and i32 %rest, 1
  %odd = icmp ne i32 %bit, 0
  %product = fmul TYPE %result, %square
  %next = select i1 %odd, TYPE %product, TYPE %result
  %squared = fmul TYPE %square, %square
  %half = lshr i32 %rest, 1
  %more = icmp ne i32 %half, 0
  br i1 %more, label %loop, label %done
done:
  %inverse = fdiv TYPE 1.0, %next
  %power = select i1 %negative, TYPE %inverse, TYPE %next
  ret TYPE %power
}
"""

# By way of f32 rounded to odd: towards zero, with the last bit set if anything was cut off. f32 has more than two bits
# more than f16, so the second rounding sees all it needs.
_TRUNCATE = """
define half @__truncdfhf2(double %value) {
  %near = fptrunc double %value to float
  %back = fpext float %near to double
  %bits = bitcast float %near to i32
  %away = call double @llvm.fabs.f64(double %back)
  %size = call double @llvm.fabs.f64(double %value)
  ; Never true for NaN. An infinite `near` becomes the largest f32, and that an infinite f16.
  %beyond = fcmp ogt double %away, %size
  %one.less = sub i32 %bits, 1
  %towards.zero = select i1 %beyond, i32 %one.less, i32 %bits
  %inexact = fcmp one double %back, %value
  %sticky = zext i1 %inexact to i32
  %odd = or i32 %towards.zero, %sticky
  %single = bitcast i32 %odd to float
  %result = fptrunc float %single to half
  ret half %result
}
declare double @llvm.fabs.f64(double)
"""

TEXT = (
    _POWER.replace("TYPE", "float").replace("NAME", "__powisf2")
    + _POWER.replace("TYPE", "double").replace("NAME", "__powidf2")
    + _TRUNCATE
)
