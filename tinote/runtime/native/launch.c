// Launching, polling, faults, prints and stopping.
//
//   tn_launch(self, arguments, count)               the launch as a Python builtin of one argument (a fast call), the
//                                                   block's address
//   tn_poll(block, site) -> status                  called by loops once a strip; `site` is the loop
//   tn_fail(block, code, site, n, payload) -> code  the first fault of a launch wins
//   tn_now() -> int                                 the clock's nanoseconds, for kernels that are profiled
//   tn_print(block, site, n, words)                 appends to the launch's ring
//   tn_print_take(ring, out, dropped) -> words      takes all records out of a ring
//   tn_stop(block) -> int                           stops a running launch from another thread; 1 if one ran
//
// Threads and signals: only the thread that launched ever touches Python. It gives the interpreter lock up for the
// launch and takes it back for each tick, in which Python runs pending signal handlers and prints are drained. An
// exception of either stays set and is what the launch's caller sees.

#include "runtime.h"

// Tells the core that it spins.
static inline void pause_core(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__clang__)
    __builtin_arm_yield();
#else
    __asm__ volatile("yield");
#endif
}

// Replaces `expected` by `wanted`, once: of several threads one succeeds.
static inline bool replace(_Atomic int32_t *word, int32_t expected, int32_t wanted) {
    return atomic_compare_exchange_strong_explicit(word, &expected, wanted, memory_order_acq_rel, memory_order_acquire);
}

int64_t tn_now(void) {
    return now();
}

static void request_stop(struct block *block, int32_t status) {
    replace(&block->stop, 0, status);
}

// A daemon thread whose launch was stopped because the interpreter exits has nobody to tell: it stays here.
NOT_INLINED static void stay_at_exit(struct block *block) {
    if (block->flags & LAUNCHED_BY_MAIN) return;
    while (atomic_load(&block->pool->quit)) sleep_seconds(1000);
}

// What comes before the kernel's entry is called, and after it; gives the status that the launch ends with.
static inline void begin_launch(struct block *block, uintptr_t thread, int32_t flags) {
    struct header *header = header_of(block);
    header->thread = thread;
    block->flags = flags;
    atomic_store_explicit(&block->status, 0, memory_order_relaxed);
    atomic_store_explicit(&block->site, NO_SITE, memory_order_relaxed);
    header->python_error = 0;
    header->clock_read = 0;
    header->skip = 0;
    header->left = 0;
    header->tick_interval = TICK_NS;
    atomic_store_explicit(&block->stop, 0, memory_order_release);
}

static inline int32_t end_launch(struct block *block, int32_t returned) {
    atomic_store_explicit(&block->stop, STOP_IDLE, memory_order_release);
    if (atomic_load_explicit(&block->arenas, memory_order_relaxed) != NULL) reset_arenas(block);
    return returned != 0 ? returned : atomic_load_explicit(&block->status, memory_order_relaxed);
}

PyObject *tn_launch(PyObject *self, PyObject *const *arguments, Py_ssize_t count) {
    (void)self;
    struct block *block = count == 1 ? PyLong_AsVoidPtr(arguments[0]) : NULL;
    if (block == NULL) {
        PyErr_BadArgument();
        return NULL;
    }
    struct header *header = header_of(block);
    uintptr_t thread = this_thread();
    begin_launch(block, thread, thread == block->pool->main_thread ? LAUNCHED_BY_MAIN : 0);
    header->thread_state = PyEval_SaveThread();
    int32_t returned = header->entry(block);
    int32_t status = end_launch(block, returned);
    if (returned != 0) stay_at_exit(block);
    PyEval_RestoreThread(header->thread_state);
    return header->python_error ? NULL : PyLong_FromLong(status);
}

int32_t tn_stop(struct block *block) {
    return replace(&block->stop, 0, STATUS_INTERRUPT);
}

int32_t tn_fail(struct block *block, int32_t code, int32_t site, int32_t count, const int64_t *payload) {
    if (replace(&block->status, 0, code)) {
        atomic_store_explicit(&block->site, site, memory_order_relaxed);
        for (int32_t i = 0; i < count && i < PAYLOAD_WORDS; i++) block->payload[i] = payload[i];
        request_stop(block, code);
    }
    return code;
}

// What ends the launch from outside has no site of its own: the first loop that notices it is where the kernel was.
NOT_INLINED static int32_t leave(struct block *block, int32_t status, int32_t site) {
    replace(&block->site, NO_SITE, site);
    return status;
}

int32_t tn_poll(struct block *block, int32_t site) {
    int32_t status = atomic_load_explicit(&block->stop, memory_order_relaxed);
    struct header *header = header_of(block);
    if (status == 0 && header->lane != NULL) status = stop_of_member(header->lane);
    if (status == 0) {
        // The launching thread may run pieces of any number.
        if (this_thread() != header->thread || --header->left >= 0) return STATUS_OK;
        status = poll_clock(block);
    }
    return status == STATUS_OK ? STATUS_OK : leave(block, status, site);
}

