/* Kernels that do next to nothing. */

void launch_scalar(float value, float *s) { *s = value; }

/* Stores `count` times. */
void launch_scalars(int count, float value, volatile float *s)
{
    for (int launch = 0; launch < count; launch++)
        *s = value;
}

/* Forks and joins a team `count` times. */
void launch_loop(int count, int n, const float *x, float *y)
{
    for (int launch = 0; launch < count; launch++) {
#pragma omp parallel for schedule(static)
        for (int i = 0; i < n; i++)
            y[i] = 2 * x[i] + 1;
    }
}
