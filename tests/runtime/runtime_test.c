// The native runtime without Python, to be run under sanitizers: the interpreter is a lock that launches hold.
//
//   cc -std=c17 -fsanitize=thread -I tinote/runtime/native tests/runtime/runtime_test.c -pthread
//
// Prints the name of each test that has passed; the first one that fails ends the process.

#include "runtime.c"

#include <stdio.h>
#include <stdlib.h>
#ifndef _WIN32
#include <sys/wait.h>
#endif
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: not %s\n", __FILE__, __LINE__, #condition);                                        \
            _exit(1);                                                                                                  \
        }                                                                                                              \
    } while (0)

// --- an interpreter --------------------------------------------------------------------------------------------------

static pthread_mutex_t interpreter = PTHREAD_MUTEX_INITIALIZER;
static int (*signal_handler)(void); // what Python's main thread does about signals; non-zero: it raises
static PyObject *(*printer)(void);
static _Thread_local int raised; // a Python exception is set

struct PyObject {
    int64_t number;
};

void *PyLong_AsVoidPtr(PyObject *number) {
    return (void *)number->number;
}

PyObject *PyLong_FromLong(long number) {
    PyObject *object = malloc(sizeof *object);
    object->number = number;
    return object;
}

int PyErr_BadArgument(void) {
    raised = 1;
    return 0;
}

int PyErr_CheckSignals(void) {
    return signal_handler != NULL ? signal_handler() : 0;
}

void *PyEval_SaveThread(void) {
    CHECK(pthread_mutex_unlock(&interpreter) == 0);
    return &raised;
}

void PyEval_RestoreThread(void *state) {
    CHECK(state == &raised); // each thread gets its own state back
    CHECK(pthread_mutex_lock(&interpreter) == 0);
}

PyObject *PyObject_CallObject(PyObject *callable, PyObject *arguments) {
    (void)callable, (void)arguments;
    return printer();
}

void Py_DecRef(PyObject *object) {
    free(object);
}

// --- blocks and launches ---------------------------------------------------------------------------------------------

static struct pool *pool;

static struct block *new_block(int32_t threads, kernel_entry *entry, uint64_t memory_limit) {
    size_t bytes = sizeof(struct header) + sizeof(struct block) + 8 * sizeof(int64_t);
    bytes = (bytes + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
    char *memory = allocate(bytes);
    memset(memory, 0, bytes);
    struct block *block = (struct block *)(memory + sizeof(struct header));
    header_of(block)->entry = entry;
    block->pool = pool;
    block->num_threads = threads;
    block->memory_limit = memory_limit;
    atomic_store(&block->stop, STOP_IDLE);
    return block;
}

static void free_block(struct block *block) {
    tn_arena_free(block);
    CHECK(atomic_load(&header_of(block)->committed) == 0);
    deallocate(header_of(block));
}

static const int exception = -1; // what `launch` returns where Python has an exception set

// The status of a launch from a thread that holds the interpreter.
static int launch_inside(struct block *block) {
    PyObject address = {(int64_t)block}, *arguments[] = {&address};
    PyObject *result = tn_launch(NULL, arguments, 1);
    if (result == NULL) return exception;
    int status = (int)result->number;
    Py_DecRef(result);
    return status;
}

static int launch(struct block *block) {
    pthread_mutex_lock(&interpreter);
    int status = launch_inside(block);
    pthread_mutex_unlock(&interpreter);
    return status;
}

static void sleep_ms(int milliseconds) {
    usleep((useconds_t)milliseconds * 1000);
}

static pthread_t start(void *function(void *), void *argument) {
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, function, argument) == 0);
    return thread;
}

// --- counting loops --------------------------------------------------------------------------------------------------

enum { LOW, HIGH, GRAIN, DYNAMIC, MARKS };

// Each iteration of the range writes down, once, which thread ran it.
static int32_t mark_iterations(struct block *block, int64_t low, int64_t high, int32_t tid) {
    int32_t *marks = (int32_t *)block->slots[MARKS];
    for (int64_t i = low; i < high; i++) marks[i - block->slots[LOW]] += 1000 + tid;
    return tn_poll(block, tid);
}

