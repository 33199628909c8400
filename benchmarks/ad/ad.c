/* The workloads and their derivatives, written by hand for one core: what this machine can do.
 *
 * Every function has the same parameters: the numbers of a problem's inputs, first the differentiated ones, its integer
 * inputs, its sizes, where the value goes, where the derivative goes (null: the program alone), and room for what is
 * kept on the way. Loops over LANES iterations at a time are laid out so that a compiler turns them into vectors.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LANES 8
#define LANE for (int u = 0; u < LANES; u++)
#define PARAMETERS                                                                                                     \
  double *const *in, const int *const *index, const long *size, double *value, double *derivative, double *room

static inline long smaller(long a, long b) { return a < b ? a : b; }

/* in: x (m), t (n), target (n); size: n, m */
void least_squares(PARAMETERS) {
  enum { STRIP = 32 };
  const double *restrict x = in[0], *restrict t = in[1], *restrict target = in[2];
  const long n = size[0], m = size[1];
  double total = 0, power[STRIP], at[STRIP], miss[STRIP];
  (void)index, (void)room;
  if (derivative) memset(derivative, 0, m * sizeof(double));
  for (long i = 0; i < n; i += STRIP) {
    const long count = smaller(STRIP, n - i);
    for (int u = 0; u < STRIP; u++) at[u] = u < count ? t[i + u] : 0, power[u] = 1, miss[u] = 0;
    for (long j = 0; j < m; j++)
      for (int u = 0; u < STRIP; u++) miss[u] += x[j] * power[u], power[u] *= at[u];
    for (int u = 0; u < STRIP; u++) {
      miss[u] = u < count ? miss[u] - target[i + u] : 0;
      total += 0.5 * miss[u] * miss[u];
    }
    if (!derivative) continue;
    for (long j = 0; j < m; j++) {
      double sum = 0;
      for (int u = 0; u < STRIP; u++) sum += miss[u], miss[u] *= at[u];
      derivative[j] += sum;
    }
  }
  *value = total;
}

/* in: x (n); size: n */
void log_sum_exp(PARAMETERS) {
  const double *restrict x = in[0];
  double *restrict slope = derivative;
  const long n = size[0];
  double shift = x[0], total = 0;
  (void)index, (void)room;
  for (long i = 0; i < n; i++) shift = x[i] > shift ? x[i] : shift;
  if (!slope) {
    for (long i = 0; i < n; i++) total += exp(x[i] - shift);
  } else {
    for (long i = 0; i < n; i++) {
      const double e = exp(x[i] - shift);
      slope[i] = e;
      total += e;
    }
    const double scale = 1 / total;
    for (long i = 0; i < n; i++) slope[i] *= scale;
  }
  *value = shift + log(total);
}

static inline void stage(double *restrict k, const double *restrict x, const double *restrict y,
                         const double *restrict before, double h, long n) {
  k[0] = x[0];
  for (long i = 1; i < n; i++) k[i] = x[i] * (y[i - 1] + h * before[i - 1]);
}

static inline void first_stage(double *restrict k, const double *restrict x, const double *restrict y, long n) {
  k[0] = x[0];
  for (long i = 1; i < n; i++) k[i] = x[i] * y[i - 1];
}

/* The adjoints of a stage: of its result `d`, of what came before it (null: nothing), of y and x. */
static inline void stage_back(const double *restrict d, const double *restrict x, const double *restrict y,
                              const double *restrict before, double h, double *restrict d_before, double *restrict d_y,
                              double *restrict d_x, long n) {
  d_x[0] += d[0];
  for (long i = 1; i < n; i++) {
    const double through = d[i] * x[i];
    d_x[i] += d[i] * (y[i - 1] + h * before[i - 1]);
    d_y[i - 1] += through;
    d_before[i - 1] += h * through;
  }
}

