/* A Lennard-Jones liquid with a list of neighbours, and a fluid of particles with cells: as one writes them first.
   The list has a skin, and cells as wide as it reaches; it is built when a particle has moved by half of the skin. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct grid {
    int n, m, *first, *cell, *order;
    float low, length, *sorted;
};

static float wrap(float p, float length) { return p - length * floorf(p * (1 / length)); }
static float nearest(float d, float length) { return d - length * rintf(d * (1 / length)); }

static int axis_cell(const struct grid *g, float p) {
    int c = (int)floorf((p - g->low) * (g->m / g->length));
    return c < 0 ? 0 : c >= g->m ? g->m - 1 : c;
}

static void sort(struct grid *g, const float *x, int periodic) {
    int total = g->m * g->m * g->m;
    memset(g->first, 0, sizeof(int) * (total + 1));
    for (int i = 0; i < g->n; i++) {
        int c[3];
        for (int a = 0; a < 3; a++) c[a] = axis_cell(g, periodic ? wrap(x[3 * i + a], g->length) : x[3 * i + a]);
        g->cell[i] = (c[2] * g->m + c[1]) * g->m + c[0];
        g->first[g->cell[i]]++;
    }
    for (int c = 0, sum = 0; c < total; c++) g->first[c] = sum += g->first[c];
    g->first[total] = g->n;
    for (int i = g->n - 1; i >= 0; i--) g->order[--g->first[g->cell[i]]] = i;
    for (int k = 0; k < g->n; k++)
        for (int a = 0; a < 3; a++) {
            float p = x[3 * g->order[k] + a];
            g->sorted[3 * k + a] = periodic ? wrap(p, g->length) : p;
        }
}

static void reorder(struct grid *g, float *values, float *copy) {
    for (int k = 0; k < g->n; k++) memcpy(copy + 3 * k, values + 3 * g->order[k], 3 * sizeof(float));
    memcpy(values, copy, 3 * sizeof(float) * g->n);
}

void kit_begin(struct grid *g, float *x, float *v, float *copy, int periodic) {
    sort(g, x, periodic);
    reorder(g, x, copy);
    reorder(g, v, copy);
}

static int has_moved(int n, const float *x, const float *before, float length, float skin) {
    float furthest = 0;
    for (int i = 0; i < n; i++) {
        float square = 0;
        for (int a = 0; a < 3; a++) {
            float d = nearest(x[3 * i + a] - before[3 * i + a], length);
            square += d * d;
        }
        furthest = furthest > square ? furthest : square;
    }
    return !(furthest <= skin * skin / 4);
}

static void build(struct grid *g, const float *x, float reach, int most, int *count, int *list) {
    int m = g->m;
    for (int i = 0; i < g->n; i++) {
        float p[3];
        int c[3], found = 0;
        for (int a = 0; a < 3; a++) c[a] = axis_cell(g, p[a] = wrap(x[3 * i + a], g->length));
        for (int dz = -1; dz <= 1; dz++)
            for (int dy = -1; dy <= 1; dy++)
                for (int dx = -1; dx <= 1; dx++) {
                    int k = ((c[2] + dz + m) % m * m + (c[1] + dy + m) % m) * m + (c[0] + dx + m) % m;
                    for (int s = g->first[k]; s < g->first[k + 1]; s++) {
                        float square = 0;
                        for (int a = 0; a < 3; a++) {
                            float d = nearest(g->sorted[3 * s + a] - p[a], g->length);
                            square += d * d;
                        }
                        if (square <= reach * reach && g->order[s] != i) {
                            if (found < most) list[i * (long)most + found] = g->order[s];
                            found++;
                        }
                    }
                }
        count[i] = found < most ? found : most;
    }
}

void kit_liquid(int steps, struct grid *g, float *x, float *v, float *before, int *built, int most, int *count,
                int *list, float cutoff, float skin, float dt) {
    int n = g->n;
    float length = g->length;
    for (int step = 0; step < steps; step++) {
        if (!*built || has_moved(n, x, before, length, skin)) {
            sort(g, x, 1);
            build(g, x, cutoff + skin, most, count, list);
            memcpy(before, x, 3 * sizeof(float) * n);
            *built = 1;
        }
        for (int i = 0; i < n; i++) {
            float a0 = 0, a1 = 0, a2 = 0;
            for (int k = 0; k < count[i]; k++) {
                int j = list[i * (long)most + k];
                float d0 = nearest(x[3 * j] - x[3 * i], length), d1 = nearest(x[3 * j + 1] - x[3 * i + 1], length),
                      d2 = nearest(x[3 * j + 2] - x[3 * i + 2], length), square = d0 * d0 + d1 * d1 + d2 * d2;
                if (square <= cutoff * cutoff) {
                    float s = 1 / square, cube = s * s * s, f = 24 * s * cube * (2 * cube - 1);
                    a0 -= f * d0, a1 -= f * d1, a2 -= f * d2;
                }
            }
            v[3 * i] += dt * a0, v[3 * i + 1] += dt * a1, v[3 * i + 2] += dt * a2;
        }
        for (int k = 0; k < 3 * n; k++) x[k] += dt * v[k];
    }
}

/* The particles of a row of three cells are beside each other. */
#define NEAR(...)                                                                                    \
    for (int dz = -1; dz <= 1; dz++)                                                                 \
        for (int dy = -1; dy <= 1; dy++) {                                                           \
            int cz = c[2] + dz, cy = c[1] + dy;                                                      \
            if (cz < 0 || cy < 0 || cz >= m || cy >= m) continue;                                    \
            int row = (cz * m + cy) * m, from = c[0] > 0 ? c[0] - 1 : 0, to = c[0] < m - 1 ? c[0] + 1 : m - 1; \
            for (int s = g->first[row + from]; s < g->first[row + to + 1]; s++) {                    \
                float d0 = g->sorted[3 * s] - x[3 * i], d1 = g->sorted[3 * s + 1] - x[3 * i + 1],    \
                      d2 = g->sorted[3 * s + 2] - x[3 * i + 2];                                      \
                float w = 1 - (d0 * d0 + d1 * d1 + d2 * d2) / (radius * radius);                     \
                if (w >= 0) __VA_ARGS__;                                                              \
            }                                                                                        \
        }

void kit_fluid(int steps, struct grid *g, float *x, float *v, float *density, float radius, float stiffness,
               float rest, float dt) {
    int n = g->n, m = g->m;
    for (int step = 0; step < steps; step++) {
        sort(g, x, 0);
        for (int i = 0; i < n; i++) {
            float total = 0;
            int c[3] = {axis_cell(g, x[3 * i]), axis_cell(g, x[3 * i + 1]), axis_cell(g, x[3 * i + 2])};
            NEAR(total += w * w * w)
            density[i] = total;
        }
        for (int i = 0; i < n; i++) {
            float a0 = 0, a1 = 0, a2 = 0;
            int c[3] = {axis_cell(g, x[3 * i]), axis_cell(g, x[3 * i + 1]), axis_cell(g, x[3 * i + 2])};
            NEAR({
                float f = stiffness * (density[i] + density[g->order[s]] - 2 * rest) * w * w;
                a0 -= f * d0, a1 -= f * d1, a2 -= f * d2;
            })
            v[3 * i] += dt * a0, v[3 * i + 1] += dt * a1, v[3 * i + 2] += dt * a2;
        }
        for (int k = 0; k < 3 * n; k++) x[k] += dt * v[k];
    }
}