static int32_t count_entry(struct block *block) {
    const int64_t *slots = block->slots;
    return (slots[DYNAMIC] ? tn_parallel_for_dynamic : tn_parallel_for)(block, mark_iterations, slots[LOW], slots[HIGH],
                                                                        slots[GRAIN]);
}

// Launches a loop of `count` iterations and checks that each ran once, in its piece by the definition: pieces are
// contiguous and as even as possible, the longer ones first.
static void check_counting(struct block *block, int64_t low, int64_t count, int64_t grain, bool dynamic,
                           int start_launch(struct block *)) {
    int32_t *marks = calloc((size_t)count + 1, sizeof *marks);
    block->slots[LOW] = low;
    block->slots[HIGH] = low + count;
    block->slots[GRAIN] = grain;
    block->slots[DYNAMIC] = dynamic;
    block->slots[MARKS] = (int64_t)marks;
    CHECK(start_launch(block) == STATUS_OK);
    int64_t pieces = count <= grain ? 1 : (count + grain - 1) / grain;
    if (pieces > block->num_threads) pieces = block->num_threads;
    int64_t i = 0;
    for (int64_t piece = 0; piece < pieces; piece++)
        for (int64_t end = i + count / pieces + (piece < count % pieces); i < end; i++)
            CHECK(dynamic ? marks[i] >= 1000 && marks[i] < 1000 + block->num_threads : marks[i] == 1000 + piece);
    CHECK(i == count && marks[count] == 0);
    free(marks);
}

static void check_both(struct block *block, int64_t count) {
    check_counting(block, -7, count, 3, false, launch);
    check_counting(block, -7, count, 3, true, launch);
}

static void test_pieces(void) {
    const int32_t threads[] = {1, 2, 3, 8};
    const int64_t counts[] = {0, 1, 2, 7, 64, 1001}, grains[] = {1, 7, 1000};
    for (int t = 0; t < 4; t++) {
        struct block *block = new_block(threads[t], count_entry, 0);
        for (int c = 0; c < 6; c++)
            for (int g = 0; g < 3; g++)
                for (int dynamic = 0; dynamic < 2; dynamic++)
                    check_counting(block, INT64_C(1) << 40, counts[c], grains[g], dynamic, launch);
        free_block(block);
    }
}

static void test_many_small_loops(void) {
    struct block *block = new_block(3, count_entry, 0);
    for (int repeat = 0; repeat < 1000; repeat++) check_both(block, 30);
    free_block(block);
}

// Every piece waits until all have begun, each on a thread of its own.
static int32_t meet(struct block *block, int64_t low, int64_t high, int32_t tid) {
    (void)low, (void)high, (void)tid;
    _Atomic int64_t *arrived = (_Atomic int64_t *)&block->slots[0];
    int64_t deadline = now() + INT64_C(120000000000);
    atomic_fetch_add(arrived, 1);
    while (atomic_load(arrived) % block->num_threads != 0) {
        CHECK(now() < deadline);
        sched_yield();
    }
    return STATUS_OK;
}

static int32_t meeting_entry(struct block *block) {
    return tn_parallel_for(block, meet, 0, block->num_threads, 1);
}

static void test_park_and_wake(void) {
    struct block *block = new_block(4, meeting_entry, 0);
    for (int64_t repeat = 1; repeat <= 300; repeat++) {
        // At some of the launches the workers are about to park, at some they sleep.
        if (repeat > 3) usleep((useconds_t)(repeat % 60));
        for (int tries = 0; repeat % 30 == 0 && atomic_load(&pool->parked) < atomic_load(&pool->workers); tries++) {
            CHECK(tries < 30000);
            sleep_ms(1);
        }
        CHECK(launch(block) == STATUS_OK);
        CHECK(atomic_load((_Atomic int64_t *)&block->slots[0]) == 4 * repeat);
    }
    free_block(block);
}

static void test_resize(void) {
    const int32_t threads[] = {2, 5, 3, 16, 1, 16};
    for (int t = 0; t < 6; t++) {
        struct block *block = new_block(threads[t], count_entry, 0);
        check_both(block, 500);
        CHECK(atomic_load(&pool->workers) >= threads[t] - 1 && atomic_load(&pool->workers) < MAX_THREADS);
        free_block(block);
    }
}

