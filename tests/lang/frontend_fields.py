"""Fields that the front end's tests share; each test says which of them have their content."""

from __future__ import annotations

import math

from tests.lang.dialect import Field
from tinote.ir.types import f32, f64, i32, u8

N = 8

x = Field("x", f32, (N,), (2,), needs_grad=True, content=[[math.cos(k), math.sin(k) * 2] for k in range(N)])
v = Field("v", f32, (N,), (2,), content=[[0.25 * k, 1.0] for k in range(N)])
U = Field("U", f32, (), needs_grad=True)
s0 = Field("s0", i32, (), content=7)
m2 = Field("m2", f32, (3, 4), content=[[10 * i + j for j in range(4)] for i in range(3)])
mats = Field("mats", f32, (2,), (2, 2), content=[[[1, 2], [3, 4]], [[5, 6], [7, 8]]])
total = Field("total", f64, ())
line = Field("line", f64, (4,), content=[1.0, 2.0, 3.0, 4.0])
bytes_ = Field("bytes_", u8, (2,))
