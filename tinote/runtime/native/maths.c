// The functions of the C library that generated code calls, where there is no C library.
//
//   exp exp2 ldexp log pow tanh     sin cos tan asin acos atan2     fmod fma
//       each also for f32, by way of f64. Off by less than one unit in the last place (tanh: two); remainders and `fma`
//       are exact. No errno, no exceptions.
//
// A number in two parts, the second far smaller than the first, has about 106 bits: products and sums of f64 are made
// exact as Dekker and Knuth did, since there is no instruction that multiplies and adds with one rounding.

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

struct pair {
    double high, low;
};

union bits {
    double number;
    uint64_t word;
};

static inline uint64_t bits_of(double x) {
    return (union bits){.number = x}.word;
}

static inline double from_bits(uint64_t word) {
    return (union bits){.word = word}.number;
}

// --- arithmetic on two parts

// The sum where |a| is not the smaller one.
static inline struct pair fast_sum(double a, double b) {
    double sum = a + b;
    return (struct pair){sum, b - (sum - a)};
}

static inline struct pair sum_of(double a, double b) {
    double sum = a + b, of_b = sum - a, of_a = sum - of_b;
    return (struct pair){sum, (a - of_a) + (b - of_b)};
}

static inline struct pair halves_of(double a) {
    double scaled = a * 0x1.0000002p27, high = scaled - (scaled - a);
    return (struct pair){high, a - high};
}

static inline struct pair product_of(double a, double b) {
    struct pair x = halves_of(a), y = halves_of(b);
    double product = a * b;
    return (struct pair){product, ((x.high * y.high - product) + x.high * y.low + x.low * y.high) + x.low * y.low};
}

static inline struct pair multiplied(struct pair a, struct pair b) {
    struct pair product = product_of(a.high, b.high);
    return fast_sum(product.high, product.low + (a.high * b.low + a.low * b.high));
}

static inline struct pair divided(struct pair a, struct pair b) {
    double quotient = a.high / b.high;
    struct pair back = product_of(quotient, b.high);
    double rest = ((a.high - back.high) - back.low) + (a.low - quotient * b.low);
    return (struct pair){quotient, rest / b.high};
}

static inline struct pair root_of(struct pair a) {
    double root = sqrt(a.high);
    if (root == 0) return (struct pair){0, 0};
    struct pair back = product_of(root, root);
    return (struct pair){root, (((a.high - back.high) - back.low) + a.low) / (2 * root)};
}

static inline double polynomial(double x, const double *coefficients, int count) {
    double value = coefficients[count - 1];
    for (int k = count - 2; k >= 0; k--) value = value * x + coefficients[k];
    return value;
}

#define POLYNOMIAL(x, coefficients) polynomial(x, coefficients, (int)(sizeof coefficients / sizeof *coefficients))

static const double TO_INTEGER = 0x1.8p52; // added to a number, it rounds it to an integer, which is in its low bits
static const double LN2_HIGH = 0x1.62e42feep-1, LN2_LOW = 0x1.a39ef35793c76p-33; // n times the first is exact

double ldexp(double x, int n) {
    while (n > 1000) {
        x *= 0x1p1000;
        if ((n -= 1000) > 3000) n = 3000;
    }
    while (n < -960) { // what is left is rounded once
        x *= 0x1p-960;
        if ((n += 960) < -3000) n = -3000;
    }
    return x * from_bits((uint64_t)(1023 + n) << 52);
}

// --- exponentials

static const double EXP[] = {1.0 / 2,     1.0 / 6,       1.0 / 24,       1.0 / 120,       1.0 / 720,         1.0 / 5040,
                             1.0 / 40320, 1.0 / 362880, 1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600.0, 1.0 / 6227020800.0};