static void *launch_often(void *argument) {
    struct block *block = new_block(*(int32_t *)argument, count_entry, 0);
    for (int repeat = 0; repeat < 100; repeat++) check_both(block, 200);
    free_block(block);
    return NULL;
}

static void test_launchers_at_once(void) {
    int32_t threads[] = {2, 3, 4, 2};
    pthread_t launchers[4];
    for (int t = 0; t < 4; t++) launchers[t] = start(launch_often, &threads[t]);
    for (int t = 0; t < 4; t++) pthread_join(launchers[t], NULL);
}

static void test_bad_arguments(void) {
    PyObject nothing = {0}, *arguments[] = {&nothing};
    for (Py_ssize_t count = 0; count < 3; count++) {
        raised = 0;
        CHECK(tn_launch(NULL, arguments, count) == NULL && raised);
    }
}

// --- stopping --------------------------------------------------------------------------------------------------------

enum { BEGUN, WHERE };

// Polls until the launch is stopped.
static int32_t spin(struct block *block, int64_t low, int64_t high, int32_t tid) {
    (void)low, (void)high, (void)tid;
    atomic_fetch_add((_Atomic int64_t *)&block->slots[BEGUN], 1);
    for (;;) {
        int32_t status = tn_poll(block, 9);
        if (status != 0) return status;
    }
}

static int32_t endless_entry(struct block *block) {
    return tn_parallel_for(block, spin, 0, block->num_threads, 1);
}

static void *stop_when_begun(void *argument) {
    struct block *block = argument;
    while (atomic_load((_Atomic int64_t *)&block->slots[BEGUN]) < 1) sleep_ms(1);
    CHECK(tn_stop(block) == 1);
    return NULL;
}

static void test_stop_from_another_thread(void) {
    struct block *block = new_block(3, endless_entry, 0);
    for (int repeat = 0; repeat < 20; repeat++) {
        CHECK(tn_stop(block) == 0); // nothing runs
        atomic_store((_Atomic int64_t *)&block->slots[BEGUN], 0);
        pthread_t stopper = start(stop_when_begun, block);
        CHECK(launch(block) == STATUS_INTERRUPT && block->site == 9); // of the loop that noticed it
        pthread_join(stopper, NULL);
        CHECK(tn_stop(block) == 0);
    }
    free_block(block);
}

static int32_t fail_at(struct block *block, int64_t low, int64_t high, int32_t tid) {
    int64_t payload[] = {low, 2, 3, 4, 5, 6, 7};
    for (int64_t i = low; i < high; i++)
        if (i == block->slots[WHERE]) return tn_fail(block, STATUS_ASSERT, 11, 7, payload);
    return spin(block, low, high, tid);
}

static int32_t failing_entry(struct block *block) {
    return tn_parallel_for(block, fail_at, 0, block->num_threads, 1);
}

static void test_a_fault_stops_the_others(void) {
    struct block *block = new_block(3, failing_entry, 0);
    for (int repeat = 0; repeat < 30; repeat++) {
        block->slots[WHERE] = repeat % 3;
        CHECK(launch(block) == STATUS_ASSERT);
        CHECK(block->site == 11 && block->payload[0] == repeat % 3 && block->payload[PAYLOAD_WORDS - 1] == 6);
        CHECK(block->print_ring == NULL); // the word that a seventh one would have come near
    }
    free_block(block);
}

static struct block *inner;
static int handled;

static int launch_in_handler(void) {
    check_counting(inner, 0, 100, 1, false, launch_inside);
    return ++handled == 3;
}

static void test_nested_launches(void) {
    struct block *outer = new_block(3, endless_entry, 0);
    inner = new_block(4, count_entry, 0);
    handled = 0;
    signal_handler = launch_in_handler; // the third time it raises
    CHECK(launch(outer) == exception);
    CHECK(handled == 3 && atomic_load(&outer->status) == STATUS_INTERRUPT && outer->site == 9);
    signal_handler = NULL;
    check_both(inner, 100);
    free_block(outer);
    free_block(inner);
}

// --- prints ----------------------------------------------------------------------------------------------------------

enum { RING_CAPACITY = 1 << 12, PRINTS = 3000 };

static struct ring *ring;
static int64_t shown, lost;

