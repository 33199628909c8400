// Where everything lies in a launch block, in the thread pool, in a print ring and in an arena.
//
// `layout.c` names the offsets that Python and generated code must know. A block pointer points *behind* a private
// header, so that the offsets of generated code start at zero and the runtime's own are negative.

#pragma once

#include <assert.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CACHE_LINE 64

#ifndef __wasm__
#include "platform.h"
#endif

enum status {
    STATUS_OK = 0,
    STATUS_INTERRUPT = 1,
    STATUS_BOUNDS = 2,
    STATUS_DIVISION = 3,
    STATUS_ASSERT = 4,
    STATUS_MEMORY = 5,
    STATUS_OVERFLOW = 6,
    STATUS_LOST = 7, // the process was forked inside a launch: the child has lost the workers that held pieces of it
    STATUS_FINITE = 8,
    STATUS_RECURSION = 9,
};

enum {
    PAYLOAD_WORDS = 6,
    MAX_THREADS = 256,
    LAUNCHED_BY_MAIN = 1, // of the flags: by Python's main thread
    NO_SITE = -1,
    STOP_IDLE = -1, // the stop word while nothing runs: a late stop request finds nothing to stop
};

// The types of numbers in memory, in the order in which `ir/types.py` names them.
enum number_type {
    TYPE_F16, TYPE_F32, TYPE_F64, TYPE_I8, TYPE_I16, TYPE_I32, TYPE_I64, TYPE_U1, TYPE_U8, TYPE_U16, TYPE_U32, TYPE_U64,
};

// What a captured step consists of (`replay.c`).
enum replay_operation {
    REPLAY_END, REPLAY_LAUNCH, REPLAY_CLEAR, REPLAY_COPY, REPLAY_FILL, REPLAY_STORE, REPLAY_LOAD, REPLAY_SEED,
    REPLAY_REAL, REPLAY_EXACT, REPLAY_REALS, REPLAY_INTEGERS, REPLAY_BRANCH, REPLAY_CONVERT, REPLAY_TAKE, REPLAY_GIVE,
    REPLAY_MOVES, REPLAY_ADD_REALS, REPLAY_SUBTRACT_REALS, REPLAY_MULTIPLY_REALS, REPLAY_SCALE_REALS,
    REPLAY_SELECT, REPLAY_CALL,
};

// Operations on two numbers, or one.
enum replay_arithmetic {
    REPLAY_ADD, REPLAY_SUBTRACT, REPLAY_MULTIPLY, REPLAY_TRUE_DIVIDE, REPLAY_FLOOR_DIVIDE, REPLAY_REMAINDER,
    REPLAY_FLOAT_POWER, REPLAY_NEGATIVE, REPLAY_ABSOLUTE, REPLAY_SQRT, REPLAY_SCALE, REPLAY_DIVIDE,
    REPLAY_LT, REPLAY_LE, REPLAY_GT, REPLAY_GE, REPLAY_EQ, REPLAY_NE,
};

struct pool;
struct block;
struct lane;
union number;

// A pointer in a word of 8 bytes, also where pointers are shorter (WebAssembly).
#define IN_WORD alignas(8)

typedef int32_t kernel_entry(struct block *block);
typedef int32_t loop_task(struct block *block, int64_t low, int64_t high, int32_t tid);

// --- launch block ---------------------------------------------------------------------------------------------------

// One launch in flight, as generated code sees it. `header` lies in front of it.
struct block {
    _Atomic int32_t status; // the first fault's code
    _Atomic int32_t site;   // of the first fault, or of the loop that was interrupted; NO_SITE: not known
    int64_t payload[PAYLOAD_WORDS];
    _Atomic int32_t stop; // non-zero: every thread of this launch stops with that status
    int32_t flags;        // LAUNCHED_BY_MAIN
    IN_WORD struct pool *pool;
    IN_WORD struct ring *print_ring; // or null
    IN_WORD char *scratch;           // private copies
    int64_t scratch_stride;  // bytes a thread
    int32_t num_threads;
    int64_t last_tick;              // ns
    IN_WORD _Atomic(struct arena *) arenas; // one a thread; null until used
    uint64_t memory_limit;          // bytes
    int64_t slots[];                // 8 bytes a slot
};

struct header {
    IN_WORD kernel_entry *entry;
    IN_WORD void *thread_state; // the launching thread's Python state while native code runs
    IN_WORD uintptr_t thread;   // number of the launching thread
    IN_WORD void *drain;        // PyObject *, called to drain prints, or null
    IN_WORD int64_t clock_read;    // ns, when a poll last read the clock; 0: not yet
    int32_t skip;          // polls between two readings of the clock
    int32_t left;          // polls left until the next reading
    int32_t python_error;  // a Python exception is set and belongs to the launch's caller
    _Atomic uint64_t committed; // bytes of arena chunks held
    int64_t tick_interval; // ns
    IN_WORD struct lane *lane;     // the member that the launch is part of, or null
    alignas(CACHE_LINE) char end[];
};