// The exponential of x + low, where x is in range.
static double exp_within(double x, double low) {
    double shifted = x * 0x1.71547652b82fep0 + TO_INTEGER, n = shifted - TO_INTEGER;
    double near = x - n * LN2_HIGH, product = n * LN2_LOW, r = near - product;
    low += (near - r) - product;
    double part = r * r * POLYNOMIAL(r, EXP);
    struct pair whole = fast_sum(1, r);
    double value = whole.high + (whole.low + (part + low * (1 + r + part)));
    int power = (int)n, half = power / 2;
    return value * from_bits((uint64_t)(1023 + half) << 52) * from_bits((uint64_t)(1023 + power - half) << 52);
}

static double exp_pair(double x, double low) {
    if (x > 710) return INFINITY;
    if (x < -746) return 0;
    return exp_within(x, low);
}

double exp(double x) {
    return isnan(x) ? x : exp_pair(x, 0);
}

double exp2(double x) {
    if (isnan(x)) return x;
    if (x > 1024) return INFINITY;
    if (x < -1076) return 0;
    double n = nearbyint(x);
    struct pair rest = product_of(x - n, 0x1.62e42fefa39efp-1);
    double value = exp_within(rest.high, rest.low + (x - n) * 0x1.abc9e3b39803fp-56);
    int power = (int)n, half = power / 2;
    return value * from_bits((uint64_t)(1023 + half) << 52) * from_bits((uint64_t)(1023 + power - half) << 52);
}

double tanh(double x) {
    double size = fabs(x);
    if (size < 0x1p-28 || isnan(x)) return x;
    if (size > 22) return copysign(1, x);
    // e^2x - 1 as 2^n (1 + q) - 1
    double y = 2 * size, shifted = y * 0x1.71547652b82fep0 + TO_INTEGER, n = shifted - TO_INTEGER;
    double near = y - n * LN2_HIGH, product = n * LN2_LOW, r = near - product, low = (near - r) - product;
    double q = r + (r * r * POLYNOMIAL(r, EXP) + low * (1 + r)), scale = from_bits((uint64_t)(1023 + (int)n) << 52);
    double less = scale * q + (scale - 1);
    return copysign(less / (less + 2), x);
}

// --- logarithms and powers

static const double LOG[] = {2.0 / 5,  2.0 / 7,  2.0 / 9,  2.0 / 11, 2.0 / 13, 2.0 / 15,
                             2.0 / 17, 2.0 / 19, 2.0 / 21, 2.0 / 23, 2.0 / 25, 2.0 / 27};

// The logarithm of a positive finite number, to about 66 bits.
static struct pair log_pair(double x) {
    int exponent = 0;
    if (x < 0x1p-1022) {
        x *= 0x1p54;
        exponent = -54;
    }
    // The mantissa between the root of 1/2 and the root of 2.
    uint64_t above = bits_of(x) - UINT64_C(0x3fe6a09e667f3bcd);
    exponent += (int)((int64_t)above >> 52);
    double f = from_bits((above & ((UINT64_C(1) << 52) - 1)) + UINT64_C(0x3fe6a09e667f3bcd)) - 1;
    // log(1 + f) = 2 s + 2/3 s^3 + … with s = f / (2 + f)
    struct pair s = divided((struct pair){f, 0}, sum_of(2, f)), z = multiplied(s, s);
    struct pair cube = multiplied(multiplied(s, z), (struct pair){0x1.5555555555555p-1, 0x1.5555555555555p-55});
    double rest = s.high * z.high * z.high * POLYNOMIAL(z.high, LOG);
    struct pair first = sum_of(exponent * LN2_HIGH, 2 * s.high), both = sum_of(first.high, cube.high);
    double low = (first.low + both.low) + (exponent * LN2_LOW + (2 * s.low + (cube.low + rest)));
    return fast_sum(both.high, low);
}

double log(double x) {
    if (isnan(x) || x == INFINITY) return x;
    if (x == 0) return -INFINITY;
    if (x < 0) return NAN;
    return log_pair(x).high;
}

static bool is_odd(double whole) {
    return fabs(whole) < 0x1p53 && ((int64_t)whole & 1);
}