static PyObject *drain(void) {
    static uint64_t words[RING_CAPACITY];
    int64_t dropped, count = tn_print_take(ring, words, &dropped);
    for (int64_t at = 0; at < count; at += 3, shown++) {
        CHECK(words[at] == ((uint64_t)2 << 32 | 5));
        CHECK(words[at + 1] == ~words[at + 2]);
    }
    lost += dropped;
    return PyLong_FromLong(0);
}

static int32_t print_all(struct block *block, int64_t low, int64_t high, int32_t tid) {
    for (int64_t i = low; i < high; i++) {
        uint64_t words[] = {(uint64_t)i, ~(uint64_t)i};
        tn_print(block, 5, 2, words);
        int32_t status = tn_poll(block, tid);
        if (status != 0) return status;
    }
    return STATUS_OK;
}

static int32_t printing_entry(struct block *block) {
    return tn_parallel_for(block, print_all, 0, PRINTS, 1);
}

static struct block *printing;
static int drained;

static PyObject *drain_and_stop(void) {
    if (++drained == 3) tn_stop(printing);
    return drain();
}

// The caller only polls, so that nothing but the ring itself orders what it drains after what the others write.
static int32_t print_for_ever(struct block *block, int64_t low, int64_t high, int32_t tid) {
    if (low == 0) return spin(block, low, high, tid);
    int32_t status = STATUS_OK;
    while (status == STATUS_OK) status = print_all(block, low, high, tid);
    return status;
}

static int32_t printing_for_ever_entry(struct block *block) {
    return tn_parallel_for(block, print_for_ever, 0, block->num_threads, 1);
}

static void test_prints(void) {
    size_t bytes = sizeof(struct ring) + RING_CAPACITY * sizeof(uint64_t);
    ring = allocate(bytes);
    memset(ring, 0, bytes);
    ring->capacity = RING_CAPACITY;
    printer = drain;
    struct block *block = new_block(3, printing_entry, 0);
    block->print_ring = ring;
    for (int repeat = 1; repeat <= 10; repeat++) {
        CHECK(launch(block) == STATUS_OK);
        Py_DecRef(drain());
        CHECK(shown + lost == repeat * PRINTS && shown >= repeat);
    }
    // Drained by ticks while the workers print.
    printer = drain_and_stop;
    printing = block;
    header_of(block)->entry = printing_for_ever_entry;
    CHECK(launch(block) == STATUS_INTERRUPT && drained >= 3);
    free_block(block);
    deallocate(ring);
}

// --- memory ----------------------------------------------------------------------------------------------------------

enum { BYTES, COUNT, NESTING };

// Saves `NESTING` blocks of `BYTES` bytes, reads them back from the last to the first and frees them, for each iteration.
static int32_t save_and_read(struct block *block, int64_t low, int64_t high, int32_t tid) {
    size_t size = (size_t)block->slots[BYTES];
    for (int64_t i = low; i < high; i++) {
        int64_t *memory[64];
        uint64_t marks[64];
        for (int64_t k = 0; k < block->slots[NESTING]; k++) {
            marks[k] = tn_arena_mark(block, tid);
            memory[k] = tn_arena_alloc(block, tid, size);
            if (memory[k] == NULL) return tn_fail(block, STATUS_MEMORY, 0, 0, NULL);
            CHECK((uintptr_t)memory[k] % CACHE_LINE == 0);
            for (size_t word = 0; word < size / 8; word++) memory[k][word] = i * 64 + k;
        }
        for (int64_t k = block->slots[NESTING] - 1; k >= 0; k--) {
            for (size_t word = 0; word < size / 8; word++) CHECK(memory[k][word] == i * 64 + k);
            tn_arena_release(block, tid, marks[k]);
            CHECK(tn_arena_mark(block, tid) == marks[k]);
        }
    }
    return STATUS_OK;
}

static int32_t saving_entry(struct block *block) {
    return tn_parallel_for(block, save_and_read, 0, block->slots[COUNT], 1);
}

static int save(struct block *block, int64_t size, int64_t nesting, int64_t count) {
    block->slots[BYTES] = size;
    block->slots[NESTING] = nesting;
    block->slots[COUNT] = count;
    return launch(block);
}