/* in: x (n); size: n, steps; room: (steps + 11) n. All y are kept, the stages are computed again. */
void ode(PARAMETERS) {
  const double *restrict x = in[0];
  const long n = size[0], steps = size[1];
  const double h = 2.0 / steps;
  double *k1 = room, *k2 = k1 + n, *k3 = k2 + n, *k4 = k3 + n, *d1 = k4 + n, *d2 = d1 + n, *d3 = d2 + n, *d4 = d3 + n;
  double *restrict d_y = d4 + n, *all = d_y + n, total = 0;
  (void)index;
  memset(all, 0, n * sizeof(double));
  for (long t = 0; t < steps; t++) {
    const double *restrict y = derivative ? all + t * n : all;
    double *next = derivative ? all + (t + 1) * n : all;
    first_stage(k1, x, y, n);
    stage(k2, x, y, k1, h / 2, n);
    stage(k3, x, y, k2, h / 2, n);
    stage(k4, x, y, k3, h, n);
    for (long i = 0; i < n; i++) next[i] = y[i] + h / 6 * (k1[i] + 2 * k2[i] + 2 * k3[i] + k4[i]);
  }
  const double *last = derivative ? all + steps * n : all;
  for (long i = 0; i < n; i++) total += last[i];
  *value = total;
  if (!derivative) return;
  memset(derivative, 0, n * sizeof(double));
  for (long i = 0; i < n; i++) d_y[i] = 1;
  for (long t = steps - 1; t >= 0; t--) {
    const double *y = all + t * n;
    first_stage(k1, x, y, n);
    stage(k2, x, y, k1, h / 2, n);
    stage(k3, x, y, k2, h / 2, n);
    for (long i = 0; i < n; i++) {
      const double each = h / 6 * d_y[i];
      d1[i] = d4[i] = each;
      d2[i] = d3[i] = 2 * each;
    }
    stage_back(d4, x, y, k3, h, d3, d_y, derivative, n);
    stage_back(d3, x, y, k2, h / 2, d2, d_y, derivative, n);
    stage_back(d2, x, y, k1, h / 2, d1, d_y, derivative, n);
    derivative[0] += d1[0];
    for (long i = 1; i < n; i++) derivative[i] += d1[i] * y[i - 1], d_y[i - 1] += d1[i] * x[i];
  }
}

/* in: centroids (k, d), points (n, d); size: n, k, d <= 16. The derivative: the gradient, then the Hessian times ones.
 * Only the nearest centroid of a point counts. */
void kmeans(PARAMETERS) {
  enum { STRIP = 16 };
  const double *restrict centroids = in[0], *restrict points = in[1];
  const long n = size[0], k = size[1], d = size[2];
  double total = 0, point[16][STRIP], best[STRIP], which[STRIP], square[STRIP];
  (void)index, (void)room;
  if (derivative) memset(derivative, 0, 2 * k * d * sizeof(double));
  for (long i = 0; i < n; i += STRIP) {
    const long count = smaller(STRIP, n - i);
    for (long l = 0; l < d; l++)
      for (int u = 0; u < STRIP; u++) point[l][u] = u < count ? points[(i + u) * d + l] : 0;
    for (int u = 0; u < STRIP; u++) best[u] = 1e300, which[u] = 0;
    for (long j = 0; j < k; j++) {
      for (int u = 0; u < STRIP; u++) square[u] = 0;
      for (long l = 0; l < d; l++) {
        const double c = centroids[j * d + l];
        for (int u = 0; u < STRIP; u++) square[u] += (point[l][u] - c) * (point[l][u] - c);
      }
      for (int u = 0; u < STRIP; u++) {
        which[u] = square[u] < best[u] ? (double)j : which[u];
        best[u] = square[u] < best[u] ? square[u] : best[u];
      }
    }
    for (int u = 0; u < count; u++) {
      total += best[u];
      if (!derivative) continue;
      const long j = (long)which[u];
      for (long l = 0; l < d; l++) {
        derivative[j * d + l] -= 2 * (point[l][u] - centroids[j * d + l]);
        derivative[(k + j) * d + l] += 2;
      }
    }
  }
  *value = total;
}

/* in: alphas (k), means (k, d), icf (k, d (d + 1) / 2), x (n, d); size: n, d <= 32, k, and a gamma of 1 and prior of 0
 * are in the code; room: (n + LANES) k + k d. */
