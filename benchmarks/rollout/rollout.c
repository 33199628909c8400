/* Pendulums, and the gradient of the sum of the squares of their last angles by their first ones. */

#include <math.h>

void rollout(int n, int steps, double dt, const double *first, double *room, double *gradient)
{
    double *x = room, *v = room + (steps + 1) * n, *by_v = v + n;
    for (int i = 0; i < n; i++) {
        x[i] = first[i];
        v[i] = by_v[i] = 0;
    }
    for (int t = 0; t < steps; t++)
        for (int i = 0; i < n; i++) {
            v[i] -= dt * sin(x[t * n + i]);
            x[(t + 1) * n + i] = x[t * n + i] + dt * v[i];
        }
    for (int i = 0; i < n; i++)
        gradient[i] = 2 * x[steps * n + i];
    for (int t = steps - 1; t >= 0; t--)
        for (int i = 0; i < n; i++) {
            by_v[i] += dt * gradient[i];
            gradient[i] -= dt * cos(x[t * n + i]) * by_v[i];
        }
}