static void test_arenas(void) {
    struct block *block = new_block(4, saving_entry, (uint64_t)1 << 30);
    for (int repeat = 0; repeat < 3; repeat++) {
        CHECK(save(block, 800, 5, 400) == STATUS_OK);
        CHECK(atomic_load(&header_of(block)->committed) >= 256 << 10);
        CHECK(save(block, 100000, 20, 8) == STATUS_OK);  // grows by chunks
        CHECK(save(block, 1000000, 2, 8) == STATUS_OK);  // the second chunk is too small and makes room
        CHECK(atomic_load(&header_of(block)->committed) <= KEPT_BYTES);
        CHECK(save(block, 12000000, 2, 4) == STATUS_OK); // many bytes go back after the launch
        CHECK(atomic_load(&header_of(block)->committed) == 0);
    }
    free_block(block);
}

static void test_memory_limit(void) {
    struct block *block = new_block(2, saving_entry, 1 << 20);
    for (int repeat = 0; repeat < 3; repeat++) {
        CHECK(save(block, 100000, 20, 2) == STATUS_MEMORY);
        CHECK(save(block, 100, 5, 50) == STATUS_OK);
    }
    const uint64_t absurd[] = {(1 << 20) + 1, UINT64_MAX, UINT64_MAX - 63, (uint64_t)1 << 63};
    for (int i = 0; i < 4; i++) CHECK(tn_arena_alloc(block, 0, absurd[i]) == NULL);
    free_block(block);
}

static void test_clear(void) {
    struct block *block = new_block(3, tn_clear, 0);
    int64_t bytes = 3 * CLEAR_GRAIN + 17;
    char *memory = malloc((size_t)bytes + 1);
    memset(memory, 1, (size_t)bytes + 1);
    block->slots[0] = (int64_t)memory;
    block->slots[1] = bytes;
    CHECK(launch(block) == STATUS_OK);
    for (int64_t i = 0; i < bytes; i++) CHECK(memory[i] == 0);
    CHECK(memory[bytes] == 1);
    free(memory);
    free_block(block);
}

// --- forks and the end -----------------------------------------------------------------------------------------------

#ifndef _WIN32

static void after_fork_in_child(void) {
    pthread_mutex_init(&interpreter, NULL);
    tn_pool_reset(pool, this_thread());
}

static void wait_for(pid_t child, int expected) {
    int status;
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == expected);
}

static void test_fork(void) {
    struct block *block = new_block(3, count_entry, 0);
    check_both(block, 100);
    for (int repeat = 0; repeat < 3; repeat++) {
        pid_t child = fork();
        if (child == 0) {
            after_fork_in_child();
            check_both(block, 100);
            pid_t grandchild = fork();
            if (grandchild == 0) {
                after_fork_in_child();
                check_both(block, 100);
                _exit(3);
            }
            wait_for(grandchild, 3);
            check_both(block, 100);
            _exit(2);
        }
        wait_for(child, 2);
        check_both(block, 100);
    }
    free_block(block);
}

static struct block *forking;
static pid_t forked;

// Forks inside a launch of which a worker holds a piece; the parent then ends the launch.
static int fork_in_handler(void) {
    if (atomic_load((_Atomic int64_t *)&forking->slots[BEGUN]) < 2) return 0; // no worker has begun
    forked = fork();
    if (forked == 0)
        after_fork_in_child();
    else
        tn_stop(forking);
    signal_handler = NULL;
    return 0;
}

// The caller's iteration ends when the worker's has begun; that one never ends.
static int32_t end_but_one(struct block *block, int64_t low, int64_t high, int32_t tid) {
    if (low > 0) return spin(block, low, high, tid);
    atomic_fetch_add((_Atomic int64_t *)&block->slots[BEGUN], 1);
    while (atomic_load((_Atomic int64_t *)&block->slots[BEGUN]) < 2) pause_core();
    return STATUS_OK;
}

static int32_t forking_entry(struct block *block) {
    return tn_parallel_for(block, end_but_one, 0, 2, 1);
}

static void test_fork_inside_a_launch(void) {
    forking = new_block(2, forking_entry, 0);
    signal_handler = fork_in_handler;
    int status = launch(forking);
    if (forked == 0) {
        struct block *block = new_block(3, count_entry, 0);
        CHECK(status == STATUS_LOST);
        check_both(block, 100);
        _exit(7);
    }
    CHECK(status == STATUS_INTERRUPT);
    wait_for(forked, 7);
    free_block(forking);
}

