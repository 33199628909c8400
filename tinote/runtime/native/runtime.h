// What the parts of the runtime know of each other, and what they need of Python.
//
// The exported functions begin with `tn_`; generated code and `tinote.runtime.threads` call them.

#pragma once

#include "layout.h"

// Of CPython's stable interface; its headers are not needed.
typedef struct PyObject PyObject;
typedef ptrdiff_t Py_ssize_t;
void *PyLong_AsVoidPtr(PyObject *number);
PyObject *PyLong_FromLong(long number);
int PyErr_BadArgument(void);
int PyErr_CheckSignals(void);
void *PyEval_SaveThread(void);
void PyEval_RestoreThread(void *state);
PyObject *PyObject_CallObject(PyObject *callable, PyObject *arguments);
void Py_DecRef(PyObject *object);

// --- launch.c
PyObject *tn_launch(PyObject *self, PyObject *const *arguments, Py_ssize_t count);
int32_t tn_stop(struct block *block);
int32_t tn_fail(struct block *block, int32_t code, int32_t site, int32_t count, const int64_t *payload);
int32_t tn_poll(struct block *block, int32_t site);
int64_t tn_now(void);
void tn_print(struct block *block, int32_t site, int32_t count, const uint64_t *words);
int64_t tn_print_take(struct ring *ring, uint64_t *out, int64_t *dropped);

// --- pool.c
struct pool *tn_pool_new(uintptr_t main_thread, int32_t cores, int64_t spin);
void tn_pool_reset(struct pool *pool, uintptr_t main_thread);
int32_t tn_pool_quit(struct pool *pool);

// --- parallel.c
int32_t tn_parallel_for(struct block *block, loop_task *task, int64_t low, int64_t high, int64_t grain);
int32_t tn_parallel_for_dynamic(struct block *block, loop_task *task, int64_t low, int64_t high, int64_t grain);
int32_t tn_clear(struct block *block);

// --- arena.c
void *tn_arena_alloc(struct block *block, int32_t tid, uint64_t bytes);
uint64_t tn_arena_mark(struct block *block, int32_t tid);
void tn_arena_release(struct block *block, int32_t tid, uint64_t mark);
void tn_arena_free(struct block *block);

// --- replay.c
int32_t tn_replay(struct block *block);

// --- batch.c
int32_t tn_replay_batch(struct block *block);

#ifndef __wasm__

// --- inside the runtime
static void pause_core(void);
static int32_t poll_clock(struct block *block);
static void run_piece(struct job *job, int32_t index);
static void reset_arenas(struct block *block);
static int32_t stop_of_member(const struct lane *lane);
#endif

#define TICK_NS INT64_C(20000000)
#define LONGEST_TICK_NS INT64_C(160000000)
#define STACK_BYTES ((size_t)8 << 20) // of a worker
#define NOT_INLINED __attribute__((noinline))