static inline bool has_printed(struct block *block) {
    struct ring *ring = block->print_ring;
    return ring != NULL && atomic_load_explicit(&ring->head, memory_order_acquire) !=
                               atomic_load_explicit(&ring->tail, memory_order_relaxed);
}

// Drains prints, on the thread that has Python's state; whether that has failed.
static bool drain_failed(struct block *block) {
    PyObject *result = PyObject_CallObject(header_of(block)->drain, NULL);
    if (result != NULL) Py_DecRef(result);
    return result == NULL;
}

// Lets Python run signal handlers (on its main thread) and drains prints. Non-zero: an exception is set.
NOT_INLINED static int32_t tick(struct block *block) {
    struct header *header = header_of(block);
    if (header->python_error) return STATUS_INTERRUPT;
    bool printed = has_printed(block);
    if (!printed && !(block->flags & LAUNCHED_BY_MAIN)) return STATUS_OK;
    PyEval_RestoreThread(header->thread_state);
    bool failed = PyErr_CheckSignals() != 0;
    if (!failed && printed) failed = drain_failed(block);
    header->python_error = failed;
    header->thread_state = PyEval_SaveThread();
    if (!failed) return STATUS_OK;
    replace(&block->status, 0, STATUS_INTERRUPT);
    request_stop(block, STATUS_INTERRUPT);
    return STATUS_INTERRUPT;
}

// Shows what a launch inside of another one has printed, before the next one prints. Non-zero: an exception is set.
NOT_INLINED static int32_t show_prints(struct block *block) {
    struct header *header = header_of(block);
    if (header->python_error) return STATUS_INTERRUPT;
    PyEval_RestoreThread(header->thread_state);
    header->python_error = drain_failed(block);
    header->thread_state = PyEval_SaveThread();
    return header->python_error ? STATUS_INTERRUPT : STATUS_OK;
}

// Reads the clock, decides how many polls may pass until the next reading, and ticks when an interval is over.
NOT_INLINED static int32_t poll_clock(struct block *block) {
    struct header *header = header_of(block);
    int64_t time = now(), last_read = header->clock_read;
    header->clock_read = time;
    if (last_read == 0) {
        block->last_tick = time;
        return STATUS_OK;
    }
    // Polls that follow each other within 0.1 ms read the clock ever less often, down to one in 16.
    header->skip = header->left = time - last_read < 100000 ? (header->skip << 1 | 1) & 15 : 0;
    if (time - block->last_tick < header->tick_interval) return STATUS_OK;
    int32_t status = tick(block);
    int64_t after = now();
    block->last_tick = header->clock_read = after;
    // Where others keep the interpreter lock busy, taking it costs milliseconds: then ask less often.
    int64_t wanted = 8 * (after - time);
    header->tick_interval = wanted < TICK_NS ? TICK_NS : wanted > LONGEST_TICK_NS ? LONGEST_TICK_NS : wanted;
    return status;
}

void tn_print(struct block *block, int32_t site, int32_t count, const uint64_t *words) {
    struct ring *ring = block->print_ring;
    if (ring == NULL) return;
    for (int32_t tries = 1; !replace(&ring->lock, 0, 1); tries++) {
        if (tries % 64 == 0) yield_thread();
        pause_core();
    }
    uint64_t length = (uint32_t)count, mask = ring->capacity - 1;
    uint64_t head = atomic_load_explicit(&ring->head, memory_order_relaxed), end = head + 1 + length;
    if (end - atomic_load_explicit(&ring->tail, memory_order_acquire) <= ring->capacity) {
        ring->words[head & mask] = length << 32 | (uint32_t)site;
        for (uint64_t i = 0; i < length; i++) ring->words[(head + 1 + i) & mask] = words[i];
        atomic_store_explicit(&ring->head, end, memory_order_release);
    } else {
        atomic_fetch_add_explicit(&ring->dropped, 1, memory_order_relaxed);
    }
    atomic_store_explicit(&ring->lock, 0, memory_order_release);
}

// Only the launching thread takes, and writers never touch what is not taken yet: no lock is needed.
int64_t tn_print_take(struct ring *ring, uint64_t *out, int64_t *dropped) {
    *dropped = (int64_t)atomic_exchange_explicit(&ring->dropped, 0, memory_order_relaxed);
    uint64_t head = atomic_load_explicit(&ring->head, memory_order_acquire);
    uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
    uint64_t count = head - tail, mask = ring->capacity - 1;
    for (uint64_t i = 0; i < count; i++) out[i] = ring->words[(tail + i) & mask];
    atomic_store_explicit(&ring->tail, head, memory_order_release);
    return (int64_t)count;
}