void gaussian_mixture(PARAMETERS) {
  const double *restrict alphas = in[0], *restrict means = in[1], *restrict icf = in[2], *restrict x = in[3];
  const long n = size[0], d = size[1], k = size[2], width = d * (d + 1) / 2, strips = (n + LANES - 1) / LANES;
  double *restrict terms = room; /* (strips, k, LANES); afterwards their adjoints */
  double *restrict diagonal = room + strips * k * LANES;
  double *restrict d_alphas = derivative, *restrict d_means = derivative ? derivative + k : 0;
  double *restrict d_icf = derivative ? d_means + k * d : 0;
  double total = 0, sums = 0, weights[1024], at[32][LANES], white[LANES];
  (void)index;
  for (long j = 0; j < k * d; j++) diagonal[j] = exp(icf[j / d * width + j % d]);
  for (long s = 0; s < strips; s++)
    for (long j = 0; j < k; j++) {
      const double *restrict lower = icf + j * width + d;
      double square[LANES] = {0}, logs = 0;
      for (long r = 0; r < d; r++) {
        logs += icf[j * width + r];
        LANE at[r][u] = (s * LANES + u < n ? x[(s * LANES + u) * d + r] : 0) - means[j * d + r];
      }
      for (long r = 0; r < d; r++) {
        LANE white[u] = diagonal[j * d + r] * at[r][u];
        for (long c = 0, place = r - 1; c < r; place += d - c - 2, c++) LANE white[u] += lower[place] * at[c][u];
        LANE square[u] += white[u] * white[u];
      }
      LANE terms[(s * k + j) * LANES + u] = alphas[j] + logs - 0.5 * square[u];
    }
  for (long s = 0; s < strips; s++) {
    double *restrict row = terms + s * k * LANES, shift[LANES], sum[LANES] = {0};
    LANE shift[u] = row[u];
    for (long j = 1; j < k; j++) LANE shift[u] = row[j * LANES + u] > shift[u] ? row[j * LANES + u] : shift[u];
    for (long j = 0; j < k; j++) LANE {
        row[j * LANES + u] = exp(row[j * LANES + u] - shift[u]);
        sum[u] += row[j * LANES + u];
      }
    LANE total += s * LANES + u < n ? shift[u] + log(sum[u]) : 0;
    LANE sum[u] = s * LANES + u < n ? 1 / sum[u] : 0;
    for (long j = 0; j < k; j++) LANE row[j * LANES + u] *= sum[u];
  }
  double shift = alphas[0];
  for (long j = 1; j < k; j++) shift = alphas[j] > shift ? alphas[j] : shift;
  for (long j = 0; j < k; j++) weights[j] = exp(alphas[j] - shift), sums += weights[j];
  total -= n * (shift + log(sums));
  for (long j = 0; j < k; j++) {
    for (long r = 0; r < d; r++) total += 0.5 * diagonal[j * d + r] * diagonal[j * d + r];
    for (long r = d; r < width; r++) total += 0.5 * icf[j * width + r] * icf[j * width + r];
  }
  *value = total;
  if (!derivative) return;
  for (long j = 0; j < k; j++) {
    const double *restrict lower = icf + j * width + d;
    double d_at[32][LANES], d_diagonal[32][LANES], d_lower[32 * 31 / 2][LANES], d_mean[32][LANES], d_term[LANES] = {0};
    double all = 0;
    memset(d_diagonal, 0, sizeof d_diagonal), memset(d_mean, 0, sizeof d_mean);
    memset(d_lower, 0, (width - d) * sizeof d_lower[0]);
    for (long s = 0; s < strips; s++) {
      const double *restrict adjoint = terms + (s * k + j) * LANES;
      LANE d_term[u] += adjoint[u];
      for (long r = 0; r < d; r++) LANE {
          at[r][u] = (s * LANES + u < n ? x[(s * LANES + u) * d + r] : 0) - means[j * d + r];
          d_at[r][u] = 0;
        }
      for (long r = d - 1; r >= 0; r--) {
        LANE white[u] = diagonal[j * d + r] * at[r][u];
        for (long c = 0, place = r - 1; c < r; place += d - c - 2, c++) LANE white[u] += lower[place] * at[c][u];
        LANE white[u] *= -adjoint[u];
        for (long c = 0, place = r - 1; c < r; place += d - c - 2, c++) LANE {
            d_lower[place][u] += white[u] * at[c][u];
            d_at[c][u] += white[u] * lower[place];
          }
        LANE {
          d_diagonal[r][u] += white[u] * at[r][u];
          d_at[r][u] += white[u] * diagonal[j * d + r];
        }
      }
      for (long r = 0; r < d; r++) LANE d_mean[r][u] -= d_at[r][u];
    }
    LANE all += d_term[u];
    d_alphas[j] = all - n * weights[j] / sums;
    for (long r = 0; r < d; r++) {
      double mean = 0, own = diagonal[j * d + r];
      LANE mean += d_mean[r][u], own += d_diagonal[r][u];
      d_means[j * d + r] = mean;
      d_icf[j * width + r] = all + own * diagonal[j * d + r];
    }
    for (long r = d; r < width; r++) {
      double sum = icf[j * width + r];
      LANE sum += d_lower[r - d][u];
      d_icf[j * width + r] = sum;
    }
  }
}

