// The pool's life: POSIX threads that live inside the runtime, with no Python in them.
//
//   tn_pool_new(main_thread, cores, spin) -> pool
//   tn_pool_reset(pool, main_thread)                after a fork, in the child
//   tn_pool_quit(pool) -> workers still alive       at exit
//
// A worker waits for the claim word of its own line to become 1: spinning for a while, then parked on a condition.
// Whoever turns the word back to 0 runs the piece (see `parallel.c`).

#include "runtime.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define STACK_BYTES ((size_t)8 << 20)

// Signals that a fault of the thread itself raises: blocking them would only turn a report into a silent end.
static const int fault_signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP};

// A condition on which `timed_wait` waits.
static void timed_condition_init(pthread_cond_t *condition) {
#ifdef __APPLE__
    pthread_cond_init(condition, NULL);
#else
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &attributes);
    pthread_condattr_destroy(&attributes);
#endif
}

static void timed_wait(pthread_cond_t *condition, pthread_mutex_t *mutex, int64_t nanoseconds) {
#ifdef __APPLE__
    // There is no monotonic clock for conditions, but a wait of a given length.
    struct timespec length = {.tv_sec = nanoseconds / 1000000000, .tv_nsec = nanoseconds % 1000000000};
    pthread_cond_timedwait_relative_np(condition, mutex, &length);
#else
    int64_t until = now() + nanoseconds;
    struct timespec time = {.tv_sec = until / 1000000000, .tv_nsec = until % 1000000000};
    pthread_cond_timedwait(condition, mutex, &time);
#endif
}

struct pool *tn_pool_new(uintptr_t main_thread, int32_t cores, int64_t spin) {
    // Never freed: workers and blocks hold the address as long as the process lives.
    struct pool *pool = aligned_alloc(alignof(struct pool), sizeof(struct pool));
    if (pool == NULL) return NULL;
    memset(pool, 0, sizeof(struct pool));
    pool->cores = cores;
    pool->spin = spin;
    tn_pool_reset(pool, main_thread);
    return pool;
}

// Makes the pool empty and free, as at birth: in a forked child no worker exists, and threads that are gone held locks.
void tn_pool_reset(struct pool *pool, uintptr_t main_thread) {
    pool->main_thread = main_thread;
    pool->epoch++;
    atomic_store(&pool->owner, 0);
    atomic_store(&pool->quit, 0);
    atomic_store(&pool->workers, 0);
    atomic_store(&pool->alive, 0);
    atomic_store(&pool->parked, 0);
    atomic_store(&pool->remaining, 0);
    atomic_store(&pool->waiting, 0);
    pthread_mutex_init(&pool->mutex, NULL);
    pthread_cond_init(&pool->work, NULL);
    timed_condition_init(&pool->done);
    for (int32_t index = 0; index < MAX_THREADS; index++) atomic_store(&pool->lines[index].claim, 0);
}

int32_t tn_pool_quit(struct pool *pool) {
    atomic_store(&pool->quit, 1);
    pthread_mutex_lock(&pool->mutex);
    pthread_cond_broadcast(&pool->work);
    pthread_mutex_unlock(&pool->mutex);
    return atomic_load(&pool->alive);
}

// Spins until the word is ready, for as long as spinning pays; whether it is.
static inline bool spin_until(struct pool *pool, const _Atomic int32_t *word, bool ready(int32_t)) {
    // With more threads than cores spinning only takes time away from those who work.
    int32_t workers = atomic_load_explicit(&pool->workers, memory_order_relaxed);
    int64_t deadline = now() + (workers < pool->cores ? pool->spin : 0);
    do {
        for (int32_t i = 0; i < 32; i++) {
            if (ready(atomic_load_explicit(word, memory_order_acquire))) return true;
            pause_core();
        }
    } while (now() < deadline);
    return false;
}

static inline bool is_offered(int32_t claim) {
    return claim != 0;
}

// Whoever succeeds runs the line's piece.
static inline bool claim(struct line *line) {
    return replace(&line->claim, 1, 0);
}

// Waits on `work` until the line's piece is offered; false when the workers are to return.
static bool park(struct pool *pool, struct line *line) {
    pthread_mutex_lock(&pool->mutex);
    atomic_fetch_add(&pool->parked, 1);
    bool quit;
    while (!(quit = atomic_load(&pool->quit)) && !is_offered(atomic_load(&line->claim)))
        pthread_cond_wait(&pool->work, &pool->mutex);
    atomic_fetch_sub(&pool->parked, 1);
    pthread_mutex_unlock(&pool->mutex);
    return !quit;
}

// A piece that was not the caller's has ended. From here on the job may be gone; the pool never is.
static void finish_piece(struct pool *pool) {
    if (atomic_fetch_sub(&pool->remaining, 1) != 1 || !atomic_load(&pool->waiting)) return;
    pthread_mutex_lock(&pool->mutex);
    pthread_cond_signal(&pool->done);
    pthread_mutex_unlock(&pool->mutex);
}

static void *work(void *argument) {
    struct line *line = argument;
    struct pool *pool = line->pool;
    while (spin_until(pool, &line->claim, is_offered) || park(pool, line)) {
        if (claim(line)) {
            run_piece(pool->job, line->index);
            finish_piece(pool);
        }
    }
    atomic_fetch_sub(&pool->alive, 1);
    return NULL;
}

// Starts workers until there are `wanted`, or as many as the system grants. They take no signals: those are for
// Python's main thread, which they wake from whatever it waits for.
NOT_INLINED static void grow(struct pool *pool, int32_t wanted) {
    sigset_t all, old;
    sigfillset(&all);
    for (size_t i = 0; i < sizeof fault_signals / sizeof *fault_signals; i++) sigdelset(&all, fault_signals[i]);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    for (int32_t index = atomic_load(&pool->workers) + 1; index <= wanted; index++) {
        struct line *line = &pool->lines[index];
        line->index = index;
        line->pool = pool;
        atomic_fetch_add(&pool->alive, 1);
        pthread_t thread;
        if (pthread_create(&thread, &attributes, work, line) != 0) {
            atomic_fetch_sub(&pool->alive, 1);
            break;
        }
        atomic_store(&pool->workers, index);
    }
    pthread_attr_destroy(&attributes);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
}
