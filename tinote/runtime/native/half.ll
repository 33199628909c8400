; Conversions of f16 that LLVM's code generator calls on processors without instructions for them (x86-64 before F16C),
; and that a process without compiler-rt does not have. `compiler_rt.c` has that of f64.
;
; IEEE 754: every f16 is an f32; an f32 is rounded to the nearest f16, halves to even ones.

define float @__extendhfsf2(half %value) {
  %h = bitcast half %value to i16
  %bits = zext i16 %h to i32
  %size = and i32 %bits, 32767
  %moved = shl i32 %size, 13
  ; with the exponent's bias of f32 instead of that of f16, 2 ^ 112 greater; also of what is subnormal
  %small = bitcast i32 %moved to float
  %number = fmul float %small, 0x46F0000000000000
  %scaled = bitcast float %number to i32
  %large = or i32 %moved, 2139095040
  %is.large = icmp uge i32 %size, 31744
  %chosen = select i1 %is.large, i32 %large, i32 %scaled
  %sign = and i32 %bits, 32768
  %sign.moved = shl i32 %sign, 16
  %all = or i32 %chosen, %sign.moved
  %result = bitcast i32 %all to float
  ret float %result
}

define half @__truncsfhf2(float %value) {
  %bits = bitcast float %value to i32
  %size = and i32 %bits, 2147483647
  ; normal: half a unit, less one if the number is even, then the bias
  %up = lshr i32 %size, 13
  %odd = and i32 %up, 1
  %near = add i32 %size, -939520001
  %rounded = add i32 %near, %odd
  %normal = lshr i32 %rounded, 13
  ; subnormal: the sum with 0.5 is rounded where an f16 ends
  %small = bitcast i32 %size to float
  %sum = fadd float %small, 5.000000e-01
  %sum.bits = bitcast float %sum to i32
  %subnormal = sub i32 %sum.bits, 1056964608
  %is.small = icmp ult i32 %size, 947912704
  %finite = select i1 %is.small, i32 %subnormal, i32 %normal
  %is.large = icmp uge i32 %size, 1199570944
  %number = select i1 %is.large, i32 31744, i32 %finite
  %payload = and i32 %up, 511
  %nan = or i32 %payload, 32256
  %is.nan = icmp ugt i32 %size, 2139095040
  %chosen = select i1 %is.nan, i32 %nan, i32 %number
  %sign = lshr i32 %bits, 16
  %sign.moved = and i32 %sign, 32768
  %all = or i32 %chosen, %sign.moved
  %h = trunc i32 %all to i16
  %result = bitcast i16 %h to half
  ret half %result
}