double pow(double x, double y) {
    if (y == 0 || x == 1) return 1;
    if (isnan(x) || isnan(y)) return x + y;
    double size = fabs(x);
    bool whole = floor(y) == y;
    if (isinf(y)) return size == 1 ? 1 : (size > 1) == (y > 0) ? INFINITY : 0;
    double sign = signbit(x) && whole && is_odd(y) ? -1 : 1;
    if (size == 0) return y < 0 ? sign * INFINITY : sign * 0.0;
    if (isinf(size)) return y < 0 ? sign * 0.0 : sign * INFINITY;
    if (x < 0 && !whole) return NAN;
    if (size == 1) return sign;
    struct pair logarithm = log_pair(size);
    double near = y * logarithm.high;
    if (near > 1000 || near < -1000) return near > 0 ? sign * INFINITY : sign * 0.0;
    struct pair exponent = product_of(y, logarithm.high);
    return sign * exp_pair(exponent.high, exponent.low + y * logarithm.low);
}

// --- sines and cosines

static const double HALF_PI[] = {0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54, -0x1.f1976b7ed8fbcp-110};

// Of 2 / pi, behind 32 bits before the point.
static const uint32_t TWO_OVER_PI[] = {
    0x00000000, 0xa2f9836e, 0x4e441529, 0xfc2757d1, 0xf534ddc0, 0xdb629599, 0x3c439041, 0xfe5163ab,
    0xdebbc561, 0xb7246e3a, 0x424dd2e0, 0x06492eea, 0x09d1921c, 0xfe1deb1c, 0xb129a73e, 0xe88235f5,
    0x2ebb4484, 0xe99c7026, 0xb45f7e41, 0x3991d639, 0x835339f4, 0x9c845f8b, 0xbdf9283b, 0x1ff897ff,
    0xde05980f, 0xef2f118b, 0x5a0a6d1f, 0x6d367ecf, 0x27cb09b7, 0x4f463f66, 0x9e5fea2d, 0x7527bac7,
    0xebe5f17b, 0x3d0739f7, 0x8a5292ea, 0x6bfb5fb1, 0x1f8d5d08, 0x56033046, 0xfc7b6bab,
};

#define LIMBS 6

// How many quarter turns an angle of at least 2^30 is, modulo four, and what is left (Payne and Hanek): of the product
// of its 53 bits with 2 / pi, the 192 bits behind the last that counts whole turns.
static int reduced_by_bits(double size, struct pair *rest) {
    uint64_t word = bits_of(size);
    int first = (int)(word >> 52) - 1075 - 2 + 32; // the first bit of 2 / pi that counts
    uint64_t mantissa = (word & ((UINT64_C(1) << 52) - 1)) | UINT64_C(1) << 52;
    uint32_t turns[LIMBS] = {0}, factors[2] = {(uint32_t)mantissa, (uint32_t)(mantissa >> 32)};
    for (int k = 0; k < 2; k++) {
        uint64_t carry = 0;
        for (int i = LIMBS - 1; i - k >= 0; i--) {
            int at = first / 32 + i, by = first % 32;
            uint32_t limb = TWO_OVER_PI[at] << by | (by ? TWO_OVER_PI[at + 1] >> (32 - by) : 0);
            uint64_t part = (uint64_t)limb * factors[k] + turns[i - k] + carry;
            turns[i - k] = (uint32_t)part;
            carry = part >> 32;
        }
    }
    int quarter = (int)(turns[0] >> 30);
    for (int i = 0; i < LIMBS; i++) turns[i] = turns[i] << 2 | (i + 1 < LIMBS ? turns[i + 1] >> 30 : 0);
    bool beyond = turns[0] >> 31; // the next quarter is nearer
    if (beyond) {
        uint64_t carry = 1;
        for (int i = LIMBS - 1; i >= 0; i--) {
            uint64_t part = (uint64_t)(uint32_t)~turns[i] + carry;
            turns[i] = (uint32_t)part;
            carry = part >> 32;
        }
    }
    double scale = 0x1p-192;
    struct pair fraction = {0, 0};
    for (int i = LIMBS - 1; i >= 0; i--, scale *= 0x1p32) {
        struct pair more = sum_of(fraction.high, turns[i] * scale);
        fraction = fast_sum(more.high, more.low + fraction.low);
    }
    *rest = multiplied(fraction, (struct pair){HALF_PI[0], HALF_PI[1]});
    if (beyond) *rest = (struct pair){-rest->high, -rest->low};
    return quarter + beyond;
}

