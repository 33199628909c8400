// The numbers that Python and generated code share with the runtime: byte offsets unless they say otherwise.
// `generate.py` evaluates them into `layout.py`, with the comments behind them.

#include "layout.h"

#define NUMBER(name, value) const int64_t number_##name = (int64_t)(value);
#define HEADER(member) ((int64_t)offsetof(struct header, member) - (int64_t)sizeof(struct header))

// --- launch block, known to generated code
NUMBER(STATUS, offsetof(struct block, status)) // i32, the first fault's code
NUMBER(SITE, offsetof(struct block, site)) // i32, of the first fault, or of the loop that was interrupted; -1: not known
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
NUMBER(STATUS_RECURSION, STATUS_RECURSION) // calls nested too deeply

// --- thread pool
NUMBER(MAX_THREADS, MAX_THREADS) // workers and the caller
#ifndef __wasm__
NUMBER(POOL_WORKERS, offsetof(struct pool, workers)) // i32, workers started
#endif

// --- print ring
NUMBER(RING_CAPACITY, offsetof(struct ring, capacity)) // i64, words, a power of two
NUMBER(RING_WORDS, offsetof(struct ring, words)) // the records

// --- what a WebAssembly module and JavaScript tell each other
NUMBER(CONTROL_STOP, offsetof(struct control, stop)) // i32, non-zero: the launch under way stops
NUMBER(CONTROL_POLLS, offsetof(struct control, polls)) // i64, left until it stops by itself
NUMBER(CONTROL_HEAP, offsetof(struct control, heap)) // i64, where memory begins that nothing has a fixed place in
NUMBER(CONTROL_TOP, offsetof(struct control, top)) // i64, of what launches have taken of it
NUMBER(CONTROL_LIMIT, offsetof(struct control, limit)) // i64, bytes of memory, at most

// --- replay: the types of numbers in memory
NUMBER(TYPE_F16, TYPE_F16) // f16
NUMBER(TYPE_F32, TYPE_F32) // f32
NUMBER(TYPE_F64, TYPE_F64) // f64
NUMBER(TYPE_I8, TYPE_I8) // i8
NUMBER(TYPE_I16, TYPE_I16) // i16
NUMBER(TYPE_I32, TYPE_I32) // i32
NUMBER(TYPE_I64, TYPE_I64) // i64
NUMBER(TYPE_U1, TYPE_U1) // u1
NUMBER(TYPE_U8, TYPE_U8) // u8
NUMBER(TYPE_U16, TYPE_U16) // u16
NUMBER(TYPE_U32, TYPE_U32) // u32
NUMBER(TYPE_U64, TYPE_U64) // u64

// --- replay: instructions, an operation and its operands, a word each
NUMBER(REPLAY_END, REPLAY_END) // the number of the end
NUMBER(REPLAY_LAUNCH, REPLAY_LAUNCH) // block
NUMBER(REPLAY_CLEAR, REPLAY_CLEAR) // address, bytes
NUMBER(REPLAY_COPY, REPLAY_COPY) // bytes, to, from, rank, (extent, stride of each)…
NUMBER(REPLAY_FILL, REPLAY_FILL) // type, register, whether it is real, address, rank, (extent, stride)…
NUMBER(REPLAY_STORE, REPLAY_STORE) // type, register, whether it is real, address
NUMBER(REPLAY_LOAD, REPLAY_LOAD) // type, register, address
NUMBER(REPLAY_SEED, REPLAY_SEED) // register, counter, what seeds begin with
NUMBER(REPLAY_REAL, REPLAY_REAL) // register, integer register
NUMBER(REPLAY_EXACT, REPLAY_EXACT) // register, integer register
NUMBER(REPLAY_REALS, REPLAY_REALS) // arithmetic, register, two operands
NUMBER(REPLAY_SELECT, REPLAY_SELECT) // register, a condition, what it gets if that holds, and if not
NUMBER(REPLAY_CALL, REPLAY_CALL) // a function of the process, which reads and sets registers, and gives a status
NUMBER(REPLAY_INTEGERS, REPLAY_INTEGERS) // arithmetic, register, two operands
NUMBER(REPLAY_BRANCH, REPLAY_BRANCH) // register, word to go on at if it is zero
NUMBER(REPLAY_CONVERT, REPLAY_CONVERT) // type, to, type, from, rank, (extent, stride of each)…
NUMBER(REPLAY_TAKE, REPLAY_TAKE) // bytes, to, where it is said from where, bytes from one member to the next
NUMBER(REPLAY_GIVE, REPLAY_GIVE) // bytes, from, where it is said to where, bytes from one member to the next
NUMBER(REPLAY_MOVES, REPLAY_MOVES) // how many, (to, from)…
NUMBER(REPLAY_ADD_REALS, REPLAY_ADD_REALS) // a + b: register, two operands, as the following
NUMBER(REPLAY_SUBTRACT_REALS, REPLAY_SUBTRACT_REALS) // a - b
NUMBER(REPLAY_MULTIPLY_REALS, REPLAY_MULTIPLY_REALS) // a * b
NUMBER(REPLAY_SCALE_REALS, REPLAY_SCALE_REALS) // a * b, b where that is 0

// --- replay: one thread's share of a batch
NUMBER(LANE_BYTES, sizeof(struct lane)) // of each
NUMBER(LANE_CODE, offsetof(struct lane, code)) // ptr, the instructions
NUMBER(LANE_REGISTERS, offsetof(struct lane, registers)) // ptr
NUMBER(LANE_MEMBER, offsetof(struct lane, member)) // i64, the number of the member that runs
NUMBER(LANE_STATUS, offsetof(struct lane, status)) // i32, what its first fault was
NUMBER(LANE_SITE, offsetof(struct lane, site)) // i32, the word at which the instruction begins that failed

// --- replay: arithmetic
NUMBER(REPLAY_ADD, REPLAY_ADD) // a + b
NUMBER(REPLAY_SUBTRACT, REPLAY_SUBTRACT) // a - b
NUMBER(REPLAY_MULTIPLY, REPLAY_MULTIPLY) // a * b
NUMBER(REPLAY_TRUE_DIVIDE, REPLAY_TRUE_DIVIDE) // a / b
NUMBER(REPLAY_DIVIDE, REPLAY_DIVIDE) // a / b by IEEE 754: of 0, too
NUMBER(REPLAY_FLOOR_DIVIDE, REPLAY_FLOOR_DIVIDE) // a // b
NUMBER(REPLAY_REMAINDER, REPLAY_REMAINDER) // a % b
NUMBER(REPLAY_FLOAT_POWER, REPLAY_FLOAT_POWER) // a ** b
NUMBER(REPLAY_NEGATIVE, REPLAY_NEGATIVE) // -a
NUMBER(REPLAY_ABSOLUTE, REPLAY_ABSOLUTE) // |a|
NUMBER(REPLAY_SQRT, REPLAY_SQRT) // √a
NUMBER(REPLAY_SCALE, REPLAY_SCALE) // a * b, b where that is 0
NUMBER(REPLAY_LT, REPLAY_LT) // a < b
NUMBER(REPLAY_LE, REPLAY_LE) // a <= b
NUMBER(REPLAY_GT, REPLAY_GT) // a > b
NUMBER(REPLAY_GE, REPLAY_GE) // a >= b
NUMBER(REPLAY_EQ, REPLAY_EQ) // a == b
NUMBER(REPLAY_NE, REPLAY_NE) // a != b
