// What LLVM's own code generator calls and a process without compiler-rt does not have.
//
//   __powisf2, __powidf2(base, exponent)    a float to an integer power, by repeated squaring
//   __truncdfhf2(value)                     f64 to f16 in one rounding

#include "runtime.h"

#ifdef __wasm__
typedef uint16_t half_value; // its bits: so LLVM passes it there
#else
typedef _Float16 half_value;
#endif

float __powisf2(float base, int exponent);
double __powidf2(double base, int exponent);

#define POWER(type, name)                                                                                              \
    type name(type base, int exponent) {                                                                               \
        type result = 1;                                                                                               \
        /* The magnitude as an unsigned number: that of the least int is right too. */                                 \
        for (uint32_t rest = exponent < 0 ? 0 - (uint32_t)exponent : (uint32_t)exponent;; base *= base) {              \
            if (rest & 1) result *= base;                                                                              \
            if ((rest >>= 1) == 0) break;                                                                              \
        }                                                                                                              \
        return exponent < 0 ? 1 / result : result;                                                                     \
    }

POWER(float, __powisf2)
POWER(double, __powidf2)

half_value __truncdfhf2(double value);

half_value __truncdfhf2(double value) {
    union {
        double number;
        uint64_t bits;
    } size = {value}, unit = {0x1p28};
    union {
        uint16_t bits;
        half_value number;
    } half;
    uint16_t sign = (uint16_t)(size.bits >> 48 & 0x8000);
    size.bits &= INT64_MAX;
    if (size.number != size.number) {
        half.bits = 0x7e00 | (uint16_t)(size.bits >> 42 & 0x3ff); // quiet, with the upper part of what it carries
    } else if (size.number >= 65520) {
        half.bits = 0x7c00;
    } else if (size.number < 0x1p-14) {
        // A subnormal half counts units of 2^-24, to which a sum with 2^28 is rounded.
        size.number += unit.number;
        half.bits = (uint16_t)(size.bits - unit.bits);
    } else {
        // Ten of 52 bits stay, ties to even; a carry goes into the exponent, whose bias falls from 1023 to 15.
        uint64_t rounded = size.bits + ((uint64_t)1 << 41) - 1 + (size.bits >> 42 & 1);
        half.bits = (uint16_t)((rounded >> 42) - ((1023 - 15) << 10));
    }
    half.bits |= sign;
    return half.number;
}