// An angle as quarter turns, modulo four, and what is left.
static int reduced(double x, struct pair *rest) {
    double size = fabs(x);
    if (size >= 0x1p30) {
        int quarters = reduced_by_bits(size, rest);
        if (x > 0) return quarters;
        *rest = (struct pair){-rest->high, -rest->low};
        return -quarters;
    }
    double shifted = x * 0x1.45f306dc9c883p-1 + TO_INTEGER, n = shifted - TO_INTEGER;
    struct pair first = product_of(n, HALF_PI[0]), second = product_of(n, HALF_PI[1]);
    double exact = (x - first.high) - first.low;
    *rest = sum_of(exact, -second.high);
    *rest = fast_sum(rest->high, rest->low - second.low - n * HALF_PI[2]);
    return (int)n;
}

static const double SIN[] = {-0.1666666666666663,    0.008333333333322108,   -0.00019841269829580174,
                             2.7557313618018093e-06, -2.5050747218137655e-08, 1.5896197625471767e-10};
static const double COS[] = {0.041666666666666595,  -0.001388888888887304, 2.4801587288841377e-05,
                             -2.75573141762335e-07, 2.0875700415245024e-09, -1.1358513910113248e-11};

static struct pair sine_of(struct pair r) {
    double z = r.high * r.high;
    return (struct pair){r.high, r.high * z * POLYNOMIAL(z, SIN) + r.low * (1 - 0.5 * z)};
}

static struct pair cosine_of(struct pair r) {
    struct pair z = product_of(r.high, r.high);
    struct pair most = fast_sum(1, -0.5 * z.high);
    return (struct pair){most.high, most.low - (0.5 * z.low + r.high * r.low) + z.high * z.high * POLYNOMIAL(z.high, COS)};
}

static double wave(double x, int ahead) {
    if (!isfinite(x)) return NAN;
    struct pair rest;
    int quarters = reduced(x, &rest) + ahead;
    struct pair value = quarters & 1 ? cosine_of(rest) : sine_of(rest);
    double sum = value.high + value.low;
    return quarters & 2 ? -sum : sum;
}

double sin(double x) {
    return fabs(x) < 0x1p-27 ? x : wave(x, 0);
}

double cos(double x) {
    return wave(x, 1);
}

double tan(double x) {
    if (fabs(x) < 0x1p-27) return x;
    if (!isfinite(x)) return NAN;
    struct pair rest;
    int quarters = reduced(x, &rest);
    struct pair sine = sine_of(rest), cosine = cosine_of(rest);
    sine = fast_sum(sine.high, sine.low);
    cosine = fast_sum(cosine.high, cosine.low);
    struct pair value = quarters & 1 ? divided((struct pair){-cosine.high, -cosine.low}, sine) : divided(sine, cosine);
    return value.high + value.low;
}

// --- angles

