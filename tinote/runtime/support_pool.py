"""LLVM text of the pool's life: POSIX threads that live inside the support module, with no Python in them.

    tn_pool_new(main_thread, cores, spin) -> pool
    tn_pool_reset(pool, main_thread)                 after a fork, in the child
    tn_pool_quit(pool) -> workers still alive        at exit

A worker waits for the claim word of its own line to become 1: spinning for a while, then parked on a condition. Whoever
turns the word back to 0 runs the piece (see `support_parallel`).
"""

from __future__ import annotations

__all__ = ["TEXT", "TIMED_WAIT", "TIMED_WAIT_DARWIN"]

TEXT = """
declare i32 @pthread_mutex_init(ptr, ptr)
declare i32 @pthread_mutex_lock(ptr)
declare i32 @pthread_mutex_unlock(ptr)
declare i32 @pthread_cond_init(ptr, ptr)
declare i32 @pthread_cond_wait(ptr, ptr)
declare i32 @pthread_cond_signal(ptr)
declare i32 @pthread_cond_broadcast(ptr)
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_attr_init(ptr)
declare i32 @pthread_attr_destroy(ptr)
declare i32 @pthread_attr_setstacksize(ptr, i64)
declare i32 @pthread_attr_setdetachstate(ptr, i32)
declare i32 @pthread_sigmask(i32, ptr, ptr)
declare i32 @sigfillset(ptr)
declare i32 @sigdelset(ptr, i32)

define ptr @tn_pool_new(i64 %main.thread, i32 %cores, i64 %spin) {
entry:
  %bytes = add i64 $POOL_BYTES, 64
  %raw = call ptr @calloc(i64 1, i64 %bytes)
  %failed = icmp eq ptr %raw, null
  br i1 %failed, label %none, label %fill
none:
  ret ptr null
; Never freed: workers and blocks hold the address as long as the process lives.
fill:
  %number = ptrtoint ptr %raw to i64
  %up = add i64 %number, 63
  %down = and i64 %up, -64
  %shift = sub i64 %down, %number
  %pool = getelementptr i8, ptr %raw, i64 %shift
  %cores.at = getelementptr i8, ptr %pool, i64 $POOL_CORES
  store i32 %cores, ptr %cores.at
  %spin.at = getelementptr i8, ptr %pool, i64 $POOL_SPIN
  store i64 %spin, ptr %spin.at
  call void @tn_pool_reset(ptr %pool, i64 %main.thread)
  ret ptr %pool
}

; Makes the pool empty and free, as at birth: in a forked child no worker exists, and threads that are gone held locks.
define void @tn_pool_reset(ptr %pool, i64 %main.thread) {
entry:
  store i64 0, ptr %pool
  %workers.at = getelementptr i8, ptr %pool, i64 $POOL_WORKERS
  store i32 0, ptr %workers.at
  %main.at = getelementptr i8, ptr %pool, i64 $POOL_MAIN_THREAD
  store i64 %main.thread, ptr %main.at
  %epoch.at = getelementptr i8, ptr %pool, i64 $POOL_EPOCH
  %epoch = load i32, ptr %epoch.at
  %later = add i32 %epoch, 1
  store i32 %later, ptr %epoch.at
  %alive.at = getelementptr i8, ptr %pool, i64 $POOL_ALIVE
  store i32 0, ptr %alive.at
  %parked.at = getelementptr i8, ptr %pool, i64 $POOL_PARKED
  store i32 0, ptr %parked.at
  %remaining.at = getelementptr i8, ptr %pool, i64 $POOL_REMAINING
  store i64 0, ptr %remaining.at
  %mutex = getelementptr i8, ptr %pool, i64 $POOL_MUTEX
  %ignored.1 = call i32 @pthread_mutex_init(ptr %mutex, ptr null)
  %work = getelementptr i8, ptr %pool, i64 $POOL_WORK
  %ignored.2 = call i32 @pthread_cond_init(ptr %work, ptr null)
  %done = getelementptr i8, ptr %pool, i64 $POOL_DONE
  call void @condition_init(ptr %done)
  br label %next
next:
  %i = phi i64 [ 0, %entry ], [ %after, %clear ]
  %more = icmp ult i64 %i, $MAX_THREADS
  br i1 %more, label %clear, label %end
clear:
  %line.offset = shl i64 %i, 6
  %lines = getelementptr i8, ptr %pool, i64 $POOL_LINES
  %line = getelementptr i8, ptr %lines, i64 %line.offset
  store i32 0, ptr %line
  %after = add i64 %i, 1
  br label %next
end:
  ret void
}

define i32 @tn_pool_quit(ptr %pool) {
  %quit.at = getelementptr i8, ptr %pool, i64 $POOL_QUIT
  store atomic i32 1, ptr %quit.at seq_cst, align 4
  %mutex = getelementptr i8, ptr %pool, i64 $POOL_MUTEX
  %work = getelementptr i8, ptr %pool, i64 $POOL_WORK
  %ignored.1 = call i32 @pthread_mutex_lock(ptr %mutex)
  %ignored.2 = call i32 @pthread_cond_broadcast(ptr %work)
  %ignored.3 = call i32 @pthread_mutex_unlock(ptr %mutex)
  %alive.at = getelementptr i8, ptr %pool, i64 $POOL_ALIVE
  %alive = load atomic i32, ptr %alive.at seq_cst, align 4
  ret i32 %alive
}

; Starts workers until there are `wanted`, or as many as the system grants. They take no signals: those are for Python's
; main thread, which they wake from whatever it waits for.
define internal void @grow(ptr %pool, i32 %wanted) noinline {
entry:
  %all = alloca [128 x i8], align 16
  %old = alloca [128 x i8], align 16
  %attributes = alloca [128 x i8], align 16
  %handle = alloca i64, align 8
  %ignored.1 = call i32 @sigfillset(ptr %all)
$UNBLOCK_FAULTS
  %ignored.2 = call i32 @pthread_sigmask(i32 $SIG_SETMASK, ptr %all, ptr %old)
  %ignored.3 = call i32 @pthread_attr_init(ptr %attributes)
  %ignored.4 = call i32 @pthread_attr_setstacksize(ptr %attributes, i64 8388608)
  %ignored.5 = call i32 @pthread_attr_setdetachstate(ptr %attributes, i32 $DETACHED)
  %workers.at = getelementptr i8, ptr %pool, i64 $POOL_WORKERS
  %alive.at = getelementptr i8, ptr %pool, i64 $POOL_ALIVE
  %have = load i32, ptr %workers.at
  br label %next
next:
  %count = phi i32 [ %have, %entry ], [ %index, %started ]
  %more = icmp slt i32 %count, %wanted
  br i1 %more, label %start, label %done
start:
  %index = add i32 %count, 1
  %line = call ptr @line_of(ptr %pool, i32 %index)
  store i32 0, ptr %line
  %index.at = getelementptr i8, ptr %line, i64 $LINE_INDEX
  store i32 %index, ptr %index.at
  %pool.at = getelementptr i8, ptr %line, i64 $LINE_POOL
  store ptr %pool, ptr %pool.at
  %ignored.6 = atomicrmw add ptr %alive.at, i32 1 seq_cst
  %failed = call i32 @pthread_create(ptr %handle, ptr %attributes, ptr @worker, ptr %line)
  %ok = icmp eq i32 %failed, 0
  br i1 %ok, label %started, label %refused
started:
  store i32 %index, ptr %workers.at
  br label %next
refused:
  %ignored.7 = atomicrmw sub ptr %alive.at, i32 1 seq_cst
  br label %done
done:
  %ignored.8 = call i32 @pthread_attr_destroy(ptr %attributes)
  %ignored.9 = call i32 @pthread_sigmask(i32 $SIG_SETMASK, ptr %old, ptr null)
  ret void
}

define internal ptr @line_of(ptr %pool, i32 %index) {
  %wide = zext i32 %index to i64
  %offset = shl i64 %wide, 6
  %lines = getelementptr i8, ptr %pool, i64 $POOL_LINES
  %line = getelementptr i8, ptr %lines, i64 %offset
  ret ptr %line
}

define internal i1 @claim(ptr %line) {
  %pair = cmpxchg ptr %line, i32 1, i32 0 acq_rel monotonic
  %won = extractvalue { i32, i1 } %pair, 1
  ret i1 %won
}

define internal ptr @worker(ptr %line) {
entry:
  %pool.at = getelementptr i8, ptr %line, i64 $LINE_POOL
  %pool = load ptr, ptr %pool.at
  %index.at = getelementptr i8, ptr %line, i64 $LINE_INDEX
  %index = load i32, ptr %index.at
  %mutex = getelementptr i8, ptr %pool, i64 $POOL_MUTEX
  %work = getelementptr i8, ptr %pool, i64 $POOL_WORK
  %done = getelementptr i8, ptr %pool, i64 $POOL_DONE
  %parked.at = getelementptr i8, ptr %pool, i64 $POOL_PARKED
  %quit.at = getelementptr i8, ptr %pool, i64 $POOL_QUIT
  %remaining.at = getelementptr i8, ptr %pool, i64 $POOL_REMAINING
  %waiting.at = getelementptr i8, ptr %pool, i64 $POOL_WAITING
  %job.at = getelementptr i8, ptr %pool, i64 $POOL_JOB
  br label %top
top:
  %spin = call i64 @spin_time(ptr %pool)
  %begin = call i64 @now()
  %deadline = add i64 %begin, %spin
  br label %spinning
spinning:
  %turn = phi i32 [ 0, %top ], [ %turned, %pausing ], [ 0, %clock ]
  %seen = load atomic i32, ptr %line acquire, align 4
  %offered = icmp ne i32 %seen, 0
  br i1 %offered, label %try, label %count
count:
  %turned = add i32 %turn, 1
  %often = icmp eq i32 %turned, 32
  br i1 %often, label %clock, label %pausing
pausing:
  call void @pause()
  br label %spinning
clock:
  %time = call i64 @now()
  %late = icmp sge i64 %time, %deadline
  br i1 %late, label %park, label %spinning
park:
  %ignored.1 = call i32 @pthread_mutex_lock(ptr %mutex)
  %ignored.2 = atomicrmw add ptr %parked.at, i32 1 seq_cst
  br label %parked
parked:
  %quit = load atomic i32, ptr %quit.at seq_cst, align 4
  %quitting = icmp ne i32 %quit, 0
  br i1 %quitting, label %leave, label %look
look:
  %word = load atomic i32, ptr %line seq_cst, align 4
  %woken = icmp ne i32 %word, 0
  br i1 %woken, label %unpark, label %wait
wait:
  %ignored.3 = call i32 @pthread_cond_wait(ptr %work, ptr %mutex)
  br label %parked
unpark:
  %ignored.4 = atomicrmw sub ptr %parked.at, i32 1 seq_cst
  %ignored.5 = call i32 @pthread_mutex_unlock(ptr %mutex)
  br label %try
try:
  %won = call i1 @claim(ptr %line)
  br i1 %won, label %run, label %top
run:
  %job = load ptr, ptr %job.at
  call void @piece(ptr %job, i32 %index)
  ; From here on the job may be gone; the pool never is.
  %before = atomicrmw sub ptr %remaining.at, i32 1 seq_cst
  %last = icmp eq i32 %before, 1
  br i1 %last, label %tell, label %top
tell:
  %waiting = load atomic i32, ptr %waiting.at seq_cst, align 4
  %sleeps = icmp ne i32 %waiting, 0
  br i1 %sleeps, label %wake, label %top
wake:
  %ignored.6 = call i32 @pthread_mutex_lock(ptr %mutex)
  %ignored.7 = call i32 @pthread_cond_signal(ptr %done)
  %ignored.8 = call i32 @pthread_mutex_unlock(ptr %mutex)
  br label %top
leave:
  %ignored.9 = atomicrmw sub ptr %parked.at, i32 1 seq_cst
  %ignored.10 = call i32 @pthread_mutex_unlock(ptr %mutex)
  %alive.at = getelementptr i8, ptr %pool, i64 $POOL_ALIVE
  %ignored.11 = atomicrmw sub ptr %alive.at, i32 1 seq_cst
  ret ptr null
}

; With more threads than cores spinning only takes time away from those who work.
define internal i64 @spin_time(ptr %pool) {
  %workers.at = getelementptr i8, ptr %pool, i64 $POOL_WORKERS
  %cores.at = getelementptr i8, ptr %pool, i64 $POOL_CORES
  %spin.at = getelementptr i8, ptr %pool, i64 $POOL_SPIN
  %workers = load atomic i32, ptr %workers.at monotonic, align 4
  %cores = load i32, ptr %cores.at
  %spin = load i64, ptr %spin.at
  %room = icmp slt i32 %workers, %cores
  %result = select i1 %room, i64 %spin, i64 0
  ret i64 %result
}
"""