static double minor(const double *a, long n, long row, unsigned used) {
  double total = 0, sign = 1;
  if (row == n) return 1;
  for (long c = 0; c < n; c++)
    if (!(used >> c & 1)) {
      total += sign * a[row * n + c] * minor(a, n, row + 1, used | 1u << c);
      sign = -sign;
    }
  return total;
}

static double minor_back(const double *a, double *d_a, long n, long row, unsigned used, double adjoint) {
  double total = 0, sign = 1;
  if (row == n) return 1;
  for (long c = 0; c < n; c++)
    if (!(used >> c & 1)) {
      const double factor = sign * a[row * n + c];
      const double below = minor_back(a, d_a, n, row + 1, used | 1u << c, adjoint * factor);
      d_a[row * n + c] += adjoint * sign * below;
      total += factor * below;
      sign = -sign;
    }
  return total;
}

/* in: a (n, n); size: n */
void determinant(PARAMETERS) {
  const long n = size[0];
  (void)index, (void)room;
  if (!derivative) {
    *value = minor(in[0], n, 0, 0);
    return;
  }
  memset(derivative, 0, n * n * sizeof(double));
  *value = minor_back(in[0], derivative, n, 0, 0, 1);
}

enum { BITS = 14 };
#define BIT for (int b = 0; b < BITS; b++)

/* What a layer of a step leaves for the reverse sweep, and its results. */
struct layer {
  double x[BITS], forget[BITS], admit[BITS], emit[BITS], change[BITS], cell[BITS], bent[BITS], hidden[BITS];
};

static inline double sigmoid(double v) { return 1 / (1 + exp(-v)); }

/* in: weights (layers, 2, 4, BITS), extra (3, BITS), state (layers, 2, BITS), text (length, BITS); size: layers,
 * length; room: the layers of `length` steps, and a prediction and a sum each. */
