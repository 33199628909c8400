/* The Julia set with a pixel a lane: several vectors at a time, so that one need not wait for its own last square. */

#include <math.h>

#define ESCAPE 20.0f
#define ITERATIONS 50

#ifdef __AVX512F__

#include <immintrin.h>

enum { WIDTH = 16, VECTORS = 4, LANES = WIDTH * VECTORS };
#define EACH for (int u = 0; u < VECTORS; u++)

/* LANES points from (x0, y0) upwards, `step` apart; the mask of a vector has the lanes that have not escaped. */
static void column(float *pixels, float x0, float y0, float step, float cx, float cy)
{
    const __m512 lane = _mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m512 edge = _mm512_set1_ps(ESCAPE * ESCAPE);
    __m512 x[VECTORS], y[VECTORS];
    __m512i iterations[VECTORS];
    __mmask16 on[VECTORS];
    EACH {
        x[u] = _mm512_set1_ps(x0);
        y[u] = (lane + (float)(WIDTH * u)) * step + y0;
        iterations[u] = _mm512_setzero_si512();
        on[u] = 0xffff;
    }
    for (int turn = 0; turn < ITERATIONS; turn++) {
        unsigned any = 0;
        EACH {
            __m512 xx = x[u] * x[u], yy = y[u] * y[u];
            on[u] = _mm512_mask_cmp_ps_mask(on[u], xx + yy, edge, _CMP_LT_OQ);
            any |= on[u];
            y[u] = _mm512_mask_mov_ps(y[u], on[u], (x[u] + x[u]) * y[u] + cy);
            x[u] = _mm512_mask_mov_ps(x[u], on[u], xx - yy + cx);
            iterations[u] = _mm512_mask_add_epi32(iterations[u], on[u], iterations[u], _mm512_set1_epi32(1));
        }
        if (!any)
            break;
    }
    EACH _mm512_storeu_ps(pixels + WIDTH * u, 1 - _mm512_cvtepi32_ps(iterations[u]) * 0.02f);
}

#else

enum { WIDTH = 8, VECTORS = 8, LANES = WIDTH * VECTORS };
#define EACH for (int u = 0; u < VECTORS; u++)

typedef float Floats __attribute__((vector_size(4 * WIDTH)));
typedef float Pixels __attribute__((vector_size(4 * WIDTH), aligned(4)));
typedef int Integers __attribute__((vector_size(4 * WIDTH)));

static Floats chosen(Integers mask, Floats a, Floats b)
{
    return (Floats)((mask & (Integers)a) | (~mask & (Integers)b));
}

/* The same with masks that are vectors of 0 and -1. */
static void column(float *pixels, float x0, float y0, float step, float cx, float cy)
{
    const Floats lane = {0, 1, 2, 3, 4, 5, 6, 7};
    Floats x[VECTORS], y[VECTORS];
    Integers iterations[VECTORS];
    EACH {
        x[u] = x0 - (Floats){0};
        y[u] = (lane + (float)(WIDTH * u)) * step + y0;
        iterations[u] = (Integers){0};
    }
    for (int turn = 0; turn < ITERATIONS; turn++) {
        Integers any = {0};
        EACH {
            Floats xx = x[u] * x[u], yy = y[u] * y[u];
            Integers on = xx + yy < ESCAPE * ESCAPE;
            any |= on;
            y[u] = chosen(on, (x[u] + x[u]) * y[u] + cy, y[u]);
            x[u] = chosen(on, xx - yy + cx, x[u]);
            iterations[u] -= on;
        }
        int some = 0;
        for (int k = 0; k < WIDTH; k++)
            some |= any[k];
        if (!some)
            break;
    }
    EACH *(Pixels *)(pixels + WIDTH * u) = 1 - __builtin_convertvector(iterations[u], Floats) * 0.02f;
}

#endif

/* Paints `count` times; the height is a multiple of LANES. */
void julia(int count, int width, int height, float t, float *pixels)
{
    const float step = 2.0f / height;
    for (int run = 0; run < count; run++) {
        const float cx = -0.8f, cy = 0.2f * cosf(t);
        for (int i = 0; i < width; i++)
            for (int j = 0; j < height; j += LANES)
                column(pixels + (long)i * height + j, i * step - 2, j * step - 1, step, cx, cy);
    }
}
