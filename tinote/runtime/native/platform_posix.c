// Linux and macOS: POSIX threads.

#include "platform.h"

#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static_assert(sizeof(uintptr_t) == sizeof(pthread_t), "a thread is one word");

static inline int64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static inline uintptr_t this_thread(void) {
    return (uintptr_t)pthread_self();
}

struct beginning {
    void (*function)(void *);
    void *argument;
};

static void *begin_thread(void *memory) {
    struct beginning beginning = *(struct beginning *)memory;
    free(memory);
    beginning.function(beginning.argument);
    return NULL;
}

// Signals that a fault of the thread itself raises: blocking them would only turn a report into a silent end.
static const int fault_signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP};

static inline bool start_thread(void function(void *), void *argument) {
    struct beginning *beginning = malloc(sizeof *beginning);
    if (beginning == NULL) return false;
    *beginning = (struct beginning){function, argument};
    sigset_t all, old;
    sigfillset(&all);
    for (size_t i = 0; i < sizeof fault_signals / sizeof *fault_signals; i++) sigdelset(&all, fault_signals[i]);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_t thread;
    bool started = pthread_create(&thread, &attributes, begin_thread, beginning) == 0;
    pthread_attr_destroy(&attributes);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (!started) free(beginning);
    return started;
}

static inline void yield_thread(void) {
    sched_yield();
}

static inline void sleep_seconds(uint32_t seconds) {
    sleep(seconds);
}

static inline void mutex_init(mutex *mutex) {
    pthread_mutex_init(mutex, NULL);
}

static inline void mutex_lock(mutex *mutex) {
    pthread_mutex_lock(mutex);
}

static inline void mutex_unlock(mutex *mutex) {
    pthread_mutex_unlock(mutex);
}

static inline void condition_init(condition *condition) {
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

static inline void condition_wait(condition *condition, mutex *mutex) {
    pthread_cond_wait(condition, mutex);
}

static inline void condition_wait_for(condition *condition, mutex *mutex, int64_t nanoseconds) {
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

static inline void condition_signal(condition *condition) {
    pthread_cond_signal(condition);
}

static inline void condition_broadcast(condition *condition) {
    pthread_cond_broadcast(condition);
}

static inline void *allocate(size_t bytes) {
    return aligned_alloc(CACHE_LINE, bytes);
}

static inline void deallocate(void *memory) {
    free(memory);
}