void lstm(PARAMETERS) {
  const double *weights = in[0], *extra = in[1], *state = in[2], *text = in[3];
  const long layers = size[0], length = size[1];
  struct layer *all = (struct layer *)room; /* (length, layers); step 0 holds the initial state */
  double *predictions = (double *)(all + length * layers), *sums = predictions + length * BITS, total = 0;
  (void)index;
  for (long l = 0; l < layers; l++) BIT all[l].hidden[b] = state[2 * l * BITS + b], all[l].cell[b] = state[(2 * l + 1) * BITS + b];
  for (long t = 0; t < length - 1; t++) {
    double x[BITS], sum = 2, *p = predictions + t * BITS;
    BIT x[b] = text[t * BITS + b] * extra[b];
    for (long l = 0; l < layers; l++) {
      const double *restrict w = weights + 8 * l * BITS, *restrict w0 = w + 4 * BITS;
      const struct layer *restrict old = all + t * layers + l;
      struct layer *restrict new = all + (t + 1) * layers + l;
      BIT {
        const double h = old->hidden[b];
        new->x[b] = x[b];
        new->forget[b] = sigmoid(w[b] * x[b] + w0[b]);
        new->admit[b] = sigmoid(w[BITS + b] * h + w0[BITS + b]);
        new->emit[b] = sigmoid(w[2 * BITS + b] * x[b] + w0[2 * BITS + b]);
        new->change[b] = tanh(w[3 * BITS + b] * h + w0[3 * BITS + b]);
        new->cell[b] = old->cell[b] * new->forget[b] + new->admit[b] * new->change[b];
        new->bent[b] = tanh(new->cell[b]);
        x[b] = new->hidden[b] = new->emit[b] * new->bent[b];
      }
    }
    BIT p[b] = extra[BITS + b] * x[b] + extra[2 * BITS + b];
    BIT sum += exp(p[b]);
    sums[t] = sum;
    const double logarithm = log(sum);
    BIT total -= text[(t + 1) * BITS + b] * (p[b] - logarithm);
  }
  const double scale = 1.0 / ((length - 1) * BITS);
  *value = total * scale;
  if (!derivative) return;
  double *d_weights = derivative, *d_extra = derivative + 8 * layers * BITS;
  double d_hidden[64][BITS], d_cell[64][BITS];
  memset(derivative, 0, (8 * layers + 3) * BITS * sizeof(double));
  memset(d_hidden, 0, sizeof d_hidden), memset(d_cell, 0, sizeof d_cell);
  for (long t = length - 2; t >= 0; t--) {
    double d_x[BITS], ones = 0, *p = predictions + t * BITS;
    const struct layer *top = all + (t + 1) * layers + layers - 1;
    BIT ones += text[(t + 1) * BITS + b];
    BIT {
      const double d_p = scale * (ones * exp(p[b]) / sums[t] - text[(t + 1) * BITS + b]);
      d_extra[BITS + b] += d_p * top->hidden[b];
      d_extra[2 * BITS + b] += d_p;
      d_x[b] = d_p * extra[BITS + b];
    }
    for (long l = layers - 1; l >= 0; l--) {
      const double *restrict w = weights + 8 * l * BITS;
      double *restrict d_w = d_weights + 8 * l * BITS, *restrict d_w0 = d_w + 4 * BITS;
      const struct layer *restrict old = all + t * layers + l, *restrict new = all + (t + 1) * layers + l;
      BIT {
        const double d_h = d_hidden[l][b] + d_x[b], h = old->hidden[b];
        const double d_c = d_cell[l][b] + d_h * new->emit[b] * (1 - new->bent[b] * new->bent[b]);
        const double g_forget = d_c * old->cell[b] * new->forget[b] * (1 - new->forget[b]);
        const double g_admit = d_c * new->change[b] * new->admit[b] * (1 - new->admit[b]);
        const double g_emit = d_h * new->bent[b] * new->emit[b] * (1 - new->emit[b]);
        const double g_change = d_c * new->admit[b] * (1 - new->change[b] * new->change[b]);
        d_w[b] += g_forget * new->x[b], d_w0[b] += g_forget;
        d_w[BITS + b] += g_admit * h, d_w0[BITS + b] += g_admit;
        d_w[2 * BITS + b] += g_emit * new->x[b], d_w0[2 * BITS + b] += g_emit;
        d_w[3 * BITS + b] += g_change * h, d_w0[3 * BITS + b] += g_change;
        d_x[b] = g_forget * w[b] + g_emit * w[2 * BITS + b];
        d_hidden[l][b] = g_admit * w[BITS + b] + g_change * w[3 * BITS + b];
        d_cell[l][b] = d_c * new->forget[b];
      }
    }
    BIT d_extra[b] += d_x[b] * text[t * BITS + b];
  }
}

