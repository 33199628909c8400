// Windows: threads, locks and clocks of kernel32, which each process has. Ctrl-C needs nothing: Python's own handler
// notes it on a thread of the system's, and the next tick raises it.

#include "platform.h"

#include <malloc.h>
#include <stdlib.h>

static inline int64_t now(void) {
    LARGE_INTEGER count, frequency; // ticks, and ticks a second
    QueryPerformanceCounter(&count);
    QueryPerformanceFrequency(&frequency);
    int64_t seconds = count.QuadPart / frequency.QuadPart, rest = count.QuadPart % frequency.QuadPart;
    return seconds * 1000000000 + rest * 1000000000 / frequency.QuadPart;
}

static inline uintptr_t this_thread(void) {
    return GetCurrentThreadId();
}

struct beginning {
    void (*function)(void *);
    void *argument;
};

static DWORD WINAPI begin_thread(void *memory) {
    struct beginning beginning = *(struct beginning *)memory;
    free(memory);
    beginning.function(beginning.argument);
    return 0;
}

static inline bool start_thread(void function(void *), void *argument) {
    struct beginning *beginning = malloc(sizeof *beginning);
    if (beginning == NULL) return false;
    *beginning = (struct beginning){function, argument};
    HANDLE thread = CreateThread(NULL, STACK_BYTES, begin_thread, beginning, STACK_SIZE_PARAM_IS_A_RESERVATION, NULL);
    if (thread == NULL) {
        free(beginning);
        return false;
    }
    CloseHandle(thread);
    return true;
}

static inline void yield_thread(void) {
    SwitchToThread();
}

static inline void sleep_seconds(uint32_t seconds) {
    Sleep(seconds * 1000);
}

static inline void mutex_init(mutex *mutex) {
    InitializeSRWLock(mutex);
}

static inline void mutex_lock(mutex *mutex) {
    AcquireSRWLockExclusive(mutex);
}

static inline void mutex_unlock(mutex *mutex) {
    ReleaseSRWLockExclusive(mutex);
}

static inline void condition_init(condition *condition) {
    InitializeConditionVariable(condition);
}

static inline void condition_wait(condition *condition, mutex *mutex) {
    SleepConditionVariableSRW(condition, mutex, INFINITE, 0);
}

static inline void condition_wait_for(condition *condition, mutex *mutex, int64_t nanoseconds) {
    SleepConditionVariableSRW(condition, mutex, (DWORD)((nanoseconds + 999999) / 1000000), 0);
}

static inline void condition_signal(condition *condition) {
    WakeConditionVariable(condition);
}

static inline void condition_broadcast(condition *condition) {
    WakeAllConditionVariable(condition);
}

static inline void *allocate(size_t bytes) {
    return _aligned_malloc(bytes, CACHE_LINE);
}

static inline void deallocate(void *memory) {
    _aligned_free(memory);
}
