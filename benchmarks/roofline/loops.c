/* The loops as one writes them first. */

#include <stddef.h>

void triad(float *restrict a, const float *restrict b, const float *restrict c, size_t n) {
  for (size_t i = 0; i < n; i++) a[i] = b[i] + 3.0f * c[i];
}

void axpy(const float *restrict x, float *restrict y, size_t n, float factor) {
  for (size_t i = 0; i < n; i++) y[i] += factor * x[i];
}

void total(const float *restrict x, float *restrict result, size_t n) {
  float sum = 0;
  for (size_t i = 0; i < n; i++) sum += x[i];
  *result = sum;
}

void jacobi(const float *restrict x, const float *restrict b, float *restrict y, size_t n) {
  for (size_t i = 1; i < n - 1; i++)
    for (size_t j = 1; j < n - 1; j++) {
      size_t at = i * n + j;
      y[at] = 0.25f * (x[at - n] + x[at + n] + x[at - 1] + x[at + 1] - b[at]);
    }
}

void stencil(const float *restrict x, float *restrict y, size_t n, float factor) {
  for (size_t i = 1; i < n - 1; i++)
    for (size_t j = 1; j < n - 1; j++)
      for (size_t k = 1; k < n - 1; k++) {
        size_t at = (i * n + j) * n + k;
        float around = x[at - n * n] + x[at + n * n] + x[at - n] + x[at + n] + x[at - 1] + x[at + 1];
        y[at] = factor * x[at] + 0.1f * around;
      }
}

/* What comes along a velocity, and what is put in its place. */
#define WAY(q, a, b, c) came[q] = f[(q) * cells + at - ((a) * n + (b)) * n - (c)], density += came[q], \
  u += (a) * came[q], v += (b) * came[q], w += (c) * came[q];
#define PUT(q, a, b, c, weight) { \
  float along = 3.0f * ((a) * u + (b) * v + (c) * w); \
  g[(q) * cells + at] = (1 - omega) * came[q] + omega * weight * density * (1 + along + 0.5f * along * along - square); \
}
#define R (1.0f / 3)
#define F (1.0f / 18)
#define E (1.0f / 36)

void boltzmann(const float *restrict f, float *restrict g, ptrdiff_t n, float omega) {
  const ptrdiff_t cells = n * n * n;
  for (ptrdiff_t i = 1; i < n - 1; i++)
    for (ptrdiff_t j = 1; j < n - 1; j++)
#pragma omp simd
      for (ptrdiff_t k = 1; k < n - 1; k++) {
        ptrdiff_t at = (i * n + j) * n + k;
        float came[19], density = 0, u = 0, v = 0, w = 0;
        WAY(0, 0, 0, 0)
        WAY(1, -1, 0, 0)
        WAY(2, 0, -1, 0)
        WAY(3, 0, 0, -1)
        WAY(4, 0, 0, 1)
        WAY(5, 0, 1, 0)
        WAY(6, 1, 0, 0)
        WAY(7, -1, -1, 0)
        WAY(8, -1, 0, -1)
        WAY(9, -1, 0, 1)
        WAY(10, -1, 1, 0)
        WAY(11, 0, -1, -1)
        WAY(12, 0, -1, 1)
        WAY(13, 0, 1, -1)
        WAY(14, 0, 1, 1)
        WAY(15, 1, -1, 0)
        WAY(16, 1, 0, -1)
        WAY(17, 1, 0, 1)
        WAY(18, 1, 1, 0)
        u /= density, v /= density, w /= density;
        float square = 1.5f * (u * u + v * v + w * w);
        PUT(0, 0, 0, 0, R)
        PUT(1, -1, 0, 0, F)
        PUT(2, 0, -1, 0, F)
        PUT(3, 0, 0, -1, F)
        PUT(4, 0, 0, 1, F)
        PUT(5, 0, 1, 0, F)
        PUT(6, 1, 0, 0, F)
        PUT(7, -1, -1, 0, E)
        PUT(8, -1, 0, -1, E)
        PUT(9, -1, 0, 1, E)
        PUT(10, -1, 1, 0, E)
        PUT(11, 0, -1, -1, E)
        PUT(12, 0, -1, 1, E)
        PUT(13, 0, 1, -1, E)
        PUT(14, 0, 1, 1, E)
        PUT(15, 1, -1, 0, E)
        PUT(16, 1, 0, -1, E)
        PUT(17, 1, 0, 1, E)
        PUT(18, 1, 1, 0, E)
      }
}