/* One row of a block: the adjoints of camera, point and weight for the adjoints (gx, gy) of what is seen. */
#define ROW(R, gx, gy, seen)                                                                                            \
  {                                                                                                                    \
    double *restrict row = block + 15 * R;                                                                             \
    const double ax = gx * focal, ay = gy * focal, g_scale = ax * fx + ay * fy;                                        \
    const double g_square = g_scale * (k1 + 2 * k2 * square);                                                          \
    const double bx = ax * scale + 2 * g_square * fx, by = ay * scale + 2 * g_square * fy;                             \
    const double vx = bx * depth, vy = by * depth, vz = -(bx * fx + by * fy) * depth;                                  \
    const double along = vx * wx + vy * wy + vz * wz, g_dot = along * rest;                                            \
    const double g_cosine = vx * px + vy * py + vz * pz - along * dot, g_sine = vx * cx + vy * cy + vz * cz;           \
    const double ux = vx * sine, uy = vy * sine, uz = vz * sine;                                                       \
    const double qx = vx * cosine + wz * uy - wy * uz + g_dot * wx, qy = vy * cosine + wx * uz - wz * ux + g_dot * wy; \
    const double qz = vz * cosine + wy * ux - wx * uy + g_dot * wz;                                                    \
    const double hx = vx * dot * rest + g_dot * px + py * uz - pz * uy;                                                \
    const double hy = vy * dot * rest + g_dot * py + pz * ux - px * uz;                                                \
    const double hz = vz * dot * rest + g_dot * pz + px * uy - py * ux;                                                \
    const double g_angle = g_sine * cosine - g_cosine * sine - (hx * wx + hy * wy + hz * wz) * inverse;                \
    row[0] = hx * inverse + g_angle * wx, row[1] = hy * inverse + g_angle * wy, row[2] = hz * inverse + g_angle * wz;  \
    row[3] = -qx, row[4] = -qy, row[5] = -qz;                                                                          \
    row[6] = (gx * fx + gy * fy) * scale, row[7] = gx, row[8] = gy;                                                    \
    row[9] = g_scale * square, row[10] = g_scale * square * square;                                                    \
    row[11] = qx, row[12] = qy, row[13] = qz, row[14] = seen;                                                          \
  }

/* in: cameras (c, 11), points (p, 3), weights (o), features (o, 2); index: which camera, which point (o); size: o.
 * The value: errors (o, 2); the derivative: blocks (o, 2, 15). */
void bundle(PARAMETERS) {
  const double *restrict cameras = in[0], *restrict points = in[1], *restrict weights = in[2], *restrict features = in[3];
  const int *restrict camera_of = index[0], *restrict point_of = index[1];
  double *restrict errors = value, *restrict blocks = derivative;
  (void)room;
#pragma omp simd
  for (long o = 0; o < size[0]; o++) {
    const double *restrict c = cameras + 11 * camera_of[o], *restrict at = points + 3 * point_of[o];
    const double px = at[0] - c[3], py = at[1] - c[4], pz = at[2] - c[5];
    const double angle = sqrt(c[0] * c[0] + c[1] * c[1] + c[2] * c[2]), inverse = 1 / angle;
    const double wx = c[0] * inverse, wy = c[1] * inverse, wz = c[2] * inverse;
    const double sine = sin(angle), cosine = cos(angle), rest = 1 - cosine;
    const double cx = wy * pz - wz * py, cy = wz * px - wx * pz, cz = wx * py - wy * px;
    const double dot = wx * px + wy * py + wz * pz;
    const double depth = 1 / (pz * cosine + cz * sine + wz * dot * rest);
    const double fx = (px * cosine + cx * sine + wx * dot * rest) * depth;
    const double fy = (py * cosine + cy * sine + wy * dot * rest) * depth;
    const double square = fx * fx + fy * fy, k1 = c[9], k2 = c[10], focal = c[6];
    const double scale = 1 + k1 * square + k2 * square * square;
    const double ex = fx * scale * focal + c[7] - features[2 * o], ey = fy * scale * focal + c[8] - features[2 * o + 1];
    const double w = weights[o];
    errors[2 * o] = w * ex, errors[2 * o + 1] = w * ey;
    if (blocks) {
      double *restrict block = blocks + 30 * o;
      ROW(0, w, 0.0, ex)
      ROW(1, 0.0, w, ey)
    }
  }
}

enum { FINGERS = 5, JOINTS = 4, BONES = 2 + FINGERS * JOINTS, POSE = 26 };

static void times(double *restrict c, const double *restrict a, const double *restrict b) {
  for (int i = 0; i < 3; i++)
    for (int j = 0; j < 4; j++)
      c[4 * i + j] = a[4 * i] * b[j] + a[4 * i + 1] * b[4 + j] + a[4 * i + 2] * b[8 + j] + (j == 3 ? a[4 * i + 3] : 0);
}

/* The rotation about x, then y, then z (3, 4), or its derivative by the angle about one axis. */
static void turn(double *restrict m, const double *c, const double *s) {
  const double cx = c[0], cy = c[1], cz = c[2], sx = s[0], sy = s[1], sz = s[2];
  const double made[12] = {cy * cz, sx * sy * cz - cx * sz, cx * sy * cz + sx * sz, 0,
                           cy * sz, sx * sy * sz + cx * cz, cx * sy * sz - sx * cz, 0,
                           -sy,     sx * cy,                cx * cy,                0};
  memcpy(m, made, sizeof made);
}

