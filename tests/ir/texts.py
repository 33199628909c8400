"""IR texts that between them hold every operation, each valid in the form that it is filed under."""

from __future__ import annotations

from tinote.ir.verify import Form

FIRST = """\
buffer @x: f32[2] field (8, 4) adjoint @x.grad
buffer @U: f64 field ()
buffer @a: i32 array (?)
buffer @x.grad: f32[2] field (8, 4)
func first(%n: i32, %launch_seed: u64):
  %total: ref f32 = local 0
  %scratch: ref f32[3] = local
  for parallel %i: i32 in 0 .. %n:
    for parallel %j: i32 in 0 .. 4:
      %v: f32[2] = load @x[%i, %j]
      %y: f32 = load @x[%i, %j][1]
      %w: f32[2] = mul %v, 0.5
      store @x[%i, %j], %w
      store @x[%i, %j][0], 1
      %e: f32 = mul %y, %y
      atomic add @U[], %e
      %old: f32[2] = atomic max @x[%i, %j], %w
      %near: u1 = lt %y, inf
      %z: f32 = if %near:
        %k: f32 = add %y, 1
        yield %k
      else:
        yield nan
      %r: u32 = random_bits %launch_seed, %i, 0i32
      print "z = ", %z as ".3e", ", v = ", %v, "\\n"
      check assert "too far: {}" %near, %y
  set %scratch[0], -1.5f64
  %s: f32 = get %scratch[0]
  %all: f32[3] = get %scratch
  set %scratch, %all
  set %total, %s
  %m: i32 = extent @a, 0
  %count: i32 = while carrying %c: i32 = 10i64:
    %more: u1 = gt %c, %m
    yield %more
  do %d: i32:
    %less: i32 = sub %d, 1
    yield %less
  if true:
    %t: f32 = get %total
    store @a[0], %t
  return %count, -0.0f32
"""

SCALAR = """\
buffer @x: f32[2] field (8) tangent @x.dual
buffer @y: f32 temporary ()
buffer @x.dual: f32[2] field (8)
func differentiated(%n: i32):
  %w0: f32[3] = pack 1.0f32, 2.0f32, 3.0f32
  %far: stack f32 = stack
  %near: stack f32 = stack 8i64
  %sum: f32, %web: f32[3] = for %i: i32 in 0i32 .. %n carrying %s: f32 = 0.0f32, %w: f32[3] = %w0:
    %a: f32 = load @x[%i][0i32]
    push %near, %a
    push %far, %s
    %k: i32 = mod %i, 3i32
    %t: f32 = add %s, %a
    %u: f32[3] = insert %w, %k, %t
    yield %t, %u
  %back: f32 = for reverse %j: i32 in 0i32 .. %n carrying %b: f32 = 1.0f32:
    %p: f32 = pop %near
    %q: f32 = pop %far
    %o: f32 = add %p, %q
    %g: f32 = mul %o, %b
    yield %g
  %root: f32 = sqrt %back
  %given: f32 = custom_vjp %root, %back adjoint %d: f32:
    %half: f32 = mul %d, 0.5f32
    %slope: f32 = div %half, %root
    yield %slope
  %last: f32 = extract %web, 2i32
  %bits: i32 = bitcast %last
  %wide: i64 = cast %bits
  store @y[], %given
  return %wide, %sum
"""

CHECKED = """\
buffer @x: i32 field (8)
func checked(%n: i32):
  %ok: u1 = lt %n, 8i32
  check bounds "x" %ok, %n, 8i32
  %a: i32 = load @x[%n]
  %some: u1 = ne %a, 0i32
  check division %some
  %q: i32 = floordiv 100i32, %a
  check overflow "the sum" %ok
  check memory true
  check bounds "y" axis 1 %ok, %n, 8i32
  return %q
"""

TASKS = """\
buffer @n: i32 temporary ()
buffer @U: f32 field ()
buffer @U.0: f32 private ()
buffer @x: f32 field (64)
func offloaded(%scale: f32):
  task serial "count":
    store @n[], 64i32
  %hi: i32 = load @n[]
  task parallel "sum" vectorize %i: i32 in 0i32 .. %hi:
    private add @U.0 of @U
    %a: f32 = load @x[%i]
    %b: f32 = mul %a, %scale
    atomic plain add @U.0[], %b
    for vectorize %j: i32 in 0i32 .. 4i32:
      pass
  task parallel %k: i64 in 0i64 .. 1i64:
    pass
  %result: i32 = load @n[]
  return %result
"""

LOWERED = """\
buffer @x: f32[2] array (?)
buffer @x.flat: f32 array (?) flat @x
buffer @z: f64 field (4, 4) strides (16, 64)
buffer @z.flat: f64 field (?) flat @z
func lowered(%n: i32):
  task serial:
    %m: i32 = extent @x, 0
    %o: i64 = cast %m
    %p: i64 = mul %o, 8i64
    %q: i64 = sub %p, 4i64
    %cell: ref f32[2] = local
    %a: f32 = load @x.flat[%q]
    set %cell[1i32], %a
    %b: f32 = get %cell[1i32]
    store @x.flat[0i64], %b
    atomic add @z.flat[80i64], 1.0f64
"""

IN_LANES = """\
buffer @x: f32 field (64)
buffer @x.flat: f32 field (?) flat @x
func lanes(%n: i32):
  task parallel %i: i32, %mask: u1x8 in 0i32 .. %n:
    %w: i64 = cast %i
    %at: i64 = mul %w, 4i64
    %a: f32x8 = load @x.flat[%at] where %mask
    %o: i64x8 = ramp %at, 8i64
    %t: u1x8 = lt %a, 0.5f32
    %k: u1x8 = and %mask, %t
    %some: u1 = reduce or %k
    %r: f32x8 = if %some:
      %g: f32x8 = load @x.flat[%o] where %k
      yield %g
    else:
      %h: f32x8 = broadcast 0.5f32
      yield %h
    %s: stack f32x8 = stack 2i64
    push %s, %r
    %p: f32x8 = pop %s
    %low: f32 = reduce min %p
    check assert "low: {}" %t, %low
    store @x.flat[%o] where %mask, %p
    %u: tile f32x8 = load tile @x.flat[%at] by 8i64, 8i64 where %mask
    %d: f32x8 = get %u[4i64]
    set %u[0i64], %d
    store tile @x.flat[%at] by 8i64, 8i64 where %mask, %u
  task parallel %j: i32 in 0i32 .. 8i32:
    for parallel %l: i32, %m: u1x4 in 0i32 .. 8i32:
      pass
"""

BY_FORM = {
    Form.FIRST: FIRST,
    Form.SCALAR: SCALAR,
    Form.CHECKED: CHECKED,
    Form.TASKS: TASKS,
    Form.LOWERED: LOWERED,
}