#endif

static void test_quit(void) {
    struct block *block = new_block(3, count_entry, 0);
    check_both(block, 100);
    for (int tries = 0; tn_pool_quit(pool) > 0; tries++) {
        CHECK(tries < 30000);
        sleep_ms(1);
    }
    check_both(block, 100); // the caller runs all pieces
    CHECK(atomic_load(&pool->alive) == 0);
    free_block(block);
}

#define TEST(name) {#name, test_##name}

// --- replay ----------------------------------------------------------------------------------------------------------

static int32_t add_three(struct block *block) {
    block->slots[1] = block->slots[0] + 3;
    return STATUS_OK;
}

static int32_t fail_at_seven(struct block *block) {
    return tn_fail(block, STATUS_ASSERT, 7, 0, NULL);
}

#define WORD(address) ((int64_t)(uintptr_t)(address))

static int replayed(struct block *block, const int64_t *words, union number *registers) {
    block->slots[0] = WORD(words);
    block->slots[1] = WORD(registers);
    return launch(block);
}

// Lists that launch, compute, branch and copy; one whose launch fails, and one that divides by zero.
static void test_replay(void) {
    struct block *block = new_block(1, tn_replay, 0), *inner = new_block(2, add_three, 0);
    struct block *failing = new_block(1, fail_at_seven, 0);
    union number registers[4] = {{.integer = 0}};
    int32_t element = 5;
    float rows[6] = {0, 1, 2, 3, 4, 5}, packed[4] = {9, 9, 9, 9};
    for (int side = 0; side < 2; side++) {
        element = side == 0 ? 5 : -5;
        const int64_t words[] = {
            REPLAY_LOAD, TYPE_I32, 0, WORD(&element),
            REPLAY_STORE, TYPE_I64, 0, 0, WORD(&inner->slots[0]),
            REPLAY_LAUNCH, WORD(inner),
            REPLAY_LOAD, TYPE_I64, 1, WORD(&inner->slots[1]),
            REPLAY_INTEGERS, REPLAY_GT, 2, 1, 3,
            REPLAY_BRANCH, 2, 36,
            REPLAY_COPY, 4, WORD(packed), WORD(rows), 2, 2, 8, 12, 2, 4, 4,
            REPLAY_END, 1,
            REPLAY_END, 2,
        };
        CHECK(replayed(block, words, registers) == STATUS_OK);
        CHECK(inner->slots[1] == element + 3 && block->slots[2] == 1 + side);
    }
    CHECK(packed[0] == 0 && packed[1] == 1 && packed[2] == 3 && packed[3] == 4);
    const int64_t fails[] = {REPLAY_CLEAR, WORD(packed), sizeof packed, REPLAY_LAUNCH, WORD(failing), REPLAY_END, 0};
    CHECK(replayed(block, fails, registers) == STATUS_ASSERT);
    CHECK(atomic_load(&block->site) == 3 && atomic_load(&failing->site) == 7 && packed[3] == 0);
    const int64_t divides[] = {REPLAY_INTEGERS, REPLAY_REMAINDER, 0, 1, 3, REPLAY_END, 0};
    CHECK(replayed(block, divides, registers) == STATUS_DIVISION);
    free_block(block);
    free_block(inner);
    free_block(failing);
}

int main(int count, char **arguments) {
    static const struct {
        const char *name;
        void (*function)(void);
    } tests[] = {
        TEST(pieces), TEST(many_small_loops), TEST(park_and_wake), TEST(resize), TEST(launchers_at_once),
        TEST(bad_arguments), TEST(stop_from_another_thread), TEST(a_fault_stops_the_others), TEST(nested_launches),
        TEST(prints), TEST(arenas), TEST(memory_limit), TEST(clear), TEST(replay),
#ifndef _WIN32
        TEST(fork), TEST(fork_inside_a_launch),
#endif
        TEST(quit),
    };
    pool = tn_pool_new(this_thread(), 2, 30000);
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
        if (count > 1 && strcmp(arguments[1], tests[i].name) != 0) continue;
        tests[i].function();
        printf("%s\n", tests[i].name);
        fflush(stdout);
    }
    deallocate(pool);
    return 0;
}