// Of 0, 1/16, … 1.
static const struct pair ARCTANGENTS[] = {
    {0, 0},
    {0x1.ff55bb72cfdeap-5, -0x1.c934d86d23f1dp-60},
    {0x1.fd5ba9aac2f6ep-4, -0x1.cd37686760c17p-59},
    {0x1.7b97b4bce5b02p-3, 0x1.347b0b4f881cap-58},
    {0x1.f5b75f92c80ddp-3, 0x1.8ab6e3cf7afbdp-57},
    {0x1.362773707ebccp-2, -0x1.963a544b672d8p-57},
    {0x1.6f61941e4def1p-2, -0x1.c63aae6f6e918p-56},
    {0x1.a64eec3cc23fdp-2, -0x1.24dec1b50b7ffp-56},
    {0x1.dac670561bb4fp-2, 0x1.a2b7f222f65e2p-56},
    {0x1.0657e94db30d0p-1, -0x1.d5b495f6349e6p-56},
    {0x1.1e00babdefeb4p-1, -0x1.928df287a668fp-58},
    {0x1.345f01cce37bbp-1, 0x1.1021137c71102p-55},
    {0x1.4978fa3269ee1p-1, 0x1.2419a87f2a458p-56},
    {0x1.5d58987169b18p-1, 0x1.0028e4bc5e7cap-57},
    {0x1.700a7c5784634p-1, -0x1.8c34d25aadef6p-56},
    {0x1.819d0b7158a4dp-1, -0x1.bf76229d3b917p-56},
    {0x1.921fb54442d18p-1, 0x1.1a62633145c07p-55},
};
static const double ATAN[] = {-1.0 / 3, 1.0 / 5, -1.0 / 7, 1.0 / 9, -1.0 / 11};

// The angle of y / x, where 0 <= y <= x: that of the nearest sixteenth and of what is left.
static struct pair angle_below(struct pair y, struct pair x) {
    int nearest = (int)(y.high / x.high * 16 + 0.5);
    double c = nearest / 16.0;
    struct pair part = product_of(c, x.high), across = sum_of(y.high, -part.high);
    across = fast_sum(across.high, across.low - part.low + (y.low - c * x.low));
    struct pair along = sum_of(x.high, c * y.high);
    along.low += x.low + c * y.low;
    struct pair t = divided(across, along);
    double z = t.high * t.high;
    struct pair whole = sum_of(ARCTANGENTS[nearest].high, t.high);
    return fast_sum(whole.high, whole.low + (ARCTANGENTS[nearest].low + (t.low + t.high * z * POLYNOMIAL(z, ATAN))));
}

// The angle of the point (|x|, |y|), which is not the origin.
static struct pair angle_of(struct pair y, struct pair x) {
    if (y.high <= x.high) return angle_below(y, x);
    struct pair other = angle_below(x, y), whole = sum_of(HALF_PI[0], -other.high);
    return fast_sum(whole.high, whole.low + (HALF_PI[1] - other.low));
}

static double from_the_back(struct pair angle) {
    struct pair whole = sum_of(2 * HALF_PI[0], -angle.high);
    return whole.high + (whole.low + (2 * HALF_PI[1] - angle.low));
}

double atan2(double y, double x) {
    if (isnan(x) || isnan(y)) return x + y;
    double a = fabs(y), b = fabs(x);
    if (isinf(a) && isinf(b)) a = b = 1;
    if (a == 0 || isinf(b)) return copysign(signbit(x) ? 2 * HALF_PI[0] : 0, y);
    if (b == 0 || isinf(a)) return copysign(HALF_PI[0], y);
    int exponent = (int)(bits_of(a > b ? a : b) >> 52) - 1023;
    if (exponent < -500 || exponent > 500) {
        a = ldexp(a, -exponent);
        b = ldexp(b, -exponent);
    }
    if (a < b * 0x1p-60) return signbit(x) ? copysign(2 * HALF_PI[0], y) : y / x;
    struct pair angle = angle_of((struct pair){a, 0}, (struct pair){b, 0});
    return copysign(signbit(x) ? from_the_back(angle) : angle.high, y);
}

// The root of 1 - x².
static struct pair opposite(double x) {
    struct pair square = product_of(x, x), rest = sum_of(1, -square.high);
    return root_of(fast_sum(rest.high, rest.low - square.low));
}

double asin(double x) {
    double size = fabs(x);
    if (!(size <= 1)) return NAN;
    if (size < 0x1p-27) return x;
    return copysign(angle_of((struct pair){size, 0}, opposite(size)).high, x);
}