static void turn_by_x(double *restrict m, const double *c, const double *s) {
  const double cx = c[0], cy = c[1], cz = c[2], sx = s[0], sy = s[1], sz = s[2];
  const double made[12] = {0, cx * sy * cz + sx * sz, cx * sz - sx * sy * cz, 0,
                           0, cx * sy * sz - sx * cz, -sx * sy * sz - cx * cz, 0,
                           0, cx * cy,                -sx * cy,               0};
  memcpy(m, made, sizeof made);
}

static void turn_by_y(double *restrict m, const double *c, const double *s) {
  const double cx = c[0], cy = c[1], cz = c[2], sx = s[0], sy = s[1], sz = s[2];
  const double made[12] = {-sy * cz, sx * cy * cz, cx * cy * cz, 0, -sy * sz, sx * cy * sz,
                           cx * cy * sz, 0, -cy, -sx * sy, -cx * sy, 0};
  memcpy(m, made, sizeof made);
}

/* in: pose, relative (BONES, 4, 4), inverse (BONES, 4, 4), rest (v, 4), weights (v, BONES), points (m, 3); index: which
 * vertex (m); size: v, m. The derivative: (m, 3, POSE); room: v 3 + v 3 POSE. A finger moves with its own angles alone,
 * so its bones have four tangents. */
