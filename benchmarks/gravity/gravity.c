/* Gravity substeps. Arrays are [2][n]: all first coordinates, then all second ones. */

#include <math.h>
#include <omp.h>
#include <stddef.h>
#include <string.h>

/* Below this many particles, waking a second thread costs more than it gains. */
#define WORTH_THREADS 128

static int threads_for(int n) { return n < WORTH_THREADS ? 1 : omp_get_max_threads(); }

/* Floats that `scratch` must hold: a gradient for each thread. */
size_t gravity_scratch_floats(int n) { return (size_t)2 * n * omp_get_max_threads(); }

static void advance(int from, int to, int n, float *restrict x, float *restrict v, const float *restrict gradient, float time_step)
{
    for (int i = from; i < to; i++) {
        v[i] -= time_step * gradient[i];
        v[n + i] -= time_step * gradient[n + i];
        x[i] += time_step * v[i];
        x[n + i] += time_step * v[n + i];
    }
}

static float energy_of_row(int i, int n, const float *restrict x, float softening)
{
    float row = 0;
    for (int j = 0; j < n; j++) {
        float dx = x[i] - x[j], dy = x[n + i] - x[n + j];
        row -= 1 / sqrtf(dx * dx + dy * dy + softening);
    }
    return row;
}

/* The adjoint of one row: each pair adds to i's gradient (a register) and to j's (this thread's own copy). */
static void adjoint_of_row(int i, int n, const float *restrict x, float *restrict gradient, float softening)
{
    float *restrict gradient_x = gradient, *restrict gradient_y = gradient + n;
    float at_i_x = 0, at_i_y = 0;
    for (int j = 0; j < n; j++) {
        float dx = x[i] - x[j], dy = x[n + i] - x[n + j];
        float squared = dx * dx + dy * dy + softening;
        float cubed = 1 / sqrtf(squared) / squared;
        at_i_x += dx * cubed;
        at_i_y += dy * cubed;
        gradient_x[j] -= dx * cubed;
        gradient_y[j] -= dy * cubed;
    }
    gradient_x[i] += at_i_x;
    gradient_y[i] += at_i_y;
}

/* What differentiation of the double loop makes of it; returns the last energy. */
float gravity_mechanical(int count, int n, float *x, float *v, float *scratch, float softening, float time_step)
{
    float energy = 0;
    int threads = threads_for(n);
    for (int step = 0; step < count; step++) {
        energy = 0;
        if (threads == 1) {
            for (int i = 0; i < n; i++)
                energy += energy_of_row(i, n, x, softening);
            memset(scratch, 0, sizeof(float) * 2 * n);
            for (int i = 0; i < n; i++)
                adjoint_of_row(i, n, x, scratch, softening);
            advance(0, n, n, x, v, scratch, time_step);
            continue;
        }
#pragma omp parallel num_threads(threads)
        {
            float *mine = scratch + (size_t)2 * n * omp_get_thread_num();
            memset(mine, 0, sizeof(float) * 2 * n);
#pragma omp for schedule(static) reduction(+ : energy) nowait
            for (int i = 0; i < n; i++)
                energy += energy_of_row(i, n, x, softening);
#pragma omp for schedule(static)
            for (int i = 0; i < n; i++)
                adjoint_of_row(i, n, x, mine, softening);
            /* A team may be smaller than asked for. */
            int team = omp_get_num_threads();
#pragma omp for schedule(static)
            for (int i = 0; i < 2 * n; i++)
                for (int other = 1; other < team; other++)
                    scratch[i] += scratch[(size_t)2 * n * other + i];
#pragma omp single
            advance(0, n, n, x, v, scratch, time_step);
        }
    }
    return energy;
}

static void forces_of_rows(int from, int to, int n, const float *restrict x, float *restrict gradient, float softening)
{
    for (int i = from; i < to; i++) {
        float sum_x = 0, sum_y = 0;
        for (int j = 0; j < n; j++) {
            float dx = x[i] - x[j], dy = x[n + i] - x[n + j];
            float squared = dx * dx + dy * dy + softening;
            float cubed = 1 / sqrtf(squared) / squared;
            sum_x += dx * cubed;
            sum_y += dy * cubed;
        }
        gradient[i] = 2 * sum_x;
        gradient[n + i] = 2 * sum_y;
    }
}

/* What a person writes: no energy, no scatter. */
float gravity_by_hand(int count, int n, float *x, float *v, float *scratch, float softening, float time_step)
{
    int threads = threads_for(n);
    for (int step = 0; step < count; step++) {
        if (threads == 1) {
            forces_of_rows(0, n, n, x, scratch, softening);
            advance(0, n, n, x, v, scratch, time_step);
            continue;
        }
#pragma omp parallel num_threads(threads)
        {
            int team = omp_get_num_threads(), me = omp_get_thread_num();
            int from = (int)((long long)n * me / team), to = (int)((long long)n * (me + 1) / team);
            forces_of_rows(from, to, n, x, scratch, softening);
#pragma omp barrier
            advance(from, to, n, x, v, scratch, time_step);
        }
    }
    return 0;
}
