// The numbers that Python and generated code share with the runtime: byte offsets unless they say otherwise.
// `generate.py` evaluates them into `layout.py`, with the comments behind them.

#include "layout.h"

#define NUMBER(name, value) const int64_t number_##name = (int64_t)(value);
#define HEADER(member) ((int64_t)offsetof(struct header, member) - (int64_t)sizeof(struct header))

// --- launch block, known to generated code
NUMBER(STATUS, offsetof(struct block, status)) // i32, the first fault's code
NUMBER(SITE, offsetof(struct block, site)) // i32, the first fault's site
NUMBER(PAYLOAD, offsetof(struct block, payload)) // i64[6], values that the fault's message shows
NUMBER(PAYLOAD_WORDS, PAYLOAD_WORDS) // how many
NUMBER(STOP, offsetof(struct block, stop)) // i32, non-zero: every thread of this launch stops with that status
NUMBER(POOL, offsetof(struct block, pool)) // ptr
NUMBER(PRINT_RING, offsetof(struct block, print_ring)) // ptr or null
NUMBER(SCRATCH, offsetof(struct block, scratch)) // ptr, private copies
NUMBER(SCRATCH_STRIDE, offsetof(struct block, scratch_stride)) // i64, bytes a thread
NUMBER(NUM_THREADS, offsetof(struct block, num_threads)) // i32
NUMBER(LAST_TICK, offsetof(struct block, last_tick)) // i64, ns
NUMBER(MEMORY_LIMIT, offsetof(struct block, memory_limit)) // i64, bytes
NUMBER(SLOTS, offsetof(struct block, slots)) // 8 bytes a slot from here on

// --- launch block, the runtime's own header
NUMBER(HEADER_BYTES, sizeof(struct header)) // it ends where the block begins
NUMBER(ENTRY, HEADER(entry)) // ptr, the kernel's entry
NUMBER(DRAIN, HEADER(drain)) // PyObject *, called to drain prints, or null
NUMBER(COMMITTED, HEADER(committed)) // i64, bytes of arena chunks held

// --- stop word and statuses
NUMBER(STOP_IDLE, STOP_IDLE) // the stop word while nothing runs: a late stop request finds nothing to stop
NUMBER(STATUS_OK, STATUS_OK) // no fault
NUMBER(STATUS_INTERRUPT, STATUS_INTERRUPT) // stopped, by a signal's handler or another thread
NUMBER(STATUS_BOUNDS, STATUS_BOUNDS) // an index out of its range
NUMBER(STATUS_DIVISION, STATUS_DIVISION) // an integer division by zero
NUMBER(STATUS_ASSERT, STATUS_ASSERT) // a false assertion
NUMBER(STATUS_MEMORY, STATUS_MEMORY) // no memory for saved values
NUMBER(STATUS_OVERFLOW, STATUS_OVERFLOW) // a number that its type does not hold
NUMBER(STATUS_LOST, STATUS_LOST) // forked inside a launch: the child has lost the workers that held pieces of it
NUMBER(STATUS_FINITE, STATUS_FINITE) // a NaN or an infinity where none may be

// --- thread pool
NUMBER(MAX_THREADS, MAX_THREADS) // workers and the caller
NUMBER(POOL_WORKERS, offsetof(struct pool, workers)) // i32, workers started

// --- print ring
NUMBER(RING_CAPACITY, offsetof(struct ring, capacity)) // i64, words, a power of two
NUMBER(RING_WORDS, offsetof(struct ring, words)) // the records
