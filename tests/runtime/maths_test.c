// The functions of `maths.c` compared with those of the C library, and of its long doubles.
//
//   cc -std=c17 -ffp-contract=off -I tinote/runtime/native tests/runtime/maths_test.c -lm
//
// Prints what is off by more than it may; the number of such is the exit status.

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define exp own_exp
#define exp2 own_exp2
#define ldexp own_ldexp
#define log own_log
#define pow own_pow
#define tanh own_tanh
#define sin own_sin
#define cos own_cos
#define tan own_tan
#define asin own_asin
#define acos own_acos
#define atan2 own_atan2
#define fmod own_fmod
#define fma own_fma
#define expf own_expf
#define exp2f own_exp2f
#define logf own_logf
#define sinf own_sinf
#define cosf own_cosf
#define tanf own_tanf
#define asinf own_asinf
#define acosf own_acosf
#define tanhf own_tanhf
#define atan2f own_atan2f
#define powf own_powf
#define fmodf own_fmodf
#define fmaf own_fmaf
#define ldexpf own_ldexpf
#include "maths.c"
#undef exp
#undef exp2
#undef ldexp
#undef log
#undef pow
#undef tanh
#undef sin
#undef cos
#undef tan
#undef asin
#undef acos
#undef atan2
#undef fmod
#undef fma
#undef expf
#undef exp2f
#undef logf
#undef sinf
#undef cosf
#undef tanf
#undef asinf
#undef acosf
#undef tanhf
#undef atan2f
#undef powf
#undef fmodf
#undef fmaf
#undef ldexpf

static int failures;

static double between(double low, double high) {
    return low + (high - low) * drand48();
}

static double of_any_size(double digits) {
    return (drand48() - 0.5) * pow(10, between(-digits, digits));
}

static double units(double found, long double wanted) {
    double size = fabs((double)wanted);
    return wanted == 0 ? fabs(found) : (double)(fabsl((long double)found - wanted) / (nextafter(size, INFINITY) - size));
}

static void expect_at_most(const char *name, double worst, double most, double at) {
    if (worst > most) failures += printf("%s is off by %.3f units at %.17g\n", name, worst, at) > 0;
}

#define WITHIN(name, low, high, most)                                                                                  \
    {                                                                                                                  \
        double worst = 0, at = 0;                                                                                      \
        for (int i = 0; i < 30000; i++) {                                                                              \
            double x = between(low, high) * (i % 3 ? 1 : pow(10, -6 * drand48()));                                     \
            double off = units(own_##name(x), name##l((long double)x));                                                \
            if (off > worst) worst = off, at = x;                                                                      \
        }                                                                                                              \
        expect_at_most(#name, worst, most, at);                                                                        \
    }

static void expect(const char *name, double found, double wanted, double x, double y) {
    if ((isnan(found) && isnan(wanted)) || (found == wanted && signbit(found) == signbit(wanted))) return;
    if (fabs(found - wanted) <= 3e-16 * fabs(wanted)) return;
    failures += printf("%s(%g, %g) is %a, not %a\n", name, x, y, found, wanted) > 0;
}

#define OF_ONE(name) expect(#name, own_##name(x), name(x), x, 0);
#define OF_TWO(name) expect(#name, own_##name(x, y), name(x, y), x, y);

int main(void) {
    WITHIN(exp, -700, 700, 0.7)
    WITHIN(exp2, -1000, 1000, 0.7)
    WITHIN(log, 1e-3, 10, 0.6)
    WITHIN(log, 0.9, 1.1, 0.6)
    WITHIN(log, 1, 1e300, 0.6)
    WITHIN(tanh, -20, 20, 2.5)
    WITHIN(sin, -10, 10, 0.8)
    WITHIN(sin, -1e9, 1e9, 0.8)
    WITHIN(sin, -1e15, 1e15, 0.8)
    WITHIN(cos, -100, 100, 0.8)
    WITHIN(cos, 1e10, 1e18, 0.8)
    WITHIN(tan, -100, 100, 0.95)
    WITHIN(tan, 1e9, 1e17, 0.95)
    WITHIN(asin, -1, 1, 0.6)
    WITHIN(acos, -1, 1, 0.6)
    double worst[2] = {0};
    for (int i = 0; i < 30000; i++) {
        double y = of_any_size(10), x = of_any_size(10), z = of_any_size(20), far = of_any_size(150);
        worst[0] = fmax(worst[0], units(own_atan2(y, x), atan2l(y, x)));
        double base = pow(10, between(-3, 3)), power = between(-9, 9);
        worst[1] = fmax(worst[1], units(own_pow(base, power), powl(base, power)));
        expect("fmod", own_fmod(far, x), fmod(far, x), far, x);
        if (i % 2) z = -x * y * (1 + drand48() * 1e-15);
        if (own_fma(x, y, z) != fma(x, y, z)) failures += printf("fma(%a, %a, %a)\n", x, y, z) > 0;
        float a = (float)x, b = (float)y, c = (float)z;
        if (own_fmaf(a, b, c) != fmaf(a, b, c)) failures += printf("fmaf(%a, %a, %a)\n", a, b, c) > 0;
    }
    expect_at_most("atan2", worst[0], 0.6, 0);
    expect_at_most("pow", worst[1], 0.7, 0);
    static const double special[] = {0.0, -0.0, 1, -1, INFINITY, -INFINITY, NAN, 0.5, 2, -2, 3, -3, 5e-324, 1e308,
                                     -1e308, 0x1p-1040, 1e-300, 1e22, -7.5};
    enum { COUNT = sizeof special / sizeof *special };
    for (int i = 0; i < COUNT; i++) {
        double x = special[i];
        OF_ONE(exp) OF_ONE(exp2) OF_ONE(log) OF_ONE(sin) OF_ONE(cos) OF_ONE(tan) OF_ONE(asin) OF_ONE(acos) OF_ONE(tanh)
        for (int n = -2200; n < 2200; n += 37) expect("ldexp", own_ldexp(x, n), ldexp(x, n), x, n);
        for (int j = 0; j < COUNT; j++) {
            double y = special[j];
            OF_TWO(pow) OF_TWO(atan2) OF_TWO(fmod)
            for (int k = 0; k < COUNT; k++) expect("fma", own_fma(x, y, special[k]), fma(x, y, special[k]), x, y);
        }
    }
    return failures != 0;
}