void hand(PARAMETERS) {
  const double *restrict pose = in[0], *restrict relative = in[1], *restrict inverse = in[2], *restrict rest = in[3];
  const double *restrict weights = in[4], *restrict points = in[5];
  const int *restrict which = index[0];
  const long vertices = size[0], measured = size[1];
  double absolute[BONES][12], slope[BONES][4][12], transforms[BONES][12], d_transforms[BONES][4][12], own[12], turned[12];
  for (int bone = 0; bone < BONES; bone++) {
    const int joint = (bone - 2) % JOINTS, finger = (bone - 2) / JOINTS, first = 6 + 4 * finger;
    const int parent = bone < 2 ? bone - 1 : joint ? bone - 1 : 1;
    double angles[3] = {0}, c[3], s[3];
    if (bone >= 2 && joint == 0) angles[0] = pose[first], angles[1] = pose[first + 1];
    if (bone >= 2 && (joint == 1 || joint == 2)) angles[0] = pose[first + 1 + joint];
    for (int a = 0; a < 3; a++) c[a] = cos(angles[a]), s[a] = sin(angles[a]);
    turn(turned, c, s);
    times(own, relative + 16 * bone, turned);
    if (parent < 0) memcpy(absolute[bone], own, sizeof own);
    else times(absolute[bone], absolute[parent], own);
    times(transforms[bone], absolute[bone], inverse + 16 * bone);
    if (!derivative) continue;
    memset(slope[bone], 0, sizeof slope[bone]);
    if (bone < 2) continue;
    for (int q = 0; q < 4; q++) {
      if (joint) times(slope[bone][q], slope[bone - 1][q], own);
      const int by_x = joint == 0 ? q == 0 : joint < 3 && q == joint + 1, by_y = joint == 0 && q == 1;
      if (by_x || by_y) {
        double d_turned[12], d_own[12], moved[12];
        (by_x ? turn_by_x : turn_by_y)(d_turned, c, s);
        for (int i = 0; i < 3; i++) /* a tangent's last row is 0, so what moves by the bone's own offset goes */
          for (int j = 0; j < 4; j++) {
            double sum = 0;
            for (int l = 0; l < 3; l++) sum += relative[16 * bone + 4 * i + l] * d_turned[4 * l + j];
            d_own[4 * i + j] = sum;
          }
        for (int i = 0; i < 3; i++)
          for (int j = 0; j < 4; j++) {
            double sum = 0;
            for (int l = 0; l < 3; l++) sum += absolute[parent][4 * i + l] * d_own[4 * l + j];
            moved[4 * i + j] = sum;
          }
        for (int e = 0; e < 12; e++) slope[bone][q][e] += moved[e];
      }
      times(d_transforms[bone][q], slope[bone][q], inverse + 16 * bone);
    }
  }
  const double size_ = sqrt(pose[0] * pose[0] + pose[1] * pose[1] + pose[2] * pose[2]), by = 1 / size_;
  const double w[3] = {pose[0] * by, pose[1] * by, pose[2] * by}, sine = sin(size_), cosine = cos(size_), rest_ = 1 - cosine;
  const double matrix[9] = {cosine + w[0] * w[0] * rest_,        w[0] * w[1] * rest_ - w[2] * sine, w[0] * w[2] * rest_ + w[1] * sine,
                            w[0] * w[1] * rest_ + w[2] * sine, cosine + w[1] * w[1] * rest_,        w[1] * w[2] * rest_ - w[0] * sine,
                            w[0] * w[2] * rest_ - w[1] * sine, w[1] * w[2] * rest_ + w[0] * sine, cosine + w[2] * w[2] * rest_};
  double d_matrix[3][9];
  for (int q = 0; q < 3; q++) { /* dw/dq = (e_q - w w_q) / size, d size/dq = w_q */
    double e[3] = {0};
    for (int i = 0; i < 3; i++) e[i] = ((i == q) - w[i] * w[q]) * by;
    for (int i = 0; i < 3; i++)
      for (int j = 0; j < 3; j++)
        d_matrix[q][3 * i + j] = (i == j ? -sine * w[q] : 0) + (e[i] * w[j] + w[i] * e[j]) * rest_ + w[i] * w[j] * sine * w[q];
    const double skew[3] = {e[0] * sine + w[0] * cosine * w[q], e[1] * sine + w[1] * cosine * w[q], e[2] * sine + w[2] * cosine * w[q]};
    d_matrix[q][1] -= skew[2], d_matrix[q][3] += skew[2], d_matrix[q][2] += skew[1], d_matrix[q][6] -= skew[1];
    d_matrix[q][5] -= skew[0], d_matrix[q][7] += skew[0];
  }
  double *placed = room, *d_placed = room + 3 * vertices;
  for (long v = 0; v < vertices; v++) {
    double at[3] = {0}, d_at[FINGERS][4][3];
    if (derivative) memset(d_at, 0, sizeof d_at);
    for (int bone = 0; bone < BONES; bone++) {
      const double weight = weights[v * BONES + bone];
      if (weight == 0) continue;
      const double x = weight * rest[4 * v], y = weight * rest[4 * v + 1], z = weight * rest[4 * v + 2], one = weight * rest[4 * v + 3];
      for (int i = 0; i < 3; i++) at[i] += transforms[bone][4 * i] * x + transforms[bone][4 * i + 1] * y + transforms[bone][4 * i + 2] * z + transforms[bone][4 * i + 3] * one;
      if (!derivative || bone < 2) continue;
      for (int q = 0; q < 4; q++)
        for (int i = 0; i < 3; i++) {
          const double *restrict m = d_transforms[bone][q] + 4 * i;
          d_at[(bone - 2) / JOINTS][q][i] += m[0] * x + m[1] * y + m[2] * z + m[3] * one;
        }
    }
    for (int i = 0; i < 3; i++) {
      const double *restrict m = matrix + 3 * i;
      placed[3 * v + i] = m[0] * at[0] + m[1] * at[1] + m[2] * at[2] + pose[3 + i];
      if (!derivative) continue;
      double *restrict row = d_placed + (3 * v + i) * POSE;
      for (int q = 0; q < 3; q++) {
        row[q] = d_matrix[q][3 * i] * at[0] + d_matrix[q][3 * i + 1] * at[1] + d_matrix[q][3 * i + 2] * at[2];
        row[3 + q] = i == q;
      }
      for (int f = 0; f < FINGERS; f++)
        for (int q = 0; q < 4; q++) row[6 + 4 * f + q] = m[0] * d_at[f][q][0] + m[1] * d_at[f][q][1] + m[2] * d_at[f][q][2];
    }
  }
  for (long k = 0; k < measured; k++)
    for (int i = 0; i < 3; i++) {
      value[3 * k + i] = points[3 * k + i] - placed[3 * which[k] + i];
      if (!derivative) continue;
      const double *restrict row = d_placed + (3 * which[k] + i) * POSE;
      for (int q = 0; q < POSE; q++) derivative[(3 * k + i) * POSE + q] = -row[q];
    }
}
