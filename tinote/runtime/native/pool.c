// The pool's life: threads of the system that live inside the runtime, with no Python in them.
//
//   tn_pool_new(main_thread, cores, spin) -> pool
//   tn_pool_reset(pool, main_thread)                after a fork, in the child
//   tn_pool_quit(pool) -> workers still alive       at exit
//
// A worker waits for the claim word of its own line to become 1: spinning for a while, then parked on a condition.
// Whoever turns the word back to 0 runs the piece (see `parallel.c`).

#include "runtime.h"

#include <string.h>

struct pool *tn_pool_new(uintptr_t main_thread, int32_t cores, int64_t spin) {
    // Never freed: workers and blocks hold the address as long as the process lives.
    struct pool *pool = allocate(sizeof(struct pool));
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
    mutex_init(&pool->mutex);
    condition_init(&pool->work);
    condition_init(&pool->done);
    for (int32_t index = 0; index < MAX_THREADS; index++) atomic_store(&pool->lines[index].claim, 0);
}

int32_t tn_pool_quit(struct pool *pool) {
    atomic_store(&pool->quit, 1);
    mutex_lock(&pool->mutex);
    condition_broadcast(&pool->work);
    mutex_unlock(&pool->mutex);
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
    mutex_lock(&pool->mutex);
    atomic_fetch_add(&pool->parked, 1);
    bool quit;
    while (!(quit = atomic_load(&pool->quit)) && !is_offered(atomic_load(&line->claim)))
        condition_wait(&pool->work, &pool->mutex);
    atomic_fetch_sub(&pool->parked, 1);
    mutex_unlock(&pool->mutex);
    return !quit;
}

// A piece that was not the caller's has ended. From here on the job may be gone; the pool never is.
static void finish_piece(struct pool *pool) {
    if (atomic_fetch_sub(&pool->remaining, 1) != 1 || !atomic_load(&pool->waiting)) return;
    mutex_lock(&pool->mutex);
    condition_signal(&pool->done);
    mutex_unlock(&pool->mutex);
}

static void work(void *argument) {
    struct line *line = argument;
    struct pool *pool = line->pool;
    while (spin_until(pool, &line->claim, is_offered) || park(pool, line)) {
        if (claim(line)) {
            run_piece(pool->job, line->index);
            finish_piece(pool);
        }
    }
    atomic_fetch_sub(&pool->alive, 1);
}

// Starts workers until there are `wanted`, or as many as the system grants. They take no signals: those are for
// Python's main thread, which they wake from whatever it waits for.
NOT_INLINED static void grow(struct pool *pool, int32_t wanted) {
    for (int32_t index = atomic_load(&pool->workers) + 1; index <= wanted; index++) {
        struct line *line = &pool->lines[index];
        line->index = index;
        line->pool = pool;
        atomic_fetch_add(&pool->alive, 1);
        if (!start_thread(work, line)) {
            atomic_fetch_sub(&pool->alive, 1);
            break;
        }
        atomic_store(&pool->workers, index);
    }
}