double acos(double x) {
    double size = fabs(x);
    if (!(size <= 1)) return NAN;
    struct pair angle = angle_of(opposite(size), (struct pair){size, 0});
    return x < 0 ? from_the_back(angle) : angle.high;
}

// --- exact arithmetic

// A positive number as digits times a power of two: 2 to `exponent_field`, less 1075.
static int exponent_field(double x) {
    int found = (int)(bits_of(x) >> 52);
    return found == 0 ? 1 : found;
}

static uint64_t digits_of(double x) {
    uint64_t word = bits_of(x), fraction = word & ((UINT64_C(1) << 52) - 1);
    return word >> 52 == 0 ? fraction : fraction | UINT64_C(1) << 52;
}

static double remainder_of(double x, double y) {
    double a = fabs(x), b = fabs(y);
    if (!(a < INFINITY) || !(b > 0)) return NAN; // a NaN, too
    if (a < b) return x;
    // Long division of the digits as integers, up to ten bits at a time.
    int left = exponent_field(a), least = exponent_field(b);
    uint64_t of_a = digits_of(a), of_b = digits_of(b);
    for (of_a %= of_b; left > least;) {
        int bits = left - least < 10 ? left - least : 10;
        of_a = (of_a << bits) % of_b;
        left -= bits;
    }
    return copysign(ldexp((double)of_a, least - 1075), x);
}

double fmod(double x, double y) {
    return remainder_of(x, y);
}

// Not by `fmod`: LLVM makes a remainder of f32 of that, which is this function.
float fmodf(float x, float y) {
    return (float)remainder_of((double)x, (double)y);
}

// Rounds a sum to odd: the last bit says whether something is left. Rounding that again is rounding once.
static inline double odd_sum(double a, double b) {
    struct pair sum = sum_of(a, b);
    uint64_t word = bits_of(sum.high);
    if (sum.low != 0 && !(word & 1)) word += (sum.low > 0) == (sum.high > 0) ? 1 : UINT64_MAX;
    return from_bits(word);
}

// The power of two that is not larger than a number other than zero.
static int exponent_of(double x) {
    int found = (int)(bits_of(x) >> 52 & 2047);
    return found == 0 ? exponent_of(x * 0x1p54) - 54 : found - 1023;
}

double fma(double a, double b, double c) {
    if (!isfinite(a) || !isfinite(b) || a == 0 || b == 0 || c == 0) return a * b + c;
    if (!isfinite(c)) return c;
    // Factors between 1 and 2, and a summand at most so far away that it still counts.
    int of_a = exponent_of(a), of_b = exponent_of(b), apart = exponent_of(c) - of_a - of_b;
    struct pair product = product_of(ldexp(a, -of_a), ldexp(b, -of_b));
    if (apart > 110) return c;
    double scaled = apart < -120 ? copysign(0x1p-120, c) : ldexp(ldexp(c, -exponent_of(c)), apart);
    struct pair sum = sum_of(product.high, scaled);
    return ldexp(sum.high + odd_sum(product.low, sum.low), of_a + of_b);
}

float fmaf(float a, float b, float c) {
    double product = (double)a * (double)b, sum = product + (double)c;
    return (float)(isfinite(sum) ? odd_sum(product, (double)c) : sum);
}

// --- f32

#define SINGLE(name)                                                                                                   \
    float name##f(float x) {                                                                                           \
        return (float)name((double)x);                                                                                 \
    }
#define SINGLE_OF_TWO(name)                                                                                            \
    float name##f(float x, float y) {                                                                                  \
        return (float)name((double)x, (double)y);                                                                      \
    }

SINGLE(exp)
SINGLE(exp2)
SINGLE(log)
SINGLE(sin)
SINGLE(cos)
SINGLE(tan)
SINGLE(asin)
SINGLE(acos)
SINGLE(tanh)
SINGLE_OF_TWO(atan2)
SINGLE_OF_TWO(pow)

float ldexpf(float x, int n) {
    return (float)ldexp((double)x, n);
}
