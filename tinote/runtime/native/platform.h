// What the runtime needs of the operating system: `platform_posix.c` and `platform_windows.c` have a definition each.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef _WIN32

#ifndef WIN32_LEAN_AND_MEAN
#define WIN32_LEAN_AND_MEAN
#endif
#include <windows.h>

typedef SRWLOCK mutex;
typedef CONDITION_VARIABLE condition;

#else

#include <pthread.h>

typedef pthread_mutex_t mutex;
typedef pthread_cond_t condition;

#endif

// Nanoseconds of a clock that never goes back.
static inline int64_t now(void);

// The number of this thread, which is that of Python's `threading.get_ident`.
static inline uintptr_t this_thread(void);
// Starts a thread that takes no signals and that nobody joins; whether the system grants it.
static inline bool start_thread(void function(void *), void *argument);
static inline void yield_thread(void);
static inline void sleep_seconds(uint32_t seconds);

static inline void mutex_init(mutex *mutex);
static inline void mutex_lock(mutex *mutex);
static inline void mutex_unlock(mutex *mutex);

static inline void condition_init(condition *condition);
static inline void condition_wait(condition *condition, mutex *mutex);
static inline void condition_wait_for(condition *condition, mutex *mutex, int64_t nanoseconds);
static inline void condition_signal(condition *condition);
static inline void condition_broadcast(condition *condition);

// Memory that begins at a cache line; null where the system has no more.
static inline void *allocate(size_t bytes);
static inline void deallocate(void *memory);