static inline struct header *header_of(struct block *block) {
    return (struct header *)block - 1;
}

// One thread's share of a batch (`replay.c`): a program over memory of its own, which it runs for one member at a time.
struct lane {
    IN_WORD const int64_t *code;
    IN_WORD union number *registers;
    IN_WORD struct block *block; // the batch; null: the program runs by itself
    int64_t member;       // the number of the one that runs
    int64_t end;         // the number of the end that was reached
    int32_t status;      // what its first fault was
    int32_t site;        // the word at which the instruction begins that failed
};

#ifndef __wasm__

// --- thread pool, one cache line a concern --------------------------------------------------------------------------

// What one worker waits on.
struct line {
    alignas(CACHE_LINE) _Atomic int32_t claim; // 1: this worker's piece waits to be claimed
    int32_t index;
    struct pool *pool;
};

struct pool {
    alignas(CACHE_LINE) _Atomic int32_t owner; // 1 while a launch uses the workers
    _Atomic int32_t quit;                      // workers return and no new ones start
    _Atomic int32_t workers;                   // started
    int32_t cores;                             // that this process may use
    uintptr_t main_thread;                     // number of Python's main thread
    int64_t spin;                              // ns that a worker spins before it parks
    int32_t epoch;                             // counts forks
    _Atomic int32_t alive;                     // workers that have not returned
    alignas(CACHE_LINE) _Atomic int32_t parked;    // workers that wait on `work`
    alignas(CACHE_LINE) _Atomic int32_t remaining; // pieces that others than the caller run and have not finished
    _Atomic int32_t waiting;                       // the caller waits on `done`
    alignas(CACHE_LINE) struct job *job;
    alignas(CACHE_LINE) mutex mutex;
    alignas(CACHE_LINE) condition work; // there is work
    alignas(CACHE_LINE) condition done; // the last piece is done
    struct line lines[MAX_THREADS];
};

// One parallel loop, on the caller's stack.
struct job {
    struct block *block;
    loop_task *task;
    uint64_t low;
    uint64_t count;     // iterations
    uint64_t quotient;  // iterations a piece; the first `remainder` pieces take one more
    uint64_t remainder;
    uint64_t grain; // 0: a static split
    alignas(CACHE_LINE) _Atomic int32_t result; // the first non-zero status
    alignas(CACHE_LINE) _Atomic uint64_t next;  // iterations handed out so far (dynamic)
};

#endif

// --- print ring -----------------------------------------------------------------------------------------------------

struct ring {
    _Atomic int32_t lock;
    _Atomic uint64_t head;    // words ever written
    _Atomic uint64_t tail;    // words ever taken
    _Atomic uint64_t dropped; // records that did not fit
    uint64_t capacity;        // words, a power of two
    alignas(CACHE_LINE) uint64_t words[];
};

// --- what a WebAssembly module and JavaScript tell each other -----------------------------------------------------

struct control {
    _Atomic int32_t stop; // non-zero: the launch under way stops
    int32_t reserved;
    int64_t polls;   // left, until it stops by itself
    uint64_t heap;   // where memory begins that nothing has a fixed place in
    uint64_t top;    // of what launches have taken of it
    uint64_t limit;  // bytes of memory, at most
};

// --- arenas and their chunks ----------------------------------------------------------------------------------------

struct chunk {
    struct chunk *next;
    struct chunk *previous;
    uint64_t capacity;
    uint64_t base; // capacity of all chunks before this one; base + offset is a mark
    alignas(CACHE_LINE) char data[];
};

struct arena {
    alignas(CACHE_LINE) struct chunk *current; // the chunk in use
    uint64_t offset;                           // bytes used in it
    struct chunk *first;
};

// Generated code and the explorer's readers count on 8-byte words in little-endian order.
#ifndef __wasm__
static_assert(sizeof(void *) == 8, "64-bit systems only");
static_assert(sizeof(struct line) == CACHE_LINE && sizeof(struct arena) == CACHE_LINE, "one line a thread");
static_assert(sizeof(struct chunk) == CACHE_LINE, "chunks hold aligned data");
#endif
static_assert(sizeof(struct header) % CACHE_LINE == 0, "blocks are aligned behind their header");
static_assert(offsetof(struct block, site) == 4 && offsetof(struct block, flags) == offsetof(struct block, stop) + 4,
              "Python reads these as halves of a word");