TIMED_WAIT = """
declare i32 @pthread_condattr_init(ptr)
declare i32 @pthread_condattr_setclock(ptr, i32)
declare i32 @pthread_condattr_destroy(ptr)
declare i32 @pthread_cond_timedwait(ptr, ptr, ptr)

define internal void @condition_init(ptr %condition) {
  %attributes = alloca [64 x i8], align 16
  %ignored.1 = call i32 @pthread_condattr_init(ptr %attributes)
  %ignored.2 = call i32 @pthread_condattr_setclock(ptr %attributes, i32 $CLOCK_MONOTONIC)
  %ignored.3 = call i32 @pthread_cond_init(ptr %condition, ptr %attributes)
  %ignored.4 = call i32 @pthread_condattr_destroy(ptr %attributes)
  ret void
}

define internal void @condition_wait(ptr %condition, ptr %mutex, i64 %nanoseconds) {
  %time = alloca [2 x i64], align 16
  %now = call i64 @now()
  %until = add i64 %now, %nanoseconds
  %seconds = udiv i64 %until, 1000000000
  %fraction = urem i64 %until, 1000000000
  store i64 %seconds, ptr %time
  %fraction.at = getelementptr i8, ptr %time, i64 8
  store i64 %fraction, ptr %fraction.at
  %ignored = call i32 @pthread_cond_timedwait(ptr %condition, ptr %mutex, ptr %time)
  ret void
}
"""

# macOS has no monotonic clock for conditions but a wait of a given length.
TIMED_WAIT_DARWIN = """
declare i32 @pthread_cond_timedwait_relative_np(ptr, ptr, ptr)

define internal void @condition_init(ptr %condition) {
  %ignored = call i32 @pthread_cond_init(ptr %condition, ptr null)
  ret void
}

define internal void @condition_wait(ptr %condition, ptr %mutex, i64 %nanoseconds) {
  %time = alloca [2 x i64], align 16
  %seconds = udiv i64 %nanoseconds, 1000000000
  %fraction = urem i64 %nanoseconds, 1000000000
  store i64 %seconds, ptr %time
  %fraction.at = getelementptr i8, ptr %time, i64 8
  store i64 %fraction, ptr %fraction.at
  %ignored = call i32 @pthread_cond_timedwait_relative_np(ptr %condition, ptr %mutex, ptr %time)
  ret void
}
"""
