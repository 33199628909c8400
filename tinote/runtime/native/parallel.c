// The fork-join loops: contiguous pieces of an iteration range on the threads of the pool.
//
//   tn_parallel_for(block, task, low, high, grain) -> status
//       a static split: the same thread count gives the same pieces, always
//   tn_parallel_for_dynamic(block, task, low, high, grain) -> status
//       chunks of `grain` iterations from a shared counter
//   tn_clear(block) -> status
//       a kernel that sets memory to zero; slot 0: where it is; slot 1: how many bytes
//
// A loop becomes a job on the caller's stack and up to `num_threads` numbered pieces. Piece 0 is the caller's; each
// other one is offered to the worker of its number by a claim word. Whoever turns the word from 1 to 0 runs the piece:
// the worker if it is awake in time, else the caller, which after its own piece takes what nobody has begun. So a
// worker that is slow to wake, or could not be started at all, costs nothing but speed, and the pieces and their thread
// numbers never depend on timing. A job ends when the pieces that workers took have ended; only then do its words
// change, so a claimed piece reads them without a lock.
//
// The caller waits for the last workers as they wait for it, with a tick every 20 ms. A launch that finds the pool in
// use runs its pieces one after the other on its own thread.

#include "runtime.h"

#include <string.h>

static inline uint64_t least(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

static int32_t run_static_piece(struct job *job, uint64_t index) {
    int32_t stop = atomic_load_explicit(&job->block->stop, memory_order_relaxed);
    if (stop != 0) return stop;
    uint64_t from = job->low + index * job->quotient + least(index, job->remainder);
    uint64_t to = from + job->quotient + (index < job->remainder);
    return job->task(job->block, (int64_t)from, (int64_t)to, (int32_t)index);
}

static int32_t run_chunks(struct job *job, int32_t index) {
    for (;;) {
        int32_t stop = atomic_load_explicit(&job->block->stop, memory_order_relaxed);
        if (stop != 0) return stop;
        uint64_t start = atomic_fetch_add_explicit(&job->next, job->grain, memory_order_relaxed);
        if (start >= job->count) return STATUS_OK;
        uint64_t from = job->low + start, to = from + least(job->count - start, job->grain);
        int32_t status = job->task(job->block, (int64_t)from, (int64_t)to, index);
        if (status != 0) return status;
    }
}

// Runs piece `index` of a job, unless the launch is stopping, and records what it returned if that is the first fault.
NOT_INLINED static void run_piece(struct job *job, int32_t index) {
    int32_t status = job->grain == 0 ? run_static_piece(job, (uint64_t)index) : run_chunks(job, index);
    if (status != 0) {
        replace(&job->result, 0, status);
        request_stop(job->block, status);
    }
}

static inline bool is_over(int32_t remaining) {
    return remaining <= 0;
}

// Waits until no piece is left: spinning first, then parked, with a tick every 20 ms.
NOT_INLINED static void join(struct block *block, struct pool *pool, int32_t epoch) {
    if (spin_until(pool, &pool->remaining, is_over)) return;
    do {
        mutex_lock(&pool->mutex);
        atomic_store(&pool->waiting, 1);
        if (!is_over(atomic_load(&pool->remaining))) condition_wait_for(&pool->done, &pool->mutex, TICK_NS);
        atomic_store(&pool->waiting, 0);
        mutex_unlock(&pool->mutex);
        if (is_over(atomic_load_explicit(&pool->remaining, memory_order_acquire))) return;
        poll_clock(block);
    } while (pool->epoch == epoch);
}

// Hands the pieces but the first to the workers, runs that and whatever no worker has begun, and waits for the rest.
static int32_t run_on_workers(struct pool *pool, struct job *job, int32_t others) {
    if (atomic_load_explicit(&pool->workers, memory_order_relaxed) < others) grow(pool, others);
    int32_t epoch = pool->epoch;
    pool->job = job;
    atomic_store_explicit(&pool->remaining, others, memory_order_relaxed);
    for (int32_t index = 1; index <= others; index++)
        atomic_store_explicit(&pool->lines[index].claim, 1, memory_order_release);
    // Either a worker that goes to park sees its offer, or we see it parked: both modify the word, so one comes first.
    if (atomic_fetch_add(&pool->parked, 0) > 0) {
        mutex_lock(&pool->mutex);
        condition_broadcast(&pool->work);
        mutex_unlock(&pool->mutex);
    }
    run_piece(job, 0);
    for (int32_t index = others; index > 0; index--) {
        if (claim(&pool->lines[index])) {
            run_piece(job, index);
            atomic_fetch_sub(&pool->remaining, 1);
        }
    }
    if (!is_over(atomic_load_explicit(&pool->remaining, memory_order_acquire))) join(job->block, pool, epoch);
    // After a fork inside the launch the workers are gone, and the pool is no longer this loop's.
    if (pool->epoch != epoch) return STATUS_LOST;
    atomic_store_explicit(&pool->owner, 0, memory_order_release);
    return atomic_load_explicit(&job->result, memory_order_acquire);
}

static inline int32_t parallel_for(struct block *block, loop_task *task, int64_t low, int64_t high, int64_t asked_grain,
                                   bool dynamic) {
    if (low >= high) return STATUS_OK;
    // Unsigned: high - low may not fit a signed word.
    uint64_t count = (uint64_t)high - (uint64_t)low;
    uint64_t grain = asked_grain > 1 ? (uint64_t)asked_grain : 1;
    int32_t threads = block->num_threads;
    if (count <= grain || threads <= 1) return task(block, low, high, 0);
    uint64_t pieces = least((count - 1) / grain + 1, (uint64_t)threads);
    // A counter that threads add to must not wrap: longer loops are split statically.
    bool countable = count < (uint64_t)1 << 62 && grain < (uint64_t)1 << 52;
    struct job job = {
        .block = block,
        .task = task,
        .low = (uint64_t)low,
        .count = count,
        .quotient = count / pieces,
        .remainder = count % pieces,
        .grain = dynamic && countable ? grain : 0,
    };
    struct pool *pool = block->pool;
    if (!atomic_load_explicit(&pool->quit, memory_order_relaxed) && replace(&pool->owner, 0, 1))
        return run_on_workers(pool, &job, (int32_t)pieces - 1);
    for (int32_t index = 0; index < (int32_t)pieces; index++) run_piece(&job, index);
    return atomic_load_explicit(&job.result, memory_order_relaxed);
}

int32_t tn_parallel_for(struct block *block, loop_task *task, int64_t low, int64_t high, int64_t grain) {
    return parallel_for(block, task, low, high, grain, false);
}

int32_t tn_parallel_for_dynamic(struct block *block, loop_task *task, int64_t low, int64_t high, int64_t grain) {
    return parallel_for(block, task, low, high, grain, true);
}

// Bytes for which waking another thread does not pay.
#define CLEAR_GRAIN ((int64_t)256 << 10)

static int32_t clear_piece(struct block *block, int64_t low, int64_t high, int32_t tid) {
    (void)tid;
    memset((char *)block->slots[0] + low, 0, (size_t)(high - low));
    return STATUS_OK;
}

// One core writes slower than memory takes it; and what a thread has cleared lies in its own cache.
int32_t tn_clear(struct block *block) {
    return tn_parallel_for(block, clear_piece, 0, block->slots[1], CLEAR_GRAIN);
}
